import { describe, expect, it } from "vitest";
import { type Charge, settledCharges, standing, unsettledCharges } from "../../../src/domain/policy/charges.ts";

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

describe("the correction of what a transaction was charged", () => {
  const paid = { ordinal: 1, gasCost: 40n, succeeded: true };

  it("is none for a transaction that was never charged", () => {
    expect(settledCharges([], paid)).toEqual([]);
    expect(unsettledCharges([])).toEqual([]);
  });

  it("is undone exactly, and as often as the outcome is", () => {
    const settled = settledCharges([COUNTED], paid);
    expect(settled).toEqual([{ ...COUNTED, value: 0n, cost: -60n, settles: true }]);
    const undone = unsettledCharges([COUNTED, ...settled]);
    expect(undone).toEqual([{ ...COUNTED, value: 0n, cost: 60n, settles: true }]);
    expect(unsettledCharges([COUNTED, ...settled, ...undone])).toEqual([]);
    expect(settledCharges([COUNTED, ...settled, ...undone], paid)).toEqual(settled);
  });

  it("gives everything back if nothing was mined, and the value if it reverted", () => {
    const totalOf = (of: typeof paid | { ordinal: null; gasCost: bigint; succeeded: boolean }) =>
      standing([COUNTED, ...settledCharges([COUNTED], of)]);
    expect(totalOf({ ordinal: null, gasCost: 40n, succeeded: true })).toEqual({ value: 0n, cost: 0n });
    expect(totalOf({ ...paid, succeeded: false })).toEqual({ value: 0n, cost: 40n });
    expect(totalOf({ ...paid, gasCost: 100n })).toEqual({ value: 10n, cost: 110n });
  });

  it("counts no value for an attempt before the first that was charged", () => {
    const later = { ...COUNTED, ordinal: 2 };
    expect(standing([later, ...settledCharges([later], paid)])).toEqual({ value: 0n, cost: 40n });
  });
});
