import { fork } from "node:child_process";
import { once } from "node:events";
import { expect, inject, it } from "vitest";
import type { Played } from "./play.ts";
import { expectTrouble } from "./troubles.ts";

/** FENCEPOST_SIM_SEEDS plays more of them, FENCEPOST_SIM_FIRST begins elsewhere. */
const FIRST = Number(process.env.FENCEPOST_SIM_FIRST ?? 1);
const COUNT = Math.ceil(Number(process.env.FENCEPOST_SIM_SEEDS ?? 1_000) / 4);
/** Fewer do not meet every trouble. */
const ENOUGH = 200;

/**
 * A simulation runs wide code for a short time: at its usual budget V8 spends a third of the processor time on optimising
 * functions that are soon over, and a fifth of the rest on a young generation that is too small. A stack is read where a
 * seed is played again, and there it is taken.
 */
const V8_OPTIONS = ["--interrupt-budget=1000000", "--max-semi-space-size=64", "--stack-trace-limit=0"];

/** A quarter of all seeds in a process of its own. Each quarter is a test file, so that they are spread over all cores. */
export function playQuarter(quarter: 1 | 2 | 3 | 4): void {
  const first = FIRST + (quarter - 1) * COUNT;
  it(
    `${COUNT} random worlds from seed ${first} on come to rest with every invariant whole`,
    async () => {
      const { failures, counts } = await playElsewhere(first);
      expect(failures).toEqual([]);
      if (COUNT >= ENOUGH) expectTrouble(counts);
    },
    COUNT * 5_000,
  );
}

async function playElsewhere(first: number): Promise<Played> {
  const child = fork(inject("simulation"), [String(first), String(COUNT)], { execArgv: V8_OPTIONS });
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`the process that plays from seed ${first} on ended with ${code ?? signal}`);
  });
  try {
    const [played] = await Promise.race([once(child, "message"), ended]);
    return played as Played;
  } finally {
    ended.catch(() => undefined);
    child.kill();
  }
}
