import { describe, expect, it } from "vitest";
import { type Charge, settledCharges, standing } from "../../../src/domain/policy/charges.ts";

const COUNTED: Charge = { ordinal: 0, moves: 10n, hourMs: 0, settles: false, value: 10n, cost: 110n };

describe("the amount charged for a final transaction", () => {
  const counts = (gasCost: bigint, { succeeded = true, unsure = false } = {}) => {
    const paid = { ordinal: 1, gasCost, succeeded, ...(unsure && { unsure: true as const }) };
    return standing([COUNTED, ...settledCharges([COUNTED], paid)]);
  };

  it("is the amount paid, including blob and data costs that are certain", () => {
    expect(counts(40n)).toEqual({ value: 10n, cost: 50n });
    expect(counts(140n)).toEqual({ value: 10n, cost: 150n });
  });

  // protects [Attacks] src/application/stages/7-complete/complete.ts, src/domain/policy/charges.ts, src/adapters/evm/reads/agree.ts
  it("is at least the worst case if the blob or data costs are uncertain", () => {
    expect(counts(40n, { unsure: true })).toEqual({ value: 10n, cost: 110n });
    expect(counts(140n, { unsure: true })).toEqual({ value: 10n, cost: 150n });
    expect(counts(40n, { unsure: true, succeeded: false })).toEqual({ value: 0n, cost: 100n });
  });
});
