/** Predictions of policy checks: dry runs show them, and the commit decides by the same rules. */
import { describe, expect, it } from "vitest";
import { apply, foreseen, foreseenMessage, type Ledger, type LedgerWrite } from "../../../src/domain/ledger/index.ts";
import { unreadablePolicies } from "../../../src/domain/policy/parse.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import { UNUSED, type Use } from "../../../src/domain/policy/use.ts";
import { anIntent } from "../../support/lane-samples.ts";
import { asked, greeting, permitOf, permitRule } from "../../support/message-samples.ts";
import { policiesOf } from "../../support/policies.ts";
import { newLedger, unusedGuard } from "../../support/whole-ledger.ts";
import { FENCE, LANE } from "./story.ts";

const NOW = new Date(Date.UTC(2026, 10, 17, 12));
const used = (cost: bigint): Use => ({ hourMs: NOW.getTime(), hour: { value: 0n, cost }, day: { value: 0n, cost } });
const UNREADABLE = unreadablePolicies({}, ["it has a rule of a later version"]);

const written = (ledger: Ledger, write: object) => apply(ledger, { fence: FENCE, ...write } as LedgerWrite, NOW);

describe("the predicted check of a transaction", () => {
  const policies = policiesOf({
    signers: { [LANE.signer]: { maxCost: { perHour: "100" }, requireApproval: { aboveValue: "5" } } },
    keys: { shop: { maxCost: { perHour: "50" } } },
  });
  const spends = { to: `0x${"b".repeat(40)}`, data: "0x", about: "payload" } as const;

  it.each<[string, Policies, { value?: bigint; gasCost?: bigint; owner?: string; signer?: Use; key?: Use }, string]>([
    ["within all limits", policies, { gasCost: 100n }, "created"],
    ["above the signer's", policies, { gasCost: 101n }, "signer.maxCost.perHour"],
    ["above what the signer has left", policies, { gasCost: 41n, signer: used(60n) }, "signer.maxCost.perHour"],
    ["above the key's", policies, { gasCost: 51n, owner: "shop" }, "key.maxCost.perHour"],
    ["above what the key has left", policies, { gasCost: 11n, owner: "shop", key: used(40n) }, "key.maxCost.perHour"],
    ["of a key without limits", policies, { gasCost: 51n, owner: "other", key: used(40n) }, "created"],
    ["above the bound of approval", policies, { value: 6n }, "awaiting"],
    ["forbidden and above that bound", policies, { value: 101n }, "signer.maxCost.perHour"],
    ["under no policy", policiesOf({}), { gasCost: 10n ** 30n }, "created"],
    ["under unreadable policies", UNREADABLE, {}, "policy.unreadable"],
  ])("equals the check in the commit: %s", (_, inForce, wish, expected) => {
    const { value = 0n, gasCost = 0n, owner = null, signer = UNUSED, key = UNUSED } = wish;
    const use = { lane: LANE, at: NOW, owner, signer, key, charges: [] };
    const verdict = foreseen(inForce, use, { ...spends, value, gasCost });
    const rule = "forbidden" in verdict ? verdict.forbidden.rule : "awaited" in verdict ? "awaiting" : "created";
    expect(rule).toBe(expected);
    const guard = { ...unusedGuard(inForce), use: signer };
    const keyUse = owner === null ? guard.keyUse : guard.keyUse.set(owner, key);
    const intent = anIntent(LANE, { owner, payload: { ...spends, value }, gasCost });
    const ledger = { ...newLedger(LANE), guard: { ...guard, keyUse } };
    const { outcome } = written(ledger, { kind: "allocate", floor: 0, items: [{ intent }] });
    const [item] = "items" in outcome ? outcome.items : [];
    const result = typeof item === "object" ? item.result : null;
    const inCommit = typeof item === "object" && item.result === "forbidden" ? item.rule : result;
    expect(inCommit === "held" ? "policy.unreadable" : inCommit).toBe(expected);
  });

  it("counts what another payload of the transaction has been charged", () => {
    const charge = { ordinal: 0, moves: 0n, hourMs: NOW.getTime(), settles: false, value: 0n, cost: 90n };
    const use = { lane: LANE, at: NOW, owner: null, signer: used(90n), key: UNUSED, charges: [charge] };
    const cost = (gasCost: bigint) => foreseen(policies, use, { ...spends, value: 0n, gasCost });
    expect(cost(100n)).toMatchObject({ charges: [{ charge: { cost: 10n } }] });
    expect(cost(101n)).toMatchObject({ forbidden: { rule: "signer.maxCost.perHour" } });
    expect(cost(90n)).toEqual({ charges: [] });
  });
});

describe("the predicted check of a message", () => {
  const limited = (rule: object, key: object = {}) =>
    policiesOf({ signers: { [LANE.signer]: { messages: { typedData: [permitRule(rule)] } } }, keys: { shop: key } });
  const amount = { field: "value", perHour: "150" };
  const permit = (value: string) => permitOf(LANE.signer, { value });
  const ofKey = (rule: object) => ({ messages: { typedData: [permitRule(rule)] } });
  const hourOf = (sum: bigint, signatures = 1) => {
    const counted = { amount: sum, signatures };
    return new Map([["usdc", { hourMs: NOW.getTime(), hour: counted, day: counted }]]);
  };

  it.each<[string, Policies | null, Parameters<typeof asked>[0], ReturnType<typeof hourOf>, string]>([
    ["allowed", limited({ amount }), permit("150"), new Map(), "ALLOWED"],
    [
      "above what is left of the hour",
      limited({ amount }),
      permit("51"),
      hourOf(100n),
      "signer.messages.usdc.amount.perHour",
    ],
    ["within what is left", limited({ amount }), permit("50"), hourOf(100n), "ALLOWED"],
    [
      "above the number of signatures",
      limited({ signatures: { perHour: 1 } }),
      permit("1"),
      hourOf(0n),
      "signer.messages.usdc.signatures.perHour",
    ],
    [
      "above the bound of approval",
      limited({ amount: { field: "value" }, requireApproval: { aboveAmount: "9" } }),
      permit("10"),
      new Map(),
      "AWAITING_APPROVAL",
    ],
    [
      "above the key's bound of approval",
      limited({}, ofKey({ requireApproval: {} })),
      permit("10"),
      new Map(),
      "AWAITING_APPROVAL",
    ],
    [
      "refused by the key's rules",
      limited({}, ofKey({ fields: { value: { max: "9" } } })),
      permit("10"),
      new Map(),
      "key.messages.usdc.fields.value",
    ],
    [
      "allowed by the key's rules",
      limited({}, ofKey({ fields: { value: { max: "10" } } })),
      permit("10"),
      new Map(),
      "ALLOWED",
    ],
    ["allowed by a key without rules", limited({}, { to: [] }), permit("10"), new Map(), "ALLOWED"],
    [
      "on a chain that the signer's policy leaves out",
      outside("signers", { chains: [5] }),
      permit("1"),
      new Map(),
      "signer.chains",
    ],
    [
      "on a chain that the key's policy leaves out",
      outside("keys", { chains: [5] }),
      permit("1"),
      new Map(),
      "key.chains",
    ],
    [
      "at an hour that the key's policy leaves out",
      outside("keys", { hours: "13:00-14:00" }),
      permit("1"),
      new Map(),
      "key.hours",
    ],
    ["without a rule", limited({}), greeting(), new Map(), "signer.messages"],
    ["without policies", null, permit("1"), new Map(), "signer.messages"],
    ["under unreadable policies", UNREADABLE, permit("1"), new Map(), "policy.unreadable"],
  ])("equals the check in the commit: %s", (_, policies, message, sums, expected) => {
    const request = asked(message, { owner: "shop" });
    const at = { message, owner: "shop", lane: LANE, at: NOW };
    const { forbidden, awaited, allowed, use } = foreseenMessage(policies, at, sums);
    expect(forbidden?.rule ?? (awaited === null ? "ALLOWED" : "AWAITING_APPROVAL")).toBe(expected);
    if (allowed !== null) expect(use).toEqual(sums.get("usdc") ?? { ...use, hourMs: 0 });
    const whole = newLedger(LANE);
    let { messageUse } = whole;
    for (const [name, sum] of sums) messageUse = messageUse.set(name, sum);
    const ledger = { ...whole, messageUse, guard: policies === null ? null : unusedGuard(policies) };
    const { outcome } = written(ledger, { kind: "signMessage", asked: request });
    if (outcome.status !== "message") throw new Error("it is no message");
    expect(outcome.result === "kept" ? outcome.record.state : "rule" in outcome ? outcome.rule : null).toBe(expected);
  });

  it("waits no longer than the shortest of several approvals", () => {
    const policies = limited(
      { requireApproval: { expiresAfter: "2h" } },
      ofKey({ requireApproval: { expiresAfter: "1h" } }),
    );
    const { outcome } = written(
      { ...newLedger(LANE), guard: unusedGuard(policies) },
      { kind: "signMessage", asked: asked(permit("1"), { owner: "shop" }) },
    );
    expect(outcome).toMatchObject({ record: { expiresAt: new Date(NOW.getTime() + 3_600_000) } });
  });

  function outside(kind: "signers" | "keys", rule: object) {
    const messages = { typedData: [permitRule()] };
    const signer = kind === "signers" ? { messages, ...rule } : { messages };
    return policiesOf({ signers: { [LANE.signer]: signer }, keys: kind === "keys" ? { shop: rule } : {} });
  }
});
