/**
 * Checks the contract's invariants when all work is done: the database is compared with the canonical chain, block by
 * block.
 */
import { expect } from "vitest";
import type { Database } from "./integration.ts";
import { rpcCall, rpcCalls } from "./rpc-call.ts";
import { type Patience, waitUntil } from "./wait-until.ts";

export interface MinedTransaction {
  readonly hash: string;
  readonly from: string;
  readonly to: string | null;
  readonly nonce: number;
  readonly value: bigint;
  readonly input: string;
  readonly blockNumber: number;
  readonly blockHash: string;
}

interface RpcBlock {
  readonly transactions: readonly Record<
    "hash" | "from" | "nonce" | "value" | "input" | "blockNumber" | "blockHash",
    string
  >[];
}

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

const BLOCKS_AT_ONCE = 100;
const PATIENCE = { everyMs: 50, giveUpMs: 60_000 };

/** Every transaction of the canonical chain, in order. */
export async function minedTransactions(rpcUrl: string): Promise<readonly MinedTransaction[]> {
  const head = Number(await rpcCall<string>(rpcUrl, "eth_blockNumber"));
  const mined: MinedTransaction[] = [];
  for (let from = 0; from <= head; from += BLOCKS_AT_ONCE) {
    const count = Math.min(BLOCKS_AT_ONCE, head - from + 1);
    const numbers = Array.from({ length: count }, (_, index) => `0x${(from + index).toString(16)}`);
    const blocks = await rpcCalls<RpcBlock>(
      rpcUrl,
      numbers.map((number) => ["eth_getBlockByNumber", [number, true]] as const),
    );
    for (const { transactions } of blocks) mined.push(...transactions.map(toMined));
  }
  return mined;
}

function toMined(transaction: RpcBlock["transactions"][number] & { readonly to?: string | null }): MinedTransaction {
  const { hash, from, to = null, nonce, value, input, blockNumber, blockHash } = transaction;
  return {
    hash,
    from,
    to,
    nonce: Number(nonce),
    value: BigInt(value),
    input,
    blockNumber: Number(blockNumber),
    blockHash,
  };
}

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
  const stored = await storedTransactions(database);
  const completions = await storedCompletions(database);
  const mined = await minedTransactions(rpcUrl);
  expect(await lateWrites(database), "I2: writes of an older term behind a takeover").toEqual([]);
  checkNonces(stored);
  checkRequestIds(stored);
  checkChain(stored, mined);
  checkFeed(stored, completions);
  const known = new Set(stored.flatMap(({ hashes }) => hashes));
  expect(
    witnessed.filter((hash) => hash === null || !known.has(hash)),
    "I6: on the wire, not in the database",
  ).toEqual([]);
  return { stored, mined, completions };
}

/**
 * Finds writes of a former owner that are later than the takeover of its lane. A takeover waits for open writes before
 * it records its time. So the fencing token failed to stop any later write.
 */
function lateWrites(database: Database): Promise<readonly unknown[]> {
  return database.query(`
    SELECT h.tx_id, h.event, h.token, l.token AS current, h.last_at, l.acquired_at
    FROM fencepost.every_step h JOIN fencepost.transaction t USING (tx_id)
    JOIN fencepost.lane l ON l.chain_id = t.chain_id AND l.signer = t.signer
    WHERE h.token < l.token AND h.last_at > l.acquired_at`);
}

function checkNonces(stored: readonly StoredTransaction[]): void {
  for (const signer of new Set(stored.map((row) => row.signer))) {
    const nonces = stored
      .filter((row) => row.signer === signer && row.nonce !== null)
      .map(({ nonce }) => Number(nonce));
    const first = nonces[0] ?? 0;
    expect(nonces, `I3: ${signer}'s nonces are consecutive`).toEqual(nonces.map((_, index) => first + index));
  }
}

function checkRequestIds(stored: readonly StoredTransaction[]): void {
  const owned = stored.filter((row) => row.request_id !== null && row.sub_state !== "REQUEST_ID_REUSED");
  const names = owned.map((row) => `${row.signer} ${row.request_id}`);
  expect(new Set(names).size, "I5: one transaction per request id").toBe(names.length);
}

/**
 * Every final transaction in the database is on the canonical chain exactly once, and the chain has no transaction of
 * our signers that the database lacks.
 */
function checkChain(stored: readonly StoredTransaction[], mined: readonly MinedTransaction[]): void {
  const onChain = new Map(mined.map((transaction) => [transaction.hash, transaction]));
  const bound = stored.filter((row) => row.nonce !== null);
  for (const row of bound) {
    expect(row.state, `I4: ${row.tx_id} is final`).toMatch(/^(CONFIRMED|FAILED_FINAL)$/);
    const found = row.hashes.filter((hash) => onChain.has(hash));
    expect(found, `I3: ${row.tx_id} is mined once`).toEqual([row.mined_hash]);
    expect(onChain.get(found[0] as string), `${row.tx_id}'s receipt is canonical`).toMatchObject({
      nonce: Number(row.nonce),
      blockHash: row.block_hash,
      from: row.signer,
    });
  }
  const signers = new Set(bound.map((row) => row.signer));
  const ours = mined.filter(({ from }) => signers.has(from));
  expect(ours.length, "the chain has what the database has").toBe(bound.length);
}

/**
 * Invariant I8: the feed has no gap and a single order, and the last completion of a transaction equals its state. A
 * completion with state STUCK may precede the last one.
 */
function checkFeed(stored: readonly StoredTransaction[], completions: readonly StoredCompletion[]): void {
  expect(completions.map(({ seq }) => Number(seq))).toEqual(completions.map((_, index) => index + 1));
  const said = new Map<string, string[]>();
  for (const { tx_id, state } of completions) said.set(tx_id, [...(said.get(tx_id) ?? []), state]);
  for (const { tx_id, state } of stored) {
    const words = said.get(tx_id) ?? [];
    expect(words.at(-1), `the feed ends with what ${tx_id} is`).toBe(state);
    const settled = words.filter((word) => word !== "STUCK");
    expect(settled.filter((_, index) => index % 2 === 1).every((word) => word === "REORGED")).toBe(true);
  }
}
