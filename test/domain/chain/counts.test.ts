import { describe, expect, it } from "vitest";
import {
  type CountAnswer,
  type CountVerdict,
  countNotExceeded,
  countReached,
  countUnanimous,
  highestCount,
  judgeCount,
} from "../../../src/domain/chain/counts.ts";

const says = (count: number): CountAnswer => ({ kind: "says", count });
const behind = (count: number): CountAnswer => ({ kind: "behind", count });
const silent: CountAnswer = { kind: "silent" };
const proved: CountVerdict = { kind: "proved" };
const open: CountVerdict = { kind: "open" };
const refuted = (count: number): CountVerdict => ({ kind: "refuted", count });

describe("the verdict on an endpoint's claim of 43 mined transactions", () => {
  it.each<[string, readonly CountAnswer[], CountVerdict]>([
    ["the only endpoint repeats it", [says(43)], proved],
    ["the only endpoint then reports the lower count", [says(3)], refuted(3)],
    ["the only endpoint now lags behind the block of the claim", [behind(3)], open],
    ["both endpoints report at least as many", [says(43), says(44)], proved],
    ["the other endpoint contradicts", [says(43), says(3)], open],
    // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
    ["the other endpoint lags by a block", [says(43), behind(3)], open],
    ["the other endpoint does not answer", [says(43), silent], open],
    ["the other endpoint lags, but already reports as many", [says(43), behind(43)], proved],
    ["both endpoints now report the lower count", [says(3), says(3)], refuted(3)],
    ["of three, one agrees and one contradicts", [says(43), says(43), says(3)], proved],
    ["of three, two contradict", [says(43), says(3), says(3)], refuted(3)],
    ["of three, one contradicts and one lags", [says(43), says(3), behind(3)], open],
    ["of three, one agrees and one lags", [says(43), says(43), behind(3)], proved],
    ["of three, two lag", [says(43), behind(3), behind(3)], open],
    ["of three, two contradict with different counts", [says(43), says(3), says(5)], refuted(5)],
    ["of four, one lags, one contradicts and one agrees", [says(43), behind(3), says(3), says(43)], open],
    ["of four, two agree and two contradict", [says(43), says(43), says(3), says(3)], open],
    ["of four, three agree", [says(43), says(43), says(43), says(3)], proved],
  ])("is as expected if %s", (_, answers, verdict) => {
    expect(judgeCount(43, answers)).toEqual(verdict);
    expect(judgeCount(43, answers.toReversed())).toEqual(verdict);
  });
});

describe("a signer's transaction count", () => {
  it("counts as reached if more than half of the endpoints report at least that count", () => {
    expect(countReached([says(5), behind(4), silent])).toBe(4);
    expect(countReached([says(5), silent])).toBe(0);
  });

  it("counts as the highest if more than half of the endpoints report no higher count", () => {
    expect(countNotExceeded([says(5), says(7)])).toBe(7);
    expect(countNotExceeded([says(5), says(7), says(99)])).toBe(7);
    expect(countNotExceeded([says(5), behind(5)])).toBeNull();
    expect(countNotExceeded([says(5), silent])).toBeNull();
  });

  it("counts as unanimous if every endpoint reports that count", () => {
    expect(countUnanimous([says(5), behind(5)])).toBe(5);
    expect(countUnanimous([says(5), behind(4)])).toBeNull();
    expect(countUnanimous([says(5), silent])).toBeNull();
  });

  it("has as its upper bound the highest count that any endpoint reports", () => {
    expect(highestCount([says(5), behind(9), silent])).toBe(9);
    expect(highestCount([silent])).toBe(0);
  });
});
