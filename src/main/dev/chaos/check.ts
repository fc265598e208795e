/**
 * Checks the invariants of the contract when all work is done. The facts may come from the simulation, from a test's
 * PostgreSQL and chain, or from a campaign of `fencepost chaos`.
 */
import { isDeepStrictEqual } from "node:util";
import { grouped } from "../../../domain/grouped.ts";
import type { Address, Hash } from "../../../domain/lane.ts";
import type { AttemptKind, Receipt } from "../../../domain/transaction/transaction.ts";
import { type CompletionState, isSettled, type State } from "../../../domain/transaction/transitions.ts";

export interface AttemptFact {
  /** Null: signed by a node that does not show the hash. */
  readonly hash: Hash | null;
  readonly kind: AttemptKind;
  /** True if another program used the nonce. */
  readonly foreign: boolean;
}

/** Receipt of a transaction. All fields are compared, also further ones that a source has. */
export type ReceiptFact = Pick<Receipt, "txHash" | "blockHash" | "status">;

export interface StepFact {
  readonly event: string;
  readonly fromState: State | null;
  readonly state: State;
  readonly token: number | null;
}

export interface TransactionFact {
  readonly txId: string;
  readonly signer: Address;
  readonly requestId: string | null;
  readonly nonce: number | null;
  readonly state: State;
  readonly subState: string | null;
  readonly validUntil: Date | null;
  readonly expiredAt: Date | null;
  readonly receipt: ReceiptFact | null;
  readonly attempts: readonly AttemptFact[];
  readonly history: readonly StepFact[];
}

export interface CompletionFact {
  readonly seq: number;
  readonly txId: string;
  readonly state: CompletionState;
  readonly settled: boolean;
}

export interface Facts {
  readonly transactions: readonly TransactionFact[];
  /** The feed, in its order. */
  readonly completions: readonly CompletionFact[];
  /** Hashes of all bytes that arrived at an endpoint; null: bytes without a signature of ours. */
  readonly sent: readonly (Hash | null)[];
  /** Nonces that another program used and that belong to no transaction of ours. */
  readonly elsewhere: (signer: Address) => readonly number[];
  /** Receipt on the canonical chain; null if there is none. */
  readonly mined: (hash: Hash) => ReceiptFact | null;
}

/** Sentences about everything that is false, each with the invariant that it breaks; empty if all of them hold. */
export function violationsOf(facts: Facts): readonly string[] {
  const { transactions } = facts;
  const numbered = transactions.filter(({ nonce }) => nonce !== null);
  return [
    ...nonceTroubles(numbered, facts),
    ...wireTroubles(facts),
    ...requestTroubles(numbered),
    ...numbered.flatMap((each) => [...outcomeTroubles(each, facts), ...historyTroubles(each)]),
    ...transactions.filter(({ nonce }) => nonce === null).flatMap(unsentTroubles),
    ...feedTroubles(facts),
  ];
}

/** Names of the checked facts that are false. */
function broken(checked: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.keys(checked).filter((fact) => checked[fact] !== true);
}

function nonceTroubles(numbered: readonly TransactionFact[], { elsewhere }: Facts): readonly string[] {
  const bySigner = grouped(numbered, ({ signer }) => signer);
  return [...bySigner].flatMap(([signer, own]) => {
    const nonces = [...own.map(({ nonce }) => nonce as number), ...elsewhere(signer)].sort((a, b) => a - b);
    const first = nonces[0] ?? 0;
    const wrong = nonces.findIndex((nonce, index) => nonce !== first + index);
    return wrong < 0 ? [] : [`I3: nonce ${nonces[wrong]} of ${signer} stands where ${first + wrong} belongs`];
  });
}

function wireTroubles({ transactions, sent }: Facts): readonly string[] {
  const known = new Set(transactions.flatMap(({ attempts }) => attempts.map(({ hash }) => hash)));
  const unknown = sent.filter((hash) => hash === null || !known.has(hash));
  return [...new Set(unknown)].map((hash) => `I6: ${hash} was sent and is not in the database`);
}

/** A row without a nonce had no effect: several rows that callers wrote into the intake may end so under one request id. */
function requestTroubles(numbered: readonly TransactionFact[]): readonly string[] {
  const named = numbered.filter(({ requestId }) => requestId !== null);
  const byRequest = grouped(named, ({ signer, requestId }) => `${signer} ${requestId}`);
  return [...byRequest]
    .filter(([, own]) => own.length > 1)
    .map(([request, own]) => `I5: request ${request} has ${own.length} transactions`);
}

/** Invariants I3 and I4: the transaction is mined once and final, and the database agrees with the chain. */
function outcomeTroubles(transaction: TransactionFact, { mined }: Facts): readonly string[] {
  const { txId, state, subState, attempts, receipt, validUntil, expiredAt } = transaction;
  const receipts = attempts.flatMap(({ hash }) => (hash === null ? [] : (mined(hash) ?? [])));
  const [onChain] = receipts;
  const attempt = attempts.find(({ hash }) => hash === onChain?.txHash);
  const used = attempt?.kind === "cancel" || attempt?.kind === "placeholder";
  const succeeded = onChain?.status === "success" && !used && attempt?.foreign !== true;
  return broken({
    [`I3: ${txId} is mined once, not ${receipts.length} times`]: receipts.length === 1,
    [`I4: ${txId} is final, not ${state}`]: isSettled(state),
    [`I7: ${txId} has the receipt of the canonical chain`]: isDeepStrictEqual(receipt, onChain),
    [`I4: ${txId} is what its receipt says, not ${state}`]: (state === "CONFIRMED") === succeeded,
    [`I4: ${txId} says whose payload was mined, not ${subState}`]:
      (subState === "REPLACED") === (succeeded && attempt?.kind === "replace") &&
      (subState === "CANCELLED" || subState === "EXPIRED") === used,
    [`I4: ${txId} is EXPIRED by its caller's word, in its time, and by nobody else's`]:
      (subState === "EXPIRED") === (used && expiredAt !== null) &&
      (expiredAt === null || (validUntil !== null && validUntil <= expiredAt)),
  });
}

function unsentTroubles({ txId, state }: TransactionFact): readonly string[] {
  return broken({ [`I4: ${txId} has no nonce and ends as FAILED_FINAL, not ${state}`]: state === "FAILED_FINAL" });
}

/**
 * Invariants I1 and I2: fencing tokens only grow, and each state change begins in the state in which the previous one
 * ended.
 */
function historyTroubles({ txId, history, state }: TransactionFact): readonly string[] {
  const tokens = history.flatMap(({ token }) => (token === null ? [] : [token]));
  return broken({
    [`I2: tokens only grow in the history of ${txId}: ${tokens}`]: tokens.every(
      (token, index) => token >= (tokens[index - 1] ?? 0),
    ),
    [`I2: the history of ${txId} has no gap`]: history.every(
      ({ fromState }, index) => index === 0 || fromState === history[index - 1]?.state,
    ),
    [`I2: the history of ${txId} ends where it is, at ${state}`]: history.at(-1)?.state === state,
  });
}

/** A new epoch that begins because commits may be lost skips a million numbers. */
const EPOCH_SKIP = 1_000_000;

/**
 * Invariant I8: the feed has no gap. A transaction has one final completion, unless a reorg withdrew it. Completions
 * that may still change are marked as unsettled.
 */
function feedTroubles({ transactions, completions }: Facts): readonly string[] {
  const jump = completions.findIndex(({ seq }, index) => {
    const step = seq - (completions[index - 1]?.seq ?? 0);
    return step !== 1 && step < EPOCH_SKIP;
  });
  const gaps =
    jump < 0 ? [] : [`I8: the feed goes from ${completions[jump - 1]?.seq ?? 0} to ${completions[jump]?.seq}`];
  const byTransaction = grouped(completions, ({ txId }) => txId);
  const words = transactions.flatMap(({ txId, state }) => {
    const said = byTransaction.get(txId) ?? [];
    return [
      ...broken({ [`I8: the feed ends with what ${txId} is, ${state}`]: said.at(-1)?.state === state }),
      ...said.flatMap((completion, index) => {
        const before = said[index - 1]?.state ?? null;
        const word = `I8: word ${index} about ${txId}, ${completion.state} after ${before}`;
        return broken({
          [`${word}, may follow`]: MAY_FOLLOW[completion.state].includes(before),
          [`${word}, is settled or not`]:
            completion.settled === (completion.state !== "REORGED" && isSettled(completion.state)),
        });
      }),
    ];
  });
  return [...gaps, ...words];
}

const OPEN: readonly (CompletionState | null)[] = [null, "STUCK", "REORGED"];
const MAY_FOLLOW: Readonly<Record<CompletionState, readonly (CompletionState | null)[]>> = {
  CONFIRMED: OPEN,
  FAILED_FINAL: OPEN,
  STUCK: OPEN,
  REORGED: ["CONFIRMED", "FAILED_FINAL"],
};
