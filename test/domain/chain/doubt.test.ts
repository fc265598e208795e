import { describe, expect, it } from "vitest";
import { type Doubt, NO_DOUBT, weigh } from "../../../src/domain/chain/doubt.ts";

type Sight = "evidence" | "nothing";

function having(...sights: readonly Sight[]): Doubt {
  return sights.reduce(weigh, NO_DOUBT);
}

describe("evidence that an endpoint no longer serves the lane's chain", () => {
  it.each<[readonly Sight[], boolean]>([
    [["evidence"], false],
    [["evidence", "evidence"], true],
    [["evidence", "nothing", "evidence"], false],
    [["evidence", "evidence", "nothing"], true],
    [["evidence", "evidence", "nothing", "nothing"], false],
    [["evidence", "evidence", "nothing", "evidence", "nothing"], true],
  ])("stops the lane after checks with the results %j: %s", (sights, stopped) => {
    expect(having(...sights).stopped).toBe(stopped);
  });

  it("is reset to NO_DOUBT once checks find nothing wrong", () => {
    expect(having("nothing")).toBe(NO_DOUBT);
    expect(having("evidence", "nothing")).toBe(NO_DOUBT);
    expect(having("evidence", "evidence", "nothing", "nothing")).toBe(NO_DOUBT);
    expect(having("evidence")).not.toBe(NO_DOUBT);
  });
});
