import { setTimeout as pause } from "node:timers/promises";
import type { Workbench } from "../environment/workbench.ts";
import { ConfirmingLoad } from "../load/confirming.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median } from "../statistics.ts";

const LANES = 20;
const CREATORS = 8;
const OUTSTANDING = 3_000;
/** Half the load takes each of two nodes twice as long to become compiled code; what is meant is what lasts. */
const WARM_UP = 40_000;
const LOOK_AGAIN_MS = 50;
/** Two nodes on the processors of one have no more to work with: they must not cost much, and should cost nothing. */
const BAR = { atLeast: 0.8 };
const GOAL = { atLeast: 1 };

/**
 * The same lanes on one node and on two, in turns, on the same machine: what contention for locks, for the feed and by
 * forwarding costs. Creates go to any node, so that half of them are forwarded.
 */
export async function measureScale(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const turns: { readonly one: number; readonly two: number }[] = [];
  for (let round = 0; round < pace.rounds; round++) {
    turns.push({ one: await confirmedPerSecond(bench, 1, pace), two: await confirmedPerSecond(bench, 2, pace) });
  }
  return [
    {
      measure: `create → CONFIRMED, ${LANES} lanes over 2 nodes`,
      value: median(turns.map(({ two }) => two)),
      unit: "/s",
      reference: {
        name: "1 node",
        value: median(turns.map(({ one }) => one)),
        ratio: median(turns.map(({ one, two }) => two / one)),
      },
      bar: BAR,
      goal: GOAL,
    },
  ];
}

async function confirmedPerSecond(bench: Workbench, nodes: number, pace: Pace): Promise<number> {
  const setup = await bench.open({ signers: LANES, nodes });
  const load = new ConfirmingLoad(setup, OUTSTANDING);
  try {
    await load.start(CREATORS);
    while (load.confirmed < WARM_UP) await pause(LOOK_AGAIN_MS);
    const [beforeMs, before] = [performance.now(), load.confirmed];
    await pause(2 * pace.turnMs);
    const rate = (1_000 * (load.confirmed - before)) / (performance.now() - beforeMs);
    await load.stop();
    return rate;
  } finally {
    await setup.close();
  }
}
