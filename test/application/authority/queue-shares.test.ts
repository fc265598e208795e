import { afterEach, describe, expect, it } from "vitest";
import type { Created } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { forSigner } from "../../support/policies.ts";
import { SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

/**
 * The API key may use a tenth of the queue. The queue's limit is forty, so the key may have four queued transactions.
 */
const LIMITS = { signers: null, chains: null, queueShare: 0.1 } as const;
const FULL = { code: "QUOTA_EXCEEDED", extras: { rule: "queueShare", limit: 4, retryAfterSeconds: 1 } };

let world: World;
afterEach(() => world.close());

async function start(nodes = 1): Promise<readonly WorldNode[]> {
  world = new World({ node: { queueLimit: 40 } });
  world.holdBlocks();
  const started: WorldNode[] = [];
  for (let each = 0; each < nodes; each++) started.push(await world.startNode());
  return started;
}

type Result = Created | FencepostError;

function create({ node }: WorldNode, owner: string, requestId?: string): Promise<Result> {
  const asked = node.api.create(transfer(requestId === undefined ? {} : { requestId }), owner, LIMITS);
  return world.settle(asked.catch((error: FencepostError) => error));
}

async function batch({ node }: WorldNode, owner: string, count: number): Promise<readonly Result[]> {
  return world.settle(
    node.api.createBatch(
      Array.from({ length: count }, () => transfer()),
      owner,
      LIMITS,
    ),
  );
}

const isRefused = (result: Result): boolean => result instanceof FencepostError;

describe("an API key with a share of a lane's queue", () => {
  // protects [Attacks] src/application/stages/1-create/answer-existing.ts
  it("is refused when its share is full, while other keys are accepted", async () => {
    const [node] = (await start()) as [WorldNode];
    const results = await batch(node, "greedy", 6);
    expect(results.map(isRefused)).toEqual([false, false, false, false, true, true]);
    expect(results[5]).toMatchObject(FULL);
    expect(await create(node, "greedy")).toMatchObject(FULL);
    expect(await create(node, "modest")).toMatchObject({ outcome: "created", nonce: 4 });
    const free = { signers: null, chains: null, queueShare: null };
    expect(await world.settle(node.node.api.create(transfer(), "free", free))).toMatchObject({ outcome: "created" });
    expect(world.rows()).toHaveLength(6);
  });

  // protects [Attacks] src/application/lane/queue-shares.ts, src/application/stages/1-create/create.ts, src/adapters/postgres/stores/loads.ts
  it("regains a slot only when a transaction is mined", async () => {
    const [node] = (await start()) as [WorldNode];
    await batch(node, "greedy", 4);
    await world.clock.advance(20_000);
    expect(await create(node, "greedy")).toMatchObject(FULL);
    world.chain.mine();
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    expect((await batch(node, "greedy", 2)).map(isRefused)).toEqual([false, false]);
    world.chain.reorg(1, { drop: "all", keepInPool: true, newBlocks: 2 });
    await world.until(() => world.rows().every(({ subState }) => subState !== "MINED"));
    expect(await create(node, "greedy")).toMatchObject(FULL);
    world.releaseBlocks();
    await world.allSettled(6);
    expect((await batch(node, "greedy", 5)).map(isRefused)).toEqual([false, false, false, false, true]);
  });

  // protects [Attacks] src/application/stages/1-create/answer-existing.ts
  it("cannot exceed its share by concurrent creates, single or in batches", async () => {
    const [node] = (await start()) as [WorldNode];
    const alone = Array.from({ length: 10 }, () => create(node, "greedy"));
    const results = [...(await Promise.all(alone)), ...(await batch(node, "greedy", 3))];
    expect(results.filter((result) => !isRefused(result))).toHaveLength(4);
    expect(world.rows()).toHaveLength(4);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts
  it("gets the existing transaction for a repeated create despite a full share", async () => {
    const [node] = (await start()) as [WorldNode];
    const first = await create(node, "greedy", "order-1");
    await batch(node, "greedy", 3);
    expect(await create(node, "greedy", "order-1")).toMatchObject({
      outcome: "existing",
      txId: (first as Created).txId,
    });
    expect(await create(node, "greedy", "order-2")).toMatchObject(FULL);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts
  it("learns that its create was made, if the answer was lost and the share is full by then", async () => {
    const [first, second] = (await start(2)) as [WorldNode, WorldNode];
    await batch(first, "greedy", 3);
    const asked = world.ownerOf(SIGNER) === "node-1" ? second : first;
    world.network.inject("lostReply");
    expect(await create(asked, "greedy")).toMatchObject({ outcome: "created", nonce: 3 });
    world.network.inject("lostReply");
    expect(await create(asked, "greedy")).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
    expect(world.rows()).toHaveLength(4);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts
  it("uses no slot for a refused create", async () => {
    const [node] = (await start()) as [WorldNode];
    const hopeless = { payload: { to: SIGNER, value: "1", gas: 1 } };
    for (let each = 0; each < 6; each++) {
      const asked = node.node.api.create(transfer(hopeless), "greedy", LIMITS).catch((error) => error);
      expect(await world.settle(asked)).toMatchObject({ code: "SUBMISSION_REJECTED" });
    }
    const stored = node.store.commit.bind(node.store);
    node.store.commit = () => Promise.reject(new StoreUnavailable("away"));
    expect(await create(node, "greedy")).toMatchObject({ code: "UNAVAILABLE" });
    node.store.commit = stored;
    await world.clock.advance(1_000);
    expect((await batch(node, "greedy", 5)).map(isRefused)).toEqual([false, false, false, false, true]);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts
  it("uses no slot for a transaction that awaits approval", async () => {
    world = new World({
      node: { queueLimit: 40 },
      policies: forSigner(SIGNER, { requireApproval: { aboveValue: "100" } }),
    });
    world.holdBlocks();
    const entry = await world.startNode();
    const { api } = entry.node;
    const payload = { ...(transfer().payload as object), value: 500 };
    const big = async () => (await world.settle(api.create(transfer({ payload }), "greedy", LIMITS))).txId;
    const decide = (action: "approve" | "reject", txId: string) =>
      world.settle(api.act({ action, txId, request: { reason: "asked" }, actor: "operator:bob" }));
    for (let each = 0; each < 4; each++) await decide("reject", await big());
    const kept = await big();
    expect((await batch(entry, "greedy", 3)).map(isRefused)).toEqual([false, false, false]);
    await decide("approve", kept);
    await world.until(() => world.database.state.transactions.get(kept)?.nonce === 3);
    expect(await create(entry, "greedy")).toMatchObject(FULL);
  });

  // protects [Attacks] src/application/lane/queue-shares.ts, src/application/stages/1-create/create.ts, src/adapters/postgres/stores/loads.ts
  it("keeps its used slots when another node takes over the lane", async () => {
    const [first] = (await start()) as [WorldNode];
    await batch(first, "greedy", 3);
    world.crash(first);
    const second = await world.startNode();
    await world.until(() => world.ownerOf(SIGNER) === "node-2");
    expect((await batch(second, "greedy", 2)).map(isRefused)).toEqual([false, true]);
  });

  // protects [Attacks] src/application/lane/queue-shares.ts, src/application/stages/1-create/create.ts, src/adapters/postgres/stores/loads.ts
  it("is limited by the lane's owner, whichever node receives the create", async () => {
    const nodes = await start(2);
    await world.until(() => world.ownerOf(SIGNER) !== undefined);
    const asked = nodes.find(
      ({ node }) => `node-${nodes.findIndex((each) => each.node === node) + 1}` !== world.ownerOf(SIGNER),
    );
    const owner = nodes.find((each) => each !== asked) as WorldNode;
    expect((await batch(asked as WorldNode, "greedy", 3)).map(isRefused)).toEqual([false, false, false]);
    expect(world.network.forwards.length).toBeGreaterThan(0);
    expect((await batch(owner, "greedy", 2)).map(isRefused)).toEqual([false, true]);
    expect((await batch(asked as WorldNode, "greedy", 1))[0]).toMatchObject(FULL);
  });

  it("has its used slots counted by one database read", async () => {
    const [node] = (await start()) as [WorldNode];
    let reads = 0;
    const read = node.store.openOf.bind(node.store);
    node.store.openOf = (...asked) => {
      reads++;
      return read(...asked);
    };
    await world.settle(node.node.api.create(transfer(), "free", { signers: null, chains: null, queueShare: null }));
    expect(reads).toBe(0);
    for (let each = 0; each < 3; each++) await create(node, "greedy");
    expect(reads).toBe(1);
  });

  // protects [Attacks] src/application/lane/queue-shares.ts
  it("gets UNAVAILABLE while its used slots cannot be read from the database", async () => {
    const [node] = (await start()) as [WorldNode];
    await world.settle(node.node.api.create(transfer()));
    const read = node.store.openOf.bind(node.store);
    node.store.openOf = () => Promise.reject(new StoreUnavailable("away"));
    expect(await create(node, "greedy")).toMatchObject({ code: "UNAVAILABLE" });
    node.store.openOf = read;
    expect((await batch(node, "greedy", 5)).map(isRefused)).toEqual([false, false, false, false, true]);
  });
});
