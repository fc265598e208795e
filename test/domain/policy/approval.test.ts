import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { parsePolicies } from "../../../src/domain/policy/parse.ts";
import { approvalOf, type Judge, policyFor } from "../../../src/domain/policy/policy.ts";
import { UNUSED } from "../../../src/domain/policy/use.ts";
import { policiesOf } from "../../support/policies.ts";

const HOUR_MS = 3_600_000;

/**
 * Returns the approval that a transaction needs, or null, if the signer and the API key have these approval limits
 * (null: no limit).
 */
function asked(signer: object | null, key: object | null, value: bigint, about: "payload" | "cost" = "payload") {
  const said = (bound: object | null) => (bound === null ? {} : { requireApproval: bound });
  const { keys } = policiesOf({ keys: { signer: said(signer), key: said(key) } });
  const judges = (["signer", "key"] as const).flatMap((scope): Judge[] => {
    const policy = policyFor(keys, scope);
    return policy === null ? [] : [{ scope, policy, use: UNUSED }];
  });
  const worst = { value, cost: value + 10n };
  return approvalOf(judges, { chainId: 1, payload: { to: null, data: "0x" }, worst, more: worst, about });
}

describe("an approval limit", () => {
  it.each([
    ["is not exceeded by its own value", { aboveValue: "5" }, null, 5n, null],
    ["is exceeded by a higher value", { aboveValue: "5" }, null, 6n, "signer.requireApproval"],
    ["is not exceeded by its own cost", { aboveCost: "15" }, null, 5n, null],
    ["is exceeded by the cost of gas", { aboveCost: "14" }, null, 5n, "signer.requireApproval"],
    ["is exceeded if one of two is", { aboveValue: "100", aboveCost: "14" }, null, 5n, "signer.requireApproval"],
    ["of zero is not exceeded by zero", { aboveValue: "0" }, null, 0n, null],
    ["of the key applies by itself", { aboveValue: "100" }, { aboveValue: "5" }, 6n, "key.requireApproval"],
    ["does not apply if there is none", null, null, 10n ** 30n, null],
  ])("follows the rule: %s", (_, signer, key, value, rule) => {
    expect(asked(signer, key, value)?.rule ?? null).toBe(rule);
  });

  it("does not apply to payloads that only cost gas", () => {
    expect(asked({ aboveValue: "0", aboveCost: "0" }, null, 5n, "cost")).toBeNull();
  });

  it("allows one day for the approval by default", () => {
    expect(asked({ aboveValue: "1" }, null, 2n)?.expiresAfterMs).toBe(24 * HOUR_MS);
    const shorter = asked({ aboveValue: "1", expiresAfter: "2h" }, { aboveValue: "1", expiresAfter: "90m" }, 2n);
    expect(shorter).toMatchObject({ rule: "signer.requireApproval", expiresAfterMs: 1.5 * HOUR_MS });
    expect(asked({ aboveValue: "1", expiresAfter: "2h" }, { aboveValue: "9", expiresAfter: "1s" }, 2n)).toMatchObject({
      expiresAfterMs: 2 * HOUR_MS,
    });
  });

  it.each([
    ["requireApproval", {}],
    ["requireApproval.aboveValue", { aboveValue: 5 }],
    ["requireApproval.above", { above: "5", aboveCost: "5" }],
    ["requireApproval.expiresAfter", { aboveCost: "5", expiresAfter: "999ms" }],
    ["requireApproval.expiresAfter", { aboveCost: "5", expiresAfter: "8761h" }],
    ["requireApproval.expiresAfter", { aboveCost: "5", expiresAfter: 60 }],
  ])("is refused with the path of the mistake if the limit is invalid: %s of %j", (place, requireApproval) => {
    const parsed = parsePolicies({ keys: { a: { requireApproval } } }, createCodec());
    expect("mistakes" in parsed && parsed.mistakes.map((each) => each.split(" ")[0])).toEqual([`keys.a.${place}`]);
  });

  it("is reported as absent if no policy contains one", () => {
    expect(policiesOf({ keys: { a: { to: [] } } }).asksApproval).toBe(false);
    expect(policiesOf({ signers: { "*": { requireApproval: { aboveCost: "1" } } } }).asksApproval).toBe(true);
  });
});
