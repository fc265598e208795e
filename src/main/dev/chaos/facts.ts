/** Reads from a database and a chain what `check.ts` judges. */
import type { Address, Hash } from "../../../domain/lane.ts";
import type { AttemptKind } from "../../../domain/transaction/transaction.ts";
import type { CompletionState, State } from "../../../domain/transaction/transitions.ts";
import {
  type AttemptFact,
  type CompletionFact,
  type Facts,
  type ReceiptFact,
  type StepFact,
  type TransactionFact,
  violationsOf,
} from "./check.ts";

export type Query = <Row>(sql: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

interface TransactionRow {
  readonly tx_id: string;
  readonly signer: Address;
  readonly request_id: string | null;
  readonly nonce: string | null;
  readonly state: State;
  readonly sub_state: string | null;
  readonly valid_until: Date | null;
  readonly expired_at: Date | null;
  readonly receipt: ReceiptFact | null;
  readonly attempts: readonly { readonly hash: Hash | null; readonly kind: AttemptKind; readonly foreign: boolean }[];
  readonly history: readonly StepFact[];
}

const TRANSACTIONS = `
  SELECT t.tx_id, t.signer, t.request_id, t.nonce, t.state, t.sub_state, t.valid_until, t.expired_at,
    (SELECT jsonb_build_object('txHash', r.tx_hash, 'blockHash', r.block_hash, 'status', r.status)
       FROM fencepost.receipt r WHERE r.tx_id = t.tx_id) AS receipt,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('hash', a.tx_hash, 'kind', a.kind, 'foreign', a.is_foreign)
       ORDER BY a.ordinal), '[]') FROM fencepost.attempt a WHERE a.tx_id = t.tx_id) AS attempts,
    (SELECT jsonb_agg(jsonb_build_object('event', h.event, 'fromState', h.from_state, 'state', h.state,
       'token', h.token) ORDER BY h.ordinal) FROM fencepost.every_step h WHERE h.tx_id = t.tx_id) AS history
  FROM fencepost.transaction t ORDER BY t.signer, t.nonce`;

async function transactionsOf(query: Query): Promise<readonly TransactionFact[]> {
  const rows = await query<TransactionRow>(TRANSACTIONS);
  return rows.map(({ tx_id, signer, request_id, nonce, state, sub_state, valid_until, expired_at, ...parts }) => ({
    ...{ txId: tx_id, signer, requestId: request_id, nonce: nonce === null ? null : Number(nonce) },
    ...{ state, subState: sub_state, validUntil: valid_until, expiredAt: expired_at },
    receipt: parts.receipt,
    attempts: parts.attempts satisfies readonly AttemptFact[],
    history: parts.history,
  }));
}

async function completionsOf(query: Query): Promise<readonly CompletionFact[]> {
  const rows = await query<{ seq: string; txId: string; state: CompletionState; settled: boolean }>(
    'SELECT seq, tx_id AS "txId", state, settled FROM fencepost.completion ORDER BY seq',
  );
  return rows.map(({ seq, ...rest }) => ({ ...rest, seq: Number(seq) }));
}

/** A transaction on the canonical chain. */
export interface MinedTransaction {
  readonly hash: Hash;
  readonly from: Address;
  readonly to: Address | null;
  readonly nonce: number;
  readonly value: bigint;
  readonly input: string;
  readonly blockNumber: number;
  readonly blockHash: Hash;
  readonly status: ReceiptFact["status"];
}

/** Asks a chain for the results of several calls. */
export type AskChain = (
  calls: readonly (readonly [method: string, params: readonly unknown[]])[],
) => Promise<readonly unknown[]>;

interface RpcTransaction {
  readonly hash: Hash;
  readonly from: Address;
  readonly to?: Address | null;
  readonly nonce: string;
  readonly value: string;
  readonly input: string;
  readonly blockNumber: string;
  readonly blockHash: Hash;
}

const CALLS_AT_ONCE = 100;

/** Every transaction of the canonical chain, in order. */
export async function minedOn(ask: AskChain): Promise<readonly MinedTransaction[]> {
  const askAll = async (calls: Parameters<AskChain>[0]) => {
    const results: unknown[] = [];
    for (let from = 0; from < calls.length; from += CALLS_AT_ONCE)
      results.push(...(await ask(calls.slice(from, from + CALLS_AT_ONCE))));
    return results;
  };
  const [head] = await ask([["eth_blockNumber", []]]);
  const numbers = Array.from({ length: Number(head) + 1 }, (_, number) => `0x${number.toString(16)}`);
  const blocks = await askAll(numbers.map((number) => ["eth_getBlockByNumber", [number, true]] as const));
  const transactions = (blocks as { readonly transactions: readonly RpcTransaction[] }[]).flatMap(
    (block) => block.transactions,
  );
  const receipts = await askAll(transactions.map(({ hash }) => ["eth_getTransactionReceipt", [hash]] as const));
  return transactions.map(({ hash, from, to = null, input, blockHash, ...numbers }, index) => ({
    ...{ hash, to, input, blockHash, from: from.toLowerCase() as Address },
    nonce: Number(numbers.nonce),
    value: BigInt(numbers.value),
    blockNumber: Number(numbers.blockNumber),
    status: (receipts[index] as { readonly status: string }).status === "0x1" ? "success" : "reverted",
  }));
}

/**
 * Writes of a former owner that are later than the takeover of its lane. A takeover waits for open writes before it
 * records its time, so the fencing token failed to stop any later one.
 */
const LATE_WRITES = `
  SELECT h.tx_id, h.event, h.token, l.token AS current
  FROM fencepost.every_step h JOIN fencepost.transaction t USING (tx_id)
  JOIN fencepost.lane l ON l.chain_id = t.chain_id AND l.signer = t.signer
  WHERE h.token < l.token AND h.last_at > l.acquired_at`;

interface LateWrite {
  readonly tx_id: string;
  readonly event: string;
  readonly token: string;
  readonly current: string;
}

interface Sources {
  readonly ask: AskChain;
  /** Hashes of all bytes that arrived at an endpoint. */
  readonly sent: readonly (Hash | null)[];
  /** Hashes of transactions that the test itself sent with a signer's key, as another program would. */
  readonly foreign: ReadonlySet<Hash>;
}

/** Reads database and chain, and judges them. */
export async function auditOf(query: Query, { ask, sent, foreign }: Sources) {
  const [transactions, completions] = [await transactionsOf(query), await completionsOf(query)];
  const late = await query<LateWrite>(LATE_WRITES);
  const mined = await minedOn(ask);
  const byHash = new Map(mined.map((each) => [each.hash, each]));
  const owners = new Map(transactions.flatMap((each) => each.attempts.map(({ hash }) => [hash, each] as const)));
  const signers = new Set(transactions.map(({ signer }) => signer));
  const strangers = mined.filter(({ hash, from }) => signers.has(from) && !owners.has(hash));
  const facts: Facts = {
    ...{ transactions, completions, sent },
    elsewhere: (signer) => strangers.filter(({ from }) => from === signer).map(({ nonce }) => nonce),
    mined: (hash) => {
      const found = byHash.get(hash);
      return found === undefined ? null : { txHash: hash, blockHash: found.blockHash, status: found.status };
    },
  };
  const violations = [
    ...violationsOf(facts),
    ...late.map(
      ({ tx_id, event, ...row }) => `I2: ${event} of ${tx_id} has token ${row.token} after ${row.current} took over`,
    ),
    ...mined.flatMap(({ hash, from, nonce }) => {
      const owner = owners.get(hash);
      if (owner === undefined || (owner.signer === from && owner.nonce === nonce)) return [];
      return [`I3: ${hash} of ${owner.txId} is on the chain as nonce ${nonce} of ${from}`];
    }),
    ...strangers
      .filter(({ hash }) => !foreign.has(hash))
      .map(({ hash }) => `I6: ${hash} is on the chain and not in the database`),
  ];
  return { facts, mined, violations };
}
