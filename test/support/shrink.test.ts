import { describe, expect, it } from "vitest";
import { shrink } from "./simulation/shrink.ts";
import { PARTS, type Scenario } from "./simulation/simulate.ts";

/** A failure that needs a number of steps and some parts. */
const failing =
  (steps: number, needed: readonly string[]) =>
  async ({ most = 50, without = [] }: Scenario) =>
    most >= steps && without.every((part) => !needed.includes(part));

describe("a failing scenario is shrunk to", () => {
  it("the fewest steps with which it fails", async () => {
    expect(await shrink({ seed: 7 }, failing(13, PARTS))).toEqual({ seed: 7, most: 13, without: [] });
  });

  it("the parts without which it passes", async () => {
    const { without } = await shrink({ seed: 7 }, failing(50, ["crash soon", "reorg"]));
    expect(PARTS.filter((part) => !without.includes(part))).toEqual(["reorg", "crash soon"]);
  });

  it("fewer steps still, once parts are left out", async () => {
    const fails = async ({ most = 50, without = [] }: Scenario) => most >= 50 - without.length;
    expect((await shrink({ seed: 7 }, fails)).most).toBe(50 - PARTS.length);
  });
});
