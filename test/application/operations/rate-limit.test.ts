import { describe, expect, it } from "vitest";
import { RateLimit } from "../../../src/application/operations/stuck-hook.ts";

function limit(most: number, withinMs: number) {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
  return { clock, limit: new RateLimit<string>(clock, { most, withinMs }) };
}

describe("a rate limit", () => {
  it("permits the configured number of calls in any interval of the given length, separately for each key", () => {
    const { clock, limit: rate } = limit(2, 1_000);
    expect([rate.take("a"), rate.take("a"), rate.take("a"), rate.take("b")]).toEqual([true, true, false, true]);
    clock.nowMs = 999;
    expect(rate.take("a")).toBe(false);
    clock.nowMs = 1_000;
    expect([rate.take("a"), rate.take("a"), rate.take("a")]).toEqual([true, true, false]);
  });

  it("uses a sliding window: refused calls do not count, and old calls are forgotten", () => {
    const { clock, limit: rate } = limit(2, 1_000);
    rate.take("a");
    clock.nowMs = 600;
    rate.take("a");
    for (clock.nowMs = 700; clock.nowMs < 1_000; clock.nowMs += 100) expect(rate.take("a")).toBe(false);
    clock.nowMs = 1_000;
    expect([rate.take("a"), rate.take("a")]).toEqual([true, false]);
    clock.nowMs = 1_600;
    expect(rate.take("a")).toBe(true);
  });

  it("keeps no memory of idle keys", () => {
    const { clock, limit: rate } = limit(1, 1_000);
    for (let n = 0; n < 1_000; n++) rate.take(`key ${n}`);
    clock.nowMs = 2_000;
    rate.take("last");
    expect((rate as unknown as { taken: Map<string, unknown> }).taken.size).toBe(1);
  });
});
