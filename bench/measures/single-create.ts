import { forkServer } from "../environment/forked.ts";
import { processorFigures, type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { call } from "../load/call.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import { hammer, type Target } from "../load/hammer.ts";
import { createSingles, transactionBody } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median, percentile } from "../statistics.ts";

const CONNECTIONS = 64;
/** A node has more to compile than a route that does nothing, and is not itself before it has. */
const WARM_UPS = 5;
/** The machine's speed changes within seconds: short turns meet the same on both sides. */
const SLICES = 4;

/**
 * The less a client costs, the more the route that does nothing gains: it shares the machine with the client alone. A
 * service's own client is what creates come from; autocannon shows what is left without one.
 */
const CLIENTS: readonly Client[] = [
  { measure: "create, POST /tx on 64 connections", drive: call, bar: { atLeast: 0.3 }, goal: { atLeast: 0.5 } },
  { measure: "  the same, called by autocannon", drive: hammer, goal: { atLeast: 0.5 } },
];

interface Client extends Pick<Figure, "measure" | "bar" | "goal"> {
  readonly drive: (target: Target, turnMs: number) => Promise<number>;
}

interface Turn {
  readonly noOp: number;
  readonly create: number;
  readonly spent: Spent;
}

/**
 * Durable creates of one signer by `POST /tx`, in turns with a route that does nothing. Both get the same bodies from the
 * same clients, which share the two cores with them.
 */
export async function measureSingleCreate(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const setup = await bench.open({ suspended: true });
  const noOp = await forkServer("no-op");
  const signer = setup.signers[0]?.address ?? "";
  const body = () => transactionBody(signer, { priced: true });
  const noOpTarget: Target = { url: noOp.url, path: "/no-op", connections: CONNECTIONS, body };
  const target: Target = { ...noOpTarget, url: setup.node.url, path: "/api/v1/tx" };
  try {
    await hammer(noOpTarget, pace.warmUpMs);
    await hammer(target, WARM_UPS * pace.warmUpMs);
    const figures: Figure[] = [];
    for (const client of CLIENTS)
      figures.push(...(await compare(client, { noOp: noOpTarget, create: target, processor: setup.processor }, pace)));
    const rate = Math.max(...figures.filter(({ unit }) => unit === "/s").map(({ value }) => value));
    return [...figures, ...latencyFigures(await latencies(setup, rate / 2, pace))];
  } finally {
    await setup.close();
    await noOp.stop();
  }
}

async function compare(
  { drive, ...client }: Client,
  targets: { readonly noOp: Target; readonly create: Target } & Pick<Setup, "processor">,
  pace: Pace,
): Promise<readonly Figure[]> {
  const turns: Turn[] = [];
  const sliceMs = pace.turnMs / SLICES;
  for (let slice = 0; slice < pace.rounds * SLICES; slice++) {
    const noOp = await drive(targets.noOp, sliceMs);
    const before = await targets.processor();
    const create = await drive(targets.create, sliceMs);
    const spent = spentPer(before, await targets.processor(), (create * sliceMs) / 1_000);
    turns.push({ noOp, create, spent });
  }
  const noOp = median(turns.map(({ noOp }) => noOp));
  const ratio = median(turns.map(({ create, noOp }) => create / noOp));
  const value = median(turns.map(({ create }) => create));
  const rate: Figure = { ...client, value, unit: "/s", reference: { name: "no-op route", value: noOp, ratio } };
  return [rate, ...processorFigures(turns.map(({ spent }) => spent))];
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

function latencyFigures(latencies: readonly number[]): readonly Figure[] {
  return [
    { measure: "  answered at half that rate, p50", value: percentile(latencies, 50), unit: "ms" },
    { measure: "  answered at half that rate, p99", value: percentile(latencies, 99), unit: "ms", bar: { atMost: 50 } },
  ];
}
