import { describe, expect, it } from "vitest";
import { Departures, Flow } from "../../../src/domain/pace/departures.ts";

/** Returns the times at which `count` items leave if all of them arrive at once. */
function departures(pace: Departures, count: number, fromMs = 0): readonly number[] {
  let nowMs = fromMs;
  return Array.from({ length: count }, () => {
    nowMs += pace.waitMs(nowMs);
    pace.left(nowMs);
    return nowMs;
  });
}

// protects [Many lanes] src/domain/pace/departures.ts
it("paced batches of work start in a small burst after a pause, then one at a time", () => {
  expect(departures(new Departures(10, 4), 7)).toEqual([0, 0, 0, 0, 10, 20, 30]);
});

// protects [Many lanes] src/domain/pace/departures.ts
it("paced batches of work are not delayed if work arrives no more often than the interval", () => {
  const pace = new Departures(10, 1);
  for (let nowMs = 0; nowMs < 200; nowMs += 10) {
    expect(pace.waitMs(nowMs)).toBe(0);
    pace.left(nowMs);
  }
});

it("the burst allowance of paced batches refills with time, up to its size", () => {
  const pace = new Departures(10, 3);
  departures(pace, 3);
  expect(departures(pace, 2, 10)).toEqual([10, 20]);
  expect(departures(pace, 4, 1_000)).toEqual([1_000, 1_000, 1_000, 1_010]);
});

it("paced batches without an interval never wait", () => {
  expect(departures(new Departures(0, 1), 3)).toEqual([0, 0, 0]);
});

it("a paced batch that starts before its time does not delay later ones", () => {
  const pace = new Departures(10, 4);
  for (let full = 0; full < 1_000; full++) pace.left(0);
  expect(pace.waitMs(0)).toBe(10);
  expect(departures(pace, 3)).toEqual([10, 20, 30]);
});

describe("the interval between paced batches", () => {
  /** A flow of `perSecond` items per second, one at a time, for five seconds. */
  function flowOf(perSecond: number): { readonly flow: Flow; readonly nowMs: number } {
    const flow = new Flow(1_000);
    const apartMs = 1_000 / perSecond;
    let nowMs = 0;
    for (; nowMs < 5_000; nowMs += apartMs) flow.add(nowMs, 1);
    return { flow, nowMs };
  }

  it.each([
    [100, 0.1],
    [500, 0.1],
    [700, 0.1],
    [850, 0.5],
    [1_000, 1],
    [5_000, 1],
  ])("is, at %i items per second and a full rate of 1,000, %f of the configured interval", (perSecond, share) => {
    const { flow, nowMs } = flowOf(perSecond);
    expect(flow.share(nowMs)).toBeCloseTo(share, 1);
  });

  it("shrinks soon after the work ends", () => {
    const { flow, nowMs } = flowOf(2_000);
    expect(flow.share(nowMs + 2_000)).toBe(0.1);
    const burst = new Flow(1_000);
    burst.add(0, 200);
    expect(burst.share(0)).toBe(0.1);
  });

  it("is a tenth of the configured interval at a low rate of work", () => {
    const { flow, nowMs } = flowOf(100);
    expect(departures(new Departures(10, 1, flow), 4, nowMs)).toEqual([0, 1, 2, 3].map((ms) => nowMs + ms));
  });

  it("is the whole configured interval at a high rate of work", () => {
    const { flow, nowMs } = flowOf(2_000);
    expect(departures(new Departures(10, 1, flow), 3, nowMs)).toEqual([0, 10, 20].map((ms) => nowMs + ms));
  });
});

it("a small batch of work costs its share of an interval alone", () => {
  const pace = new Departures(10, 1);
  pace.left(0, 0.5);
  expect(pace.waitMs(0)).toBe(5);
});
