import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecentCount } from "../../../src/domain/pace/recent-count.ts";

const WINDOW_MS = 300_000;

describe("a count of recent events", () => {
  it("includes events within the window, and drops them after", () => {
    const count = new RecentCount(WINDOW_MS);
    count.add(1_000_000, 3);
    expect(count.within(1_000_000)).toBe(3);
    expect(count.within(1_000_000 + WINDOW_MS / 2)).toBe(3);
    expect(count.within(1_000_000 + WINDOW_MS)).toBe(0);
  });

  it("never includes events from before the window", () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 400_000 }), fc.integer({ min: 0, max: 5 })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(steps, (all) => {
        const count = new RecentCount(WINDOW_MS);
        const seen: { ms: number; n: number }[] = [];
        let nowMs = 5_000;
        const since = (ms: number) => seen.reduce((sum, { ms: at, n }) => (at > nowMs - ms ? sum + n : sum), 0);
        for (const [pause, n] of all) {
          nowMs += pause;
          count.add(nowMs, n);
          seen.push({ ms: nowMs, n });
          expect(count.within(nowMs)).toBeLessThanOrEqual(since(WINDOW_MS));
          expect(count.within(nowMs)).toBeGreaterThanOrEqual(since(WINDOW_MS - WINDOW_MS / 30));
        }
      }),
    );
  });
});
