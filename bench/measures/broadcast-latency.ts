import { setTimeout as pause } from "node:timers/promises";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import { transactionBody } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { percentile } from "../statistics.ts";

const PER_SECOND = 500;
const SIGNERS = 10;
const CONNECTIONS = 64;
/** Long enough for the last ones to arrive. */
const ARRIVE_MS = 1_000;

/** From the moment a caller sends its request until the bytes arrive at the node, at 500 single creates a second. */
export async function measureBroadcastLatency(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const setup = await bench.open({ signers: SIGNERS });
  const connections = await Connection.openAll(setup.node.url, CONNECTIONS);
  try {
    const sent = await createSteadily(setup, connections, pace);
    await pause(ARRIVE_MS);
    const { arrivals } = await setup.chain.report();
    const waits = [...sent].map(([key, sentMs]) => (arrivals[key] ?? Number.POSITIVE_INFINITY) - sentMs);
    return [
      {
        measure: "create → first broadcast at 500/s, p50",
        value: percentile(waits, 50),
        unit: "ms",
        goal: { atMost: 20 },
      },
      {
        measure: "create → first broadcast at 500/s, p99",
        value: percentile(waits, 99),
        unit: "ms",
        goal: { atMost: 150 },
      },
    ];
  } finally {
    for (const connection of connections) connection.close();
    await setup.close();
  }
}

/** "signer:nonce" → when its create was sent, for those after the warm-up. */
async function createSteadily(
  { chain, signers }: Setup,
  connections: readonly Connection[],
  pace: Pace,
): Promise<ReadonlyMap<string, number>> {
  const sent = new Map<string, number>();
  await chain.report({ watchArrivals: true });
  let turn = 0;
  const startMs = performance.now();
  const send = async (connection: Connection): Promise<number> => {
    const signer = signers[turn++ % signers.length]?.address ?? "";
    const sentMs = performance.now();
    const { status, body } = await connection.post("/api/v1/tx", transactionBody(signer, { priced: false }));
    if (status !== 202) throw new Error(`a create was answered ${status}: ${body.slice(0, 300)}`);
    const { nonce } = JSON.parse(body) as { readonly nonce: number };
    if (sentMs - startMs >= pace.warmUpMs) sent.set(`${signer}:${nonce}`, performance.timeOrigin + sentMs);
    return 1;
  };
  await latenciesAt({ connections, send }, PER_SECOND, { warmUpMs: pace.warmUpMs, turnMs: pace.sustainMs / 2 });
  return sent;
}
