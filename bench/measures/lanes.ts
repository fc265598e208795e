import { setTimeout as pause } from "node:timers/promises";
import { query } from "../environment/databases.ts";
import { processorFigures, type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { Connection } from "../load/connection.ts";
import { latenciesAt } from "../load/drive.ts";
import { transactionBody } from "../load/requests.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { percentile } from "../statistics.ts";

const LANES = 1_000;
const FEW_LANES = 4;
const MANY_LANES = 10_000;
const PER_SECOND = 1_000;
/** A thousand callers do not share a hundred connections: with so few, an answer after an eighth of a second would hold up the next. */
const CONNECTIONS = 512;
/** A lane's first create compares its count with the chain, and a node that has just started is not compiled yet. */
const WARM_UPS = 4;
/**
 * What little a node at rest does, V8 compiles over a minute, and the collector gives back what the start took. With that
 * in it, the figure would be that of a start.
 */
const WARM_UPS_TO_REST = 20;
/** Of what is still on its way when the last create is answered. */
const SETTLE_MS = 2_000;
const LOOK_AGAIN_MS = 200;
/** As in production: what a node with nothing to do costs is that of its usual pace, on a chain as quick as the quickest rollups. */
const USUAL_PACE = { FENCEPOST_POLL_INTERVAL: "1s", FENCEPOST_CONFIRMATIONS: "20" };
const USUAL_BLOCK_TIME_MS = 250;

/** Many lanes with little to do each: what they cost together must follow the work, not the lanes. */
export async function measureLanes(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  return [
    ...busyFigures(await measureBusy(bench, pace, LANES)),
    ...otherFigures(`at the same rate on ${FEW_LANES} lanes`, await measureBusy(bench, pace, FEW_LANES)),
  ];
}

/** Lanes that are owned and have nothing to do. */
export async function measureIdleLanes(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  return [
    ...(await measureResting(bench, pace, {
      lanes: LANES,
      core: { atMost: 2 },
      roundTrips: { bar: { atMost: 3 } },
    })),
    ...(await measureResting(bench, pace, { lanes: MANY_LANES, core: { atMost: 5 }, roundTrips: {} })),
  ];
}

interface Reading extends Spent {
  readonly atMs: number;
  readonly roundTrips: number;
  /** Commits are counted by the transaction numbers they take: reads take none. */
  readonly commits: number;
  readonly transactions: number;
}

async function readingOf({ chain, databaseUrl, processor }: Setup): Promise<Reading> {
  const counters = `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS commits, xact_commit::float8 AS transactions
    FROM pg_stat_database WHERE datname = current_database()`;
  const [{ requests }, rows, spent] = await Promise.all([
    chain.report(),
    query<{ commits: number; transactions: number }>(databaseUrl, counters),
    processor(),
  ]);
  const { commits = Number.NaN, transactions = Number.NaN } = rows[0] ?? {};
  return { atMs: performance.now(), roundTrips: requests, commits, transactions, ...spent };
}

function between(before: Reading, after: Reading): Reading {
  return {
    atMs: after.atMs - before.atMs,
    roundTrips: after.roundTrips - before.roundTrips,
    commits: after.commits - before.commits,
    transactions: after.transactions - before.transactions,
    nodeMs: after.nodeMs - before.nodeMs,
    databaseMs: after.databaseMs - before.databaseMs,
  };
}

/** A thousand a second. Of a thousand lanes, each has mined and confirmed its last transaction when the next one comes. */
async function measureBusy(bench: Workbench, pace: Pace, lanes: number): Promise<Busy> {
  const { perSecond = PER_SECOND } = pace;
  const setup = await bench.open({ signers: lanes });
  const connections = await Connection.openAll(setup.node.url, CONNECTIONS);
  try {
    await untilHeld(setup, lanes);
    const load = { connections, send: createInTurn(setup) };
    await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs: WARM_UPS * pace.warmUpMs });
    const before = await readingOf(setup);
    const latencies = await latenciesAt(load, perSecond, { warmUpMs: 0, turnMs: pace.sustainMs });
    await pause(SETTLE_MS);
    return { latencies, spent: between(before, await readingOf(setup)) };
  } finally {
    for (const connection of connections) connection.close();
    await setup.close();
  }
}

export function createInTurn({ signers }: Setup): (connection: Connection) => Promise<number> {
  let turn = 0;
  return async (connection) => {
    const signer = signers[turn++ % signers.length]?.address ?? "";
    const request = transactionBody(signer, { priced: false });
    let answer = await connection.post("/api/v1/tx", request);
    // The first create of a lane proves the chain's count within a few blocks. An overloaded machine needs longer.
    while (answer.status === 503) {
      await pause(LOOK_AGAIN_MS);
      answer = await connection.post("/api/v1/tx", request);
    }
    if (answer.status !== 202) throw new Error(`a create was answered ${answer.status}: ${answer.body.slice(0, 300)}`);
    return 1;
  };
}

const NOTHING: Spent = { nodeMs: 0, databaseMs: 0 };

interface Busy {
  readonly latencies: readonly number[];
  readonly spent: Reading;
}

function otherFigures(name: string, { latencies, spent }: Busy): readonly Figure[] {
  return [
    { measure: `  ${name}, p50`, value: percentile(latencies, 50), unit: "ms" },
    { measure: "    p99", value: percentile(latencies, 99), unit: "ms" },
    ...processorFigures([spentPer(NOTHING, spent, latencies.length)]),
  ];
}

function busyFigures({ latencies, spent }: Busy): readonly Figure[] {
  const count = latencies.length;
  return [
    { measure: `create, ${LANES} lanes at 1/s each, p50`, value: percentile(latencies, 50), unit: "ms" },
    { measure: "  p99", value: percentile(latencies, 99), unit: "ms", bar: { atMost: 250 } },
    { measure: "  RPC round trips", value: spent.roundTrips / count, unit: "per tx", bar: { atMost: 0.1 } },
    { measure: "  database commits", value: spent.commits / count, unit: "per tx", bar: { atMost: 0.1 } },
    { measure: "  reading transactions", value: (spent.transactions - spent.commits) / count, unit: "per tx" },
    ...processorFigures([spentPer(NOTHING, spent, count)]),
  ];
}

interface Resting {
  readonly lanes: number;
  readonly core: NonNullable<Figure["bar"]>;
  readonly roundTrips: Pick<Figure, "bar">;
}

async function measureResting(bench: Workbench, pace: Pace, resting: Resting): Promise<readonly Figure[]> {
  const setup = await bench.open({ signers: resting.lanes, blockTimeMs: USUAL_BLOCK_TIME_MS, environment: USUAL_PACE });
  try {
    await untilHeld(setup, resting.lanes);
    await pause(WARM_UPS_TO_REST * pace.warmUpMs);
    const before = await readingOf(setup);
    await pause(pace.sustainMs);
    const spent = between(before, await readingOf(setup));
    const perSecond = (value: number) => (1_000 * value) / spent.atMs;
    const share = (ms: number) => (100 * ms) / spent.atMs;
    return [
      {
        measure: `${resting.lanes} lanes with nothing to do, node`,
        value: share(spent.nodeMs),
        unit: "% of a core",
        bar: resting.core,
      },
      { measure: "  database", value: share(spent.databaseMs), unit: "% of a core" },
      { measure: "  RPC round trips", value: perSecond(spent.roundTrips), unit: "/s", ...resting.roundTrips },
      { measure: "  database transactions", value: perSecond(spent.transactions), unit: "/s" },
      { measure: "  memory of the node", value: await setup.node.residentMiB(), unit: "MiB" },
    ];
  } finally {
    await setup.close();
  }
}

export async function untilHeld({ databaseUrl }: Setup, lanes: number): Promise<void> {
  const held = "SELECT count(*)::int AS held FROM fencepost.lane WHERE owner_instance IS NOT NULL";
  while (((await query<{ held: number }>(databaseUrl, held))[0]?.held ?? 0) < lanes) await pause(LOOK_AGAIN_MS);
}
