import { expect, it } from "vitest";
import { playSeeds } from "../support/simulation/play.ts";

/** A first look, and where a seed is played again. test/simulation plays a thousand. */
const FIRST = Number(process.env.FENCEPOST_SIM_FIRST ?? 1);
const COUNT = Number(process.env.FENCEPOST_SIM_SEEDS ?? 4);

it(
  `${COUNT} random worlds come to rest with every invariant whole`,
  async () => {
    expect((await playSeeds(FIRST, COUNT)).failures).toEqual([]);
  },
  COUNT * 5_000,
);
