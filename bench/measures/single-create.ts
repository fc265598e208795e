import { forkServer } from "../environment/forked.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import { hammer, type Target } from "../load/hammer.ts";
import { createSingles, transactionBody } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median, percentile } from "../statistics.ts";

const CONNECTIONS = 64;

interface Turn {
  readonly noOp: number;
  readonly create: number;
}

/**
 * Durable creates of one signer by `POST /tx`, in turns with a route that does nothing. Both get the same bodies from the
 * same client, which shares the two cores with them.
 */
export async function measureSingleCreate(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const setup = await bench.open({ suspended: true });
  const noOp = await forkServer("no-op");
  const signer = setup.signers[0]?.address ?? "";
  const body = () => transactionBody(signer, { priced: true });
  const noOpTarget: Target = { url: noOp.url, path: "/no-op", connections: CONNECTIONS, body };
  const target: Target = { ...noOpTarget, url: setup.node.url, path: "/api/v1/tx" };
  try {
    for (const each of [noOpTarget, target]) await hammer(each, pace.warmUpMs);
    const turns: Turn[] = [];
    for (let round = 0; round < pace.rounds; round++) {
      turns.push({ noOp: await hammer(noOpTarget, pace.turnMs), create: await hammer(target, pace.turnMs) });
    }
    const rate = median(turns.map(({ create }) => create));
    return [rateFigure(turns), ...latencyFigures(await latencies(setup, rate / 2, pace))];
  } finally {
    await setup.close();
    await noOp.stop();
  }
}

async function latencies({ node, signers }: Setup, perSecond: number, { turnMs }: Pace): Promise<readonly number[]> {
  const connections = await Connection.openAll(node.url, CONNECTIONS);
  const send = createSingles(signers[0]?.address ?? "");
  try {
    return await latenciesAt({ connections, send }, perSecond, { warmUpMs: 500, turnMs });
  } finally {
    for (const connection of connections) connection.close();
  }
}

function rateFigure(turns: readonly Turn[]): Figure {
  return {
    measure: "create, POST /tx on 64 connections",
    value: median(turns.map(({ create }) => create)),
    unit: "/s",
    reference: {
      name: "no-op route",
      value: median(turns.map(({ noOp }) => noOp)),
      ratio: median(turns.map(({ create, noOp }) => create / noOp)),
    },
    bar: { atLeast: 0.3 },
    goal: { atLeast: 0.5 },
  };
}

function latencyFigures(latencies: readonly number[]): readonly Figure[] {
  return [
    { measure: "  answered at half that rate, p50", value: percentile(latencies, 50), unit: "ms" },
    { measure: "  answered at half that rate, p99", value: percentile(latencies, 99), unit: "ms", bar: { atMost: 50 } },
  ];
}
