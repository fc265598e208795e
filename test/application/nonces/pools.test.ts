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

/** Starts two nodes, each owning lanes of the pool. */
async function startTwo(options: WorldOptions = {}): Promise<readonly [WorldNode, WorldNode]> {
  const first = await start(options);
  const second = await world.startNode();
  await shared();
  return [first, second];
}

/** Resolves when each of two nodes owns lanes of the pool. */
async function shared(): Promise<void> {
  const owners = () => new Set(SIGNERS.map((signer) => world.ownerOf(signer)));
  await world.until(() => owners().size === 2 && !owners().has(undefined), 30_000);
}

type ForPool = Partial<PoolAsked> & { readonly requestId?: string; readonly payload?: object };

function toPool({ requestId, payload, ...asked }: ForPool = {}): CreateRequest {
  const { payload: usual, ...rest } = transfer({ signer: { pool: "payouts", ...asked } });
  return { ...rest, payload: payload ?? usual, ...(requestId === undefined ? {} : { requestId }) };
}

/** Returns a sticky key that selects this member of the pool. */
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

describe("creates for a pool", () => {
  // protects [Pools] src/application/stages/1-create/pools.ts
  it("are spread evenly over the pool's lanes", async () => {
    const entry = await start();
    const created = await world.settle(Promise.all(Array.from({ length: 30 }, () => entry.node.api.create(toPool()))));
    for (const signer of SIGNERS) expect(created.filter(({ lane }) => lane.signer === signer)).toHaveLength(10);
    await world.allSettled(30);
    checkInvariants(world);
  });

  it("go to idle lanes in turn", async () => {
    const entry = await start();
    const signers: Address[] = [];
    for (let count = 0; count < 6; count++) {
      signers.push((await create(entry, toPool())).lane.signer);
      await world.allSettled(count + 1);
    }
    expect(new Set(signers.slice(0, 3)).size).toBe(3);
    expect(signers.slice(3)).toEqual(signers.slice(0, 3));
  });

  it("go to the shortest queue among lanes that are not suspended", async () => {
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

  it("are also sent to lanes of other nodes, whose queue lengths are read from the database", async () => {
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
  it("count for their lane's queue length at once, even before they have a nonce", async () => {
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

  it("are independent within one batch: refused items do not affect the others", async () => {
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

describe("a request id used with a pool", () => {
  it.each<CommitFault>(["unknown-committed", "unknown-lost"])(
    // protects [Pools] src/application/stages/1-create/pools.ts, src/adapters/postgres/statements/pool-choice.ts
    "makes one transaction if the outcome of the first commit is %s",
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
  it("makes one transaction if two nodes choose two lanes at the same time", async () => {
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

  it("makes one transaction if one node receives the id twenty times at once", async () => {
    const entry = await start({ node: { pools: new Map([...POOLS, ["refunds", [A, B]]]) } });
    const asked = Array.from({ length: 20 }, () => entry.node.api.create(toPool({ requestId: "once" })));
    const created = await world.settle(Promise.all(asked));
    expect(new Set(created.map(({ txId }) => txId)).size).toBe(1);
    expect(created.filter(({ outcome }) => outcome === "created")).toHaveLength(1);
    expect(world.rows()).toHaveLength(1);
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("returns the existing transaction even if another lane would refuse the create", async () => {
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

  it("is refused with another payload", async () => {
    const entry = await start();
    const { txId } = await create(entry, toPool({ requestId: "once" }));
    const payload = { ...(toPool().payload as object), value: "2" };
    const error = await refused(entry, toPool({ requestId: "once", payload }));
    expect(error).toMatchObject({ code: "REQUEST_ID_REUSED", extras: { txId } });
  });

  it("is also recognised in creates for one of the pool's signers", async () => {
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
  it("is found after the signer left the configuration", async () => {
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

  it("finds a create that awaits approval", async () => {
    const policies = policiesOf({ signers: { "*": { requireApproval: { aboveValue: "0", expiresAfter: "60s" } } } });
    const entry = await start({ policies });
    const request = toPool({ requestId: "big" });
    const { txId, lane } = await world.settle(entry.node.api.create(request, "ann"));
    const again = () => world.settle(entry.node.api.create(toPool({ requestId: "big" }), "ann"));
    expect(await again()).toMatchObject({ outcome: "existing", txId, lane, state: "CREATED" });
    const actionRequest = { action: "approve", txId, request: { reason: "r" }, actor: "operator:bob" } as const;
    await world.settle(entry.node.api.act(actionRequest));
    await world.allSettled(1);
    expect(await again()).toMatchObject({ outcome: "existing", txId, lane, state: "CONFIRMED" });
    expect(world.database.state.poolChoices.size).toBe(1);
  });

  it("is refused if another API key used it", async () => {
    const entry = await start();
    await world.settle(entry.node.api.create(toPool({ requestId: "once" }), "ann"));
    const error = await world.refusal(entry.node.api.create(toPool({ requestId: "once" }), "bob"));
    expect(error.code).toBe("REQUEST_ID_REUSED");
    expect(error.extras.txId).toBeUndefined();
  });
});

describe("a pool's sticky key", () => {
  // protects [Pools] src/domain/nonces/pool.ts
  it("always selects the same signer, even with a longer queue or a suspended lane", async () => {
    const entry = await start();
    world.holdBlocks();
    const stickyKey = keyOf(B);
    for (let n = 0; n < 5; n++) expect((await create(entry, toPool({ stickyKey }))).lane.signer).toBe(B);
    const actionRequest = { action: "suspend", signer: B, request: { reason: "r" }, actor: "operator:o" } as const;
    await world.settle(entry.node.api.actOnLane(actionRequest));
    expect(await create(entry, toPool({ stickyKey }))).toMatchObject({ lane: { signer: B }, nonce: 5 });
  });
});

describe("the balances of a pool's signers", () => {
  const dear = { to: TO, value: "1000000000000000000", gas: 21_000, maxFeePerGas: "20000000000" };

  // protects [Pools] src/domain/nonces/pool.ts, src/application/stages/1-create/pools.ts
  it("exclude a signer that cannot pay, however short its queue", async () => {
    const entry = await start();
    for (const signer of [A, B]) world.chain.setBalance(signer, 10n ** 17n);
    const created = await world.settle(
      Promise.all(Array.from({ length: 4 }, () => entry.node.api.create(toPool({ payload: dear })))),
    );
    expect(created.map(({ lane }) => lane.signer)).toEqual([C, C, C, C]);
  });

  // protects [Pools] src/application/stages/1-create/pools.ts
  it("are read again before a create is refused", async () => {
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
  it("are checked again when the gas is known", async () => {
    const entry = await start();
    // The balance covers the value and gas at the base fee, but not gas at the market's price.
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
  it("cause no refusal of a create if the chain cannot return them", async () => {
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

describe("a create for a pool that cannot be used", () => {
  it("gets UNKNOWN_SIGNER if the pool is unknown", async () => {
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

  it("gets QUEUE_FULL if the queues of all lanes are full", async () => {
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
  it("gets FORBIDDEN if the API key does not cover all of the pool's signers", async () => {
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

  it("gets INVALID_REQUEST in a policy dry run", async () => {
    const entry = await start();
    const error = await world.refusal(entry.node.api.checkPolicy(toPool()));
    expect(error).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "signer" } });
  });
});

describe("the transaction of a pool's create", () => {
  it("is found by its request id and the pool's name", async () => {
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
