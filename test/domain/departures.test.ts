import { expect, it } from "vitest";
import { Departures } from "../../src/domain/departures.ts";

/** When each of so many left that all came at once. */
function departures(pace: Departures, count: number, fromMs = 0): readonly number[] {
  let nowMs = fromMs;
  return Array.from({ length: count }, () => {
    nowMs += pace.waitMs(nowMs);
    pace.left(nowMs);
    return nowMs;
  });
}

it("lets a few leave at once after a rest, then one at a time", () => {
  expect(departures(new Departures(10, 4), 7)).toEqual([0, 0, 0, 0, 10, 20, 30]);
});

it("keeps no work waiting that comes no more often than that", () => {
  const pace = new Departures(10, 1);
  for (let nowMs = 0; nowMs < 200; nowMs += 10) {
    expect(pace.waitMs(nowMs)).toBe(0);
    pace.left(nowMs);
  }
});

it("earns its reserve back with time, and no more than that", () => {
  const pace = new Departures(10, 3);
  departures(pace, 3);
  expect(departures(pace, 2, 10)).toEqual([10, 20]);
  expect(departures(pace, 4, 1_000)).toEqual([1_000, 1_000, 1_000, 1_010]);
});

it("without an interval nothing ever waits", () => {
  expect(departures(new Departures(0, 1), 3)).toEqual([0, 0, 0]);
});

it("never has the next one pay for those that left out of turn", () => {
  const pace = new Departures(10, 4);
  for (let full = 0; full < 1_000; full++) pace.left(0);
  expect(pace.waitMs(0)).toBe(10);
  expect(departures(pace, 3)).toEqual([10, 20, 30]);
});
