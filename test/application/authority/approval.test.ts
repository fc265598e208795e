import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import type { TransactionAction } from "../../../src/application/api.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { ANYBODY, type Scope } from "../../../src/domain/keys/principal.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

const DOOMED = "0x00000000000000000000000000000000000d003d";
const BOUND = { requireApproval: { aboveValue: "100", expiresAfter: "60s" } };

async function start(policy: object = BOUND, options: WorldOptions = {}): Promise<WorldNode> {
  world = new World({ ...options, policies: options.policies ?? forSigner(SIGNER, policy) });
  ops = new OperatedWorld(world);
  return world.startNode();
}

const moving = (value: number, more: object = {}) =>
  transfer({ payload: { ...(transfer().payload as object), value }, ...more });
const asKey = ({ node }: WorldNode, name: string, ...scopes: readonly Scope[]) =>
  limitedTo({ ...ANYBODY, name, scopes: new Set(scopes) }, node.api);
const actionRequest = (action: TransactionAction, txId: string, actor = "operator:bob") => {
  return { action, txId, request: { reason: `${action} it` }, actor };
};
const refusal = (promise: Promise<unknown>) => world.refusal(promise);
/** A transaction that waits for approval, created by "ann" with a request id. */
const waiting = async (entry: WorldNode, value = 500, requestId = "big") => {
  const created = await world.settle(entry.node.api.create(moving(value, { requestId }), "ann"));
  expect(created).toMatchObject({ outcome: "created", state: "CREATED", nonce: null });
  return created.txId;
};
/** An intent that "ann" inserted in her own database transaction. */
const intakeIntent = (request: ReturnType<typeof moving>) => {
  const ports = { codec: createCodec(), entropy: createSeededEntropy(5), chainIds: [CHAIN_ID] };
  return normalise(ports, request, { owner: "ann" });
};
const statusOf = async ({ node }: WorldNode, txId: string) => {
  const { state, subState, nonce } = await world.settle(node.api.transaction(txId));
  return { state, subState, nonce };
};
const AWAITING = { state: "CREATED", subState: "AWAITING_APPROVAL", nonce: null };

describe("a transaction that needs approval", () => {
  // protects [Operators] src/domain/ledger/draft.ts, src/domain/ledger/move.ts, src/domain/ledger/bind.ts, src/domain/ledger/standing.ts, src/domain/ledger/settle-intake.ts
  it("is approved, rejected or cancelled once per idempotency key", async () => {
    const entry = await start();
    const keyed = (action: TransactionAction, txId: string) => ({
      ...actionRequest(action, txId),
      idempotencyKey: "k",
    });
    const txId = await waiting(entry);
    await world.settle(entry.node.api.act(keyed("approve", txId)));
    await world.settle(entry.node.api.act(keyed("approve", txId)));
    expect(await refusal(entry.node.api.act(keyed("reject", txId)))).toMatchObject({ code: "REQUEST_ID_REUSED" });
    await world.allSettled(1);
    expect(await world.settle(entry.node.api.act(keyed("approve", txId)))).toMatchObject({ state: "CONFIRMED" });
    const other = await waiting(entry, 500, "another");
    await world.settle(entry.node.api.act(keyed("cancel", other)));
    expect(await world.settle(entry.node.api.act(keyed("cancel", other)))).toMatchObject({ state: "FAILED_FINAL" });
    checkInvariants(world);
  });

  it("keeps the caller's allowNoCode flag until it is approved and sent", async () => {
    const entry = await start();
    const call = moving(500, { payload: { ...(moving(500).payload as object), data: "0x01", gas: 60_000 } });
    const created = await world.settle(entry.node.api.create({ ...call, allowNoCode: true }, "ann"));
    expect(created).toMatchObject({ state: "CREATED" });
    await world.settle(entry.node.api.act(actionRequest("approve", created.txId)));
    await world.allSettled(1);
    expect(await statusOf(entry, created.txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
  });

  it("does not block its lane while it waits", async () => {
    const entry = await start();
    const txId = await waiting(entry);
    const [again, small] = await world.settle(
      entry.node.api.createBatch([moving(500, { requestId: "big" }), moving(100)], "ann"),
    );
    expect(again).toMatchObject({ outcome: "existing", txId, state: "CREATED", nonce: null });
    expect(small).toMatchObject({ nonce: 0 });
    await world.allSettled(1);
    expect(await statusOf(entry, txId)).toEqual(AWAITING);
    const { summary, causes, help } = await world.settle(entry.node.api.explain(txId));
    expect(summary).toMatch(/^It has no nonce yet: waits until an API key with the scope approve other than ann/);
    const data = { rule: "signer.requireApproval", owner: "ann" };
    expect(causes).toMatchObject([{ code: "AWAITING_APPROVAL", data }]);
    expect(help.map(({ code }) => code)).toEqual(["APPROVE", "CANCEL"]);
    expect(await refusal(entry.node.api.act(actionRequest("reprice", txId)))).toMatchObject({ code: "CONFLICT" });
    checkInvariants(world);
  });

  it("gets the next nonce once it is approved at any node", async () => {
    const entry = await start();
    const other = await world.startNode();
    const txId = await waiting(entry);
    await ops.sent(entry);
    await world.settle(other.node.api.act(actionRequest("approve", txId)));
    await world.allSettled(2);
    expect(ops.row(txId)).toMatchObject({ state: "CONFIRMED", nonce: 1, requestId: "big" });
    expect(ops.row(txId).history.find(({ event }) => event === "approve")).toMatchObject({
      ...{ reason: "approve it", decision: { actor: "operator:bob" } },
    });
    // A second approval returns the same result. A rejection after the approval is refused, and the error names the
    // approval.
    const late = await world.settle(other.node.api.act(actionRequest("approve", txId, "operator:cid")));
    expect(late).toMatchObject({ state: "CONFIRMED" });
    expect((await refusal(entry.node.api.act(actionRequest("reject", txId)))).message).toMatch(
      /was approved by operator:bob/,
    );
    checkInvariants(world);
  });

  it("is rejected with the operator and the reason recorded", async () => {
    const entry = await start();
    const txId = await waiting(entry);
    const view = await world.settle(entry.node.api.act(actionRequest("reject", txId)));
    expect(view).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    expect(view.lastError).toBe("was rejected by operator:bob: reject it");
    const { items } = await world.settle(entry.node.api.completions({ after: 0 }));
    expect(items).toMatchObject([{ txId, state: "FAILED_FINAL", subState: "REJECTED", settled: true }]);
    expect(await world.settle(entry.node.api.act(actionRequest("reject", txId, "operator:cid")))).toMatchObject(view);
    expect((await refusal(entry.node.api.act(actionRequest("approve", txId)))).message).toMatch(
      /was rejected by operator:bob/,
    );
    const { summary } = await world.settle(entry.node.api.explain(txId));
    expect(summary).toMatch(/was rejected by operator:bob: reject it/);
  });

  // protects [Attacks] src/application/operations/transaction-actions.ts, src/application/detours/intake.ts
  it("expires by the database's clock", async () => {
    const entry = await start();
    const txId = await waiting(entry);
    world.crash(entry);
    const other = await world.startNode();
    await world.until(() => world.database.state.transactions.has(txId));
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/EXPIRED");
    expect(ops.row(txId).lastError).toMatch(/nobody approved it before .*signer.requireApproval/);
    expect((await refusal(other.node.api.act(actionRequest("approve", txId)))).message).toMatch(/not approved in time/);
  });

  it("can be cancelled by the key that created it", async () => {
    const entry = await start();
    const txId = await waiting(entry);
    const eve = asKey(entry, "eve", "read", "submit");
    expect(await refusal(eve.act(actionRequest("cancel", txId)))).toMatchObject({ extras: { rule: "owner" } });
    const view = await world.settle(
      asKey(entry, "ann", "read", "submit").act(actionRequest("cancel", txId, "operator:ann")),
    );
    expect(view).toMatchObject({ state: "FAILED_FINAL", subState: "CANCELLED", nonce: null });
  });

  // protects [Attacks] src/application/detours/intake.ts, src/domain/ledger/settle-intake.ts
  it("can still be cancelled while it is approved but has no nonce yet", async () => {
    const entry = await start();
    const ann = asKey(entry, "ann", "read", "submit");
    const unpriced = { payload: { to: DOOMED, value: 500 }, requestId: "big" };
    const { txId } = await world.settle(entry.node.api.create(transfer(unpriced), "ann"));
    expect(await statusOf(entry, txId)).toEqual(AWAITING);
    world.chain.revertCallsTo(DOOMED, "0x");
    world.holdBlocks();
    await ops.sent(entry);
    await world.settle(entry.node.api.act(actionRequest("approve", txId)));
    const behind = intakeIntent(moving(1));
    world.database.insertIntake(behind);
    await world.until(() => world.database.state.transactions.has(behind.txId));
    expect(await statusOf(entry, txId)).toEqual({ state: "CREATED", subState: null, nonce: null });
    expect(await refusal(entry.node.api.act(actionRequest("reprice", txId)))).toMatchObject({ code: "CONFLICT" });
    const eve = asKey(entry, "eve", "read", "submit");
    expect(await refusal(eve.act(actionRequest("cancel", txId)))).toMatchObject({ extras: { rule: "owner" } });
    const view = await world.settle(ann.act(actionRequest("cancel", txId, "operator:ann")));
    expect(view).toMatchObject({ state: "FAILED_FINAL", subState: "CANCELLED", nonce: null });
    expect((await refusal(entry.node.api.act(actionRequest("approve", txId)))).message).toMatch(
      /was cancelled by operator:ann/,
    );
    world.releaseBlocks();
    await world.allSettled(3);
    checkInvariants(world);
  });

  // protects [Attacks] src/application/authority.ts
  it("cannot be approved by the key that created it", async () => {
    const entry = await start();
    const txId = await waiting(entry);
    const ann = asKey(entry, "ann", "read", "submit", "operate", "approve", "admin");
    for (const action of ["approve", "reject"] as const) {
      expect(await refusal(ann.act(actionRequest(action, txId)))).toMatchObject({
        code: "FORBIDDEN",
        extras: { rule: "owner" },
      });
      const operator = asKey(entry, "bob", "operate", "admin");
      expect(await refusal(operator.act(actionRequest(action, txId)))).toMatchObject({
        extras: { rule: "scope:approve" },
      });
    }
    expect(await statusOf(entry, txId)).toEqual(AWAITING);
    await world.settle(asKey(entry, "bob", "approve").act(actionRequest("approve", txId)));
    await world.allSettled(1);
  });
});

describe("concurrent approval decisions", () => {
  it.each([
    ["approve", "approve"],
    ["approve", "reject"],
    ["reject", "approve"],
    // protects [Attacks] src/domain/ledger/settle-intake.ts
  ] as const)("take effect exactly once for one transaction (%s and %s)", async (first, second) => {
    const entry = await start();
    const other = await world.startNode();
    for (let round = 0; round < 5; round++) {
      const txId = await waiting(entry, 500, `r${round}`);
      const asked = [
        entry.node.api.act(actionRequest(first, txId, "operator:one")),
        other.node.api.act(actionRequest(second, txId, "operator:two")),
      ];
      const results = await world.settle(Promise.allSettled(asked));
      const made = (await world.settle(entry.node.api.transaction(txId, ["history"]))).history ?? [];
      const counted = made.filter(({ event }) => event === "approve" || event === "reject");
      expect(counted).toHaveLength(1);
      const isAnswered = (action: TransactionAction) => (counted[0]?.event === action ? "fulfilled" : "rejected");
      expect(results.map(({ status }) => status)).toEqual([isAnswered(first), isAnswered(second)]);
    }
    await world.allSettled(5);
    checkInvariants(world);
  });

  // protects [Attacks] src/domain/ledger/guard.ts
  it("give out no more nonces for many transactions than the policy's limit allows", async () => {
    const entry = await start({ ...BOUND, maxValue: { perDay: "2000" } });
    const other = await world.startNode();
    const txIds = await Promise.all([1, 2, 3, 4, 5, 6].map((each) => waiting(entry, 500, `m${each}`)));
    const nodes = [entry, other];
    const approve = (txId: string, at: number) => nodes[at % 2]?.node.api.act(actionRequest("approve", txId));
    await world.settle(Promise.all(txIds.map(approve)));
    await world.allSettled(6);
    const outcomes = txIds.map((txId) => ops.outcome(txId)).sort();
    expect(outcomes).toEqual([...Array(4).fill("CONFIRMED"), ...Array(2).fill("FAILED_FINAL/REJECTED")]);
    expect(world.rows().find(({ subState }) => subState === "REJECTED")?.lastError).toMatch(/signer.maxValue.perDay/);
    checkInvariants(world);
  });
});

describe("the approval threshold", () => {
  // protects [Attacks] src/domain/ledger/allocate.ts, src/domain/policy/policy.ts
  it("also applies to a transaction inserted through the intake table", async () => {
    const entry = await start();
    const intent = intakeIntent(moving(500, { requestId: "in" }));
    world.database.insertIntake(intent);
    await world.until(() => [...world.database.state.intake.values()].some(({ approval }) => approval !== null));
    expect(await statusOf(entry, intent.txId)).toEqual(AWAITING);
    await world.settle(entry.node.api.act(actionRequest("approve", intent.txId)));
    await world.allSettled(1);
  });

  // protects [Attacks] src/domain/ledger/guard.ts
  it("also applies to replacements", async () => {
    const entry = await start();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const payload = { to: TO, value: 101 };
    const replace = { ...actionRequest("replace", txId), request: { reason: "more", payload } };
    expect(await refusal(entry.node.api.act(replace))).toMatchObject({
      ...{ code: "FORBIDDEN", extras: { rule: "signer.requireApproval" } },
    });
    world.releaseBlocks();
    await world.allSettled(1);
  });

  it("also applies if only the API key's policy sets it, not the signer's", async () => {
    const entry = await start({}, { policies: policiesOf({ keys: { ann: BOUND } }) });
    const txId = await waiting(entry);
    expect(await world.settle(entry.node.api.create(moving(500), "bob"))).toMatchObject({ nonce: 0 });
    const taken = await refusal(entry.node.api.create(moving(500, { requestId: "big" }), "bob"));
    expect(taken).toMatchObject({ code: "REQUEST_ID_REUSED" });
    expect(await statusOf(entry, txId)).toEqual(AWAITING);
    await world.allSettled(1);
  });

  it("is reported by a dry run of the policy", async () => {
    const entry = await start();
    const verdict = await world.settle(entry.node.api.checkPolicy(moving(101)));
    expect(verdict).toMatchObject({ allowed: true, awaitsApproval: true, rule: "signer.requireApproval" });
    expect(await world.settle(entry.node.api.checkPolicy(moving(100)))).not.toHaveProperty("awaitsApproval");
  });
});

describe("an approval", () => {
  it.each(["unknown-committed", "unknown-lost"] as const)(
    // protects [Attacks] src/application/operations/transaction-actions.ts, src/application/detours/intake.ts
    "is recorded once if the response to its commit is lost (%s)",
    async (fault) => {
      const entry = await start();
      const create = () => entry.node.api.create(moving(500, { requestId: "big" }), "ann");
      entry.store.failNextCommit(fault);
      expect(await refusal(create())).toMatchObject({ extras: { outcome: "unknown" } });
      const { txId } = await world.settle(create());
      expect([...world.database.state.intake.values()].map(({ intent }) => intent.txId)).toEqual([txId]);
      entry.store.failNextCommit(fault);
      await world.settle(entry.node.api.act(actionRequest("approve", txId)).catch(() => null));
      await world.settle(entry.node.api.act(actionRequest("approve", txId, "operator:cid")));
      await world.allSettled(1);
      const approvals = ops.row(txId).history.filter(({ event }) => event === "approve");
      expect(approvals).toHaveLength(1);
      checkInvariants(world);
    },
  );

  // protects [Attacks] src/application/operations/transaction-actions.ts, src/application/detours/intake.ts
  it("is completed by the next owner if its node crashes before the nonce is allocated", async () => {
    const entry = await start();
    const txId = await waiting(entry);
    await world.settle(entry.node.api.act(actionRequest("approve", txId)));
    world.crash(entry);
    await world.startNode();
    await world.allSettled(1);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
    checkInvariants(world);
  });

  it("takes effect even while the lane is suspended or its signer is killed", async () => {
    const entry = await start();
    await world.settle(entry.node.api.kill({ signer: null, request: { reason: "stop" }, actor: "operator:ops" }));
    const txId = await waiting(entry);
    await ops.lane(entry, "suspend");
    await world.settle(entry.node.api.act(actionRequest("approve", txId)));
    await world.until(() => world.database.state.transactions.has(txId));
    expect(ops.row(txId)).toMatchObject({ state: "ALLOCATED", nonce: 0 });
    await world.settle(entry.node.api.endKill({ signer: null, request: { reason: "go" }, actor: "operator:ops" }));
    await ops.lane(entry, "resume");
    await world.allSettled(1);
  });
});
