import { afterEach, describe, expect, it } from "vitest";
import type { LaneAction, TransactionAction } from "../../../src/application/api.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld, startTwo } from "../../support/operations.ts";
import { SIGNER, TO, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function withOneSent() {
  world = new World();
  ops = new OperatedWorld(world);
  const node = await world.startNode();
  world.holdBlocks();
  return { node, txId: await ops.sent(node) };
}

async function withOneSentOfTwo() {
  const { owner, other, ...started } = await startTwo();
  ({ world, ops } = started);
  world.holdBlocks();
  return { owner, other, txId: await ops.sent(owner) };
}

interface Given {
  readonly action?: TransactionAction;
  readonly key?: string;
  readonly request?: object;
}

function give({ node }: WorldNode, txId: string, { action = "cancel", key = "key-1", request = {} }: Given = {}) {
  const actionRequest = { action, txId, request: { reason: "because", ...request }, actor: "operator:ops" };
  return world.settle(node.api.act({ ...actionRequest, idempotencyKey: key }));
}

function giveLane({ node }: WorldNode, action: LaneAction, more: Readonly<Record<string, unknown>> = {}) {
  const request = { reason: "because", ...more };
  const actionRequest = { action, signer: SIGNER, request, actor: "operator:ops", idempotencyKey: "key-1" };
  return world.settle(node.api.actOnLane(actionRequest));
}

const REUSED = { code: "REQUEST_ID_REUSED", message: expect.stringContaining("Idempotency-Key") };

async function isMinedAs(txId: string, outcome: string): Promise<void> {
  world.releaseBlocks();
  await ops.settled(txId);
  expect(ops.outcome(txId)).toBe(outcome);
  checkInvariants(world);
}

describe("an action with an idempotency key", () => {
  it.each([
    ["resubmit", {}, ["initial"]],
    ["reprice", {}, ["initial", "reprice"]],
    ["cancel", {}, ["initial", "cancel"]],
    ["cancel", { maxFeePerGas: "90000000000" }, ["initial", "cancel"]],
    ["replace", { payload: { to: TO, value: "2", gas: 21_000 } }, ["initial", "replace"]],
    ["resolve", { action: "CANCEL" }, ["initial", "cancel"]],
    ["resolve", { action: "NOOP" }, ["initial"]],
    // protects [Operators] src/application/operations/operation.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  ] as const)("is performed once, however often it is sent (%s with %j)", async (action, request, kinds) => {
    const { node, txId } = await withOneSent();
    const first = await give(node, txId, { action, request });
    const again = await give(node, txId, { action, request });
    expect(again.txHash).toBe(first.txHash);
    expect(ops.kinds(txId)).toEqual(kinds);
    expect(ops.decisions(txId)).toHaveLength(1);
    const audits = ops.row(txId).history.flatMap(({ decision }) => decision?.audit ?? []);
    expect(audits).toMatchObject([{ idempotencyKey: "key-1" }]);
  });

  // protects [Operators] src/application/operations/transaction-actions.ts, src/application/detours/another-attempt.ts, src/application/detours/change-payload.ts
  it("is completed once if the action needs two commits", async () => {
    const { node, txId } = await withOneSent();
    const request = JSON.parse(`{"action":"REPLACE","then":"stuck"}`);
    for (let n = 0; n < 2; n++) {
      expect(await give(node, txId, { action: "resolve", request })).toMatchObject({ state: "STUCK" });
    }
    expect(ops.decisions(txId)).toEqual(["reprice by operator:ops: REPLACE", "stick by operator:ops: REPLACE"]);
  });

  // protects [Operators] src/application/operations/operation.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it("is performed once if three identical requests arrive together", async () => {
    const { node, txId } = await withOneSent();
    const given = () => give(node, txId, { action: "reprice" });
    const answers = await Promise.all([given(), given(), given()]);
    expect(new Set(answers.map(({ txHash }) => txHash)).size).toBe(1);
    expect(ops.kinds(txId)).toEqual(["initial", "reprice"]);
    expect(ops.decisions(txId)).toHaveLength(1);
  });

  it("returns the current transaction when repeated, even if it is final by then", async () => {
    const { node, txId } = await withOneSent();
    await give(node, txId);
    await isMinedAs(txId, "FAILED_FINAL/CANCELLED");
    expect(await give(node, txId)).toMatchObject({ txId, state: "FAILED_FINAL", subState: "CANCELLED" });
    await expect(give(node, txId, { key: "key-2" })).rejects.toMatchObject({ code: "CONFLICT" });
  });

  it("counts as the same action if its fields are in another order", async () => {
    const { node, txId } = await withOneSent();
    const actionRequest = { action: "cancel", txId, actor: "operator:ops", idempotencyKey: "k" } as const;
    await world.settle(node.node.api.act({ ...actionRequest, request: { reason: "r", audit: { a: 1, b: 2 } } }));
    const twisted = { ...actionRequest, txId: txId.toUpperCase(), request: { audit: { b: 2, a: 1 }, reason: "r" } };
    await world.settle(node.node.api.act({ ...twisted, txId }));
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
  });

  it.each([
    ["another reason", "cancel", { reason: "another" }],
    ["another fee", "cancel", { maxFeePerGas: "90000000000" }],
    ["another action", "resubmit", {}],
    // protects [Operators] src/application/operations/operation.ts, src/application/operations/lane-actions.ts
  ] as const)("is refused if the key is repeated with %s", async (_, action, request) => {
    const { node, txId } = await withOneSent();
    await give(node, txId);
    await expect(give(node, txId, { action, request })).rejects.toMatchObject({ ...REUSED, extras: { txId } });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(ops.decisions(txId)).toHaveLength(1);
  });

  // protects [Operators] src/application/operations/operation.ts, src/application/operations/lane-actions.ts
  it("is performed for only one of two concurrent requests with different content", async () => {
    const { node, txId } = await withOneSent();
    const both = await Promise.allSettled([
      give(node, txId, { action: "reprice" }),
      give(node, txId, { action: "reprice", request: { reason: "another" } }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(both.find(({ status }) => status === "rejected")).toMatchObject({ reason: REUSED });
    expect(ops.kinds(txId)).toEqual(["initial", "reprice"]);
  });

  it("may be repeated under the same key with corrected content if it was refused", async () => {
    const { node, txId } = await withOneSent();
    const cheap = give(node, txId, { action: "reprice", request: { maxFeePerGas: "1" } });
    await expect(cheap).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    await give(node, txId, { action: "reprice", request: { maxFeePerGas: "90000000000" } });
    expect(ops.kinds(txId)).toEqual(["initial", "reprice"]);
  });

  it("may use a key that was used for another transaction", async () => {
    const { node, txId } = await withOneSent();
    const other = await ops.sent(node);
    await give(node, txId);
    await give(node, other);
    expect([ops.kinds(txId), ops.kinds(other)]).toEqual([
      ["initial", "cancel"],
      ["initial", "cancel"],
    ]);
  });

  it.each(["", "k".repeat(256), "grüße", "a\nb"])(
    "must have a key that fits an HTTP header: %j is refused",
    async (key) => {
      const { node, txId } = await withOneSent();
      await expect(give(node, txId, { key })).rejects.toMatchObject({
        code: "INVALID_REQUEST",
        extras: { path: "idempotency-key" },
      });
      expect(ops.kinds(txId)).toEqual(["initial"]);
    },
  );

  // protects [Operators] src/application/operations/transaction-actions.ts, src/application/detours/another-attempt.ts, src/application/detours/change-payload.ts
  it("stores the key even if nothing changes because a cancel already exists", async () => {
    const { node, txId } = await withOneSent();
    await give(node, txId, { key: "first" });
    await give(node, txId, { key: "second" });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    const dearer = { maxFeePerGas: "90000000000" };
    await expect(give(node, txId, { key: "second", request: dearer })).rejects.toMatchObject(REUSED);
    await give(node, txId, { key: "third", request: dearer });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel", "cancel"]);
  });

  it("is performed once on a transaction that waits to be signed", async () => {
    const { node } = await withOneSent();
    await ops.lane(node, "suspend");
    const txId = await ops.create(node);
    for (let n = 0; n < 3; n++) await give(node, txId);
    expect(ops.decisions(txId)).toEqual(["amend by operator:ops: cancel"]);
    await ops.lane(node, "resume");
    await isMinedAs(txId, "FAILED_FINAL/CANCELLED");
  });
});

describe("an action with an idempotency key that fills a nonce gap", () => {
  // protects [Operators] src/application/operations/transaction-actions.ts, src/application/detours/another-attempt.ts, src/application/detours/change-payload.ts
  it("is performed once if two identical requests arrive together", async () => {
    world = new World({ settings: { expiredReservations: "hole" } });
    ops = new OperatedWorld(world);
    const node = await world.startNode();
    await ops.create(node);
    await world.allSettled(1);
    await world.settle(node.node.api.reserveNonce({ signer: SIGNER, ttl: 1 }));
    const head = await ops.create(node);
    await world.until(() => ops.row(head).state === "STUCK");
    const fill = () => give(node, head, { action: "resolve", request: { action: "PLACEHOLDER" } });
    await Promise.all([fill(), fill()]);
    await fill();
    await ops.settled(head);
    expect(ops.outcome(head)).toBe("CONFIRMED");
    expect(ops.kinds(head)).toEqual(["initial"]);
    expect(ops.decisions(head)).toEqual(["decide by operator:ops: PLACEHOLDER"]);
    expect(await fill()).toMatchObject({ state: "CONFIRMED" });
  });
});

describe("an action with an idempotency key whose response is lost", () => {
  it.each(["unknown-committed", "unknown-lost", "unavailable"] as const)(
    // protects [Operators] src/application/operations/operation.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
    "is performed exactly once if the commit is %s",
    async (fault) => {
      const { node, txId } = await withOneSent();
      const commit = node.store.commit.bind(node.store);
      node.store.commit = (writes) => {
        const isCancel = writes.some((write) => write.kind === "transition" && write.items[0]?.event === "cancel");
        if (isCancel) {
          node.store.commit = commit;
          node.store.failNextCommit(fault);
        }
        return commit(writes);
      };
      await give(node, txId).catch(() => undefined);
      await give(node, txId);
      expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
      await isMinedAs(txId, "FAILED_FINAL/CANCELLED");
    },
  );

  // protects [Operators] src/application/operations/operation.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it("is not performed again when repeated at either node", async () => {
    const { owner, other, txId } = await withOneSentOfTwo();
    world.network.inject("lostReply");
    await expect(give(other, txId)).rejects.toMatchObject({ extras: { outcome: "unknown" } });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    await give(other, txId);
    await give(owner, txId);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(ops.decisions(txId)).toHaveLength(1);
    await expect(give(other, txId, { request: { reason: "another" } })).rejects.toMatchObject(REUSED);
  });

  // protects [Operators] src/application/operations/operation.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it("is not performed again by the next owner after a crash", async () => {
    const { owner, other, txId } = await withOneSentOfTwo();
    await give(owner, txId, { action: "reprice" });
    const signed = ops.kinds(txId).length;
    world.crash(owner);
    await world.until(() => world.ownerOf(SIGNER) === other.url.replace("http://", ""), 60_000);
    await give(other, txId, { action: "reprice" });
    expect(ops.kinds(txId)).toHaveLength(signed);
    await isMinedAs(txId, "CONFIRMED");
  });

  // protects [Operators] src/application/operations/operation.ts, src/application/operations/transaction-actions.ts, src/application/operations/lane-actions.ts
  it("is answered from the database after a crash of the owner", async () => {
    const { owner, other, txId } = await withOneSentOfTwo();
    await give(owner, txId);
    world.crash(owner);
    expect(world.ownerOf(SIGNER)).toBe(owner.url.replace("http://", ""));
    expect(await give(other, txId)).toMatchObject({ txId });
  });

  // protects [Operators] src/application/operations/operations.ts
  it("is forwarded in a form that older releases refuse", async () => {
    const { owner, other, txId } = await withOneSentOfTwo();
    const receive = owner.node.actions.receive.bind(owner.node.actions);
    const forwarded: string[] = [];
    owner.node.actions.receive = (lane, request) => {
      forwarded.push(request.action);
      return receive(lane, request);
    };
    await give(other, txId);
    await ops.act(other, "resubmit", { txId });
    expect(forwarded).toEqual(["actOnce", "act"]);
  });
});

describe("a lane action with an idempotency key", () => {
  it("is performed once, whether or not the request names the chain id", async () => {
    const { node } = await withOneSent();
    await giveLane(node, "suspend");
    await ops.lane(node, "resume");
    await giveLane(node, "suspend");
    await giveLane(node, "suspend", { chainId: 31_337 });
    const [view] = await node.node.api.signer(SIGNER);
    expect(view?.suspendedBy).toBeNull();
    expect(view?.decisions?.map(({ action }) => action)).toEqual(["resume", "suspend"]);
    await expect(giveLane(node, "resume")).rejects.toMatchObject(REUSED);
    await expect(giveLane(node, "suspend", { reason: "another" })).rejects.toMatchObject(REUSED);
  });

  it("is performed for only one of two concurrent requests with different content", async () => {
    const { node } = await withOneSent();
    const both = await Promise.allSettled([
      giveLane(node, "suspend"),
      giveLane(node, "suspend", { reason: "another" }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect((await node.node.api.signer(SIGNER))[0]?.decisions).toHaveLength(1);
  });

  it.each(["suspend", "realign"] as const)(
    "is not performed again by a repeat if the commit got no response (%s)",
    async (action) => {
      const { owner, other } = await withOneSentOfTwo();
      owner.store.failNextCommit("unknown-committed");
      await expect(giveLane(owner, action)).rejects.toMatchObject({ extras: { outcome: "unknown" } });
      await giveLane(other, action);
      await giveLane(owner, action);
      const [view] = await owner.node.api.signer(SIGNER);
      expect(view?.decisions?.map((decision) => decision.action)).toEqual([action]);
    },
  );
});

describe("an action without an idempotency key", () => {
  const repeat = async (node: WorldNode, txId: string, action: TransactionAction, request = {}) => {
    await ops.act(node, action, { txId, request });
    const paid = ops.row(txId).attempts.at(-1)?.txHash;
    const view = await ops.act(node, action, { txId, request });
    return { paid, newest: view.attempts.at(-1)?.txHash, kinds: ops.kinds(txId) };
  };

  it.each([
    ["cancel", {}, "cancel"],
    ["cancel", { maxFeePerGas: "90000000000" }, "cancel"],
    ["cancel", { gasPrice: "90000000000" }, "cancel"],
    ["replace", { payload: { to: TO, value: "2", gas: 21_000 } }, "replace"],
    ["replace", { payload: { to: TO, value: "2", gas: 21_000, maxFeePerGas: "90000000000" } }, "replace"],
    ["reprice", { maxFeePerGas: "90000000000", maxPriorityFeePerGas: "9000000000" }, "reprice"],
    ["reprice", { gasPrice: "90000000000" }, "reprice"],
    // protects [Operators] src/application/detours/change-payload.ts
  ] as const)("signs nothing and pays nothing when it is repeated (%s with %j)", async (action, request, kind) => {
    const { node, txId } = await withOneSent();
    const { paid, newest, kinds } = await repeat(node, txId, action, request);
    expect(kinds).toEqual(["initial", kind]);
    expect(newest).toBe(paid);
  });

  // protects [Operators] src/application/detours/change-payload.ts
  it("signs nothing when repeated after a lost response", async () => {
    const { owner, other, txId } = await withOneSentOfTwo();
    world.network.inject("lostReply");
    await expect(ops.act(other, "cancel", { txId })).rejects.toMatchObject({ extras: { outcome: "unknown" } });
    await ops.act(other, "cancel", { txId });
    await ops.act(owner, "cancel", { txId });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    await isMinedAs(txId, "FAILED_FINAL/CANCELLED");
  });

  it.each([
    ["cancel", {}, { maxFeePerGas: "90000000000" }],
    ["cancel", {}, { gasPrice: "90000000000" }],
    ["reprice", { maxFeePerGas: "80000000000" }, { maxFeePerGas: "90000000000" }],
    ["reprice", {}, {}],
    ["replace", { payload: { to: TO, value: "2", gas: 21_000 } }, { payload: { to: TO, value: "3", gas: 21_000 } }],
    ["replace", { payload: { to: TO, value: "2", gas: 21_000 } }, { payload: { to: TO, value: "2", gas: 30_000 } }],
    ["replace", { payload: { to: TO, value: "2" } }, { payload: { to: TO, value: "2", maxFeePerGas: "90000000000" } }],
    // protects [Operators] src/application/detours/change-payload.ts
  ] as const)(
    "counts as a new action if it requests another change (%s with %j and then %j)",
    async (action, first, second) => {
      const { node, txId } = await withOneSent();
      await ops.act(node, action, { txId, request: first });
      await ops.act(node, action, { txId, request: second });
      expect(ops.kinds(txId)).toHaveLength(3);
    },
  );

  it("counts as a new cancel if the earlier cancel was replaced", async () => {
    const { node, txId } = await withOneSent();
    await ops.act(node, "cancel", { txId });
    await ops.act(node, "replace", { txId, request: { payload: { to: TO, value: "2" } } });
    await ops.act(node, "cancel", { txId });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel", "replace", "cancel"]);
  });

  // protects [Operators] src/application/detours/change-payload.ts
  it("counts as a new cancel if the transaction became STUCK meanwhile", async () => {
    const { node, txId } = await withOneSent();
    await ops.act(node, "cancel", { txId });
    await ops.act(node, "resolve", { txId, request: JSON.parse(`{"action":"NOOP","then":"stuck"}`) });
    expect(ops.row(txId).state).toBe("STUCK");
    await ops.act(node, "cancel", { txId });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel", "cancel"]);
  });

  it("is refused as too low if it is a reprice with the first attempt's fees", async () => {
    const { node, txId } = await withOneSent();
    const fees = { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
    await expect(ops.act(node, "reprice", { txId, request: fees })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    expect(transfer().payload).toMatchObject(fees);
  });
});
