/**
 * Checks the contract's invariants when all work is done: the database is compared with the canonical chain, block by
 * block.
 */
import { expect } from "vitest";
import type { Hash } from "../../src/domain/lane.ts";
import { type AskChain, auditOf, type MinedTransaction, minedOn } from "../../src/main/dev/chaos/facts.ts";
import type { Database } from "./integration.ts";
import { rpcCalls } from "./rpc-call.ts";
import { type Patience, waitUntil } from "./wait-until.ts";

export interface StoredTransaction {
  readonly tx_id: string;
  readonly signer: string;
  readonly request_id: string | null;
  readonly nonce: string | null;
  readonly state: string;
  readonly sub_state: string | null;
  readonly block_hash: string | null;
  readonly mined_hash: string | null;
  readonly hashes: readonly string[];
}

export interface StoredCompletion {
  readonly seq: string;
  readonly tx_id: string;
  readonly state: string;
  readonly settled: boolean;
}

const PATIENCE = { everyMs: 50, giveUpMs: 60_000 };

/** Every transaction of the canonical chain, in order. */
export const minedTransactions = (rpcUrl: string): Promise<readonly MinedTransaction[]> =>
  minedOn((calls) => rpcCalls(rpcUrl, calls));

export function storedTransactions(database: Database): Promise<readonly StoredTransaction[]> {
  return database.query(`
    SELECT t.tx_id, t.signer, t.request_id, t.nonce, t.state, t.sub_state, r.block_hash, r.tx_hash AS mined_hash,
           ARRAY(SELECT a.tx_hash FROM fencepost.attempt a WHERE a.tx_id = t.tx_id ORDER BY a.ordinal) AS hashes
    FROM fencepost.transaction t LEFT JOIN fencepost.receipt r USING (tx_id)
    ORDER BY t.chain_id, t.signer, t.nonce`);
}

export function storedCompletions(database: Database): Promise<readonly StoredCompletion[]> {
  return database.query("SELECT seq, tx_id, state, settled FROM fencepost.completion ORDER BY seq");
}

/** Resolves when `count` transactions exist and all are settled. */
export async function untilSettled(database: Database, count: number, patience: Patience = {}): Promise<void> {
  let last = "";
  const look = async () => {
    const rows = await database.query<{ state: string; count: number }>(
      "SELECT state, count(*)::int AS count FROM fencepost.transaction GROUP BY state ORDER BY state",
    );
    last = JSON.stringify(rows);
    const settled = rows.filter(({ state }) => state === "CONFIRMED" || state === "FAILED_FINAL");
    return settled.length === rows.length && settled.reduce((sum, row) => sum + row.count, 0) === count;
  };
  await waitUntil(look, `${count} transactions are settled`, { ...PATIENCE, ...patience }).catch((error: Error) => {
    throw new Error(`${error.message}; there are ${last}`);
  });
}

/**
 * Resolves when all transactions are settled and the node has read the chain's newest branch, so that every receipt is
 * in a canonical block.
 */
export async function untilAtRest({ database, rpcUrl }: AuditSubject, count: number): Promise<void> {
  const look = async () => {
    const rows = await database.query<{ settled: boolean; number: string | null; hash: string | null }>(
      `SELECT t.state IN ('CONFIRMED', 'FAILED_FINAL') AS settled, to_hex(r.block_number) AS number, r.block_hash AS hash
       FROM fencepost.transaction t LEFT JOIN fencepost.receipt r USING (tx_id)`,
    );
    if (rows.length !== count || rows.some(({ settled, hash }) => !settled || hash === null)) return false;
    const calls = rows.map(({ number }) => ["eth_getBlockByNumber", [`0x${number}`, false]] as const);
    const blocks = await rpcCalls<{ hash: string } | null>(rpcUrl, calls);
    return rows.every(({ hash }, index) => hash === blocks[index]?.hash);
  };
  await waitUntil(look, "what is settled is on the canonical chain", PATIENCE);
}

export interface AuditSubject {
  readonly database: Database;
  readonly rpcUrl: string;
  /** Hashes of every transaction that arrived at the chain, if the chain keeps a list. */
  readonly witnessed?: readonly (string | null)[];
}

export interface Audit {
  readonly stored: readonly StoredTransaction[];
  readonly mined: readonly MinedTransaction[];
  readonly completions: readonly StoredCompletion[];
}

export async function audit({ database, rpcUrl, witnessed = [] }: AuditSubject): Promise<Audit> {
  const ask: AskChain = (calls) => rpcCalls(rpcUrl, calls);
  const sent = witnessed as readonly (Hash | null)[];
  const { mined, violations } = await auditOf(database.query, { ask, sent, foreign: new Set() });
  expect(violations).toEqual([]);
  const [stored, completions] = [await storedTransactions(database), await storedCompletions(database)];
  const named = stored.filter((row) => row.request_id !== null && row.sub_state !== "REQUEST_ID_REUSED");
  const names = named.map((row) => `${row.signer} ${row.request_id}`);
  expect(new Set(names).size, "I5: one row per request id, also of those without a nonce").toBe(names.length);
  expect(
    completions.map(({ seq }) => Number(seq)),
    "I8: no number is skipped, as no epoch began",
  ).toEqual(completions.map((_, index) => index + 1));
  return { stored, mined, completions };
}
