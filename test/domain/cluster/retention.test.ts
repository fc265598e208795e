import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ageInWords,
  BEHIND_ITS_COMPLETION_MS,
  leavesThrough,
  mayLeave,
} from "../../../src/domain/cluster/retention.ts";
import { isSettled, STATES } from "../../../src/domain/transaction/transitions.ts";

const NOW = new Date(1_800_000_000_000);
const HOUR_MS = 3_600_000;
const ago = (ms: number) => new Date(NOW.getTime() - ms);

describe("retention deletes a transaction", () => {
  const old = { state: "CONFIRMED", live: false, updatedAt: ago(100 * HOUR_MS) } as const;
  const moment = { now: NOW, ageMs: 90 * HOUR_MS, oldestInFeed: null };

  // protects [Retention] src/domain/cluster/retention.ts
  it("if it is final, old enough, and no longer checked for reorgs", () => {
    expect(mayLeave(old, moment)).toBe(true);
    expect(mayLeave({ ...old, live: true }, moment)).toBe(false);
    expect(mayLeave({ ...old, updatedAt: ago(89 * HOUR_MS) }, moment)).toBe(false);
  });

  // protects [Retention] src/domain/cluster/retention.ts
  it("only once the feed has no completion that is as old or older", () => {
    const edge = moment.ageMs + BEHIND_ITS_COMPLETION_MS;
    expect(mayLeave({ ...old, updatedAt: ago(edge) }, moment)).toBe(false);
    expect(mayLeave({ ...old, updatedAt: ago(edge + 1) }, moment)).toBe(true);
    expect(mayLeave(old, { ...moment, oldestInFeed: ago(100 * HOUR_MS) })).toBe(false);
    expect(mayLeave(old, { ...moment, oldestInFeed: ago(99 * HOUR_MS) })).toBe(true);
  });

  it("only if it is final, old enough, and no longer checked for reorgs", () => {
    const ms = fc.integer({ min: 0, max: 1_000 * HOUR_MS });
    fc.assert(
      fc.property(fc.constantFrom(...STATES), fc.boolean(), ms, ms, fc.option(ms), (state, live, age, kept, oldest) => {
        const oldestInFeed = oldest === null ? null : ago(oldest);
        const leaves = mayLeave({ state, live, updatedAt: ago(age) }, { now: NOW, ageMs: kept, oldestInFeed });
        if (!leaves) return;
        expect({ live, settled: isSettled(state) }).toEqual({ live: false, settled: true });
        expect(age).toBeGreaterThan(kept);
        if (oldest !== null) expect(age).toBeGreaterThan(oldest);
      }),
    );
  });
});

describe("retention deletes completions", () => {
  const feed = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 30 });

  it("from the start of the feed up to the first completion that is too young", () => {
    fc.assert(
      fc.property(feed, fc.integer({ min: 0, max: 20 }), (times, limit) => {
        const lowest = times.map((at, index) => ({ seq: index * 2 + 7, at: new Date(at) }));
        const through = leavesThrough(lowest, new Date(limit));
        const left = lowest.filter(({ seq }) => through !== null && seq <= through);
        const kept = lowest.slice(left.length);
        expect(left.every(({ at }) => at.getTime() < limit)).toBe(true);
        expect((kept[0]?.at.getTime() ?? limit) >= limit).toBe(true);
        expect(through === null).toBe(left.length === 0);
      }),
    );
  });
});

it("a retention age is shown in days if it is long, and never rounded down", () => {
  expect([HOUR_MS, 1.5 * HOUR_MS, 47 * HOUR_MS, 48 * HOUR_MS, 90 * 24 * HOUR_MS].map(ageInWords)).toEqual([
    "1 hour",
    "2 hours",
    "47 hours",
    "2 days",
    "90 days",
  ]);
});
