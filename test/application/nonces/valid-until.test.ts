import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { deferred } from "../../support/deferred.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { forSigner } from "../../support/policies.ts";
import {
  CHAIN_ID,
  type NodeOptions,
  SIGNER,
  TO,
  transfer,
  World,
  type WorldNode,
  type WorldOptions,
} from "../../support/world.ts";

const GWEI = 1_000_000_000n;
let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}, node: NodeOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode(node);
}

/** The time that is `ms` from now, as a caller writes it. */
const within = (ms: number) => new Date(world.clock.now().getTime() + ms).toISOString();

const refusal = (request: Promise<unknown>) => world.refusal(request);

async function completionsOf(entry: WorldNode, txId: string) {
  const { items } = await world.settle(entry.node.api.completions({ after: 0 }));
  return items.filter((item) => item.txId === txId);
}

/** Stops the signer from signing anything until the returned function is called. */
function withoutSigner({ signer }: WorldNode): () => void {
  const sign = signer.sign.bind(signer);
  signer.sign = () => Promise.reject(new Error("the key service is away"));
  return () => {
    signer.sign = sign;
  };
}

describe("the validUntil deadline of a create", () => {
  // protects [Times and holds] src/domain/ledger/allocate.ts
  it("must be in the future by the database's clock", async () => {
    const entry = await start();
    const late = entry.node.api.create(transfer({ validUntil: within(-1) }));
    expect(await refusal(late)).toMatchObject({
      code: "INVALID_REQUEST",
      message: /^validUntil: is not in the future/,
    });
    expect(world.rows()).toEqual([]);
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(0);
  });

  // protects [Times and holds] src/domain/ledger/allocate.ts, src/domain/transaction/fingerprint.ts
  it("is part of the payload that a repeat must match", async () => {
    const entry = await start();
    const asked = transfer({ requestId: "once", validUntil: within(30_000) });
    const { txId } = await world.settle(entry.node.api.create(asked));
    const view = await world.settle(entry.node.api.transaction(txId));
    expect(view.validUntil?.toISOString()).toBe(asked.validUntil);
    for (const validUntil of [within(31_000), undefined]) {
      const other = entry.node.api.create({ ...asked, validUntil });
      expect(await refusal(other)).toMatchObject({ code: "REQUEST_ID_REUSED", extras: { txId } });
    }
    await world.allSettled(1);
    await world.clock.advance(60_000);
    expect(await world.settle(entry.node.api.create(asked))).toMatchObject({ outcome: "existing", txId });
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    checkInvariants(world);
  });

  it("causes no database query if no create sets it", async () => {
    const entry = await start();
    let asked = 0;
    const { loadExpiring } = entry.store;
    entry.store.loadExpiring = (...args) => {
      asked++;
      return loadExpiring.apply(entry.store, args);
    };
    for (let each = 0; each < 5; each++) await ops.create(entry);
    await world.allSettled(5);
    await world.clock.advance(120_000);
    expect(asked).toBe(0);
  });
});

describe("a transaction that expires before it is signed", () => {
  it("loses its nonce to the next transaction", async () => {
    const entry = await start();
    const back = withoutSigner(entry);
    const first = await ops.create(entry, { validUntil: within(5_000) });
    const second = await ops.create(entry);
    const third = await ops.create(entry, { validUntil: within(6_000) });
    await ops.settled(first, third);
    expect(ops.row(first)).toMatchObject({ state: "FAILED_FINAL", subState: "EXPIRED", nonce: null, attempts: [] });
    expect(ops.row(first).lastError).toMatch(/nothing of it was signed when its validUntil, .*, was over/);
    expect(await completionsOf(entry, first)).toMatchObject([
      { state: "FAILED_FINAL", subState: "EXPIRED", settled: true, nonce: null, txHash: null },
    ]);
    back();
    await ops.settled(second);
    expect(ops.row(second)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    const next = await ops.create(entry);
    await ops.settled(next);
    expect(ops.row(next)).toMatchObject({ state: "CONFIRMED", nonce: 1 });
    expect(world.database.state.holes().filter(({ nonce }) => nonce < 2)).toEqual([]);
    expect((await world.settle(entry.node.api.explain(first))).summary).toMatch(/given up: nothing of it was signed/);
    checkInvariants(world);
  });

  // protects [Holes] src/domain/ledger/may-move.ts
  it("keeps its nonce for a cancel if a transaction above it cannot move", async () => {
    const entry = await start();
    const back = withoutSigner(entry);
    const first = await ops.create(entry, { validUntil: within(5_000) });
    const between = await ops.create(entry);
    const named = await ops.create(entry, { nonce: 2 });
    await world.clock.advance(10_000);
    expect(ops.row(first)).toMatchObject({ state: "ALLOCATED", nonce: 0 });
    expect(world.database.state.holes()).toEqual([]);
    back();
    await ops.settled(first, between, named);
    expect([first, between, named].map((txId) => [ops.outcome(txId), ops.row(txId).nonce])).toEqual([
      ["FAILED_FINAL/EXPIRED", 0],
      ["CONFIRMED", 1],
      ["CONFIRMED", 2],
    ]);
    expect(ops.row(named).history.map(({ event }) => event)).not.toContain("stick");
    checkInvariants(world);
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("expires even if the chain is unreachable", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    await ops.act(entry, "suspend", { txId: await ops.create(entry) });
    const suspended = await ops.create(entry, { validUntil: within(5_000) });
    entry.faults.inject({ kind: "unavailable" });
    await ops.settled(suspended);
    expect(ops.outcome(suspended)).toBe("FAILED_FINAL/EXPIRED");
    const killed = await ops.create(entry, { validUntil: within(5_000) });
    await world.settle(entry.node.api.kill({ signer: null, request: { reason: "drill" }, actor: "operator:ops" }));
    await ops.settled(killed);
    expect(ops.outcome(killed)).toBe("FAILED_FINAL/EXPIRED");
  });

  // protects [Times and holds] src/application/lane/lane-writer.ts, src/application/detours/expiry.ts
  it("is expired by the lane's next owner", async () => {
    const entry = await start();
    withoutSigner(entry);
    const txId = await ops.create(entry, { validUntil: within(30_000) });
    world.crash(entry);
    const other = await world.startNode();
    withoutSigner(other);
    await world.until(() => world.ownerOf(SIGNER) === "node-2");
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
    expect(world.clock.now().getTime()).toBeLessThan(ops.row(txId).createdAt.getTime() + 32_000);
  });

  // protects [Times and holds] src/application/stages/3-sign/sign.ts, src/application/detours/expiry.ts
  it("is not broadcast late if no node was running meanwhile", async () => {
    const entry = await start();
    withoutSigner(entry);
    const late = await ops.create(entry, { validUntil: within(30_000) });
    const next = await ops.create(entry);
    world.crash(entry);
    await world.clock.advance(60_000);
    await world.startNode();
    await ops.settled(late, next);
    expect(ops.row(late)).toMatchObject({ subState: "EXPIRED", nonce: null, attempts: [] });
    expect(ops.row(next)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
  });

  it("expires only once even if the node crashes right after", async () => {
    let crash: (() => void) | null = null;
    const failpoint = (name: Failpoint) => {
      if (name === "lapse.committed") crash?.();
    };
    const entry = await start({}, { failpoint });
    withoutSigner(entry);
    crash = () => world.crash(entry);
    const [txId, behind] = [await ops.create(entry, { validUntil: within(5_000) }), await ops.create(entry)];
    await ops.settled(txId);
    await world.startNode();
    await ops.settled(behind);
    expect(ops.row(behind)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    expect(world.database.state.completions.filter((each) => each.txId === txId)).toHaveLength(1);
    checkInvariants(world);
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("uses its nonce for a cancel if a transaction above it was possibly sent", async () => {
    const entry = await start();
    const back = withoutSigner(entry);
    const txId = await ops.create(entry, { validUntil: within(5_000) });
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: "10m" }));
    expect(reservation.nonce).toBe(1);
    await world.until(() => ops.row(txId).expiredAt !== null);
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", nonce: 0 });
    back();
    await ops.settled(txId);
    expect(ops.row(txId)).toMatchObject({ subState: "EXPIRED", nonce: 0, attempts: [{ kind: "cancel" }] });
    expect(world.chain.account(SIGNER).nonce).toBe(1);
  });

  // protects [Times and holds] src/application/lane/backlog.ts, src/application/stages/3-sign/sign.ts
  it("is not stored as signed if it expires during signing", async () => {
    const entry = await start();
    const { signer } = entry;
    const sign = signer.sign.bind(signer);
    signer.sign = async (...args) => {
      await world.clock.sleep(10_000);
      signer.sign = sign;
      return sign(...args);
    };
    const requests = [transfer({ validUntil: within(5_000) }), transfer()];
    const made = (await world.settle(entry.node.api.createBatch(requests))) as readonly { readonly txId: string }[];
    const [txId = "", behind = ""] = made.map((each) => each.txId);
    await ops.settled(txId, behind);
    expect(ops.row(txId)).toMatchObject({ subState: "EXPIRED", nonce: null, attempts: [] });
    expect(ops.row(behind)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    checkInvariants(world);
  });
});

describe("a transaction that expires before it has a nonce", () => {
  const entropy = createSeededEntropy(9);
  const intake = (validUntil: string) => {
    const intent = normalise({ codec: createCodec(), entropy, chainIds: [CHAIN_ID] }, transfer({ validUntil }));
    world.database.insertIntake(intent);
    return intent.txId;
  };

  it("ends while it awaits approval", async () => {
    const requireApproval = { aboveValue: "0", expiresAfter: "1h" };
    const entry = await start({ policies: forSigner(SIGNER, { requireApproval }) });
    const txId = await ops.create(entry, { validUntil: within(5_000) });
    const { causes } = await world.settle(entry.node.api.explain(txId));
    expect(causes.map(({ code }) => code)).toEqual(["AWAITING_APPROVAL", "EXPIRES"]);
    await world.until(() => world.database.state.transactions.has(txId));
    expect(ops.row(txId)).toMatchObject({ state: "FAILED_FINAL", subState: "EXPIRED", nonce: null });
    expect(ops.row(txId).lastError).toMatch(/it had no nonce when its validUntil, .*, was over/);
    expect(await completionsOf(entry, txId)).toMatchObject([{ subState: "EXPIRED", settled: true }]);
  });

  it("ends in the intake table, before any request to the chain", async () => {
    const entry = await start();
    const [late, early] = [intake(within(-1)), intake(within(60_000))];
    await world.until(() => world.database.state.transactions.has(late));
    expect(ops.outcome(late)).toBe("FAILED_FINAL/EXPIRED");
    await ops.settled(early);
    expect(ops.row(early)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    expect(await completionsOf(entry, late)).toHaveLength(1);
  });
});

describe("a transaction that expires after it was sent", () => {
  // protects [Times and holds] src/application/stages/7-complete/complete.ts, src/application/detours/expiry.ts
  it("is cancelled once with a higher fee", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    const behind = await ops.sent(entry);
    await world.until(() => ops.kinds(txId).length > 1);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(ops.decisions(txId)).toEqual(["cancel by caller: CANCEL"]);
    await world.clock.advance(200_000);
    expect(ops.kinds(txId).filter((kind) => kind === "initial")).toHaveLength(1);
    const { causes } = await world.settle(entry.node.api.explain(txId));
    expect(causes.map(({ code }) => code)).toContain("EXPIRING");
    world.releaseBlocks();
    await ops.settled(txId, behind);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
    expect(ops.outcome(behind)).toBe("CONFIRMED");
    expect((await completionsOf(entry, txId)).at(-1)).toMatchObject({ subState: "EXPIRED", settled: true, nonce: 0 });
    checkInvariants(world);
  });

  // protects [Times and holds] src/application/stages/7-complete/complete.ts, src/application/detours/expiry.ts
  it("is CONFIRMED if it is mined instead of its cancel", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    await world.until(() => ops.row(txId).expiredAt !== null);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(ops.row(txId).history.at(-1)).toMatchObject({
      event: "confirm",
      reason: expect.stringMatching(/it was too late to expire/),
    });
  });

  // protects [Times and holds] src/application/lane/owned-lane.ts
  it("is not cancelled if it was mined in time", async () => {
    const entry = await start({ settings: { confirmations: 100 } });
    const txId = await ops.create(entry, { validUntil: within(3_000) });
    await world.until(() => ops.row(txId).subState === "MINED");
    await world.clock.advance(5_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    world.holdBlocks();
    const depth = world.chain.head.number - (ops.row(txId).receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all", keepInPool: false });
    await world.until(() => ops.kinds(txId).length > 1);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
    checkInvariants(world);
  });

  // protects [Times and holds] src/application/lane/lane-writer.ts, src/application/detours/expiry.ts
  it("is cancelled only once if the previous owner crashed during the cancel", async () => {
    for (const name of ["another.signed", "another.committed", "broadcast.sent"] as const satisfies Failpoint[]) {
      let stop: (() => void) | null = null;
      const failpoint = (passed: Failpoint) => {
        if (passed === name) stop?.();
      };
      const entry = await start({}, { failpoint });
      world.holdBlocks();
      const txId = await ops.sent(entry, { validUntil: within(5_000) });
      let stopped = false;
      stop = () => {
        stopped = true;
        stop = null;
        world.crash(entry);
      };
      await world.until(() => stopped);
      await world.startNode();
      await world.until(() => world.ownerOf(SIGNER) === "node-2" && ops.row(txId).expiredAt !== null);
      await world.clock.advance(5_000);
      world.releaseBlocks();
      await ops.settled(txId);
      expect(ops.outcome(txId), name).toBe("FAILED_FINAL/EXPIRED");
      expect(ops.kinds(txId).filter((kind) => kind === "cancel").length, name).toBe(1);
      checkInvariants(world);
      await world.close();
    }
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("is not cancelled while its lane is suspended", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    await ops.lane(entry, "suspend");
    await world.clock.advance(30_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    const { causes } = await world.settle(entry.node.api.explain(txId));
    expect(causes.slice(0, 2).map(({ code }) => code)).toEqual(["LANE_SUSPENDED", "EXPIRING"]);
    await ops.lane(entry, "resume");
    await world.until(() => ops.kinds(txId).length > 1);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("stays CANCELLED if an operator cancelled it first", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    await ops.act(entry, "cancel", { txId });
    await world.clock.advance(90_000);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
  });

  it("is not cancelled again if an operator replaced the cancel", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    await world.until(() => ops.kinds(txId).includes("cancel"));
    await ops.act(entry, "replace", { txId, request: { payload: { to: TO, value: "2", gas: 21_000 } } });
    world.crash(entry);
    await world.startNode();
    await world.clock.advance(150_000);
    expect(ops.kinds(txId).filter((kind) => kind === "cancel")).toHaveLength(1);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED/REPLACED");
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("is not cancelled again because of an outdated database read", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    // The first cancel waits because the chain is unavailable. Meanwhile a second query for expired transactions reads
    // the database, and its response is delayed.
    const back = entry.faults.inject({ kind: "unavailable" });
    const late = deferred<void>();
    const { loadExpiring } = entry.store;
    let asked = 0;
    entry.store.loadExpiring = async (...args) => {
      const rows = await loadExpiring.apply(entry.store, args);
      if (++asked === 2) await late.promise;
      return rows;
    };
    try {
      await world.until(() => asked === 2);
      back();
      await world.until(() => ops.kinds(txId).includes("cancel"));
      await ops.act(entry, "replace", { txId, request: { payload: { to: TO, value: "2", gas: 21_000 } } });
    } finally {
      late.resolve();
    }
    await world.clock.advance(30_000);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel", "replace"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED/REPLACED");
  });

  // protects [Times and holds] src/application/stages/6-finality/finality.ts
  it("is cancelled if a deep reorg removes it after its validUntil", async () => {
    const entry = await start({ settings: { confirmations: 20 } });
    const txId = await ops.create(entry, { validUntil: within(5_000) });
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    world.holdBlocks();
    const depth = world.chain.head.number - (ops.row(txId).receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all", keepInPool: false });
    await world.until(() => ops.row(txId).state === "TRACKING");
    await world.until(() => ops.kinds(txId).length > 1, 90_000);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
  });

  // protects [Times and holds] src/application/detours/expiry.ts
  it("is not cancelled beyond a policy's limit", async () => {
    const most = 21_000n * 20n * GWEI + 1n;
    const entry = await start({ policies: forSigner(SIGNER, { maxCost: { perTransaction: `${most}` } }) });
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(5_000) });
    await world.clock.advance(200_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    const alerts = entry.events.filter((event) => event.type === "alert" && event.code === "POLICY_LIMIT_REACHED");
    expect(alerts).toHaveLength(1);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  // protects [Times and holds] src/domain/ledger/move.ts
  it("is never cancelled early by a node whose clock is ahead", async () => {
    const entry = await start({}, { aheadMs: 7_200_000 });
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: within(3_600_000) });
    await world.clock.advance(60_000);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(ops.row(txId).payload.to).toBe(TO);
  });
});
