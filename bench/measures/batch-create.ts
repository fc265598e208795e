import { processorFigures, type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { type Load, ratePerSecond } from "../load/drive.ts";
import { createBatches } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median } from "../statistics.ts";
import { openBareInserts } from "./bare-inserts.ts";

const BATCH_SIZE = 100;
const CONNECTIONS = 8;
const BAR = { atLeast: 0.3 };
const GOAL = { atLeast: 0.5 };

interface Turn {
  readonly bare: number;
  readonly suspended: number;
  readonly live: number;
  readonly spent: Spent;
}

/** Durable creates of one signer by `POST /tx/batch`, in turns with bare inserts on the same server. */
export async function measureBatchCreate(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const bareUrl = await bench.databases.create();
  const bare = await openBareInserts(bareUrl);
  const suspended = await bench.open({ suspended: true });
  const suspendedLoad = await loadOn(suspended);
  try {
    await bare.run(pace.warmUpMs);
    await ratePerSecond(suspendedLoad, { warmUpMs: pace.warmUpMs, turnMs: 1 });
    const turns: Turn[] = [];
    for (let round = 0; round < pace.rounds; round++) {
      const bareRate = await bare.run(pace.turnMs);
      const before = await suspended.processor();
      const rate = await ratePerSecond(suspendedLoad, { warmUpMs: 0, turnMs: pace.turnMs });
      const spent = spentPer(before, await suspended.processor(), (rate * pace.turnMs) / 1_000);
      turns.push({ bare: bareRate, suspended: rate, spent, live: await liveRate(bench, pace) });
    }
    return [
      figure("create, batches of 100, lane suspended", turns, "suspended"),
      ...processorFigures(turns.map(({ spent }) => spent)),
      figure("create, batches of 100, live", turns, "live"),
    ];
  } finally {
    for (const connection of suspendedLoad.connections) connection.close();
    await suspended.close();
    await bare.close();
    await bench.databases.drop(bareUrl);
  }
}

/** On a node of its own: what piles up behind the creates must not run into the next turn. */
async function liveRate(bench: Workbench, pace: Pace): Promise<number> {
  const live = await bench.open();
  const load = await loadOn(live);
  try {
    return await ratePerSecond(load, pace);
  } finally {
    for (const connection of load.connections) connection.close();
    await live.close();
  }
}

async function loadOn({ node, signers }: Setup): Promise<Load> {
  const send = createBatches(signers[0]?.address ?? "", BATCH_SIZE);
  return { connections: await Connection.openAll(node.url, CONNECTIONS), send };
}

function figure(measure: string, turns: readonly Turn[], key: "suspended" | "live"): Figure {
  return {
    measure,
    value: median(turns.map((turn) => turn[key])),
    unit: "/s",
    reference: {
      name: "bare inserts",
      value: median(turns.map((turn) => turn.bare)),
      ratio: median(turns.map((turn) => turn[key] / turn.bare)),
    },
    bar: BAR,
    goal: GOAL,
  };
}
