/** Sends inside the caller's own database transaction, with each library that callers may use for it. */
import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import { sql as drizzleSql } from "drizzle-orm/sql";
import knex from "knex";
import { Kysely, sql as kyselySql, PostgresDialect } from "kysely";
import { Pool } from "pg";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CallerTransaction, createFencepost, type Fencepost } from "../../src/index.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { type SimulatedServer, startSimulatedServer } from "../doubles/simulated-chain/server.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { BLOCK_TIME_MS, connect, type Database, KEYS, RECIPIENT } from "../support/integration.ts";
import { transfer } from "../support/transfers.ts";

interface Opened {
  /** Runs the work in a transaction and commits it; if the work throws, rolls back and rejects. */
  transaction(
    work: (client: CallerTransaction, order: (id: string) => Promise<unknown>) => Promise<unknown>,
  ): Promise<unknown>;
  /** A value that could be mistaken for a transaction. */
  readonly notOne: unknown;
  close(): Promise<unknown>;
}

const INSERT = "INSERT INTO orders VALUES";

const LIBRARIES: Readonly<Record<string, (url: string) => Opened>> = {
  pg: (url) => {
    const pool = new Pool({ connectionString: url, max: 2 });
    return {
      transaction: async (work) => {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          await work(client, (id) => client.query(`${INSERT} ($1)`, [id]));
          await client.query("COMMIT");
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      notOne: pool,
      close: () => pool.end(),
    };
  },
  "Drizzle on pg": (url) => {
    const pool = new Pool({ connectionString: url, max: 2 });
    const db = drizzleOnPg(pool);
    return {
      transaction: (work) =>
        db.transaction((tx) => work(tx, (id) => tx.execute(drizzleSql`INSERT INTO orders VALUES (${id})`))),
      notOne: db,
      close: () => pool.end(),
    };
  },
  "Drizzle on postgres.js": (url) => {
    const client = postgres(url, { max: 2, onnotice: () => undefined });
    const db = drizzleOnPostgresJs(client);
    return {
      transaction: (work) =>
        db.transaction((tx) => work(tx, (id) => tx.execute(drizzleSql`INSERT INTO orders VALUES (${id})`))),
      notOne: db,
      close: () => client.end(),
    };
  },
  Kysely: (url) => {
    const db = new Kysely<Record<string, never>>({
      dialect: new PostgresDialect({ pool: new Pool({ connectionString: url, max: 2 }) }),
    });
    return {
      transaction: (work) =>
        db.transaction().execute((trx) => work(trx, (id) => kyselySql`INSERT INTO orders VALUES (${id})`.execute(trx))),
      notOne: db,
      close: () => db.destroy(),
    };
  },
  Knex: (url) => {
    const db = knex({ client: "pg", connection: url, pool: { min: 0, max: 2 } });
    return {
      transaction: (work) => db.transaction((trx) => work(trx, async (id) => trx.raw(`${INSERT} (?)`, [id]))),
      notOne: db,
      close: () => db.destroy(),
    };
  },
  // Imitates the interactive transactions of Prisma. documents/prisma.test.ts uses its own client, which must be
  // generated.
  Prisma: (url) => {
    const pool = new Pool({ connectionString: url, max: 2 });
    const raw = (client: Pick<Pool, "query">) => ({
      $executeRawUnsafe: async (text: string, ...values: readonly unknown[]) =>
        (await client.query(text, [...values])).rowCount,
    });
    return {
      transaction: async (work) => {
        const client = await pool.connect();
        const tx = raw(client as unknown as Pool);
        try {
          await client.query("BEGIN");
          await work(tx, (id) => tx.$executeRawUnsafe(`${INSERT} ($1)`, id));
          await client.query("COMMIT");
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      notOne: { ...raw(pool), $connect: async () => undefined },
      close: () => pool.end(),
    };
  },
  // Imitates the managers of TypeORM. documents/recipes.test.ts uses its own data source.
  TypeORM: (url) => {
    const pool = new Pool({ connectionString: url, max: 2 });
    const manager = (client: Pick<Pool, "query">, queryRunner?: { isTransactionActive: boolean }) => ({
      "@instanceof": Symbol.for("EntityManager"),
      queryRunner,
      getRepository: () => undefined,
      query: async (text: string, values: unknown[]) => (await client.query(text, values)).rows,
    });
    return {
      transaction: async (work) => {
        const client = await pool.connect();
        const tx = manager(client as unknown as Pool, { isTransactionActive: true });
        try {
          await client.query("BEGIN");
          await work(tx, (id) => tx.query(`${INSERT} ($1)`, [id]));
          await client.query("COMMIT");
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      notOne: manager(pool),
      close: () => pool.end(),
    };
  },
  "postgres.js": (url) => {
    const client = postgres(url, { max: 2, onnotice: () => undefined });
    return {
      transaction: (work) => client.begin((sql) => work(sql, (id) => sql`INSERT INTO orders VALUES (${id})`)),
      notOne: client,
      close: () => client.end(),
    };
  },
};

let database: TestDatabase;
let chain: SimulatedServer;
let rows: Database & { end(): Promise<void> };
let fencepost: Fencepost;

beforeAll(async () => {
  database = await createTestDatabase();
  rows = connect(database.url);
  await rows.query("CREATE TABLE orders (id text PRIMARY KEY)");
  chain = await startSimulatedServer({ chain: new SimulatedChain(), blockTimeMs: BLOCK_TIME_MS });
  fencepost = await createFencepost({
    databaseUrl: database.url,
    chains: [{ rpc: chain.url, confirmations: 1, pollInterval: "50ms" }],
    signers: KEYS,
  });
}, 60_000);

afterAll(async () => {
  await fencepost.close();
  await chain.close();
  await rows.end();
  await database.drop();
});

const orders = async (prefix: string) =>
  (await rows.query<{ id: string }>("SELECT id FROM orders WHERE id LIKE $1 ORDER BY id", [`${prefix}%`])).map(
    ({ id }) => id,
  );

/** A payload with every field, to test how a library handles numbers, bytes and JSON. */
function full(index: number, prefix: string) {
  const { signer, requestId } = transfer(index, prefix);
  const accessList = [{ address: RECIPIENT, storageKeys: [`0x${"12".repeat(32)}`] }] as const;
  const fees = { gas: 60_000, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n };
  const metadata = { order: [`${prefix}-${index}`, { deep: 'it\'s "quoted" ? $1 :name' }] };
  const payload = { to: RECIPIENT, value: BigInt(index + 1), data: "0xdeadbeef", accessList, ...fees } as const;
  return { signer, requestId, payload, metadata, allowNoCode: true };
}

describe.each(Object.entries(LIBRARIES))("a send in a database transaction of the library %s", (name, open) => {
  let library: Opened;
  beforeAll(() => {
    library = open(database.url);
  });
  afterAll(() => library.close());

  // protects [Replicas that embed the library] src/adapters/postgres/statements/intake.ts
  it("is executed after the commit under the returned id", async () => {
    const intent = full(1, name);
    let txId = "";
    await library.transaction(async (client, order) => {
      await order(`${name}-1`);
      const created = await fencepost.send(intent, { client });
      expect(created).toMatchObject({ state: "CREATED", nonce: null, requestId: `${name}-1` });
      txId = created.txId;
      await expect(fencepost.get(txId), "nobody else sees it yet").rejects.toMatchObject({ code: "NOT_FOUND" });
    });
    const sent = await fencepost.waitFor(txId, { timeoutMs: 30_000 });
    expect(sent).toMatchObject({ txId, state: "CONFIRMED", requestId: `${name}-1`, metadata: intent.metadata });
    expect(sent.payload).toMatchObject({ data: "0xdeadbeef", value: "2", gas: "60000", maxFeePerGas: "10000000000" });
    expect(sent.payload.accessList).toEqual(intent.payload.accessList);
    expect(await orders(name)).toEqual([`${name}-1`]);
  });

  it("leaves nothing after a rollback", async () => {
    let txId = "";
    const failing = library.transaction(async (client, order) => {
      await order(`${name}-2`);
      txId = (await fencepost.send(transfer(2, name), { client })).txId;
      throw new Error("no stock");
    });
    await expect(failing).rejects.toThrow("no stock");
    await expect(fencepost.get(txId)).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect((await fencepost.send(transfer(2, name))).txId).not.toBe(txId);
    expect(await orders(`${name}-2`)).toEqual([]);
  });

  it("creates one transaction if the request id is used twice", async () => {
    const ids: string[] = [];
    await library.transaction(async (client) => {
      for (const _ of [1, 2]) ids.push((await fencepost.send(transfer(3, name), { client })).txId);
    });
    const found = await Promise.all(ids.map((txId) => fencepost.waitFor(txId, { timeoutMs: 30_000 })));
    expect(found.map(({ txId }) => txId)).toEqual([ids[0], ids[0]]);
    const stored = await rows.query("SELECT 1 FROM fencepost.transaction WHERE request_id = $1", [`${name}-3`]);
    expect(stored).toHaveLength(1);
  });

  it("leaves the database transaction usable after a refusal", async () => {
    await library.transaction(async (client, order) => {
      const wrong = { ...transfer(4, name), payload: { to: "0x12" } } as const;
      await expect(fencepost.send(wrong, { client })).rejects.toMatchObject({ code: "INVALID_REQUEST" });
      const named = { ...transfer(4, name), nonce: 0 };
      await expect(fencepost.send(named, { client })).rejects.toMatchObject({ code: "INVALID_REQUEST", path: "nonce" });
      await order(`${name}-4`);
    });
    expect(await orders(`${name}-4`)).toEqual([`${name}-4`]);
  });

  // protects [Replicas that embed the library] src/adapters/postgres/caller-transaction.ts
  it("is refused if the given client is in no database transaction", async () => {
    const client = library.notOne as CallerTransaction;
    const refused = fencepost.send(transfer(5, name), { client });
    await expect(refused).rejects.toMatchObject({ code: "INVALID_REQUEST", path: "client" });
    await expect(refused).rejects.toThrow(/not a transaction.*Use /);
    expect(await rows.query("SELECT 1 FROM fencepost.intake WHERE request_id = $1", [`${name}-5`])).toEqual([]);
  });
});

it("send refuses a client object of an unknown database library", async () => {
  for (const client of [{}, null, 7, () => undefined]) {
    const refused = fencepost.send(transfer(0, "nobody"), { client: client as CallerTransaction });
    await expect(refused).rejects.toMatchObject({ code: "INVALID_REQUEST", path: "client" });
  }
});
