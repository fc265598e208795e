import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import type { PreparedIntent } from "../../../src/domain/transaction/transaction.ts";
import type { LaneWrite, TransitionItem } from "../../../src/ports/lane-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  aReceipt,
  commitOne,
  holdLane,
  step,
} from "../../support/lane-samples.ts";
import { type OwnPostgres, startOwnPostgres } from "../../support/own-postgres.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient } from "./postgres-subject.ts";

const BATCH = 200;
const BATCHES = 5;
const COUNT = BATCH * BATCHES;

interface Counters {
  readonly relname: string;
  readonly inserted: number;
  readonly updated: number;
  readonly hot: number;
}

/** Counts the row versions that an ordinary transaction writes: 10, and none of them in the history table. */
describe("the row versions that a transaction writes", () => {
  let server: OwnPostgres;
  let tables: ReadonlyMap<string, Counters>;

  // Use a separate server: an open transaction anywhere in a PostgreSQL cluster prevents dead rows from being pruned.
  beforeAll(async () => {
    server = await startOwnPostgres();
    await migrate({ databaseUrl: server.url });
    await live(server.url);
    const client = await connectClient(server.url);
    tables = await waitUntil(() => readCounters(client), "the server has counted everything");
    await client.end();
  });
  afterAll(() => server.remove());

  const of = (name: string): Counters => tables.get(name) ?? { relname: name, inserted: 0, updated: 0, hot: 0 };

  // protects [Reads] src/adapters/postgres/commit/ordinary-life.ts
  it("are at most 10, and none of them is a history row", () => {
    const versions = ["transaction", "payload", "attempt", "receipt", "step", "completion", "intake"].reduce(
      (sum, name) => sum + of(name).inserted + of(name).updated,
      0,
    );
    expect(versions / COUNT).toBeLessThanOrEqual(10);
    expect(of("step")).toMatchObject({ inserted: 0, updated: 0 });
  });

  it("include payload, attempt and receipt exactly once each", () => {
    for (const name of ["payload", "attempt", "receipt"])
      expect(of(name)).toMatchObject({ inserted: COUNT, updated: 0 });
  });

  it("are heap-only tuple (HOT) updates, except the last version", () => {
    const { updated, hot } = of("transaction");
    expect(updated).toBe(COUNT * 5);
    expect(hot / updated).toBeGreaterThan(0.7);
    for (const name of ["lane", "feed", "node_instance"]) expect(of(name).hot).toBe(of(name).updated);
  });
});

/**
 * Counts the row versions for one transaction on each of many lanes. Here, every write to a lane row serves only one
 * transaction.
 */
describe("the row versions of one transaction per lane", () => {
  const LANES = 50;
  let server: OwnPostgres;
  beforeAll(async () => {
    server = await startOwnPostgres();
    await migrate({ databaseUrl: server.url });
  });
  afterAll(() => server.remove());

  // protects [Reads] src/adapters/postgres/statements/lane.ts
  it("include one lane row version per commit that changes the lane's counts", async () => {
    await liveOnMany(server.url, LANES);
    const client = await connectClient(server.url);
    const tables = await waitUntil(() => readCounters(client, LANES), "the server has counted everything");
    await client.end();
    // Each lane row is updated six times: the lane is acquired, its next nonce is set, a nonce is given, the
    // transaction is signed, it is settled, it is no longer watched for reorgs. Sending and mining change no count of
    // the lane.
    expect(tables.get("lane")).toMatchObject({ inserted: LANES, updated: LANES * 6 });
    const others = [...tables.values()].filter(({ relname }) => !["lane", "commit_marker"].includes(relname));
    const versions = others.reduce((sum, { inserted, updated }) => sum + inserted + updated, 0);
    expect(versions / LANES).toBeLessThan(11);
  });
});

interface Held {
  readonly fence: Fence;
  readonly intent: PreparedIntent;
  readonly attempt: ReturnType<typeof anAttempt>;
}

async function liveOnMany(databaseUrl: string, lanes: number): Promise<void> {
  const store = await openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 30_000 });
  const instance = anInstance();
  await store.registerInstance(instance);
  const held: Held[] = [];
  for (let lane = 0; lane < lanes; lane++) {
    const acquisition = await store.acquireLane(aLane(), instance.instanceId);
    if (acquisition.result === "notLeader") throw new Error("the lane has an owner");
    const { fence } = acquisition;
    await commitOne(store, { kind: "align", fence, floor: 0 });
    held.push({ fence, intent: anIntent(fence.lane), attempt: anAttempt() });
  }
  const all = (write: (one: Held) => LaneWrite) => store.commit(held.map(write));
  const move = (of: (one: Held) => TransitionItem) =>
    all((one) => ({ kind: "transition", fence: one.fence, items: [of(one)] }));
  await all(({ fence, intent }) => ({ kind: "allocate", fence, floor: 0, items: [{ intent }] }));
  await move(({ intent, attempt }) => step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } }));
  await move(({ intent }) => step(intent.txId, AT.pending, "broadcast", { accepted: { ordinal: 1 } }));
  await move(({ intent, attempt }) =>
    step(intent.txId, AT.broadcast, "mine", { receipt: aReceipt(attempt.txHash, { blockNumber: 1 }) }),
  );
  await move(({ intent, attempt }) => {
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
    return step(intent.txId, AT.mined, "confirm", { completion });
  });
  await all(({ fence }) => ({ kind: "unwatch", fence, throughBlock: 1 }));
  await store.close();
}

/**
 * Processes five batches of transactions. Each step is done for all batches before the next step, as on a busy lane.
 */
async function live(databaseUrl: string): Promise<void> {
  const store = await openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 30_000 });
  const fence = await holdLane(store);
  const batches = Array.from({ length: BATCHES }, () =>
    Array.from({ length: BATCH }, () => ({ intent: anIntent(fence.lane), attempt: anAttempt() })),
  );
  const all = async (
    move: (intent: { txId: string }, attempt: ReturnType<typeof anAttempt>) => ReturnType<typeof step>,
  ) => {
    for (const batch of batches)
      await apply(
        store,
        fence,
        batch.map(({ intent, attempt }) => move(intent, attempt)),
      );
  };
  for (const batch of batches)
    await allocate(
      store,
      fence,
      batch.map(({ intent }) => intent),
    );
  await all(({ txId }, attempt) => step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } }));
  await all(({ txId }) => step(txId, AT.pending, "broadcast", { accepted: { ordinal: 1 } }));
  await all(({ txId }, { txHash }) => step(txId, AT.broadcast, "mine", { receipt: aReceipt(txHash) }));
  await all(({ txId }, { txHash }) => {
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash } as const;
    return step(txId, AT.mined, "confirm", { completion });
  });
  await store.renewInstance(fence.instanceId, 60_000);
  const endOfWatch = { kind: "unwatch", fence, throughBlock: 100 } as const;
  while ((await commitOne(store, endOfWatch)).status === "unfinished");
  expect((await store.loadLane(fence))?.watched).toEqual([]);
  // Close the store, because PostgreSQL sessions report their statistics when they end.
  await store.close();
}

async function readCounters(client: Client, count = COUNT): Promise<ReadonlyMap<string, Counters> | null> {
  const { rows } = await client.query<Counters>(
    `SELECT relname, n_tup_ins::int AS inserted, n_tup_upd::int AS updated, n_tup_hot_upd::int AS hot
     FROM pg_stat_user_tables WHERE schemaname = 'fencepost'`,
  );
  const tables = new Map(rows.map((row) => [row.relname, row]));
  return (tables.get("transaction")?.updated ?? 0) >= count * 5 ? tables : null;
}
