import fc from "fast-check";
import { expect, it } from "vitest";
import { backoffMs } from "../../../src/domain/pace/when.ts";

const RULE = { firstMs: 100, mostMs: 5_000 };

it.each([
  [1, 100],
  [2, 200],
  [3, 400],
  [6, 3_200],
  [7, 5_000],
  [8, 5_000],
  [1_000_000, 5_000],
])("the back-off after failure %i is up to %i ms, and at least half of that", (failures, full) => {
  expect(backoffMs(RULE, failures, 0)).toBe(full / 2);
  expect(backoffMs(RULE, failures, 0.5)).toBe(full * 0.75);
  expect(backoffMs(RULE, failures, 0.999_999)).toBeLessThan(full);
});

it("a back-off stays within its limits for any configuration", () => {
  const rules = fc.record({
    firstMs: fc.integer({ min: 1, max: 60_000 }),
    mostMs: fc.integer({ min: 1, max: 3_600_000 }),
  });
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(rules, fc.integer({ min: 1, max: 2 ** 31 }), chance, (rule, failures, random) => {
      const waits = backoffMs(rule, failures, random);
      expect(waits).toBeGreaterThanOrEqual(Math.min(rule.firstMs, rule.mostMs) / 2);
      expect(waits).toBeLessThanOrEqual(rule.mostMs);
      expect(backoffMs(rule, failures + 1, random)).toBeGreaterThanOrEqual(waits);
    }),
  );
});
