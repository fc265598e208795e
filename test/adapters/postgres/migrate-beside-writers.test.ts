import type { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checksumOf, migrate, shippedMigrations } from "../../../src/adapters/postgres/schema/migrate.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { allocate, anIntent, holdLane } from "../../support/lane-samples.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
beforeEach(async () => {
  subject = await createPostgresSubject();
});
afterEach(() => subject.close());

/**
 * Returns the shipped migrations plus a migration of the next release. Running nodes of this release still work with
 * that migration.
 */
async function withNext(sql: string) {
  const shipped = await shippedMigrations();
  const full = `-- works with: ${shipped.at(-1)?.name}\n${sql}`;
  return [...shipped, { name: "9999_next.sql", sql: full, checksum: checksumOf(full) }];
}

/** Finds sessions that wait for a table lock. */
const WAITING = `
  SELECT FROM pg_locks AS k JOIN pg_database AS d ON d.oid = k.database
  WHERE NOT k.granted AND k.locktype = 'relation' AND d.datname = current_database()`;

describe("a migration that runs while nodes write", () => {
  // protects [Reads] src/adapters/postgres/schema/migrate.ts
  it("holds no lock that nodes need while the migration waits for a table", async () => {
    const store = await subject.connect();
    const fences = await Promise.all([1, 2, 3].map(() => holdLane(store)));
    await subject.client.query("CREATE SEQUENCE public.tries");
    // A sequence is not rolled back, so it counts the migration's attempts. Each attempt is aborted once a writer waits
    // behind it.
    const migrations = await withNext(`
      DROP INDEX fencepost.transaction_over_on_chain;
      SELECT nextval('public.tries');
      DO $$ BEGIN WHILE NOT EXISTS (${WAITING}) LOOP PERFORM pg_sleep(0.001); END LOOP; END $$;
      ALTER TABLE fencepost.lane ADD COLUMN more text`);
    let over = false;
    const migrating = migrate({ databaseUrl: subject.url, migrations }).finally(() => {
      over = true;
    });
    const writeBackToBack = async (fence: Fence) => {
      while (!over) await allocate(store, fence, [anIntent(fence.lane)]);
    };
    const writers = Promise.all(fences.map(writeBackToBack));
    expect(await migrating).toEqual({ applied: ["9999_next.sql"] });
    await writers;
    const { rows } = await subject.client.query<{ tries: number }>("SELECT last_value::int AS tries FROM public.tries");
    expect(rows).toEqual([{ tries: 1 }]);
    await store.close();
  });

  // protects [Reads] src/adapters/postgres/schema/migrate.ts
  it("is retried after a deadlock", async () => {
    const database = new URL(subject.url).pathname.slice(1);
    // The deadlock timeout is shorter than the migration's own lock timeout, so PostgreSQL detects the deadlock in the
    // migration's session and aborts it.
    await subject.client.query(`ALTER DATABASE ${database} SET deadlock_timeout TO '300ms'`);
    const other = await connectClient(subject.url);
    await other.query("SET deadlock_timeout TO '60s'");
    await other.query("BEGIN");
    await other.query("LOCK TABLE fencepost.transaction IN ACCESS SHARE MODE");
    const migrations = await withNext(`
      ALTER TABLE fencepost.lane ADD COLUMN more text;
      ALTER TABLE fencepost.transaction ADD COLUMN more text`);
    const migrating = migrate({ databaseUrl: subject.url, migrations });
    await waitUntil(() => someoneWaits(subject.client), "the migration waits for the other session");
    await other.query("SELECT FROM fencepost.lane");
    await other.query("COMMIT");
    expect(await migrating).toEqual({ applied: ["9999_next.sql"] });
    await other.end();
  });
});

async function someoneWaits(client: Client): Promise<boolean> {
  return (await client.query(WAITING)).rowCount !== 0;
}
