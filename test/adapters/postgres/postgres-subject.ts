import pg from "pg";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { insertIntake } from "../../../src/adapters/postgres/insert-intake.ts";
import { PostgresSessionLock } from "../../../src/adapters/postgres/session/session-lock.ts";
import { openPostgresStore, type PreparedStatements } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../src/adapters/system/entropy.ts";
import type { OlderSender, StoreSubject } from "../../contracts/store-subject.ts";
import { createTestDatabase } from "../../support/database.ts";
import { expectKeptCounts } from "../../support/kept-counts.ts";
import { enforced } from "../../support/policies.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { waitUntil } from "../../support/wait-until.ts";

export interface PostgresSubject extends StoreSubject {
  readonly url: string;
  /** A database client independent of the store, with which a test reads and changes rows. */
  readonly client: pg.Client;
  /** Resolves when `sessions` sessions of this database wait for a lock. */
  whenWaiting(sessions: number): Promise<void>;
}

export interface SubjectOptions {
  readonly preparedStatements?: PreparedStatements;
  readonly leaseDurationMs?: number;
}

export const LEASE_MS = 30_000;

/** Creates a database for one test file. `connect` opens as many stores on it as the test needs. */
export async function createPostgresSubject(options: SubjectOptions = {}): Promise<PostgresSubject> {
  const database = await createTestDatabase();
  const client = await connectClient(database.url);
  const { preparedStatements = "auto", leaseDurationMs = LEASE_MS } = options;
  return {
    url: database.url,
    client,
    connect: async (policies) => {
      const options = { databaseUrl: database.url, clock: systemClock, leaseDurationMs, preparedStatements };
      return enforced(await openPostgresStore({ ...options, policyWords: createCodec() }), policies);
    },
    lock: () => openSessionLock(database.url),
    expire: async (instanceId) => {
      await client.query(
        "UPDATE fencepost.node_instance SET expires_at = clock_timestamp() - interval '1 ms' WHERE instance_id = $1",
        [instanceId],
      );
    },
    letApprovalExpire: async (txId) => {
      await client.query(
        "UPDATE fencepost.intake SET expires_at = clock_timestamp() - interval '1 s' WHERE tx_id = $1",
        [txId],
      );
    },
    letTimeEnd: async (txId) => {
      await client.query(
        "UPDATE fencepost.transaction SET valid_until = clock_timestamp() - interval '1 s' WHERE tx_id = $1",
        [txId],
      );
    },
    now: () => clockOf(client),
    // Waits until the database's clock has advanced by a millisecond: two statements may run within one millisecond,
    // and a Date has no smaller unit.
    tick: async () => {
      const before = await clockOf(client);
      await waitUntil(async () => (await clockOf(client)) > before, "the database's clock goes on", { everyMs: 0 });
    },
    whenWaiting: async (sessions) => {
      await waitUntil(async () => (await countWaiting(client)) >= sessions, `${sessions} sessions wait for a lock`);
    },
    intake: async (...intents) => {
      await client.query("BEGIN");
      for (const intent of intents) await insertIntake(client, intent);
      await client.query("COMMIT");
    },
    older: olderSender(client),
    // A test cannot change a server's system identifier. Change the identifier that the last registration stored
    // instead.
    changeHistory: async () => {
      await client.query("UPDATE fencepost.database_history SET system_identifier = 'another'");
    },
    close: async () => {
      await expectKeptCounts(client);
      await client.end();
      await database.drop();
    },
  };
}

function olderSender(client: pg.Client): OlderSender {
  return {
    leave: async (...intents) => {
      await client.query("BEGIN");
      for (const intent of intents) await insertIntake(client, intent);
      const ids = intents.map(({ txId }) => txId);
      await client.query("UPDATE fencepost.intake SET unanswered = true WHERE tx_id = ANY ($1::uuid[])", [ids]);
      await client.query("COMMIT");
    },
    accept: async (...txIds) => {
      const accept = `UPDATE fencepost.intake SET unanswered = false
        WHERE tx_id = ANY ($1::uuid[]) AND unanswered AND alias_of IS NULL RETURNING tx_id::text AS id`;
      return (await client.query<{ id: string }>(accept, [txIds])).rows.map(({ id }) => id);
    },
    declined: async (txId) => {
      const { rows } = await client.query("SELECT problem FROM fencepost.declined WHERE tx_id = $1", [txId]);
      return rows.length === 0 ? null : JSON.parse(rows[0].problem);
    },
  };
}

/** Opens a session lock and resolves when it is held. */
export async function openSessionLock(directUrl: string): Promise<PostgresSessionLock> {
  const entropy = createEntropy(systemClock);
  const lock = new PostgresSessionLock({ directUrl, clock: systemClock, entropy, telemetry: recordTelemetry() });
  await waitUntil(() => lock.held !== null, "the session lock is held");
  return lock;
}

async function countWaiting(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ waiting: number }>(
    "SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  );
  return rows[0]?.waiting ?? 0;
}

export async function connectClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

async function clockOf(client: pg.Client): Promise<Date> {
  return (await client.query<{ now: Date }>("SELECT clock_timestamp() AS now")).rows[0]?.now ?? new Date(0);
}
