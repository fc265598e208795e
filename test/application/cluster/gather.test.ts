import { describe, expect, it } from "vitest";
import { Gathering } from "../../../src/application/cluster/gather.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

function bench(enough = 1_000) {
  const clock = createManualClock();
  const left: (readonly number[])[] = [];
  const together = async (items: readonly number[], report: (at: number, result: number) => void) => {
    left.push(items);
    items.forEach((item, at) => {
      report(at, item * 10);
    });
  };
  return { clock, left, gathering: new Gathering<number, number>(clock, together, enough) };
}

describe("a batch of concurrent creates", () => {
  it("is sent at the end of the event loop turn with all creates of that turn", async () => {
    const { clock, left, gathering } = bench();
    const results = Promise.all([1, 2, 3].map((item) => gathering.add(item)));
    expect(left).toEqual([]);
    await clock.advance(0);
    expect(left).toEqual([[1, 2, 3]]);
    expect(await results).toEqual([10, 20, 30]);
  });

  it("is sent early when it is full", async () => {
    const { clock, left, gathering } = bench(2);
    const results = Promise.all([1, 2, 3, 4, 5].map((item) => gathering.add(item)));
    expect(left).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await clock.advance(0);
    expect(left.at(-1)).toEqual([5]);
    expect(await results).toEqual([10, 20, 30, 40, 50]);
  });

  it("is not sent empty at the end of a turn whose creates were sent early", async () => {
    const { clock, left, gathering } = bench(2);
    await Promise.all([gathering.add(1), gathering.add(2)]);
    await clock.advance(0);
    expect(left).toEqual([[1, 2]]);
  });
});
