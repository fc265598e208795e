/**
 * When a signed transaction is next sent, looked for or judged. None of this is its truth, which the database holds: a new
 * owner begins with `resumedPace` and finds out the rest by sending and looking. Each function says what happened and gives
 * the pace that follows; nothing else changes one.
 */
import { isTaken, type SubmitAnswer, type TakenAnswer } from "../answers.ts";
import { type BackoffRule, backoffMs } from "../backoff.ts";
import type { Hex } from "../lane.ts";
import { AT_ONCE, at, isDue, NEVER, type When } from "./when.ts";

export interface TransactionPace {
  /** Which attempt is to be sent next, and its bytes where they are at hand. Null: none of it is ours to send. */
  readonly sendOrdinal: number | null;
  readonly rawTransaction: Hex | null;
  /** Sending `sendOrdinal` is claimed under this term and has not been tried yet. */
  readonly claimed: boolean;
  readonly send: When;
  /** It is being sent or signed anew. Beside `send`, because that may change meanwhile: a receipt may be found. */
  readonly inHand: boolean;
  /** What a node last said to `sendOrdinal`; null: it is to be sent, or no node has answered under this term. */
  readonly answer: SubmitAnswer | null;
  /** When a node first took `sendOrdinal` under this term, and at which block; null: none has. */
  readonly takenAt: TakenAt | null;
  /** Unanswered or refused submissions in a row. */
  readonly failures: number;
  /** How often in a row `sendOrdinal` was called impossible. */
  readonly rejections: number;
  /** At which of these it was last looked at whether less gas would do; null: at none. */
  readonly gasJudgedAt: number | null;
  readonly look: Look;
  /** Monotonic: the last look that got no answer; null once one did. */
  readonly lookFailedMs: number | null;
  /** While a node may have sent it under a hash that is not known here; null: not begun. */
  readonly search: Search | null;
  /** An operator ordered its next send, which is made also where the transaction is held back. */
  readonly ordered: boolean;
}

/** `ms` is monotonic. */
export interface TakenAt {
  readonly block: number;
  readonly ms: number;
}

/** The look for a receipt by hash. */
export type Look =
  /** Before anything is sent again. */
  | { readonly kind: "owed" }
  /** With the next pass, and nothing waits for it. */
  | { readonly kind: "due" }
  | { readonly kind: "looked"; readonly ms: number };

export const LOOK_OWED: Look = { kind: "owed" };
export const LOOK_DUE: Look = { kind: "due" };

export function lookedAt(ms: number): Look {
  return { kind: "looked", ms };
}

/** Monotonic: since when it is out of sight, and when it is looked for next. */
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
  ordered: false,
};

/** Signed, and not committed yet: nothing of it may leave. */
export function signedPace(sendOrdinal: number, rawTransaction: Hex | null): TransactionPace {
  return { ...UNTRIED, sendOrdinal, rawTransaction, claimed: true };
}

/** As a new owner finds it: looked for first, and sent then where it has no receipt. */
export function resumedPace(sendOrdinal: number | null, isMined: boolean): TransactionPace {
  return { ...UNTRIED, sendOrdinal, send: isMined ? NEVER : AT_ONCE, look: LOOK_OWED };
}

type Pace = TransactionPace;

/** Attempt and claim are durable. */
export const committed = (pace: Pace, look: Look): Pace => ({ ...pace, send: AT_ONCE, look });

/** Its caller named a hash without bytes: it is looked for, and never sent. */
export const namedOnly = (pace: Pace): Pace => ({ ...pace, sendOrdinal: null, claimed: false });

/** The owner before had a node take it. */
export const takenBefore = (pace: Pace, send: When): Pace => ({ ...pace, answer: "alreadyKnown", send });

export const takenInHand = (pace: Pace): Pace => ({ ...pace, inHand: true });

export const laidDown = (pace: Pace): Pace => ({ ...pace, inHand: false });

export const claimed = (pace: Pace): Pace => ({ ...pace, claimed: true });

export const bytesRead = (pace: Pace, rawTransaction: Hex | null): Pace => ({ ...pace, rawTransaction });

/** Sent, and mined before the answer came: whatever that was, it changes nothing but the claim. */
export const spent = (pace: Pace): Pace => ({ ...pace, claimed: false, ordered: false });

/** A node holds the bytes. */
export function taken(pace: Pace, answer: TakenAnswer, send: When, at: TakenAt): Pace {
  const told = { answer, takenAt: pace.takenAt ?? at, failures: 0, rejections: 0, ordered: false };
  return { ...pace, claimed: false, rawTransaction: null, send, ...told };
}

type Refusal = Exclude<SubmitAnswer, TakenAnswer>;

/** How soon each answer is asked again. What waits for others (funds, market, lower nonces) need not hurry. */
const ASK_AGAIN: Readonly<Record<Refusal, BackoffRule>> = {
  unknown: { firstMs: 250, mostMs: 30_000 },
  nonceTooHigh: { firstMs: 250, mostMs: 5_000 },
  nonceConsumed: { firstMs: 1_000, mostMs: 60_000 },
  underpriced: { firstMs: 2_000, mostMs: 60_000 },
  insufficientFunds: { firstMs: 2_000, mostMs: 60_000 },
  rejected: { firstMs: 5_000, mostMs: 300_000 },
};

/** A node did not take it, or did not answer. `nonceConsumed`: one of ours may be mined there, which its receipt tells. */
export function refused(pace: Pace, answer: Refusal, { nowMs, random }: { nowMs: number; random: number }): Pace {
  const failures = pace.failures + 1;
  const send = at(nowMs + backoffMs(ASK_AGAIN[answer], failures, random));
  const rejections = answer === "rejected" ? pace.rejections + 1 : 0;
  const look = answer === "nonceConsumed" ? LOOK_OWED : pace.look;
  return { ...pace, claimed: false, answer, send, failures, rejections, look, ordered: false };
}

/** Other bytes of the same transaction are to be sent. */
export function turnedTo(pace: Pace, sendOrdinal: number): Pace {
  return pace.sendOrdinal === sendOrdinal ? pace : { ...pace, sendOrdinal, rawTransaction: null, takenAt: null };
}

/** When it is sent, where nothing else changes. */
export const scheduled = (pace: Pace, send: When): Pace => ({ ...pace, send });

/** What was said to it counts no more: sent at once, with the patience of a first time. */
export const sentAfresh = (pace: Pace): Pace => ({ ...pace, answer: null, send: AT_ONCE, failures: 0 });

/** An operator wants it sent once, whoever holds it back. */
export const sendOrdered = (pace: Pace): Pace => ({ ...pace, ordered: true });

/** Due, and to be sent as it is. */
export const judged = (pace: Pace): Pace => ({ ...pace, answer: null });

/** Another payload is committed at its nonce. Where it was mined meanwhile, that is sent only if the receipt is withdrawn. */
export function signedAnew(
  pace: Pace,
  { ordinal, rawTransaction }: { readonly ordinal: number; readonly rawTransaction: Hex | null },
  isMined: boolean,
): Pace {
  const send = isMined ? NEVER : AT_ONCE;
  const untried = { answer: null, takenAt: null, failures: 0, rejections: 0, gasJudgedAt: null };
  return { ...pace, sendOrdinal: ordinal, rawTransaction, claimed: true, send, ...untried };
}

export const gasJudged = (pace: Pace, gasJudgedAt: number | null): Pace => ({ ...pace, gasJudgedAt });

export const mined = (pace: Pace): Pace => ({ ...pace, send: NEVER, rawTransaction: null });

/** It may have been refused as a future nonce; its turn has come. */
export function predecessorMined(pace: Pace): Pace {
  return pace.answer === "nonceTooHigh" ? { ...pace, send: AT_ONCE } : pace;
}

/** Its receipt does not count any more. */
export function withdrawn(pace: Pace, sendOrdinal: number | null, nowMs: number): Pace {
  const unsent = { rawTransaction: null, claimed: false, answer: null, takenAt: null, failures: 0 };
  return { ...pace, ...unsent, sendOrdinal, send: AT_ONCE, look: lookedAt(nowMs) };
}

export const lookOwed = (pace: Pace): Pace => (pace.look.kind === "owed" ? pace : { ...pace, look: LOOK_OWED });

/** Somebody wants to know, and waits for the next pass. A look that is owed stays owed. */
export const lookWanted = (pace: Pace): Pace => (pace.look.kind === "looked" ? { ...pace, look: LOOK_DUE } : pace);

export const looked = (pace: Pace, nowMs: number): Pace => ({ ...pace, look: lookedAt(nowMs), lookFailedMs: null });

export const lookFailed = (pace: Pace, nowMs: number): Pace => ({ ...pace, lookFailedMs: nowMs });

/** A node may have sent it, and said no hash: nothing is sent before it is found, or not found for long enough. */
export function sightLost(pace: Pace, nowMs: number): Pace {
  return { ...pace, send: NEVER, claimed: false, ordered: false, search: { sinceMs: nowMs, nextMs: nowMs } };
}

/** It was out of sight before this term began. */
export const searchBegun = (pace: Pace, search: Search): Pace => ({ ...pace, search });

export function searched(pace: Pace, nextMs: number): Pace {
  return pace.search === null ? pace : { ...pace, search: { ...pace.search, nextMs } };
}

/** Found, and ours: it may be mined already. */
export function sightRegained(pace: Pace): Pace {
  return { ...pace, answer: "alreadyKnown", send: AT_ONCE, look: LOOK_OWED };
}

/** Not found for the whole timeout: sent once more at the same nonce. */
export const sightGivenUp = (pace: Pace): Pace => ({ ...pace, answer: "unknown", send: AT_ONCE, search: null });

/** Due to be sent, or judged. What owes a look for its receipt waits for that. */
export function isSendDue(pace: Pace, nowMs: number): boolean {
  return !pace.inHand && pace.sendOrdinal !== null && pace.look.kind !== "owed" && isDue(pace.send, nowMs);
}

/** Taken or underpriced: sending the same again is one way on, another price the other. */
export function awaitsVerdict({ answer }: Pace): boolean {
  return answer !== null && (isTaken(answer) || answer === "underpriced");
}

/** So many blocks, over at least so long, have come since a node took it. */
export function isPassedOver({ takenAt }: Pace, now: TakenAt, least: { blocks: number; ms: number }): boolean {
  return takenAt !== null && now.block - takenAt.block >= least.blocks && now.ms - takenAt.ms >= least.ms;
}

export function isLookDue({ look }: Pace, nowMs: number, everyMs: number): boolean {
  return look.kind !== "looked" || nowMs - look.ms >= everyMs;
}

const TURNS: Readonly<Record<Look["kind"], number>> = { owed: 0, due: 1, looked: 2 };

/** Whose look comes first: what got no answer last time stands behind what did; then what is owed, then the oldest. */
export function byTurn(a: Pace, b: Pace): number {
  if (a.lookFailedMs !== b.lookFailedMs) {
    if (a.lookFailedMs === null) return -1;
    return b.lookFailedMs === null ? 1 : a.lookFailedMs - b.lookFailedMs;
  }
  if (a.look.kind === "looked" && b.look.kind === "looked") return a.look.ms - b.look.ms;
  return TURNS[a.look.kind] - TURNS[b.look.kind];
}
