import pg from "pg";
import { migrate } from "../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore, type PostgresStore } from "../../src/adapters/postgres/store.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { STATES } from "../../src/domain/transaction/transitions.ts";
import type { ListFilter } from "../../src/ports/query-store.ts";
import { BUSY_CHAIN, fillTables, QUIET_CHAIN, signerAt } from "../../test/support/large-tables.ts";
import type { Workbench } from "../environment/workbench.ts";
import type { Pace } from "../options.ts";
import type { Figure } from "../report.ts";
import { median, percentile } from "../statistics.ts";

const MILLION = 1_000_000;
const LANES = 100;
const READS = 200;

/** Reads of callers, operators and Prometheus beside a million transactions that are over and a million that wait. */
export async function measureReads(bench: Workbench, pace: Pace): Promise<readonly Figure[]> {
  const rows = pace.rounds > 1 ? MILLION : MILLION / 10;
  const databaseUrl = await bench.databases.create();
  await migrate({ databaseUrl });
  await fill(databaseUrl, rows);
  const store = await openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 30_000 });
  try {
    const times = new Map<string, readonly number[]>();
    for (const [name, read] of readsOf(store)) times.set(name, await timed(read));
    const slowest = [...times].sort(([, a], [, b]) => percentile(b, 99) - percentile(a, 99));
    const figure = (name: string, value: number): Figure => ({
      measure: `${name}, at ${rows} final and ${rows} waiting`,
      value,
      unit: "ms",
      bar: { atMost: 20 },
    });
    const [[worst = "", of = []] = []] = slowest;
    return [
      figure(`slowest list: ${worst}, median`, median(of)),
      ...slowest.slice(0, 5).map(([name, of]) => figure(`p99 of ${name}`, percentile(of, 99))),
      figure("p99 of GET /signers", percentile(times.get("signers") ?? [], 99)),
      figure("p99 of the counts of /metrics", percentile(times.get("states") ?? [], 99)),
    ];
  } finally {
    await store.close();
    await bench.databases.drop(databaseUrl);
  }
}

async function fill(databaseUrl: string, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await fillTables(client, { final: rows, waiting: rows, lanes: LANES });
    // Else the server writes all of that to disk while the reads are measured.
    await client.query("CHECKPOINT");
  } finally {
    await client.end();
  }
}

function readsOf(store: PostgresStore): readonly (readonly [string, () => Promise<unknown>])[] {
  const scopes: readonly Partial<ListFilter>[] = [
    {},
    { chainId: BUSY_CHAIN },
    { chainId: QUIET_CHAIN },
    { signer: signerAt(0) },
    { signer: signerAt(999_999) },
  ];
  const filters = scopes.flatMap((scope) =>
    [undefined, ...STATES].map((state) => ({ ...scope, ...(state && { state }) })),
  );
  const lists = filters.flatMap((filter) =>
    (["newest", "oldest"] as const).map((order) => {
      const read = () => store.transactions({ ...filter, order, limit: 51 });
      return [`list ${JSON.stringify(filter)} ${order}`, read] as const;
    }),
  );
  return [...lists, ["signers", () => store.lanesAfter(null, 101)], ["states", () => store.census()]];
}

async function timed(read: () => Promise<unknown>): Promise<readonly number[]> {
  await read();
  const times: number[] = [];
  for (let n = 0; n < READS; n++) {
    const beganMs = performance.now();
    await read();
    times.push(performance.now() - beganMs);
  }
  return times;
}
