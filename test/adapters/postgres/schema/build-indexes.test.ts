import { randomUUID } from "node:crypto";
import type { Client } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { buildIndexes } from "../../../../src/adapters/postgres/schema/build-indexes.ts";
import { migrate, shippedMigrations } from "../../../../src/adapters/postgres/schema/migrate.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { expectKeptCounts } from "../../../support/kept-counts.ts";
import { connectClient } from "../postgres-subject.ts";

const INDEX = {
  sql: "CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_tried\n  ON fencepost.transaction (state, updated_at) WHERE live;",
};
const [SIGNER, OTHER] = ["a", "b"].map((digit) => `0x${digit.repeat(40)}`) as [string, string];

let database: TestDatabase;
let client: Client;
let writer: Client;
beforeEach(async () => {
  database = await createTestDatabase();
  [client, writer] = await Promise.all([connectClient(database.url), connectClient(database.url)]);
});
afterEach(async () => {
  await Promise.all([client.end(), writer.end()]);
  await database.drop();
});

/** Inserts a transaction with the columns that nodes of every version write. */
function insert(by: Client, state: "ALLOCATED" | "CONFIRMED", nonce: number, signer = SIGNER) {
  return by.query(
    `INSERT INTO fencepost.transaction (tx_id, chain_id, signer, nonce, state, history_count, last_event, created_at, updated_at)
     VALUES ($1, 1, $2, $3, $4, 1, 'allocate', now(), now())`,
    [randomUUID(), signer, nonce, state],
  );
}

async function isValid(): Promise<boolean | undefined> {
  const { rows } = await client.query(
    "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('fencepost.transaction_tried')",
  );
  return rows[0]?.indisvalid;
}

describe("building the indexes of a migration", () => {
  // protects [Reads] src/adapters/postgres/schema/build-indexes.ts
  it("does not block concurrent writers", async () => {
    await writer.query("BEGIN");
    await insert(writer, "ALLOCATED", 0);
    const building = buildIndexes(client, [INDEX]);
    const other = await connectClient(database.url);
    await insert(other, "ALLOCATED", 0, OTHER);
    await other.end();
    await writer.query("COMMIT");
    await building;
    expect(await isValid()).toBe(true);
    await buildIndexes(client, [INDEX]);
  });

  // protects [Reads] src/adapters/postgres/schema/build-indexes.ts
  it("rebuilds an index that a crash left invalid", async () => {
    await buildIndexes(client, [INDEX]);
    await client.query(
      "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'fencepost.transaction_tried'::regclass",
    );
    await buildIndexes(client, [INDEX]);
    expect(await isValid()).toBe(true);
  });

  it("is left to the migration's own transaction if the table does not exist yet", async () => {
    await client.query("DROP SCHEMA fencepost CASCADE");
    await buildIndexes(client, [INDEX]);
    const applied = (await shippedMigrations()).map(({ name }) => name);
    expect(await migrate({ databaseUrl: database.url })).toEqual({ applied });
  });
});

describe("the transaction counts stored on a lane", () => {
  // protects [Reads] src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("are updated by a database trigger if the writer omits the update", async () => {
    await client.query("INSERT INTO fencepost.lane (chain_id, signer) VALUES (1, $1)", [SIGNER]);
    await insert(client, "ALLOCATED", 0);
    await insert(client, "ALLOCATED", 1);
    await insert(client, "CONFIRMED", 2);
    await expectKeptCounts(client);
    await insert(client, "ALLOCATED", 3);
    await client.query("UPDATE fencepost.transaction SET state = 'STUCK' WHERE nonce = 0");
    await client.query("UPDATE fencepost.transaction SET live = false, outcome = state WHERE nonce = 2");
    await client.query("DELETE FROM fencepost.transaction WHERE nonce = 1");
    await expectKeptCounts(client);
    const { rows } = await client.query(
      "SELECT state, count FROM fencepost.live_count WHERE count <> 0 ORDER BY state",
    );
    expect(rows).toEqual([
      { state: "ALLOCATED", count: "1" },
      { state: "STUCK", count: "1" },
    ]);
  });

  // protects [Reads] src/adapters/postgres/commit/plan.ts, src/adapters/postgres/session/opening.ts
  it("are not updated twice", async () => {
    await client.query("INSERT INTO fencepost.lane (chain_id, signer) VALUES (1, $1)", [SIGNER]);
    await client.query("BEGIN");
    await client.query("SELECT set_config('fencepost.counts', 'kept', true)");
    await insert(client, "ALLOCATED", 0);
    await client.query("UPDATE fencepost.lane SET live_allocated = live_allocated + 1");
    await client.query("COMMIT");
    await expectKeptCounts(client);
    await insert(client, "ALLOCATED", 1);
    await expectKeptCounts(client);
  });

  it("are rolled back with the transaction", async () => {
    await client.query("INSERT INTO fencepost.lane (chain_id, signer) VALUES (1, $1)", [SIGNER]);
    await client.query("BEGIN");
    await insert(client, "ALLOCATED", 0);
    await client.query("ROLLBACK");
    await expectKeptCounts(client);
  });
});
