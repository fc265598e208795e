import { readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, inject, it } from "vitest";
import { inProcess } from "./elsewhere.ts";
import type { Played } from "./play.ts";
import { expectTrouble } from "./troubles.ts";

/** FENCEPOST_SIM_SEEDS sets the number of seeds, FENCEPOST_SIM_FIRST the first one. */
const FIRST = Number(process.env.FENCEPOST_SIM_FIRST ?? 1);
const COUNT = Math.ceil(Number(process.env.FENCEPOST_SIM_SEEDS ?? 1_000) / 4);
/** Smallest number of seeds in which every kind of fault occurs. */
const ENOUGH = 200;

/**
 * Runs a quarter of all seeds in a process of its own, while the tests beside it wait for real time. Each quarter is a
 * test file, so that they are spread over all cores.
 */
export function playQuarter(quarter: 1 | 2 | 3 | 4): void {
  const first = FIRST + (quarter - 1) * COUNT;
  it(
    `${COUNT} random simulations, starting at seed ${first}, end with every invariant intact`,
    async () => {
      const job = { kind: "seeds", first, count: COUNT } as const;
      const { failures, counts } = await inProcess<Played>(inject("simulation"), job, { isLowPriority: true });
      expect(failures).toEqual([]);
      const all = await sumOfQuarters(quarter, counts);
      if (all !== null && 4 * COUNT >= ENOUGH) expectTrouble(all);
    },
    COUNT * 5_000,
  );
}

/** The sum of the counts of all quarters. Null until the last quarter has ended, or if not all quarters are run. */
async function sumOfQuarters(quarter: number, counts: Played["counts"]): Promise<Played["counts"] | null> {
  const fileOf = (each: number) => join(dirname(inject("simulation")), `quarter-${each}.json`);
  await writeFile(`${fileOf(quarter)}.new`, JSON.stringify(counts));
  await rename(`${fileOf(quarter)}.new`, fileOf(quarter));
  const sum: Record<string, number> = {};
  for (const each of [1, 2, 3, 4]) {
    const text = await readFile(fileOf(each), "utf8").catch(() => null);
    if (text === null) return null;
    for (const [what, times] of Object.entries(JSON.parse(text) as Played["counts"]))
      sum[what] = (sum[what] ?? 0) + times;
  }
  return sum;
}
