import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median } from "../statistics.ts";
import { createInTurn, untilHeld } from "./lanes.ts";

const LAUNCHER = fileURLToPath(new URL("../processes/figures-switch.js", import.meta.url));
const LANES = 1_000;
const PER_SECOND = 1_000;
const CONNECTIONS = 512;
const WARM_UPS = 4;
/** Figures are written every ten seconds: a turn has several of these writes. */
const SHORTEST_TURN_MS = 20_000;
/** Time for the outcomes, and the last write of figures, of the turn before. */
const SETTLE_MS = 11_000;

/** The cost of the figures over time: one node, which counts them in every other turn, under the same load. */
export async function measureFigures(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const setup = await bench.open({ signers: LANES, launcher: LAUNCHER });
  const connections = await Connection.openAll(setup.node.url, CONNECTIONS);
  try {
    await untilHeld(setup, LANES);
    const load = { connections, send: createInTurn(setup) };
    const { perSecond = PER_SECOND } = pace;
    await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs: WARM_UPS * pace.warmUpMs });
    const turnMs = Math.max(SHORTEST_TURN_MS, pace.sustainMs);
    const turn = () => spentIn(setup, async () => (await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs })).length);
    const [on, off]: [Spent[], Spent[]] = [[], []];
    for (let round = 0; round < 2 * pace.rounds; round++) {
      // The first of a round alternates, so that a machine that gets slower or faster favours neither.
      for (const turns of round % 2 === 0 ? [on, off] : [off, on]) {
        await pause(SETTLE_MS);
        if (turns === off) process.kill(setup.node.pid, "SIGUSR2");
        turns.push(await turn());
        if (turns === off) process.kill(setup.node.pid, "SIGUSR2");
      }
    }
    return figuresOf(on, off);
  } finally {
    for (const connection of connections) connection.close();
    await setup.close();
  }
}

/** Processor time per transaction of some work, and of what it leaves to be done. */
async function spentIn(setup: Setup, work: () => Promise<number>): Promise<Spent> {
  const before = await setup.processor();
  const transactions = await work();
  await pause(SETTLE_MS);
  return spentPer(before, await setup.processor(), transactions);
}

function figuresOf(on: readonly Spent[], off: readonly Spent[]): readonly Figure[] {
  const perTransaction = (turns: readonly Spent[], of: (spent: Spent) => number) => 1_000 * median(turns.map(of));
  const compared = (measure: string, of: (spent: Spent) => number): Figure => {
    const [value, without] = [perTransaction(on, of), perTransaction(off, of)];
    return {
      measure,
      value,
      unit: "µs per tx",
      reference: { name: "without", value: without, ratio: value / without },
    };
  };
  return [
    {
      ...compared(`${LANES} lanes at 1/s each, with figures`, ({ nodeMs, databaseMs }) => nodeMs + databaseMs),
      bar: { atMost: 1.02 },
    },
    compared("  processor time of the node", ({ nodeMs }) => nodeMs),
    compared("  processor time of the database", ({ databaseMs }) => databaseMs),
  ];
}
