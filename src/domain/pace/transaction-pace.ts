/**
 * Timing of a signed transaction: when it is next sent, searched for, or checked for a higher price. This is not its
 * state, which is in the database: a new owner starts with `resumedPace` and learns the rest by sending and checking.
 * Each function takes an event and returns the new timing ("pace"); nothing else changes it.
 */
import { isTaken, type SubmitAnswer, type TakenAnswer } from "../chain/answers.ts";
import type { Hex } from "../lane.ts";
import { AT_ONCE, at, type BackoffRule, backoffMs, isDue, NEVER, type When } from "./when.ts";

export interface TransactionPace {
  /**
   * Number of the attempt to send next; null if there is nothing to send. Its bytes are in `rawTransaction`, if they
   * are in memory.
   */
  readonly sendOrdinal: number | null;
  readonly rawTransaction: Hex | null;
  /**
   * True if the right to send attempt `sendOrdinal` was stored during this ownership of the lane, and the attempt was
   * not sent yet.
   */
  readonly claimed: boolean;
  readonly send: When;
  /**
   * True while the transaction is being sent or signed again. This is separate from `send` because a receipt that is
   * found meanwhile may change `send`.
   */
  readonly inHand: boolean;
  /**
   * Last response of a node to attempt `sendOrdinal`. Null if the attempt must be sent, or if no node has responded to
   * this owner of the lane.
   */
  readonly answer: SubmitAnswer | null;
  /**
   * Time and block at which a node first accepted attempt `sendOrdinal` from this owner of the lane; null: none has.
   */
  readonly takenAt: TakenAt | null;
  /** Number of consecutive submissions that got no response or a refusal. */
  readonly failures: number;
  /** Number of permanent rejections of attempt `sendOrdinal` in a row. */
  readonly rejections: number;
  /** Value of `rejections` when a lower gas limit was last considered; null: never, or it must be considered again. */
  readonly gasJudgedAt: number | null;
  readonly look: Look;
  /** Monotonic time of the last receipt check if it got no response; null if it got one. */
  readonly lookFailedMs: number | null;
  /**
   * Search for a transaction that a node may have sent under an unknown hash; null: none has begun. It stays set after
   * the transaction is found.
   */
  readonly search: Search | null;
  /** True if an operator requested the next send. It is then sent even if the transaction is on hold. */
  readonly sendRequested: boolean;
}

/** Time and block at which a node accepted a transaction. `ms` is monotonic. */
export interface TakenAt {
  readonly block: number;
  readonly ms: number;
}

/** State of the receipt check by hash. */
export type Look =
  /** A receipt check is required before anything is sent again. */
  | { readonly kind: "owed" }
  /** A receipt check is due in the next pass, but nothing waits for it. */
  | { readonly kind: "due" }
  | { readonly kind: "looked"; readonly ms: number };

export const LOOK_OWED: Look = { kind: "owed" };
export const LOOK_DUE: Look = { kind: "due" };

export function lookedAt(ms: number): Look {
  return { kind: "looked", ms };
}

/**
 * Search for a transaction with an unknown hash: since when the hash is unknown, and when the next search is due. Times
 * are monotonic.
 */
export interface Search {
  readonly sinceMs: number;
  readonly nextMs: number;
}

const UNTRIED: TransactionPace = {
  sendOrdinal: null,
  rawTransaction: null,
  claimed: false,
  send: NEVER,
  inHand: false,
  answer: null,
  takenAt: null,
  failures: 0,
  rejections: 0,
  gasJudgedAt: null,
  look: LOOK_DUE,
  lookFailedMs: null,
  search: null,
  sendRequested: false,
};

/** Timing of a transaction that is signed but not committed yet: nothing may be sent. */
export function signedPace(sendOrdinal: number, rawTransaction: Hex | null): TransactionPace {
  return { ...UNTRIED, sendOrdinal, rawTransaction, claimed: true };
}

/** Timing of a transaction for a new owner of the lane: check for a receipt first, then send if there is none. */
export function resumedPace(sendOrdinal: number | null, isMined: boolean): TransactionPace {
  return { ...UNTRIED, sendOrdinal, send: isMined ? NEVER : AT_ONCE, look: LOOK_OWED };
}

type Pace = TransactionPace;

/** Called when the attempt and the right to send it are committed. */
export const committed = (pace: Pace, look: Look): Pace => ({ ...pace, send: AT_ONCE, look });

/** Called if the caller gave only a hash without bytes: the transaction is searched for, and never sent. */
export const namedOnly = (pace: Pace): Pace => ({ ...pace, sendOrdinal: null, claimed: false });

/** Called if a node accepted the transaction under the lane's previous owner. */
export const takenBefore = (pace: Pace, send: When): Pace => ({ ...pace, answer: "alreadyKnown", send });

export const takenInHand = (pace: Pace): Pace => ({ ...pace, inHand: true });

export const laidDown = (pace: Pace): Pace => ({ ...pace, inHand: false });

export const claimed = (pace: Pace): Pace => ({ ...pace, claimed: true });

export const bytesRead = (pace: Pace, rawTransaction: Hex | null): Pace => ({ ...pace, rawTransaction });

/**
 * Called if the transaction was mined before the node's response to a send arrived: the response no longer changes when
 * the transaction is sent.
 */
export const spent = (pace: Pace): Pace => ({ ...pace, claimed: false, sendRequested: false });

/** Called when a node accepted the transaction's bytes. */
export function taken(pace: Pace, answer: TakenAnswer, send: When, at: TakenAt): Pace {
  const accepted = { answer, takenAt: pace.takenAt ?? at, failures: 0, rejections: 0, sendRequested: false };
  return { ...pace, claimed: false, rawTransaction: null, send, ...accepted };
}

type Refusal = Exclude<SubmitAnswer, TakenAnswer>;

/** Pauses before a refused transaction is sent again, by kind of refusal: the first pause and the longest one. */
const ASK_AGAIN: Readonly<Record<Refusal, BackoffRule>> = {
  unknown: { firstMs: 250, mostMs: 30_000 },
  nonceTooHigh: { firstMs: 250, mostMs: 5_000 },
  nonceConsumed: { firstMs: 1_000, mostMs: 60_000 },
  underpriced: { firstMs: 2_000, mostMs: 60_000 },
  insufficientFunds: { firstMs: 2_000, mostMs: 60_000 },
  rejected: { firstMs: 5_000, mostMs: 300_000 },
};

/**
 * Called when a node refused the transaction or did not respond. `nonceConsumed`: one of our attempts may be mined,
 * which its receipt would show.
 */
export function refused(pace: Pace, answer: Refusal, { nowMs, random }: { nowMs: number; random: number }): Pace {
  const failures = pace.failures + 1;
  const send = at(nowMs + backoffMs(ASK_AGAIN[answer], failures, random));
  const rejections = answer === "rejected" ? pace.rejections + 1 : 0;
  const look = answer === "nonceConsumed" ? LOOK_OWED : pace.look;
  return { ...pace, claimed: false, answer, send, failures, rejections, look, sendRequested: false };
}

/** Called when another attempt of the same transaction must be sent. */
export function turnedTo(pace: Pace, sendOrdinal: number): Pace {
  return pace.sendOrdinal === sendOrdinal ? pace : { ...pace, sendOrdinal, rawTransaction: null, takenAt: null };
}

/** Sets the time of the next send, unless another event changes it before. */
export const scheduled = (pace: Pace, send: When): Pace => ({ ...pace, send });

/** Discards earlier responses: the transaction is sent at once, with the waiting times of a first send. */
export const sentAfresh = (pace: Pace): Pace => ({ ...pace, answer: null, send: AT_ONCE, failures: 0 });

/** Called when an operator requested one send of the transaction, even if it is on hold. */
export const requestedSend = (pace: Pace): Pace => ({ ...pace, sendRequested: true });

/** Called when it is time to send the transaction again and it was decided to send it unchanged. */
export const judged = (pace: Pace): Pace => ({ ...pace, answer: null });

/**
 * Called when another payload is committed at the transaction's nonce. If the transaction was mined meanwhile, the
 * payload is sent only if the receipt is withdrawn, as after a reorg.
 */
export function signedAnew(
  pace: Pace,
  { ordinal, rawTransaction }: { ordinal: number; rawTransaction: Hex | null },
  isMined: boolean,
): Pace {
  const send = isMined ? NEVER : AT_ONCE;
  const untried = { answer: null, takenAt: null, failures: 0, rejections: 0, gasJudgedAt: null };
  return { ...pace, sendOrdinal: ordinal, rawTransaction, claimed: true, send, ...untried };
}

export const gasJudged = (pace: Pace, gasJudgedAt: number | null): Pace => ({ ...pace, gasJudgedAt });

export const mined = (pace: Pace): Pace => ({ ...pace, send: NEVER, rawTransaction: null });

/**
 * Called when the transaction before this one is mined. If this one was refused because lower nonces were missing, it
 * is sent at once.
 */
export function predecessorMined(pace: Pace): Pace {
  return pace.answer === "nonceTooHigh" ? { ...pace, send: AT_ONCE } : pace;
}

/** Called when the transaction's receipt was withdrawn, as after a reorg: send it again. */
export function withdrawn(pace: Pace, sendOrdinal: number | null, nowMs: number): Pace {
  const unsent = { rawTransaction: null, claimed: false, answer: null, takenAt: null, failures: 0 };
  return { ...pace, ...unsent, sendOrdinal, send: AT_ONCE, look: lookedAt(nowMs) };
}

export const lookOwed = (pace: Pace): Pace => (pace.look.kind === "owed" ? pace : { ...pace, look: LOOK_OWED });

/** Requests a receipt check in the next pass. A check that must precede the next send stays so. */
export const lookWanted = (pace: Pace): Pace => (pace.look.kind === "looked" ? { ...pace, look: LOOK_DUE } : pace);

export const looked = (pace: Pace, nowMs: number): Pace => ({ ...pace, look: lookedAt(nowMs), lookFailedMs: null });

export const lookFailed = (pace: Pace, nowMs: number): Pace => ({ ...pace, lookFailedMs: nowMs });

/**
 * Called when a node may have sent the transaction without returning a hash. Nothing is sent until it is found, or the
 * timeout has passed.
 */
export function sightLost(pace: Pace, nowMs: number): Pace {
  return { ...pace, send: NEVER, claimed: false, sendRequested: false, search: { sinceMs: nowMs, nextMs: nowMs } };
}

/** Called if the transaction's hash was already unknown before this node acquired the lane. */
export const searchBegun = (pace: Pace, search: Search): Pace => ({ ...pace, search });

export function searched(pace: Pace, nextMs: number): Pace {
  return pace.search === null ? pace : { ...pace, search: { ...pace.search, nextMs } };
}

/** Called when the searched transaction was found and is ours. It may be mined already. */
export function sightRegained(pace: Pace): Pace {
  return { ...pace, answer: "alreadyKnown", send: AT_ONCE, look: LOOK_OWED };
}

/** Called when the transaction was not found within the timeout: it is sent once more at the same nonce. */
export const sightGivenUp = (pace: Pace): Pace => ({ ...pace, answer: "unknown", send: AT_ONCE, search: null });

/**
 * True if it is time to send the transaction again or to decide about its price. If a receipt check is required, that
 * comes first.
 */
export function isSendDue(pace: Pace, nowMs: number): boolean {
  return !pace.inHand && pace.sendOrdinal !== null && pace.look.kind !== "owed" && isDue(pace.send, nowMs);
}

/**
 * True if a node accepted the transaction or refused it as underpriced: the next step is to send it again, possibly at
 * another price.
 */
export function awaitsVerdict({ answer }: Pace): boolean {
  return answer !== null && (isTaken(answer) || answer === "underpriced");
}

/** True if at least this many blocks and at least this time have passed since a node accepted the transaction. */
export function isPassedOver({ takenAt }: Pace, now: TakenAt, least: { blocks: number; ms: number }): boolean {
  return takenAt !== null && now.block - takenAt.block >= least.blocks && now.ms - takenAt.ms >= least.ms;
}

export function isLookDue({ look }: Pace, nowMs: number, everyMs: number): boolean {
  return look.kind !== "looked" || nowMs - look.ms >= everyMs;
}

const TURNS: Readonly<Record<Look["kind"], number>> = { owed: 0, due: 1, looked: 2 };

/**
 * Order of receipt checks. Transactions whose last check got no response come last. Among the others, required checks
 * come first, then the oldest.
 */
export function byTurn(a: Pace, b: Pace): number {
  if (a.lookFailedMs !== b.lookFailedMs) {
    if (a.lookFailedMs === null) return -1;
    return b.lookFailedMs === null ? 1 : a.lookFailedMs - b.lookFailedMs;
  }
  if (a.look.kind === "looked" && b.look.kind === "looked") return a.look.ms - b.look.ms;
  return TURNS[a.look.kind] - TURNS[b.look.kind];
}
