import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore, UnsuitableServer } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anIntent,
  apply,
  aReceipt,
  confirm,
  holdLane,
  step,
} from "../../support/lane-samples.ts";
import { connectClient } from "./postgres-subject.ts";

const open = (databaseUrl: string) => openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 30_000 });

describe("a PostgreSQL server", () => {
  let admin: pg.Client;
  let name: string;
  let role: string | null = null;

  beforeAll(async () => {
    admin = await connectClient(inject("postgres").adminUrl);
  });
  afterEach(async () => {
    await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    if (role !== null) await admin.query(`DROP ROLE ${role}`);
    role = null;
  });
  afterAll(() => admin.end());

  const database = async (how: string, settings: Readonly<Record<string, string>> = {}) => {
    name = `${inject("postgres").prefix}${randomBytes(4).toString("hex")}`;
    await admin.query(`CREATE DATABASE ${name} ${how}`);
    for (const [key, value] of Object.entries(settings)) {
      await admin.query(`ALTER DATABASE ${name} SET ${key} = ${value}`);
    }
    const url = new URL(inject("postgres").adminUrl);
    url.pathname = `/${name}`;
    return url;
  };
  const migrated = () => `TEMPLATE ${inject("postgres").template}`;

  it("is refused if synchronous_commit is off", async () => {
    const url = await database(migrated(), { synchronous_commit: "off" });
    await expect(open(url.href)).rejects.toBeInstanceOf(UnsuitableServer);
    await expect(open(url.href)).rejects.toThrow(/^[^\n]*synchronous_commit[^\n]*$/);
  });

  it("is refused if the server's encoding is not UTF8", async () => {
    const url = await database("TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'");
    await expect(open(url.href)).rejects.toThrow(/UTF8/);
  });

  // protects [Another program at the key] src/adapters/postgres/store.ts
  it("is refused while it has open transactions that an older version moved to a second nonce", async () => {
    const url = await database(migrated());
    const before = await open(url.href);
    const fence = await holdLane(before);
    const [intent, other] = [anIntent(fence.lane), anIntent(fence.lane)];
    await allocate(before, fence, [intent, other]);
    const first = { attempt: anAttempt(1), claim: { ordinal: 1 } };
    const foreign = anAttempt(2, { kind: "external", foreign: true, rawTransaction: null });
    await apply(before, fence, [
      step(intent.txId, AT.allocated, "sign", first),
      step(intent.txId, AT.pending, "mine", { attempt: foreign, receipt: aReceipt(foreign.txHash) }),
    ]);
    await before.close();
    const client = await connectClient(url.href);
    // The state that the older version's policy `requeue` left behind: the transaction has the next nonce, but still
    // has both attempts of the previous nonce.
    await client.query(
      `INSERT INTO fencepost.step (tx_id, ordinal, chain_id, event, from_state, state, first_at, last_at)
       SELECT tx_id, history_count + 1, chain_id, 'requeue', 'TRACKING', 'ALLOCATED', now(), now()
       FROM fencepost.transaction WHERE tx_id = $1`,
      [intent.txId],
    );
    await client.query(
      `UPDATE fencepost.transaction SET state = 'ALLOCATED', sub_state = NULL, nonce = 2, last_event = 'requeue',
         history_count = history_count + 1 WHERE tx_id = $1`,
      [intent.txId],
    );
    const { signer, chainId } = fence.lane;
    const listed = new RegExp(
      `^1 open [^\\n]*: ${intent.txId} \\(nonce 2 of ${signer} on chain ${chainId}\\); [^\\n]*$`,
    );
    await expect(open(url.href)).rejects.toThrow(listed);
    await client.query(
      `UPDATE fencepost.transaction SET state = 'FAILED_FINAL', sub_state = 'NONCE_CONSUMED_EXTERNALLY' WHERE tx_id = $1`,
      [intent.txId],
    );
    await client.end();
    await (await open(url.href)).close();
  });

  it("is reported as unavailable if it cannot be reached", async () => {
    await expect(open("postgres://nobody@127.0.0.1:1/none")).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it("may have unusual session defaults", async () => {
    const url = await database(migrated(), {
      default_transaction_isolation: "'serializable'",
      default_transaction_read_only: "on",
      search_path: "pg_temp",
      DateStyle: "'German, DMY'",
      TimeZone: "'Asia/Kathmandu'",
      IntervalStyle: "'sql_standard'",
      bytea_output: "'escape'",
      extra_float_digits: "0",
      statement_timeout: "'10min'",
      enable_indexscan: "off",
    });
    const store = await open(url.href);
    const fence = await holdLane(store);
    const before = Date.now();
    const { intent, receipt } = await confirm(store, fence);
    const record = await store.transaction(intent.txId);
    expect(record).toMatchObject({ state: "CONFIRMED", receipt });
    expect(Math.abs((record?.createdAt.getTime() ?? 0) - before)).toBeLessThan(60_000);
    expect((await store.feed(0, 10)).items).toMatchObject([{ seq: 1, txId: intent.txId }]);
    await store.close();
  });

  // protects [Attacks] src/adapters/postgres/session/connections.ts
  it("is read with the built-in functions, even if search_path names false ones", async () => {
    const hostile = `
      CREATE SCHEMA hostile;
      CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql
        AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$;
      CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql
        AS $$ SELECT pg_catalog.now() + interval '1 hour' $$;
      CREATE FUNCTION hostile.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
      CREATE FUNCTION hostile.pg_backend_pid() RETURNS int LANGUAGE sql AS $$ SELECT 0 $$;
      CREATE FUNCTION hostile.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
      CREATE OPERATOR hostile.= (FUNCTION = hostile.same, LEFTARG = text, RIGHTARG = text)`;
    const url = await database("", { search_path: "hostile, pg_catalog" });
    const client = await connectClient(url.href);
    await client.query(hostile);
    await migrate({ databaseUrl: url.href });
    const store = await open(url.href);
    const fence = await holdLane(store);
    const { intent } = await confirm(store, fence);
    const { rows } = await client.query<{ ahead: number }>(
      `SELECT extract(epoch FROM max(at) - pg_catalog.clock_timestamp())::float8 AS ahead FROM (
         SELECT expires_at AS at FROM fencepost.node_instance UNION ALL
         SELECT updated_at FROM fencepost.transaction WHERE tx_id = $1) AS times`,
      [intent.txId],
    );
    await client.end();
    expect(rows[0]?.ahead).toBeLessThan(60);
    await store.close();
  });

  it("needs no superuser role: a database's owner can migrate it and run a node", async () => {
    role = `${inject("postgres").prefix}owner`;
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'fencepost' NOSUPERUSER`);
    const url = await database(`OWNER ${role}`);
    url.username = role;
    url.password = "fencepost";
    await migrate({ databaseUrl: url.href });
    const store = await open(url.href);
    expect(await allocate(store, await holdLane(store), [])).toEqual([]);
    const fence = await holdLane(store);
    expect(await allocate(store, fence, [anIntent(fence.lane)])).toMatchObject([{ nonce: 0 }]);
    await store.close();
  });

  it("has no session left when the store is closed", async () => {
    const url = await database(migrated());
    const store = await open(url.href);
    const fence = await holdLane(store);
    await allocate(store, fence, [anIntent(fence.lane)]);
    await store.close();
    await expect(store.ping()).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(allocate(store, fence, [anIntent(fence.lane)])).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
