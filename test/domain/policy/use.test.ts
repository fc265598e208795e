import { describe, expect, it } from "vitest";
import { added, type Use } from "../../../src/domain/policy/use.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = Date.UTC(2026, 10, 18);
const hour = (of: number) => DAY_MS + of * HOUR_MS;
const both = (amount: bigint) => ({ value: amount, cost: 10n * amount });
const use: Use = { hourMs: hour(10), hour: both(5n), day: both(9n) };

describe("an amount that counts in", () => {
  it.each([
    ["the current hour", hour(10), 2n, { hourMs: hour(10), hour: both(7n), day: both(11n) }],
    ["an earlier hour of the day changes the day alone", hour(9), -3n, { ...use, day: both(6n) }],
    ["an earlier day changes nothing", hour(-1), -3n, use],
    ["a later hour begins that hour", hour(11), 2n, { hourMs: hour(11), hour: both(2n), day: both(11n) }],
    ["a later day begins that day", hour(24), 2n, { hourMs: hour(24), hour: both(2n), day: both(2n) }],
  ])("%s", (_, hourMs, amount, expected) => {
    expect(added(use, hourMs, both(amount))).toEqual(expected);
  });
});
