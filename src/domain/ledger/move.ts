/** Changes the state of a transaction by one step of the transition table (domain/transaction/transitions.ts). */
import { type Hole, isFree } from "../nonces/holes.ts";
import { leavesFrom, TRANSITIONS, type TransitionRule } from "../transaction/transitions.ts";
import { isOver } from "./allocate.ts";
import type { Draft } from "./draft.ts";
import { highestAccepted } from "./fold-transaction.ts";
import { judgeStep } from "./guard.ts";
import { isHeld, type Ledger, type LedgerTransaction } from "./ledger.ts";
import { mayGiveUp, mayMove } from "./may-move.ts";
import { BatchRefused, loaded } from "./part.ts";
import type { MoveResult, TransitionItem } from "./writes.ts";

/**
 * Applies a step. `conflict`: the transaction is not in the state that the step was planned from, or the step is not
 * allowed now. `forbidden`: a policy forbids it. In both cases nothing was changed.
 */
export function move(draft: Draft, item: TransitionItem): MoveResult {
  const tx = draft.ledger.transactions.get(item.txId);
  if (tx === null || !tx.live || !fits(tx, item)) return "conflict";
  if (!mayBeTaken(draft, tx, item)) return "conflict";
  if (draft.isCarriedOut(item.decision?.actionKey)) return "conflict";
  refuseIllegal(item);
  const attemptCount = countAttempts(tx, item);
  const way = wayOf(draft.ledger, tx, item);
  if (way === null) return "conflict";
  const verdict = judgeStep(draft, tx, item);
  if ("forbidden" in verdict) return "forbidden";
  if (way.fills !== null) draft.record({ kind: "holeClosed", nonce: way.fills });
  const repeats = isRepeat(tx, item);
  const step = repeats ? tx.steps : tx.steps + 1;
  const acceptedOrdinal = highestAccepted(tx.acceptedOrdinal, item);
  const from = { nonce: way.nonce, live: way.nonce !== null, attemptCount, acceptedOrdinal };
  draft.record({ kind: "moved", item, ...from, step, repeats, at: draft.at });
  noteForeign(draft, item, way.nonce);
  draft.keepActionKey(item.decision?.actionKey);
  for (const charge of verdict.charges) draft.record(charge);
  if (way.leaves !== null) draft.record({ kind: "holeLeft", hole: { ...way.leaves, since: draft.at } });
  complete(draft, tx, item, way.nonce);
  return "applied";
}

/**
 * Refuses steps that are not allowed now. In a lane that waits for a comparison with the chain or for an operator's
 * review, nothing is sent and nothing expires: the database may have lost the record of what was sent. A transaction on
 * hold does not expire, and is sent only by an operator's decision. Only the database's clock decides whether a
 * transaction has expired. An expired transaction gives up its nonce only if no nonce gap would remain; otherwise it is
 * cancelled at its nonce.
 */
function mayBeTaken({ ledger, at }: Draft, tx: LedgerTransaction, item: TransitionItem) {
  const { claim, decision, sendRequested, expires, event } = item;
  const isExpiry = event === "expire" || expires === true;
  if ((claim !== undefined || event === "expire") && isHeld(ledger)) return false;
  if (isExpiry && (tx.heldSince !== null || !isOver(tx.validUntil, at))) return false;
  if (event === "expire" && !mayGiveUp(ledger, tx)) return false;
  return claim === undefined || tx.heldSince === null || decision !== undefined || sendRequested === true;
}

/**
 * Records that another program's transaction is mined at the nonce of our transaction. If it is found again after a
 * reorg, it is not recorded a second time.
 */
function noteForeign(draft: Draft, { txId, attempt }: TransitionItem, nonce: number | null) {
  if (attempt?.foreign !== true || nonce === null) return;
  draft.noteUse({ nonce, through: nonce, txHash: attempt.txHash, txId });
}

function complete(
  draft: Draft,
  { txId, requestId, owner }: LedgerTransaction,
  { completion }: TransitionItem,
  nonce: number | null,
) {
  if (completion === undefined) return;
  draft.record({ kind: "completed", completion: { ...completion, txId, requestId, nonce }, owner, at: draft.at });
}

/**
 * True if the step fits the transaction: the state matches, the transition table allows the sub-state, and a step that
 * keeps the sub-state names the current one.
 */
function fits(tx: LedgerTransaction, item: TransitionItem) {
  const rule: TransitionRule = TRANSITIONS[item.event];
  if (tx.state !== item.from) return false;
  if (rule.to === "same" && tx.subState !== item.subState) return false;
  return leavesFrom(rule, tx);
}

/**
 * Refuses a transition that is not in the transition table: this is a programming error, not a conflict between two
 * writers.
 */
function refuseIllegal({ event, from, to, subState }: TransitionItem) {
  const rule: TransitionRule = TRANSITIONS[event];
  const leads = rule.to === "same" ? to === from : rule.to.state === to && rule.to.subState === subState;
  if (leads && rule.from.includes(from)) return;
  throw new BatchRefused(`the transition ${event} ${from} → ${to}/${subState} is not legal`);
}

/**
 * Checks that attempts are numbered without a gap, and that only a stored attempt is sent, accepted, or given a hash.
 * Returns the number of attempts.
 */
function countAttempts({ txId, attemptCount, attempts }: LedgerTransaction, item: TransitionItem) {
  const { attempt, claim, accepted, identified } = item;
  const count = attemptCount + (attempt === undefined ? 0 : 1);
  if (attempt !== undefined && attempt.ordinal !== count) {
    throw new BatchRefused(`attempt ${attempt.ordinal} of transaction ${txId} does not have the next attempt number`);
  }
  if (item.to === "TRACKING" && count === 0)
    throw new BatchRefused(`transaction ${txId} cannot be tracked: it was never signed`);
  for (const ordinal of [claim, accepted, identified].flatMap((each) => each?.ordinal ?? [])) {
    if (ordinal < 1 || ordinal > count) throw new BatchRefused(`transaction ${txId} has no attempt ${ordinal}`);
  }
  if (identified === undefined) return count;
  // Only an attempt that an RPC node signed has no hash at first.
  const hasAnother = loaded(attempts, `the attempts of transaction ${txId}`).some(
    ({ ordinal, txHash }) => ordinal === identified.ordinal && txHash !== null && txHash !== identified.txHash,
  );
  if (!hasAnother) return count;
  throw new BatchRefused(`attempt ${identified.ordinal} of ${txId} has another hash`);
}

/** Effect of a step on the transaction's nonce and on nonce gaps ("holes"). */
interface Way {
  /** Nonce of the transaction after the step. */
  readonly nonce: number | null;
  /** The nonce gap that the transaction moves down into; null if it does not move. */
  readonly fills: number | null;
  /** The nonce gap that the transaction leaves behind; null if it leaves none. */
  readonly leaves: Omit<Hole, "since"> | null;
}

/**
 * Effect of a step that moves the transaction down to a free nonce, or gives its nonce up. In both cases its old nonce
 * becomes a nonce gap. Null: the nonce to move to is not free.
 */
function wayOf(ledger: Ledger, tx: LedgerTransaction, item: TransitionItem): Way | null {
  const { nonce, txId } = tx;
  const isGivenUp = item.event === "giveUp" || item.event === "expire";
  if (nonce === null || (item.nonce === undefined && !isGivenUp)) {
    return { nonce, fills: null, leaves: null };
  }
  if (tx.attemptCount > 0)
    throw new BatchRefused(`transaction ${txId} cannot leave nonce ${nonce}: it was signed with it`);
  const left = { nonce, reservationId: null };
  if (item.nonce === undefined) {
    const detail = `${txId} gave it up: ${item.reason ?? ""}`;
    return { nonce: null, fills: null, leaves: { ...left, why: "givenUp", detail } };
  }
  if (!mayMove(tx, loaded(ledger.epochFloor, "the floor of the epoch")))
    throw new BatchRefused(`transaction ${txId} may not leave nonce ${nonce}`);
  const hole = item.nonce < nonce ? ledger.holes.get(item.nonce) : null;
  if (hole === null || !isFree(hole)) return null;
  const detail = `${txId} moved down to ${item.nonce}`;
  return { nonce: item.nonce, fills: item.nonce, leaves: { ...left, why: "shiftedDown", detail } };
}

/**
 * True if an event only repeats the last one: then the history row of the last event counts one more repeat. An event
 * with a new payload, or one that makes a private transaction public, is not a repeat.
 */
function isRepeat(tx: LedgerTransaction, item: TransitionItem) {
  return (
    item.decision === undefined &&
    item.attempt === undefined &&
    item.disclosed === undefined &&
    tx.lastEvent === item.event
  );
}
