import { describe, expect, it } from "vitest";
import { draw } from "../../../src/domain/pace/rate.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";

describe("a rate limit", () => {
  it.each([
    ["as much as one second allows, from an unused bucket", 10, null, 10, { given: 10, left: 0 }],
    ["no more than one second allows", 10, null, 11, { given: 10, left: 0 }],
    ["nothing if it was just emptied", 10, 2_000, 1, { given: 0, left: 0 }],
    ["one after the time that one takes", 10, 1_900, 5, { given: 1, left: 0 }],
    ["half of it after half a second", 10, 1_500, 3, { given: 3, left: 2 }],
    ["all of it after a second, however long ago it was emptied", 10, 500, 12, { given: 10, left: 0 }],
    ["what is left without taking any", 10, 1_500, 0, { given: 0, left: 5 }],
    ["one a second", 1, null, 3, { given: 1, left: 0 }],
    ["nothing of the next one before its time", 1, 1_001, 1, { given: 0, left: 0 }],
  ])("grants %s", (_, perSecond, fullAtMs, wanted, expected) => {
    expect(draw(perSecond, fullAtMs, { wanted, nowMs: 1_000 })).toMatchObject(expected);
  });

  // protects [Attacks] src/domain/pace/rate.ts, src/application/key-rates.ts, src/application/authority.ts
  it("is never exceeded: an interval of n seconds grants at most n + 1 times the rate", () => {
    const entropy = createSeededEntropy(7);
    for (let world = 0; world < 200; world++) {
      const perSecond = 1 + Math.floor(entropy.random() * 300);
      const given: { readonly atMs: number; readonly count: number }[] = [];
      let fullAtMs: number | null = null;
      let nowMs = 0;
      let total = 0;
      for (let step = 0; step < 60; step++) {
        nowMs += entropy.random() * entropy.random() * 800;
        const wanted = Math.floor(entropy.random() * perSecond * 1.5);
        const drawn = draw(perSecond, fullAtMs, { wanted, nowMs });
        expect(drawn.given === wanted || drawn.left === 0).toBe(true);
        fullAtMs = drawn.fullAtMs;
        given.push({ atMs: nowMs, count: drawn.given });
        total += drawn.given;
      }
      for (const [from, { atMs }] of given.entries()) {
        let sum = 0;
        for (const later of given.slice(from)) {
          sum += later.count;
          expect(sum).toBeLessThanOrEqual(perSecond * (1 + (later.atMs - atMs) / 1_000) + 0.001);
        }
      }
      expect(total).toBeGreaterThan(0);
    }
  });

  it("is used in full by constant demand", () => {
    let fullAtMs: number | null = null;
    let total = 0;
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 7) {
      const drawn = draw(30, fullAtMs, { wanted: 5, nowMs });
      fullAtMs = drawn.fullAtMs;
      total += drawn.given;
    }
    expect(total).toBeGreaterThanOrEqual(329);
  });
});
