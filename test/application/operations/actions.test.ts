import { afterEach, describe, expect, it } from "vitest";
import type { TransactionAction } from "../../../src/application/api.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import { SigningRefused } from "../../../src/ports/signer.ts";
import { deferred } from "../../support/deferred.ts";
import { createFakeCodec } from "../../support/fake-codec.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { SIGNER, TO, World, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}) {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

/** The amount that the account received beyond its initial balance. */
function received(address: Address): bigint {
  return world.chain.account(address).balance - world.chain.account(address, 0).balance;
}

const GWEI = 1_000_000_000n;

describe("the action cancel", () => {
  it("uses the nonce for an empty transaction", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    const behind = await ops.sent(node);
    const view = await ops.act(node, "cancel", { txId, request: { reason: "typo", audit: { ticket: "T-1" } } });
    expect(view).toMatchObject({ txId, state: "TRACKING", attempts: [{ kind: "initial" }, { kind: "cancel" }] });
    world.releaseBlocks();
    await ops.settled(txId, behind);
    expect([ops.outcome(txId), ops.outcome(behind)]).toEqual(["FAILED_FINAL/CANCELLED", "CONFIRMED"]);
    const [initial, cancel] = ops.row(txId).attempts;
    expect(cancel?.fees).toMatchObject({ type: "eip1559" });
    expect(cancel?.fees.type === "eip1559" && cancel.fees.maxFeePerGas).toBeGreaterThanOrEqual(22n * GWEI);
    expect(cancel?.fees.type === "eip1559" && cancel.fees.maxPriorityFeePerGas).toBeGreaterThanOrEqual(
      (11n * GWEI) / 10n,
    );
    const mined = world.chain.transaction(ops.row(txId).receipt?.txHash ?? "0x");
    expect(mined?.hash).toBe(cancel?.txHash);
    expect(mined).toMatchObject({ to: SIGNER, value: 0n, data: "0x", gas: 21_000n });
    expect(initial?.kind).toBe("initial");
    const [step] = ops.row(txId).history.filter(({ decision }) => decision !== undefined);
    expect(step).toMatchObject({ event: "cancel", reason: "typo", nodeId: "node-1", token: 1 });
    expect(step?.decision).toMatchObject({ actor: "operator:ops", audit: { action: "cancel", ticket: "T-1" } });
    checkInvariants(world);
  });

  // protects [Operators] src/application/lane/owned-lane.ts, src/application/stages/7-complete/complete.ts
  it("leaves the original as the reported outcome if the original is mined first", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    // The cancel is committed but does not reach any mempool before the next block.
    node.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    await ops.act(node, "cancel", { txId });
    world.chain.mine();
    node.faults.heal();
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(ops.row(txId).receipt?.txHash).toBe(ops.row(txId).attempts[0]?.txHash);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    await expect(ops.act(node, "cancel", { txId })).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("is CONFIRMED: it was mined in block"),
      extras: { txId, txHash: ops.row(txId).attempts[0]?.txHash },
    });
    checkInvariants(world);
  });

  // protects [Operators] src/application/detours/change-payload.ts, src/application/operations/transaction-actions.ts
  it("is refused on a mined transaction", async () => {
    const node = await start({ settings: { confirmations: 50 } });
    const txId = await ops.create(node);
    await world.until(() => ops.row(txId).subState === "MINED");
    for (const action of ["cancel", "reprice", "resubmit"] as const) {
      await expect(ops.act(node, action, { txId })).rejects.toMatchObject({
        code: "CONFLICT",
        message: expect.stringContaining("as its attempt 1 (initial)"),
      });
    }
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(ops.decisions(txId)).toEqual([]);
  });

  it("need not outbid an attempt that no node accepted", async () => {
    const node = await start({ settings: { maxFeeWei: 2n ** 100n, maxGasCostWei: 2n ** 120n } });
    world.holdBlocks();
    const before = await ops.sent(node);
    const txId = await ops.create(node, { payload: { to: TO, gas: "21000", maxFeePerGas: String(2n ** 100n) } });
    await world.until(() => ops.row(txId).lastError?.startsWith("insufficientFunds") === true);
    await ops.act(node, "cancel", { txId });
    world.releaseBlocks();
    await ops.settled(before, txId);
    expect([ops.outcome(before), ops.outcome(txId)]).toEqual(["CONFIRMED", "FAILED_FINAL/CANCELLED"]);
    checkInvariants(world);
  });

  // protects [Operators] src/domain/transaction/attempts.ts
  it("keeps waiting for the older attempt, but never broadcasts it again", async () => {
    const node = await start({ settings: { resubmitIntervalMs: 1_000, repricing: null } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    const arrivals: string[] = [];
    await ops.act(node, "cancel", { txId });
    await world.until(() => ops.row(txId).subState === "BROADCAST");
    world.chain.subscribe((event) => {
      if (event.type === "arrival") arrivals.push(event.entry.hash ?? "");
    });
    world.chain.dropAllTransactions();
    await world.clock.advance(10_000);
    const [initial, cancel] = ops.row(txId).attempts;
    expect(arrivals.length).toBeGreaterThan(2);
    expect(new Set(arrivals)).toEqual(new Set([cancel?.txHash]));
    // Another program kept the old bytes and sends them. Fencepost recognises them as its own attempt.
    world.chain.dropAllTransactions();
    world.chain.submit(initial?.rawTransaction ?? "0x");
    world.chain.mine(1);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  // protects [Operators] src/application/detours/another-attempt.ts
  it("overtakes a reprice that is being prepared", async () => {
    const node = await start({ settings: { resubmitIntervalMs: 1_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    world.chain.setBaseFee(30n * GWEI);
    const gate = deferred<void>();
    const load = node.store.loadRawTransactions.bind(node.store);
    let isPreparing = false;
    node.store.loadRawTransactions = async (keys) => {
      const bytes = await load(keys);
      isPreparing = true;
      await gate.promise;
      return bytes;
    };
    await world.until(() => isPreparing);
    node.store.loadRawTransactions = load;
    await ops.act(node, "cancel", { txId });
    gate.resolve();
    await world.clock.advance(5_000);
    // The automatic repricing may raise the cancel's fees, but everything that is signed from now on is a cancel.
    const later = ops.row(txId).attempts.slice(1);
    const decoded = await Promise.all(
      later.map(({ rawTransaction }) => createFakeCodec().decodeTransaction(rawTransaction ?? "0x")),
    );
    expect(decoded.map(({ unsigned }) => unsigned.to)).toEqual(later.map(() => SIGNER));
    expect(new Set(later.map(({ kind }) => kind))).toEqual(new Set(["cancel"]));
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
    expect(received(TO)).toBe(0n);
    checkInvariants(world);
  });

  it("signs another cancel that pays more if it is repeated with higher fees", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    await ops.act(node, "cancel", { txId });
    await ops.act(node, "cancel", { txId, request: { maxFeePerGas: "90000000000" } });
    await ops.act(node, "reprice", { txId });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel", "cancel", "cancel"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
  });
});

describe("the action replace", () => {
  it("signs another payload for the same nonce", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    const other = `0x${"c".repeat(40)}` as const;
    const view = await ops.act(node, "replace", { txId, request: { payload: { to: other, value: "7", gas: 30_000 } } });
    expect(view.payload).toMatchObject({ to: TO, value: 1n });
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED/REPLACED");
    expect(received(other)).toBe(7n);
    expect(received(TO)).toBe(0n);
    expect(ops.decisions(txId)).toEqual(["replace by operator:ops: replace"]);
    checkInvariants(world);
  });

  it("is refused if the new payload would revert", async () => {
    const node = await start();
    world.chain.revertCallsTo(`0x${"d".repeat(40)}`, "0x");
    world.holdBlocks();
    const txId = await ops.sent(node);
    const payload = { to: `0x${"d".repeat(40)}`, data: "0x01" };
    await expect(ops.act(node, "replace", { txId, request: { payload } })).rejects.toMatchObject({
      code: "SUBMISSION_REJECTED",
    });
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });
});

describe("a transaction that waits to be signed", () => {
  // protects [Operators] src/application/detours/change-payload.ts
  it("can be replaced: its only attempt then has the new payload", async () => {
    const node = await start();
    await ops.lane(node, "suspend");
    const [first, second] = [await ops.create(node), await ops.create(node)];
    const other = `0x${"c".repeat(40)}` as const;
    await ops.act(node, "replace", { txId: second, request: { payload: { to: other, value: "9", gas: 21_000 } } });
    expect(ops.row(second)).toMatchObject({ state: "ALLOCATED", payload: { to: TO, value: 1n } });
    await ops.lane(node, "resume");
    await ops.settled(first, second);
    expect(ops.kinds(second)).toEqual(["replace"]);
    expect([ops.outcome(first), ops.outcome(second)]).toEqual(["CONFIRMED", "CONFIRMED/REPLACED"]);
    expect(received(other)).toBe(9n);
    expect(ops.decisions(second)).toEqual(["amend by operator:ops: replace"]);
    checkInvariants(world);
  });

  it("can be cancelled without changing the nonces of later transactions", async () => {
    const node = await start({ settings: { inFlightWindow: 1 } });
    world.holdBlocks();
    const first = await ops.sent(node);
    const [second, third] = [await ops.create(node), await ops.create(node)];
    const view = await ops.act(node, "cancel", { txId: second });
    expect(view).toMatchObject({ state: "ALLOCATED", attempts: [] });
    world.releaseBlocks();
    await ops.settled(first, second, third);
    expect(ops.kinds(second)).toEqual(["cancel"]);
    expect(ops.outcome(second)).toBe("FAILED_FINAL/CANCELLED");
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0, 1, 2]);
    checkInvariants(world);
  });

  it("keeps an operator's change if the node crashes right after the response", async () => {
    const node = await start();
    await ops.lane(node, "suspend");
    const txId = await ops.create(node);
    await ops.act(node, "cancel", { txId });
    world.crash(node);
    const next = await world.startNode();
    await world.until(() => next.events.some(({ type }) => type === "lane.resumed"));
    await ops.lane(next, "resume");
    await ops.settled(txId);
    expect(ops.kinds(txId)).toEqual(["cancel"]);
    checkInvariants(world);
  });

  // protects [Operators] src/application/detours/change-payload.ts, src/application/stages/3-sign/sign.ts
  it("is not changed by an operator during signing", async () => {
    world = new World();
    ops = new OperatedWorld(world);
    const gate = deferred<void>();
    let isSigned = false;
    const failpoint = (name: Failpoint): Promise<void> | undefined => {
      if (name !== "sign.signed") return undefined;
      isSigned = true;
      return gate.promise;
    };
    const node = await world.startNode({ failpoint });
    const txId = await ops.create(node);
    await world.until(() => isSigned);
    const answered = node.node.api.act({ action: "cancel", txId, request: { reason: "r" }, actor: "operator:ops" });
    await world.clock.advance(1_000);
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", history: [{ event: "allocate" }] });
    gate.resolve();
    await world.settle(answered);
    await ops.settled(txId);
    expect(ops.decisions(txId)).toEqual(["cancel by operator:ops: cancel"]);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    checkInvariants(world);
  });

  // protects [Operators] src/application/detours/change-payload.ts, src/application/stages/3-sign/sign.ts
  it("is not signed while an operator's change is being committed", async () => {
    const node = await start();
    await ops.lane(node, "suspend");
    const txId = await ops.create(node, { payload: { to: TO, value: "1", gas: 21_000 } });
    // A transaction whose request names no fees waits until the fee market can be read.
    const back = node.faults.inject({ kind: "unavailable" }, { method: "eth_feeHistory" });
    await world.clock.advance(1_000);
    await ops.lane(node, "resume");
    await world.clock.advance(1_000);
    expect(ops.row(txId).state).toBe("ALLOCATED");
    const gate = deferred<void>();
    let isHeld = false;
    const commit = node.store.commit.bind(node.store);
    node.store.commit = async (writes) => {
      const items = writes.flatMap((write) => (write.kind === "transition" ? write.items : []));
      if (items.some(({ event }) => event === "amend")) {
        isHeld = true;
        await gate.promise;
      }
      return commit(writes);
    };
    const payload = {
      to: SIGNER,
      value: "5",
      gas: 21_000,
      maxFeePerGas: "20000000000",
      maxPriorityFeePerGas: "1000000000",
    };
    const request = { reason: "r", payload };
    const answered = node.node.api.act({ action: "replace", txId, request, actor: "operator:ops" });
    await world.until(() => isHeld);
    back();
    await world.clock.advance(2_000);
    gate.resolve();
    await world.settle(answered);
    await ops.settled(txId);
    expect(ops.kinds(txId)).toEqual(["replace"]);
    expect(world.chain.witness.map(({ nonce }) => nonce)).toEqual([0]);
    checkInvariants(world);
  });

  it("cannot be resubmitted or repriced", async () => {
    const node = await start();
    await ops.lane(node, "suspend");
    const txId = await ops.create(node);
    for (const action of ["resubmit", "reprice"] as const) {
      await expect(ops.act(node, action, { txId })).rejects.toMatchObject({ code: "CONFLICT" });
    }
  });
});

describe("the action reprice", () => {
  it("signs the same payload with fees at least 10 % higher if none are given", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    await ops.act(node, "reprice", { txId });
    const [initial, reprice] = ops.row(txId).attempts;
    expect(reprice).toMatchObject({ kind: "reprice", gas: initial?.gas });
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    expect(received(TO)).toBe(1n);
  });

  // protects [Operators] src/application/detours/change-payload.ts
  it("accepts fees above five times the first fee", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    const little = { maxFeePerGas: "21000000000", maxPriorityFeePerGas: "2000000000" };
    await expect(ops.act(node, "reprice", { txId, request: little })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
      extras: { path: "maxFeePerGas" },
    });
    const request = { maxFeePerGas: "140000000000", maxPriorityFeePerGas: "2000000000" };
    await ops.act(node, "reprice", { txId, request });
    expect(ops.row(txId).attempts[1]?.fees).toEqual({
      type: "eip1559",
      maxFeePerGas: 140n * GWEI,
      maxPriorityFeePerGas: 2n * GWEI,
    });
    // An operator's reprice that names no fees is subject to the limit of automatic repricing, which the current price
    // has already reached.
    await world.until(() => ops.row(txId).acceptedOrdinal === 2);
    await expect(ops.act(node, "reprice", { txId })).rejects.toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("5 times its first price"),
    });
  });
});

describe("a signer that does not sign a cancel", () => {
  it("causes an error that says whether the refusal is permanent", async () => {
    const node = await start();
    const { signer } = node;
    world.holdBlocks();
    const txId = await ops.sent(node);
    signer.sign = async () => Promise.reject(new SigningRefused(0, "over the limit"));
    await expect(ops.act(node, "cancel", { txId })).rejects.toMatchObject({
      code: "CONFLICT",
      message: "the signer refused to sign the change: over the limit",
    });
    signer.sign = async () => Promise.reject(new Error("hardware is away"));
    await expect(ops.act(node, "cancel", { txId })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("the signer did not sign the change"),
    });
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(ops.decisions(txId)).toEqual([]);
  });
});

describe("the action resubmit", () => {
  // protects [Operators] src/application/operations/transaction-actions.ts
  it("broadcasts the stored bytes at once", async () => {
    const node = await start({ settings: { resubmitIntervalMs: null } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    world.chain.dropAllTransactions();
    await world.clock.advance(5_000);
    expect(ops.row(txId).submitAttempts).toBe(1);
    await ops.act(node, "resubmit", { txId });
    await world.until(() => ops.row(txId).submitAttempts === 2);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.decisions(txId)).toEqual(["decide by operator:ops: resubmit"]);
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });

  // protects [Operators] src/application/operations/transaction-actions.ts
  it("makes a STUCK transaction pending again", async () => {
    const node = await start({ settings: { stuckAfterMs: 2_000, resubmitIntervalMs: 1_000, repricing: null } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => ops.row(txId).state === "STUCK");
    await ops.act(node, "resubmit", { txId });
    expect(ops.decisions(txId)).toEqual(["unstick by operator:ops: resubmit"]);
    world.releaseBlocks();
    await ops.settled(txId);
    const states = world.database.state.completions.filter((row) => row.txId === txId).map(({ state }) => state);
    expect(states[0]).toBe("STUCK");
    expect(states.at(-1)).toBe("CONFIRMED");
    checkInvariants(world);
  });
});

describe("an operator's action", () => {
  it.each(["cancel", "reprice"] as const)(
    // protects [Operators] src/application/operations/transaction-actions.ts
    "is not performed twice if the commit was not confirmed (%s)",
    async (action) => {
      const node = await start();
      world.holdBlocks();
      const txId = await ops.sent(node);
      node.store.failNextCommit("unknown-committed");
      await ops.act(node, action, { txId });
      await world.clock.advance(10_000);
      expect(ops.kinds(txId)).toEqual(["initial", action]);
      expect(ops.decisions(txId)).toHaveLength(1);
    },
  );

  // protects [Operators] src/application/requests/action.ts
  it("needs a reason, known fields, and an existing transaction", async () => {
    const node = await start();
    world.holdBlocks();
    const txId = await ops.sent(node);
    const refused = async (action: TransactionAction, request: object, path: string) =>
      await expect(
        world.settle(node.node.api.act({ action, txId, request, actor: "operator:ops" })),
      ).rejects.toMatchObject({ code: "INVALID_REQUEST", extras: { path } });
    await refused("cancel", {}, "reason");
    await refused("cancel", { reason: " " }, "reason");
    await refused("cancel", { reason: "x".repeat(1_001) }, "reason");
    await refused("cancel", { reason: "a\0b" }, "reason");
    await refused("cancel", { reason: "r", payload: { to: TO } }, "payload");
    await refused("replace", { reason: "r" }, "payload");
    await refused("replace", { reason: "r", payload: { to: "0x12" } }, "payload.to");
    await refused("reprice", { reason: "r", gasPrice: "1", maxFeePerGas: "1" }, "gasPrice");
    await refused("resolve", { reason: "r", action: "EXPLODE" }, "action");
    await refused("resolve", { reason: "r", payload: { to: TO } }, "payload");
    await refused("cancel", { reason: "r", audit: "text" }, "audit");
    const nobody = "019a4b7e-0000-7000-8000-000000000000";
    await expect(ops.act(node, "cancel", { txId: nobody })).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });
});

describe("the action suspend on a lane", () => {
  // protects [Operators] src/application/lane/owned-lane.ts, src/application/operations/lane-actions.ts
  it("stops all broadcasts until the lane is resumed", async () => {
    const node = await start();
    const [lane] = await ops.lane(node, "suspend");
    expect(lane).toMatchObject({ suspendedBy: "OPERATOR" });
    const txId = await ops.create(node);
    await world.clock.advance(5_000);
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", attempts: [] });
    world.crash(node);
    const next = await world.startNode();
    await world.until(() => next.events.some(({ type }) => type === "lane.resumed"));
    await world.clock.advance(5_000);
    expect(ops.row(txId).state).toBe("ALLOCATED");
    await ops.lane(next, "resume");
    await ops.settled(txId);
    const decisions = [...world.database.state.lanes.values()].flatMap(({ decisions }) => decisions);
    expect(decisions.map(({ action, actor, reason, nodeId }) => ({ action, actor, reason, nodeId }))).toEqual([
      { action: "resume", actor: "operator:ops", reason: "maintenance", nodeId: "node-2" },
      { action: "suspend", actor: "operator:ops", reason: "maintenance", nodeId: "node-1" },
    ]);
    checkInvariants(world);
  });

  it("is shown at the signer with actor, reason and time, newest first", async () => {
    const node = await start();
    await ops.lane(node, "suspend");
    const [lane] = await ops.lane(node, "resume");
    expect(lane?.decisions).toMatchObject([
      { action: "resume", actor: "operator:ops", reason: "maintenance", token: 1 },
      { action: "suspend", actor: "operator:ops", reason: "maintenance", token: 1 },
    ]);
    const { items } = await world.settle(node.node.api.signers());
    expect(items[0]).not.toHaveProperty("decisions");
  });

  it("stops rebroadcasts of transactions sent before", async () => {
    const node = await start({ settings: { resubmitIntervalMs: 1_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await ops.lane(node, "suspend");
    const { submitAttempts } = ops.row(txId);
    await world.clock.advance(20_000);
    expect(ops.row(txId).submitAttempts).toBe(submitAttempts);
  });

  it("is reverted in memory if the database did not commit it", async () => {
    const node = await start();
    await ops.create(node);
    node.store.failNextCommit("unavailable");
    await expect(ops.lane(node, "suspend")).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const txId = await ops.create(node);
    await ops.settled(txId);
  });
});
