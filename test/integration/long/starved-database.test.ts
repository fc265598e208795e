/**
 * A database that is running but cannot be written to: its disk is full, it has no free connections, or another program
 * locks it.
 */
import { Client } from "pg";
import { describe, expect } from "vitest";
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { audit, untilSettled } from "../../support/audit.ts";
import { connect, type Database, it, SHORT_LEASE } from "../../support/integration.ts";
import type { NodeProcess } from "../../support/node-process.ts";
import { PersistentCaller } from "../../support/persistent-caller.ts";
import { range, transfer } from "../../support/transfers.ts";
import { waitUntil } from "../../support/wait-until.ts";

/** Simulates a full disk: inserts fail as on a real server, while small updates still fit into existing pages. */
const FILL_DISK = `
  CREATE FUNCTION public.disk_full() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION 'could not extend file "base/16384/16402": No space left on device' USING ERRCODE = '53100';
  END
  $$;
  CREATE TRIGGER disk_full BEFORE INSERT ON fencepost.transaction FOR EACH ROW EXECUTE FUNCTION public.disk_full();
  CREATE TRIGGER disk_full BEFORE INSERT ON fencepost.attempt FOR EACH ROW EXECUTE FUNCTION public.disk_full();
  CREATE TRIGGER disk_full BEFORE INSERT ON fencepost.receipt FOR EACH ROW EXECUTE FUNCTION public.disk_full();
  CREATE TRIGGER disk_full BEFORE INSERT ON fencepost.completion FOR EACH ROW EXECUTE FUNCTION public.disk_full();`;
const EMPTY_DISK = "DROP FUNCTION public.disk_full CASCADE";

const COUNT = 12;

/** Callers retry every request that is refused for now. In the end each transaction exists once and is confirmed. */
async function undergo(
  { client }: NodeProcess,
  { database, rpcUrl }: { readonly database: Database; readonly rpcUrl: string },
  trouble: (caller: PersistentCaller) => Promise<void>,
): Promise<PersistentCaller> {
  const caller = new PersistentCaller(() => client);
  await Promise.all(range(COUNT).map((index) => caller.send(transfer(index, "before"))));
  const during = trouble(caller);
  const sent = Promise.all(range(COUNT).map((index) => caller.send(transfer(COUNT + index, "during"))));
  await Promise.all([during, sent]);
  await untilSettled(database, 2 * COUNT);
  await audit({ database, rpcUrl });
  return caller;
}

describe("a full disk of the database", () => {
  // protects [The database's rights, name and limits] src/adapters/postgres/session/errors.ts, src/domain/errors.ts
  it("causes 503 responses until there is space again", async ({ edr, nodes, database }) => {
    const node = await nodes.start(edr.url, SHORT_LEASE);
    const caller = await undergo(node, { database, rpcUrl: edr.url }, async ({ refusals }) => {
      await database.query(FILL_DISK);
      await waitUntil(() => refusals.length > 3, "creates are refused");
      const error = await node.client.send(transfer(99, "full")).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ status: 503, code: "UNAVAILABLE" });
      expect((error as { detail: string }).detail).toMatch(/No space left on device/);
      await database.query(EMPTY_DISK);
    });
    expect(new Set(caller.refusals.map(({ status }) => status))).toEqual(new Set([503]));
    const lines = node
      .stderr()
      .split("\n")
      .filter((line) => line.includes("No space left on device"));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line, "a line, not a stack").not.toMatch(/ {4}at /);
  });
});

describe("a database server without a free connection", () => {
  // protects [The database's rights, name and limits] src/adapters/postgres/session/is-away.ts
  it("causes no loss of accepted requests", async ({ edr, nodes, database }) => {
    const role = `limited_${new URL(database.url).pathname.slice(-12)}`;
    await database.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret' CONNECTION LIMIT 0`);
    await migrate({ databaseUrl: database.url, grant: role });
    const url = new URL(database.url);
    [url.username, url.password] = [role, "secret"];
    const own = connect(database.url);
    try {
      const starting = nodes.start(edr.url, { ...SHORT_LEASE, FENCEPOST_DATABASE_URL: url.href });
      await waitUntil(
        async () => (await own.query("SELECT FROM pg_stat_activity WHERE usename = $1", [role])).length === 0,
        "nobody is let in",
      );
      await own.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
      const node = await starting;
      await undergo(node, { database, rpcUrl: edr.url }, async ({ refusals }) => {
        await own.query(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
        await own.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role]);
        await waitUntil(() => refusals.length > 3, "creates are refused");
        await own.query(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
      });
    } finally {
      await own.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [role]);
      await own.query(`DROP OWNED BY ${role}`);
      await own.query(`DROP ROLE ${role}`);
      await own.end();
    }
  });
});

const TABLES = ["lane", "transaction", "attempt", "node_instance"].map((table) => `fencepost.${table}`).join(", ");

describe("a table lock of another database client", () => {
  // protects [The database's rights, name and limits] src/adapters/postgres/session/limits.ts, src/application/lane/lease.ts
  it("as taken by pg_dump does not delay creates", async ({ edr, nodes, database }) => {
    const node = await nodes.start(edr.url, SHORT_LEASE);
    const caller = await undergo(node, { database, rpcUrl: edr.url }, async () => {
      const dump = new Client({ connectionString: database.url });
      await dump.connect();
      await dump.query(`BEGIN; LOCK TABLE ${TABLES} IN ACCESS SHARE MODE`);
      await untilSettled(database, 2 * COUNT);
      await dump.end();
    });
    expect(caller.refusals).toEqual([]);
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/session/limits.ts, src/application/lane/lease.ts
  it("as taken by ALTER TABLE causes 503 responses", async ({ edr, nodes, database }) => {
    const node = await nodes.start(edr.url, SHORT_LEASE);
    await undergo(node, { database, rpcUrl: edr.url }, async (caller) => {
      const alter = connect(database.url);
      await alter.query(`BEGIN; LOCK TABLE ${TABLES} IN ACCESS EXCLUSIVE MODE`);
      // All creates of this test may have been accepted before the lock was granted, so repeat the first one to get a
      // refusal.
      const repeated = caller.send(transfer(0, "before"));
      await waitUntil(() => caller.refusals.length > 0, "a create is refused");
      await alter.query("SELECT pg_sleep(4); COMMIT");
      await alter.end();
      await repeated;
    });
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/session/limits.ts, src/application/lane/lease.ts
  it("as taken by VACUUM FULL causes no loss", async ({ edr, nodes, database }) => {
    const node = await nodes.start(edr.url, SHORT_LEASE);
    await undergo(node, { database, rpcUrl: edr.url }, async () => {
      for (const table of TABLES.split(", ")) await database.query(`VACUUM FULL ${table}`);
    });
  });
});
