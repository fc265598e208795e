/** Statistics that cannot be written, on a real node: transactions must go on as if there were none. */
import pg from "pg";
import { describe, expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { type Database, it, OTHER_SIGNER, SIGNER } from "../support/integration.ts";
import { pricedTransfer } from "../support/transfers.ts";

const CALLERS = 40;

/** Several callers send one transaction after the other, and wait for each, until `isOver`. Returns the failures. */
async function sendUntil(url: string, isOver: () => Promise<boolean>) {
  const client = createClient({ url });
  const failures: unknown[] = [];
  let sent = 0;
  const caller = async () => {
    while (!(await isOver())) {
      try {
        await client.waitFor(
          (await client.send({ ...pricedTransfer(sent), signer: sent++ % 2 === 0 ? SIGNER : OTHER_SIGNER })).txId,
        );
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return failures;
}

/** Makes every write of figures fail, and counts the tries: a sequence keeps its count if a transaction is aborted. */
async function refuseFigures(database: Database) {
  await database.query("CREATE SEQUENCE public.tries");
  await database.query(`
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_catalog.nextval('public.tries');
      RAISE EXCEPTION 'permission denied for table figures' USING ERRCODE = '42501';
    END $$`);
  await database.query(`
    CREATE TRIGGER refuse BEFORE INSERT ON fencepost.figures
    FOR EACH STATEMENT EXECUTE FUNCTION public.refuse()`);
  const tries = async () => {
    const [row] = await database.query<{ last_value: string; is_called: boolean }>(
      "SELECT last_value, is_called FROM public.tries",
    );
    return row?.is_called ? Number(row.last_value) : 0;
  };
  return { tries };
}

/** Locks the table of figures, as VACUUM FULL does, and counts the transactions that have waited for it. */
async function lockFigures(database: Database) {
  const locker = new pg.Client(database.url);
  await locker.connect();
  await locker.query("BEGIN; LOCK TABLE fencepost.figures IN ACCESS EXCLUSIVE MODE");
  const seen = new Set<string>();
  const tries = async () => {
    const waiting = await database.query<{ transaction: string }>(
      `SELECT virtualtransaction AS transaction FROM pg_locks
       WHERE relation = 'fencepost.figures'::regclass AND NOT granted`,
    );
    for (const { transaction } of waiting) seen.add(transaction);
    return seen.size;
  };
  return { tries, unlock: () => locker.end() };
}

describe("a node whose statistics cannot be written", () => {
  // protects [Attacks] src/adapters/postgres/stores/sights.ts, src/application/lane/figure-book.ts
  it("fails no write of a transaction", async ({ nodes, simulated, database }) => {
    const node = await nodes.start(simulated.url);
    const { tries } = await refuseFigures(database);
    expect(await sendUntil(node.url, async () => (await tries()) >= 2)).toEqual([]);
    expect(node.stdout()).not.toMatch(/writer\.(failed|busy)|PASS_FAILED/);
  });

  // protects [Attacks] src/adapters/postgres/stores/sights.ts, src/application/lane/figure-book.ts
  it("delays no write of a transaction while their table is locked", async ({ nodes, simulated, database }) => {
    const node = await nodes.start(simulated.url);
    const { tries, unlock } = await lockFigures(database);
    expect(await sendUntil(node.url, async () => (await tries()) >= 2)).toEqual([]);
    expect(node.stdout()).not.toMatch(/writer\.(failed|busy)|PASS_FAILED/);
    await unlock();
  });
});
