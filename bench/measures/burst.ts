import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { processorFigures, type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, SetupOptions, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { transactionBody } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median, percentile } from "../statistics.ts";

const RECORDER = fileURLToPath(new URL("../processes/create-waits.js", import.meta.url));
const CONNECTIONS = 64;
const FIRST = 300;
const BURST = 3_000;
const SUSTAINED = 15_000;
const FEED_PAGE = 1_000;
const LOOK_AGAIN_MS = 50;

/** Blocks of a second and two confirmations, as on a development chain; a window as wide as its blocks. */
const CHAIN = { blockTimeMs: 1_000, migrated: true } as const;
const SETTINGS = {
  FENCEPOST_POLL_INTERVAL: "250ms",
  FENCEPOST_CONFIRMATIONS: "2",
  FENCEPOST_IN_FLIGHT_WINDOW: "512",
};

/**
 * Callers that come all at once, on 64 connections, each with one create at a time: right after the start, in a burst, and
 * for longer. Then the same burst with a node that notes what its creates wait for.
 */
export async function measureBurst(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const one = process.env.ONLY_TEN
    ? []
    : await measureSigners(bench, 1, pace.sustainMs >= SUSTAINED_FROM_MS ? SUSTAINED : null);
  const ten = await measureSigners(bench, 10, null);
  return [...one, ...ten];
}

/** A quick run leaves the longest load out. */
const SUSTAINED_FROM_MS = 25_000;

async function measureSigners(bench: Workbench, signers: number, sustained: number | null): Promise<readonly Figure[]> {
  const name = `burst of ${BURST}, ${signers} ${signers === 1 ? "signer" : "signers"}`;
  const options: SetupOptions = { ...CHAIN, signers, environment: SETTINGS };
  const load = await withNode(bench, options, async (setup, connections) => {
    const first = await burst(setup, connections, FIRST);
    await untilFinal(setup, FIRST);
    const whole = await wholeBurst(setup, connections, { count: BURST, before: FIRST });
    const longer =
      sustained === null ? null : await wholeBurst(setup, connections, { count: sustained, before: FIRST + BURST });
    return { first, whole, longer, readyMs: setup.node.readyMs };
  });
  const waits = await waitsOf(bench, options);
  return [
    { measure: name, value: load.whole.perSecond, unit: "/s" },
    ...answerFigures(load.whole.latencies),
    { measure: "  final", value: load.whole.finalPerSecond, unit: "/s" },
    ...processorFigures([load.whole.spent]),
    ...waits,
    { measure: `  first ${FIRST} after the start`, value: load.first.perSecond, unit: "/s" },
    { measure: "  ready after", value: load.readyMs, unit: "ms" },
    ...(load.longer === null
      ? []
      : [
          { measure: `  sustained ${sustained}`, value: load.longer.perSecond, unit: "/s" as const },
          ...answerFigures(load.longer.latencies),
          { measure: "  final", value: load.longer.finalPerSecond, unit: "/s" as const },
          ...processorFigures([load.longer.spent]),
        ]),
  ];
}

function answerFigures(latencies: readonly number[]): readonly Figure[] {
  return [
    { measure: "  answered, p50", value: percentile(latencies, 50), unit: "ms" },
    { measure: "  answered, p99", value: percentile(latencies, 99), unit: "ms" },
  ];
}

async function withNode<T>(
  bench: Workbench,
  options: SetupOptions,
  work: (setup: Setup, connections: readonly Connection[]) => Promise<T>,
): Promise<T> {
  const setup = await bench.open(options);
  const connections = await Connection.openAll(setup.node.url, CONNECTIONS);
  try {
    return await work(setup, connections);
  } finally {
    for (const connection of connections) connection.close();
    await setup.close();
  }
}

interface Burst {
  readonly perSecond: number;
  readonly latencies: readonly number[];
}

/** Creates in turn on all signers, as fast as the answers come. */
async function burst({ signers }: Setup, connections: readonly Connection[], count: number): Promise<Burst> {
  const latencies: number[] = [];
  let sent = 0;
  const caller = async (connection: Connection): Promise<void> => {
    while (sent < count) {
      const signer = signers[sent++ % signers.length]?.address ?? "";
      const beginMs = performance.now();
      const { status, body } = await connection.post("/api/v1/tx", transactionBody(signer, { priced: false }));
      if (status !== 202) throw new Error(`a create was answered ${status}: ${body.slice(0, 300)}`);
      latencies.push(performance.now() - beginMs);
    }
  };
  const beginMs = performance.now();
  await Promise.all(connections.map(caller));
  return { perSecond: (1_000 * count) / (performance.now() - beginMs), latencies };
}

/** A burst until its last transaction is final, with what that cost. `before`: outcomes that the feed already has. */
async function wholeBurst(
  setup: Setup,
  connections: readonly Connection[],
  { count, before }: { readonly count: number; readonly before: number },
): Promise<Burst & { readonly finalPerSecond: number; readonly spent: Spent }> {
  const started = await setup.processor();
  const beginMs = performance.now();
  const accepted = await burst(setup, connections, count);
  await untilFinal(setup, before + count);
  const finalPerSecond = (1_000 * count) / (performance.now() - beginMs);
  return { ...accepted, finalPerSecond, spent: spentPer(started, await setup.processor(), count) };
}

async function untilFinal({ node }: Setup, outcomes: number): Promise<void> {
  const feed = await Connection.open(node.url);
  try {
    for (let after = 0; after < outcomes; ) {
      const answer = await feed.get(`/api/v1/tx/completions?after=${after}&limit=${FEED_PAGE}&wait=1`);
      after = (JSON.parse(answer.body) as { readonly next: number }).next;
      await pause(LOOK_AGAIN_MS);
    }
  } finally {
    feed.close();
  }
}

/** The waits of one create, in the order in which it meets them; all of them together are its time in the node. */
const WAITS = ["read", "prepare", "lane", "departure", "lock", "commit", "answer"] as const;
type Samples = Readonly<Record<(typeof WAITS)[number], readonly number[]>>;

async function waitsOf(bench: Workbench, options: SetupOptions): Promise<readonly Figure[]> {
  const file = join(tmpdir(), `fencepost-waits-${process.pid}.json`);
  const environment = { ...options.environment, BENCH_LAUNCHER: bench.launcher, BENCH_WAITS: file };
  await withNode(bench, { ...options, launcher: RECORDER, environment }, async (setup, connections) => {
    await burst(setup, connections, FIRST);
    await untilFinal(setup, FIRST);
    process.kill(setup.node.pid, "SIGUSR2");
    await burst(setup, connections, BURST);
  });
  const samples = JSON.parse(await readFile(file, "utf8")) as Samples;
  return WAITS.flatMap((wait): readonly Figure[] => {
    if (samples[wait].length < BURST / 2) throw new Error(`the wait "${wait}" was not measured`);
    return [
      { measure: `  waits: ${wait}, p50`, value: median(samples[wait]), unit: "ms" },
      { measure: `  waits: ${wait}, p99`, value: percentile(samples[wait], 99), unit: "ms" },
    ];
  });
}
