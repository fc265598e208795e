/** Requested signatures of messages: what each step permits in each state of the signature and of the lane. */
import { describe, expect, it } from "vitest";
import { apply, type Ledger, type LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { asked, permitOf, permitRule } from "../../support/message-samples.ts";
import { forSigner } from "../../support/policies.ts";
import { newLedger, unusedGuard } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(Date.UTC(2026, 10, 17, 12));
const LATE = new Date(NOW.getTime() + 3_600_000);
const policies = (rule: object) => forSigner(LANE.signer, { messages: { typedData: [permitRule(rule)] } });
const under = (ledger: Ledger, rule: object): Ledger => ({
  ...{ ...ledger, guard: { ...unusedGuard(policies(rule)) } },
});
const amount = { field: "value", perHour: "100" };
const lane = newLedger(LANE);
const request = asked(permitOf(LANE.signer, { value: "60" }));

const written = (ledger: Ledger, write: object, at = NOW) => {
  const { ledger: after, outcome } = apply(ledger, { fence: FENCE, ...write } as LedgerWrite, at);
  return { after, outcome: outcome as unknown as Readonly<Record<string, unknown>> };
};
const ask = { kind: "signMessage", asked: request };
const settle = (event: object) => ({ kind: "settleMessage", requestId: request.requestId, event });
const sign = settle({ kind: "sign", signature: "0x01" });
const approve = settle({ kind: "approve", actor: "operator:me", reason: "fine" });
const reject = settle({ kind: "reject", actor: "operator:me", reason: "no" });

const allowed = () => written(under(lane, { amount }), ask).after;
const awaiting = () => written(under(lane, { amount, requireApproval: { expiresAfter: "1h" } }), ask).after;
const signed = () => written(allowed(), sign).after;

describe("a step of a requested signature", () => {
  it.each<[string, () => Ledger, object, object]>([
    ["asked again, allowed", allowed, ask, { result: "kept", isNew: false, record: { state: "ALLOWED" } }],
    ["asked again, signed", signed, ask, { result: "kept", isNew: false, record: { state: "SIGNED", signedAt: NOW } }],
    ["signed, allowed", allowed, sign, { result: "kept", record: { state: "SIGNED", signature: "0x01" } }],
    ["signed, awaiting", awaiting, sign, { result: "conflict", record: { state: "AWAITING_APPROVAL" } }],
    [
      "approved, awaiting",
      awaiting,
      approve,
      { result: "kept", record: { state: "ALLOWED", rule: "usdc", amount: 60n } },
    ],
    ["approved, allowed", allowed, approve, { result: "conflict", record: { state: "ALLOWED" } }],
    ["rejected, awaiting", awaiting, reject, { result: "kept", record: { state: "REJECTED" } }],
    ["rejected, signed", signed, reject, { result: "conflict", record: { state: "SIGNED" } }],
    ["signed, unknown", () => lane, sign, { result: "conflict", record: null }],
    ["asked on a held lane", () => held(under(lane, { amount })), ask, { result: "held" }],
    ["asked again on a held lane", () => held(allowed()), ask, { result: "held" }],
    ["signed on a held lane", () => held(allowed()), sign, { result: "held" }],
    ["approved on a held lane", () => held(awaiting()), approve, { result: "held" }],
    ["rejected on a held lane", () => held(awaiting()), reject, { result: "kept", record: { state: "REJECTED" } }],
    ["asked, and no rule", () => lane, ask, { result: "forbidden", rule: "signer.messages" }],
    ["asked again, and the rule is gone", () => ({ ...allowed(), guard: null }), ask, { result: "forbidden" }],
    ["signed, and the rule is gone", () => ({ ...allowed(), guard: null }), sign, { result: "forbidden" }],
    ["approved, and the rule is gone", () => ({ ...awaiting(), guard: null }), approve, { result: "forbidden" }],
  ])("has one result: %s", (_, ledger, write, expected) => {
    const { outcome } = written(ledger(), write);
    expect(outcome).toMatchObject(expected);
  });

  it("decides nothing after the time for approval", () => {
    const expired = { result: "conflict", record: { state: "EXPIRED" } };
    expect(written(awaiting(), approve, LATE).outcome).toMatchObject(expired);
    expect(written(awaiting(), reject, LATE).outcome).toMatchObject(expired);
    expect(written(awaiting(), ask, LATE).outcome).toMatchObject({ result: "kept", record: { state: "EXPIRED" } });
    expect(written(awaiting(), approve, new Date(LATE.getTime() - 1)).outcome).toMatchObject({ result: "kept" });
  });

  it("keeps who decided, and when", () => {
    const decision = { actor: "operator:me", reason: "fine", at: NOW };
    expect(written(awaiting(), approve).outcome).toMatchObject({ record: { decision, signature: null } });
    expect(written(awaiting(), reject).outcome).toMatchObject({ record: { decision: { ...decision, reason: "no" } } });
  });

  it("is counted once, when it is allowed", () => {
    const counted = (ledger: Ledger) => ledger.messageUse.get("usdc")?.hour ?? null;
    const once = { amount: 60n, signatures: 1 };
    expect([allowed(), signed(), written(allowed(), ask).after].map(counted)).toEqual([once, once, once]);
    expect(counted(awaiting())).toBeNull();
    expect(counted(written(awaiting(), approve).after)).toEqual(once);
    const second = { kind: "signMessage", asked: asked(permitOf(LANE.signer, { value: "60" })) };
    expect(written(allowed(), second).outcome).toMatchObject({
      ...{ result: "forbidden", rule: "signer.messages.usdc.amount.perHour" },
    });
  });

  it("is counted by the rule that allows it now, unless that rule has no room", () => {
    const renamed = under(allowed(), { name: "other", amount });
    const { after, outcome } = written(renamed, ask);
    expect(outcome).toMatchObject({ result: "kept", record: { rule: "other", amount: 60n } });
    expect(after.messageUse.get("other")?.hour).toEqual({ amount: 60n, signatures: 1 });
    const full = { field: "value", perHour: "59" };
    expect(written(under(allowed(), { name: "other", amount: full }), ask).outcome).toMatchObject({
      ...{ result: "forbidden", rule: "signer.messages.other.amount.perHour" },
    });
  });

  it("cannot wait for an approval that was required only later", () => {
    const { outcome } = written(under(allowed(), { amount, requireApproval: {} }), ask);
    expect(outcome).toMatchObject({ result: "forbidden", rule: "signer.messages.usdc.requireApproval" });
    const approved = written(awaiting(), approve).after;
    expect(written(approved, ask).outcome).toMatchObject({ result: "kept", record: { state: "ALLOWED" } });
  });

  it("is refused for another message, and for another API key, under the same request id", () => {
    const of = (parts: object) => written(allowed(), { kind: "signMessage", asked: { ...request, ...parts } }).outcome;
    expect(of({ digest: "0x02" })).toMatchObject({ result: "reused", another: false });
    expect(of({ owner: "shop" })).toMatchObject({ result: "kept" });
    const owned = written(under(lane, { amount }), { kind: "signMessage", asked: { ...request, owner: "shop" } }).after;
    const again = (owner: string) => written(owned, { kind: "signMessage", asked: { ...request, owner } }).outcome;
    expect(again("thief")).toMatchObject({ result: "reused", another: true });
    expect(again("shop")).toMatchObject({ result: "kept" });
  });
});

function held(ledger: Ledger): Ledger {
  return { ...ledger, reconciled: false };
}
