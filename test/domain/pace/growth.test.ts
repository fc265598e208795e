import { describe, expect, it } from "vitest";
import { Growth } from "../../../src/domain/pace/growth.ts";

const STRETCH_MS = 60_000;

/** Records a size once a second. `sizeAt` returns the size for each second of each minute. */
function seen(minutes: number, sizeAt: (minute: number, second: number) => number): Growth {
  const growth = new Growth(STRETCH_MS);
  for (let second = 0; second <= minutes * 60; second++) {
    growth.see(second * 1_000, sizeAt(Math.floor(second / 60), second % 60));
  }
  return growth;
}

describe("a backlog of work", () => {
  it("counts as growing if its minimum per minute rises from minute to minute", () => {
    expect(seen(5, (minute) => 10 * (minute + 1)).grown).toEqual({ from: 10, to: 50 });
  });

  it("does not count as growing if the backlog is emptied once a minute", () => {
    expect(seen(10, (minute, second) => (second === 30 ? 0 : 1_000 * minute)).grown).toBeNull();
  });

  it("does not count as growing if it is large and constant", () => {
    expect(seen(10, () => 5_000).grown).toBeNull();
    expect(seen(10, () => 5_000).stopped).toBe(true);
  });

  it("counts as growing by its last five minutes only", () => {
    expect(seen(7, (minute) => (minute < 2 ? 1_000 : 10 * minute)).grown).toEqual({ from: 20, to: 60 });
    expect(seen(5, (minute) => (minute === 4 ? 40 : 10 * (minute + 1))).grown).toBeNull();
  });

  it("counts as no longer growing as long as less than two minutes are known", () => {
    expect(seen(0, () => 10).stopped).toBe(true);
    expect(seen(1, () => 10).stopped).toBe(true);
    expect(seen(2, (minute) => 10 * (minute + 1)).stopped).toBe(false);
    expect(seen(2, (minute) => 10 * (2 - minute)).stopped).toBe(true);
    expect(seen(3, (minute) => [10, 20, 5, 5][minute] ?? 0).stopped).toBe(true);
  });

  it("is not reported before five minutes of growth", () => {
    expect(seen(4, (minute) => 10 * (minute + 1)).grown).toBeNull();
    expect(seen(7, (minute) => 10 * (minute + 1)).stopped).toBe(false);
  });
});
