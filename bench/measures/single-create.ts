import { forkServer } from "../environment/forked.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { type Load, latenciesAt, ratePerSecond } from "../load/drive.ts";
import { createSingles, postToNoOp } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median, percentile } from "../statistics.ts";

const CONNECTIONS = 64;

interface Turn {
  readonly noOp: number;
  readonly create: number;
}

/** Durable creates of one signer by `POST /tx`, in turns with a route that does nothing. */
export async function measureSingleCreate(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const setup = await bench.open({ suspended: true });
  const noOp = await forkServer("no-op");
  const signer = signerOf(setup);
  const noOpLoad = { connections: await Connection.openAll(noOp.url, CONNECTIONS), send: postToNoOp(signer) };
  const load = { connections: await Connection.openAll(setup.node.url, CONNECTIONS), send: createSingles(signer) };
  try {
    for (const warming of [noOpLoad, load]) await ratePerSecond(warming, { warmUpMs: pace.warmUpMs, turnMs: 1 });
    const turns: Turn[] = [];
    for (let round = 0; round < pace.rounds; round++) {
      turns.push({ noOp: await turn(noOpLoad, pace), create: await turn(load, pace) });
    }
    const rate = median(turns.map(({ create }) => create));
    const latencies = await latenciesAt(load, rate / 2, { warmUpMs: 500, turnMs: pace.turnMs });
    return [rateFigure(turns), ...latencyFigures(latencies)];
  } finally {
    for (const connection of [...load.connections, ...noOpLoad.connections]) connection.close();
    await setup.close();
    await noOp.stop();
  }
}

function turn(load: Load, { turnMs }: Pace): Promise<number> {
  return ratePerSecond(load, { warmUpMs: 0, turnMs });
}

function signerOf({ signers }: Setup): string {
  return signers[0]?.address ?? "";
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
