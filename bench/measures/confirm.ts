import { setTimeout as pause } from "node:timers/promises";
import { query } from "../environment/databases.ts";
import { processorFigures, type Spent, spentPer } from "../environment/processor-time.ts";
import type { Setup, Workbench } from "../environment/workbench.ts";
import { ConfirmingLoad } from "../load/confirming.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";

const CREATORS = 8;
const SAMPLE_MS = 500;

interface Scenario {
  readonly name: string;
  readonly signers: number;
  /** Transactions between create and CONFIRMED. */
  readonly outstanding: number;
  readonly goal: number;
}

/** One lane: enough to keep its window of 512 full while the next ones are signed and the last ones become final. */
const ONE: Scenario = { name: "create → CONFIRMED, 1 signer", signers: 1, outstanding: 1_500, goal: 800 };
const FIFTY: Scenario = { name: "create → CONFIRMED, 50 signers", signers: 50, outstanding: 3_000, goal: 1_500 };

export async function measureConfirm(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  return [...(await sustain(bench, ONE, pace)), ...(await sustain(bench, FIFTY, pace))];
}

async function sustain(bench: Workbench, scenario: Scenario, pace: Pace): Promise<readonly Figure[]> {
  const setup = await bench.open({ signers: scenario.signers });
  const load = new ConfirmingLoad(setup, scenario.outstanding, pace.perSecond);
  try {
    await load.start(CREATORS);
    await pause(pace.warmUpMs);
    const before = await reading(setup, load);
    const peakMiB = await watchMemory(setup, pace.sustainMs);
    const after = await reading(setup, load);
    await load.stop();
    return figures(scenario, { before, after, peakMiB });
  } finally {
    await setup.close();
  }
}

interface Reading extends Spent {
  readonly atMs: number;
  readonly confirmed: number;
  readonly roundTrips: number;
  readonly commits: number;
  readonly rowVersions: number;
  readonly historyVersions: number;
}

/** Commits are counted by the transaction numbers they take: reads take none. */
const COUNTERS = `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS commits,
  sum(n_tup_ins + n_tup_upd)::float8 AS row_versions,
  sum(n_tup_ins + n_tup_upd) FILTER (WHERE relname = 'history')::float8 AS history_versions
  FROM pg_stat_user_tables WHERE schemaname = 'fencepost'`;

async function reading({ chain, databaseUrl, processor }: Setup, load: ConfirmingLoad): Promise<Reading> {
  const [{ requests }, [counters], spent] = await Promise.all([
    chain.report(),
    query<{ commits: number; row_versions: number; history_versions: number }>(databaseUrl, COUNTERS),
    processor(),
  ]);
  return {
    atMs: performance.now(),
    confirmed: load.confirmed,
    roundTrips: requests,
    commits: counters?.commits ?? Number.NaN,
    rowVersions: counters?.row_versions ?? Number.NaN,
    historyVersions: counters?.history_versions ?? Number.NaN,
    ...spent,
  };
}

async function watchMemory({ node }: Setup, forMs: number): Promise<number> {
  let peakMiB = 0;
  for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
    await pause(SAMPLE_MS);
    peakMiB = Math.max(peakMiB, await node.residentMiB());
  }
  return peakMiB;
}

function figures(
  { name, goal }: Scenario,
  { before, after, peakMiB }: { before: Reading; after: Reading; peakMiB: number },
): readonly Figure[] {
  const confirmed = after.confirmed - before.confirmed;
  const each = (key: "roundTrips" | "commits" | "rowVersions" | "historyVersions") =>
    (after[key] - before[key]) / confirmed;
  const rate = (1_000 * confirmed) / (after.atMs - before.atMs);
  return [
    { measure: name, value: rate, unit: "/s", bar: { atLeast: 500 }, goal: { atLeast: goal } },
    ...processorFigures([spentPer(before, after, confirmed)]),
    { measure: "  RPC round trips", value: each("roundTrips"), unit: "per tx", goal: { atMost: 0.2 } },
    { measure: "  database commits", value: each("commits"), unit: "per tx", goal: { atMost: 0.1 } },
    { measure: "  row versions", value: each("rowVersions"), unit: "per tx", goal: { atMost: 15 } },
    { measure: "  of them history", value: each("historyVersions"), unit: "per tx", goal: { atMost: 5 } },
    { measure: "  memory of the node, peak", value: peakMiB, unit: "MiB", goal: { atMost: 600 } },
  ];
}
