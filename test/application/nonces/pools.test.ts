import { afterEach, describe, expect, it } from "vitest";
import type { CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { type PoolAsked, stickyMember } from "../../../src/domain/nonces/pool.ts";
import type { CommitFault } from "../../doubles/memory-store.ts";
import { deferred } from "../../support/deferred.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { policiesOf } from "../../support/policies.ts";
import { CHAIN_ID, SIGNERS, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const POOLS = new Map([["payouts", SIGNERS]]);
const [A, B, C] = SIGNERS as [Address, Address, Address];

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World({ ...options, node: { pools: POOLS, ...options.node } });
  return world.startNode();
}

/** Two nodes, each with lanes of the pool. */
async function startTwo(options: WorldOptions = {}): Promise<readonly [WorldNode, WorldNode]> {
  const first = await start(options);
  const second = await world.startNode();
  await shared();
  return [first, second];
}

/** Each of two nodes has lanes of the pool. */
async function shared(): Promise<void> {
  const owners = () => new Set(SIGNERS.map((signer) => world.ownerOf(signer)));
  await world.until(() => owners().size === 2 && !owners().has(undefined), 30_000);
}

type ForPool = Partial<PoolAsked> & { readonly requestId?: string; readonly payload?: object };

function toPool({ requestId, payload, ...asked }: ForPool = {}): CreateRequest {
  const { payload: usual, ...rest } = transfer({ signer: { pool: "payouts", ...asked } });
  return { ...rest, payload: payload ?? usual, ...(requestId === undefined ? {} : { requestId }) };
}

/** Keys that stay with this member. */
function keyOf(signer: Address): string {
  const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`);
  return keys.find((key) => stickyMember(SIGNERS, key) === signer) as string;
}

const create = ({ node }: WorldNode, request: CreateRequest) => world.settle(node.api.create(request));
const refused = ({ node }: WorldNode, request: CreateRequest) => world.refusal(node.api.create(request));
const noncesOf = (signer: Address) =>
  world
    .rows()
    .filter(({ lane }) => lane.signer === signer)
    .map(({ nonce }) => nonce);

describe("a request to a pool", () => {
  // protects [Pools] src/application/stages/1-create/pools.ts
  it("spreads over its lanes, also where all come at once; each answer names the signer", async () => {
    const entry = await start();
    const created = await world.settle(Promise.all(Array.from({ length: 30 }, () => entry.node.api.create(toPool()))));
    for (const signer of SIGNERS) expect(created.filter(({ lane }) => lane.signer === signer)).toHaveLength(10);
    await world.allSettled(30);
    checkInvariants(world);
  });

  it("goes in turn to lanes that wait for nothing", async () => {
    const entry = await start();
    const signers: Address[] = [];
    for (let count = 0; count < 6; count++) {
      signers.push((await create(entry, toPool())).lane.signer);
      await world.allSettled(count + 1);
    }
    expect(new Set(signers.slice(0, 3)).size).toBe(3);
    expect(signers.slice(3)).toEqual(signers.slice(0, 3));
  });

  it("goes where fewest stand before it, past a lane that is stopped, and to a stopped one where all are", async () => {
    const entry = await start();
    world.holdBlocks();
    for (const signer of [A, A, B]) await create(entry, transfer({ signer }));
    expect((await create(entry, toPool())).lane.signer).toBe(C);
    expect([(await create(entry, toPool())).lane.signer, (await create(entry, toPool())).lane.signer].sort()).toEqual(
      [B, C].sort(),
    );
    const suspend = (signer: Address) =>
      entry.node.api.actOnLane({ action: "suspend", signer, request: { reason: "r" }, actor: "operator:o" });
    await world.settle(Promise.all([suspend(B), suspend(C)]));
    expect((await create(entry, toPool())).lane.signer).toBe(A);
    await world.settle(suspend(A));
    expect(await create(entry, toPool())).toMatchObject({ outcome: "created", state: "ALLOCATED" });
  });

  it("reaches lanes of other nodes, by what the database says of their queues", async () => {
    const [first, second] = await startTwo();
    world.holdBlocks();
    const ofFirst = SIGNERS.filter((signer) => world.ownerOf(signer) === "node-1");
    for (const signer of ofFirst) for (let n = 0; n < 4; n++) await create(first, transfer({ signer }));
    await world.clock.advance(1_100);
    const { lane } = await create(second, toPool());
    expect(ofFirst).not.toContain(lane.signer);
    const there = await create(first, toPool());
    expect(ofFirst).not.toContain(there.lane.signer);
    world.releaseBlocks();
    await world.allSettled(4 * ofFirst.length + 2);
    checkInvariants(world);
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("is counted as soon as it is chosen, before it has a nonce and before another node's queue is read again", async () => {
    const [first] = await startTwo();
    world.holdBlocks();
    for (let n = 0; n < 3; n++) await create(first, transfer({ signer: A }));
    await world.clock.advance(1_100);
    const atOnce = Promise.all(Array.from({ length: 9 }, () => first.node.api.create(toPool())));
    const spread = (created: readonly { readonly lane: { readonly signer: Address } }[]) =>
      SIGNERS.map((signer) => created.filter(({ lane }) => lane.signer === signer).length);
    expect(spread(await world.settle(atOnce))).toEqual([1, 4, 4]);
    const later = [];
    for (let n = 0; n < 6; n++) later.push(await create(first, toPool()));
    expect(spread(later)).toEqual([2, 2, 2]);
  });

  it("keeps each item of a batch to itself: refused ones take nothing from the others", async () => {
    const entry = await start();
    const batch = [toPool({ requestId: "a" }), toPool({ pool: "none" }), toPool({ requestId: "a" }), transfer()];
    const results = await world.settle(entry.node.api.createBatch(batch));
    expect(results.map((result) => (result instanceof FencepostError ? result.code : result.outcome)).sort()).toEqual(
      ["UNKNOWN_SIGNER", "created", "created", "existing"].sort(),
    );
    await world.allSettled(2);
    checkInvariants(world);
  });
});

describe("a request id of a pool", () => {
  it.each<CommitFault>(["unknown-committed", "unknown-lost"])(
    // protects [Pools] src/application/stages/1-create/pools.ts, src/adapters/postgres/statements/pool-choice.ts
    "has one transaction where the commit of the first is %s and it is repeated on another node and lane",
    async (fault) => {
      const [first, second] = await startTwo();
      const here = SIGNERS.find((signer) => world.ownerOf(signer) === "node-1") as Address;
      const there = SIGNERS.find((signer) => world.ownerOf(signer) === "node-2") as Address;
      first.store.failNextCommit(fault);
      const error = await refused(first, toPool({ requestId: "once", stickyKey: keyOf(here) }));
      expect(error).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
      const again = await create(second, toPool({ requestId: "once", stickyKey: keyOf(there) }));
      const isKept = fault === "unknown-committed";
      expect(again).toMatchObject({
        outcome: isKept ? "existing" : "created",
        lane: { signer: isKept ? here : there },
      });
      expect(again.txId === error.extras.txId).toBe(isKept);
      const third = await create(first, toPool({ requestId: "once" }));
      expect(third).toMatchObject({ outcome: "existing", txId: again.txId, lane: again.lane });
      await world.allSettled(1);
      expect(world.rows()).toHaveLength(1);
      checkInvariants(world);
    },
  );

  // protects [Pools] src/domain/ledger/allocate.ts, src/adapters/postgres/statements/pool-choice.ts
  it("has one transaction where two nodes give it two lanes at the same moment; the second consumes no nonce", async () => {
    const gate = deferred<void>();
    let waiting = 0;
    const failpoint = (name: string) => {
      if (name !== "create.prepared") return;
      waiting++;
      return gate.promise;
    };
    world = new World({ node: { pools: POOLS } });
    const first = await world.startNode({ failpoint });
    const second = await world.startNode({ failpoint });
    await shared();
    const here = SIGNERS.find((signer) => world.ownerOf(signer) === "node-1") as Address;
    const there = SIGNERS.find((signer) => world.ownerOf(signer) === "node-2") as Address;
    const both = Promise.all([
      first.node.api.create(toPool({ requestId: "once", stickyKey: keyOf(here) })),
      second.node.api.create(toPool({ requestId: "once", stickyKey: keyOf(there) })),
    ]);
    await world.until(() => waiting === 2, 10_000);
    gate.resolve();
    const [one, other] = await world.settle(both);
    expect([one.outcome, other.outcome].sort()).toEqual(["created", "existing"]);
    expect(other.txId).toBe(one.txId);
    expect(world.rows()).toHaveLength(1);
    expect(noncesOf(one.lane.signer)).toEqual([0]);
    const loser = one.lane.signer === here ? there : here;
    expect(await create(first, transfer({ signer: loser }))).toMatchObject({ nonce: 0 });
    await world.allSettled(2);
    checkInvariants(world);
  });

  it("has one transaction where one node is asked twenty times at once, and one for each of its payloads' pools", async () => {
    const entry = await start({ node: { pools: new Map([...POOLS, ["refunds", [A, B]]]) } });
    const asked = Array.from({ length: 20 }, () => entry.node.api.create(toPool({ requestId: "once" })));
    const created = await world.settle(Promise.all(asked));
    expect(new Set(created.map(({ txId }) => txId)).size).toBe(1);
    expect(created.filter(({ outcome }) => outcome === "created")).toHaveLength(1);
    expect(world.rows()).toHaveLength(1);
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("wins over a refusal: accepted on one lane while another one was still being asked about", async () => {
    const entry = await start();
    world.chain.setBalance(B, 0n);
    const gate = deferred<void>();
    const simulate = entry.rpc.simulate.bind(entry.rpc);
    entry.rpc.simulate = async (call) => {
      if (call.from === B) await gate.promise;
      return simulate(call);
    };
    const late = entry.node.api.create(toPool({ requestId: "once", stickyKey: keyOf(B) }));
    late.catch(() => undefined);
    await world.clock.advance(100);
    const { txId } = await create(entry, toPool({ requestId: "once", stickyKey: keyOf(A) }));
    gate.resolve();
    expect(await world.settle(late)).toMatchObject({ outcome: "existing", txId, lane: { signer: A } });
    const other = await refused(entry, toPool({ requestId: "other", stickyKey: keyOf(B) }));
    expect(other).toMatchObject({ code: "SUBMISSION_REJECTED" });
  });

  it("is refused with another payload, and says which transaction has it", async () => {
    const entry = await start();
    const { txId } = await create(entry, toPool({ requestId: "once" }));
    const payload = { ...(toPool().payload as object), value: "2" };
    const error = await refused(entry, toPool({ requestId: "once", payload }));
    expect(error).toMatchObject({ code: "REQUEST_ID_REUSED", extras: { txId } });
  });

  it("that a caller gave one of its lanes directly is found there, and that of the pool is a lane's own too", async () => {
    const entry = await start();
    const direct = await create(entry, transfer({ signer: C, requestId: "direct" }));
    expect(await create(entry, toPool({ requestId: "direct" }))).toMatchObject({
      outcome: "existing",
      txId: direct.txId,
    });
    const pooled = await create(entry, toPool({ requestId: "pooled" }));
    const same = transfer({ signer: pooled.lane.signer, requestId: "pooled" });
    expect(await create(entry, same)).toMatchObject({ outcome: "existing", txId: pooled.txId });
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("is found after its signer, or the whole pool, has left the configuration, and where nobody has the key", async () => {
    const entry = await start();
    const { txId, lane } = await create(entry, toPool({ requestId: "once" }));
    await world.allSettled(1);
    world.crash(entry);
    const others = SIGNERS.filter((signer) => signer !== lane.signer);
    const later = await world.startNode({ node: { pools: new Map([["payouts", others]]) }, signers: others });
    expect(await create(later, toPool({ requestId: "once" }))).toMatchObject({ outcome: "existing", txId, lane });
    const last = await world.startNode({ node: { pools: new Map() } });
    expect(await create(last, toPool({ requestId: "once" }))).toMatchObject({ outcome: "existing", txId, lane });
    const asked = { pool: "payouts", requestId: "once" };
    expect(await world.settle(last.node.api.transactionByRequest(asked))).toMatchObject({ txId, lane });
  });

  it("waits for approval on one lane: a repeat finds it there, before and after its nonce", async () => {
    const policies = policiesOf({ signers: { "*": { requireApproval: { aboveValue: "0", expiresAfter: "60s" } } } });
    const entry = await start({ policies });
    const request = toPool({ requestId: "big" });
    const { txId, lane } = await world.settle(entry.node.api.create(request, "ann"));
    const again = () => world.settle(entry.node.api.create(toPool({ requestId: "big" }), "ann"));
    expect(await again()).toMatchObject({ outcome: "existing", txId, lane, state: "CREATED" });
    const order = { action: "approve", txId, request: { reason: "r" }, actor: "operator:bob" } as const;
    await world.settle(entry.node.api.act(order));
    await world.allSettled(1);
    expect(await again()).toMatchObject({ outcome: "existing", txId, lane, state: "CONFIRMED" });
    expect(world.database.state.poolChoices.size).toBe(1);
  });

  it("of another API key is refused without its transaction", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(toPool({ requestId: "once" }), "ann"));
    const error = await world.refusal(entry.node.api.create(toPool({ requestId: "once" }), "bob"));
    expect(error.code).toBe("REQUEST_ID_REUSED");
    expect(error.extras.txId).toBeUndefined();
  });
});

describe("a sticky key", () => {
  // protects [Pools] src/domain/nonces/pool.ts
  it("stays with its signer: behind others, and while its lane is stopped", async () => {
    const entry = await start();
    world.holdBlocks();
    const stickyKey = keyOf(B);
    for (let n = 0; n < 5; n++) expect((await create(entry, toPool({ stickyKey }))).lane.signer).toBe(B);
    const order = { action: "suspend", signer: B, request: { reason: "r" }, actor: "operator:o" } as const;
    await world.settle(entry.node.api.actOnLane(order));
    expect(await create(entry, toPool({ stickyKey }))).toMatchObject({ lane: { signer: B }, nonce: 5 });
  });
});

describe("the balances of a pool", () => {
  const dear = { to: TO, value: "1000000000000000000", gas: 21_000, maxFeePerGas: "20000000000" };

  // protects [Pools] src/domain/nonces/pool.ts, src/application/stages/1-create/pools.ts
  it("decide: a signer that cannot pay is passed over, whatever its queue", async () => {
    const entry = await start();
    for (const signer of [A, B]) world.chain.setBalance(signer, 10n ** 17n);
    const created = await world.settle(
      Promise.all(Array.from({ length: 4 }, () => entry.node.api.create(toPool({ payload: dear })))),
    );
    expect(created.map(({ lane }) => lane.signer)).toEqual([C, C, C, C]);
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("are asked anew before a request is refused for them, and once more it is taken as soon as one is filled", async () => {
    const entry = await start();
    for (const signer of SIGNERS) world.chain.setBalance(signer, 10n ** 17n);
    const error = await refused(entry, toPool({ payload: dear }));
    expect(error).toMatchObject({ code: "SUBMISSION_REJECTED", extras: { reason: "INSUFFICIENT_FUNDS" } });
    world.chain.setBalance(B, 10n ** 19n);
    world.chain.mine();
    await world.clock.advance(300);
    expect((await create(entry, toPool({ payload: dear }))).lane.signer).toBe(B);
  });

  // protects [Pools] src/domain/nonces/pool.ts, src/application/stages/1-create/pools.ts
  it("are judged once more where the gas is known: the next member is tried, and the answer is its", async () => {
    const entry = await start();
    // Enough for the value, and for gas at the base fee; not for what the market offers.
    const payload = { to: TO, value: "1000000000000000000" };
    const least = 10n ** 18n + 21_000n * (world.chain.head.baseFeePerGas ?? 0n);
    for (const signer of [A, B]) world.chain.setBalance(signer, least + 1n);
    for (const _ of SIGNERS) {
      const { lane, nonce } = await create(entry, toPool({ payload }));
      expect(lane.signer).toBe(C);
      await world.allSettled((nonce ?? 0) + 1);
    }
    expect(noncesOf(A)).toEqual([]);
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("that the chain does not tell refuse nobody", async () => {
    const entry = await start();
    await create(entry, toPool());
    for (const signer of SIGNERS) await create(entry, transfer({ signer }));
    world.holdBlocks();
    entry.faults.inject({ kind: "unavailable" });
    expect(await create(entry, toPool({ payload: { ...dear, maxPriorityFeePerGas: "1" } }))).toMatchObject({
      outcome: "created",
    });
  });
});

describe("a pool that cannot be used", () => {
  it("is UNKNOWN_SIGNER with the names that there are, and bad fields are named by their path", async () => {
    const entry = await start();
    const error = await refused(entry, toPool({ pool: "payroll" }));
    expect(error).toMatchObject({ code: "UNKNOWN_SIGNER" });
    expect(error.message).toContain("payouts");
    const bad: readonly (readonly [unknown, string])[] = [
      [{}, "signer.pool"],
      [{ pool: 7 }, "signer.pool"],
      [{ pool: "no spaces" }, "signer.pool"],
      [{ pool: "payouts", sticky: "a" }, "signer.sticky"],
      [{ pool: "payouts", stickyKey: "" }, "signer.stickyKey"],
      [{ pool: "payouts", stickyKey: "a\u0000" }, "signer.stickyKey"],
      [["payouts"], "signer"],
      [null, "signer"],
    ];
    for (const [signer, path] of bad) {
      expect(await refused(entry, transfer({ signer })), JSON.stringify(signer)).toMatchObject({
        code: "INVALID_REQUEST",
        extras: { path },
      });
    }
    expect(world.rows()).toEqual([]);
  });

  it("is full where the queue of each lane is, and takes the next one as soon as there is room", async () => {
    const gate = deferred<void>();
    world = new World({ node: { pools: POOLS, queueLimit: 1 } });
    const entry = await world.startNode({
      failpoint: (name) => (name === "create.prepared" ? gate.promise : undefined),
    });
    const taken = SIGNERS.map(() => entry.node.api.create(toPool()));
    await world.clock.advance(50);
    expect(await refused(entry, toPool())).toMatchObject({ code: "QUEUE_FULL" });
    gate.resolve();
    const created = await world.settle(Promise.all(taken));
    expect(new Set(created.map(({ lane }) => lane.signer)).size).toBe(3);
    expect(await create(entry, toPool())).toMatchObject({ outcome: "created" });
  });

  // protects [Attacks] src/application/stages/1-create/pools.ts
  it("is forbidden to a key that is not for all its signers, and is not named to it", async () => {
    const entry = await start();
    const limits = (...signers: readonly Address[]) => ({ signers: new Set(signers), chains: null });
    const ask = (of: ReturnType<typeof limits>, pool = "payouts") => entry.node.api.create(toPool({ pool }), "key", of);
    expect(await world.refusal(ask(limits(A, B)))).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signers" } });
    const unknown = await world.refusal(ask(limits(A, B), "payroll"));
    expect(unknown.code).toBe("UNKNOWN_SIGNER");
    expect(unknown.message).not.toContain("payouts");
    expect(await world.settle(ask(limits(A, B, C)))).toMatchObject({ outcome: "created" });
    const elsewhere = { signers: null, chains: new Set([CHAIN_ID + 1]) };
    const outside = await world.refusal(entry.node.api.create(toPool(), "key", elsewhere));
    expect(outside).toMatchObject({ code: "FORBIDDEN", extras: { rule: "chains" } });
  });

  it("is no signer for a dry run of policies, which says what to name", async () => {
    const entry = await start();
    const error = await world.refusal(entry.node.api.checkPolicy(toPool()));
    expect(error).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "signer" } });
  });
});

describe("the transaction of a pool's request", () => {
  it("is found by the pool's name, or by the signer that was chosen; not by both at once, and not where there is none", async () => {
    const entry = await start();
    const { txId, lane } = await create(entry, toPool({ requestId: "once" }));
    const find = (query: object) => entry.node.api.transactionByRequest({ requestId: "once", ...query });
    expect(await world.settle(find({ pool: "payouts" }))).toMatchObject({ txId });
    expect(await world.settle(find({ signer: lane.signer }))).toMatchObject({ txId });
    const both = await world.refusal(find({ pool: "payouts", signer: lane.signer }));
    expect(both).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "pool" } });
    expect(await world.refusal(find({ pool: "refunds" }))).toMatchObject({ code: "NOT_FOUND" });
    const { summary } = await world.settle(entry.node.api.explain(txId));
    expect(summary).toContain("from the pool payouts");
  });
});
