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

describe("the unused part of charges of several hours", () => {
  const HOUR_MS = 3_600_000;
  const further: Charge = { ordinal: 2, moves: 30n, hourMs: HOUR_MS, settles: false, value: 20n, cost: 60n };
  const settled = (paid: { ordinal: number; gasCost: bigint; succeeded: boolean }) =>
    settledCharges([COUNTED, further], paid).map(({ hourMs, value, cost }) => ({ hourMs, value, cost }));

  it("is subtracted from the latest hour first, and from an earlier hour only for the rest", () => {
    expect(settled({ ordinal: 2, gasCost: 100n, succeeded: true })).toEqual([
      { hourMs: HOUR_MS, value: 0n, cost: -40n },
    ]);
    expect(settled({ ordinal: 2, gasCost: 70n, succeeded: false })).toEqual([
      { hourMs: HOUR_MS, value: -20n, cost: -60n },
      { hourMs: 0, value: -10n, cost: -40n },
    ]);
  });

  it("is computed with the value of the mined attempt, not of a later attempt", () => {
    expect(settled({ ordinal: 1, gasCost: 100n, succeeded: true })).toEqual([
      { hourMs: HOUR_MS, value: -20n, cost: -60n },
    ]);
    expect(settled({ ordinal: 3, gasCost: 140n, succeeded: true })).toEqual([]);
  });
});
