/** The snippets of docs/embed.md, only to be compiled. caller-transactions.test.ts runs the same code. */
import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import type { Knex } from "knex";
import type { Kysely } from "kysely";
import type { Pool } from "pg";
import type { Sql } from "postgres";
import type { LocalAccount } from "viem";
import { asHex, createFencepost, type Fencepost, type Hex } from "../../src/index.ts";
import { RECIPIENT } from "./integration.ts";

type Payment = Parameters<Fencepost["send"]>[0];

/** The client as Prisma's generator writes it. Inside a transaction it lacks `$connect` and `$transaction`. */
interface PrismaClient {
  $connect(): Promise<void>;
  $executeRawUnsafe(query: string, ...values: unknown[]): Promise<number>;
  $transaction<T>(work: (tx: Omit<PrismaClient, "$connect" | "$transaction">) => Promise<T>): Promise<T>;
  readonly orders: { create(asked: { data: { id: string } }): Promise<unknown> };
}

interface Given {
  readonly fencepost: Fencepost;
  readonly payment: Payment;
  readonly order: { readonly id: string };
}

const orders = pgTable("orders", { id: text("id").primaryKey() });

export const SNIPPETS = {
  start: async () => {
    const fencepost = await createFencepost({
      databaseUrl: "postgres://app:secret@localhost/app",
      chains: [{ rpc: "https://rpc.example", confirmations: 20 }],
      awsKmsKeyIds: ["alias/payouts"],
    });
    return fencepost;
  },
  signers: async (keyVersion: string, mnemonic: string, account: LocalAccount) => {
    const common = { databaseUrl: "postgres://app:secret@localhost/app", chains: [{ rpc: "https://rpc.example" }] };
    await createFencepost({ ...common, awsKmsKeyIds: ["alias/payouts"] });
    await createFencepost({ ...common, gcpKmsKeyVersions: [keyVersion] });
    await createFencepost({ ...common, vaultKeyPaths: ["secret/data/payouts"] });
    await createFencepost({ ...common, remoteSignerUrl: "https://web3signer.internal:9000" });
    await createFencepost({ ...common, keystoreDir: "keys", keystorePasswordFile: "keys.password" });
    await createFencepost({ ...common, mnemonic, mnemonicCount: 3 });
    await createFencepost({ ...common, signers: [account] });
    await createFencepost({ ...common, signers: [asHex(process.env.SIGNER_KEY, "SIGNER_KEY")] });
  },
  send: async ({ fencepost }: Given, signer: Hex) => {
    const created = await fencepost.send({
      signer,
      requestId: "order-42",
      payload: { to: RECIPIENT, value: 1_000_000_000_000_000n },
    });
    return created;
  },
  pg: async ({ fencepost, payment, order }: Given, pool: Pool) => {
    const client = await pool.connect();
    await client.query("BEGIN");
    await client.query("INSERT INTO orders (id) VALUES ($1)", [order.id]);
    await fencepost.send(payment, { client });
    await client.query("COMMIT");
    client.release();
  },
  drizzle: async ({ fencepost, payment, order }: Given, db: NodePgDatabase) => {
    await db.transaction(async (tx) => {
      await tx.insert(orders).values({ id: order.id });
      await fencepost.send(payment, { client: tx });
    });
  },
  kysely: async ({ fencepost, payment, order }: Given, db: Kysely<{ orders: { id: string } }>) => {
    await db.transaction().execute(async (trx) => {
      await trx.insertInto("orders").values({ id: order.id }).execute();
      await fencepost.send(payment, { client: trx });
    });
  },
  knex: async ({ fencepost, payment, order }: Given, knex: Knex) => {
    await knex.transaction(async (trx) => {
      await trx("orders").insert({ id: order.id });
      await fencepost.send(payment, { client: trx });
    });
  },
  postgresJs: async ({ fencepost, payment, order }: Given, sql: Sql) => {
    await sql.begin(async (sql) => {
      await sql`INSERT INTO orders (id) VALUES (${order.id})`;
      await fencepost.send(payment, { client: sql });
    });
  },
  prisma: async ({ fencepost, payment, order }: Given, prisma: PrismaClient) => {
    await prisma.$transaction(async (tx) => {
      await tx.orders.create({ data: { id: order.id } });
      await fencepost.send(payment, { client: tx });
    });
  },
};
