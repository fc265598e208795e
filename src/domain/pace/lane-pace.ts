/**
 * Timing state of a lane (its "pace"): when it is next compared with its chain, how many nonces above the next one to
 * be mined it sends, which alerts were raised. It is only in memory: the lane's next owner starts anew. Each function
 * takes an event and returns the new pace; nothing else changes it.
 */

import { type Doubt, NO_DOUBT, weigh } from "../chain/doubt.ts";
import { AT_ONCE, at, type BackoffRule, backoffMs, NEVER, type When } from "./when.ts";

export interface LanePace {
  /** True if the chain's identity must be checked: before the first pass, and after every interruption. */
  readonly lookOwed: boolean;
  /** Earliest time of the next check of the chain's identity. */
  readonly nextLook: When;
  readonly doubt: Doubt;
  /** Evidence that the endpoints serve another chain; null if there is none. */
  readonly distrust: string | null;
  /** Monotonic time of the next comparison with the chain; null: not scheduled yet. */
  readonly reconcileAtMs: number | null;
  /** Why the last comparison with the chain failed; null: it succeeded, or there was none. */
  readonly uncompared: string | null;
  readonly counts: CountPace;
  /** Earliest time of the next search for the transaction at a consumed nonce. */
  readonly externalLook: When;
  readonly head: Head;
  readonly window: Window;
  /** Time since which the signer could not pay; null if it can, by the last response of a node. */
  readonly unpaidSince: Date | null;
  readonly signer: SignerPace;
  /**
   * The chain's transaction count has passed all nonces below this one. Gaps below it were used by another program,
   * unless a later count is lower.
   */
  readonly usedBelow: number;
  /** True if the chain may have passed a nonce gap since the count was last read. True for a new owner. */
  readonly holeLookOwed: boolean;
  /**
   * The nonce gap that blocks the lane as of the last check. `sinceMs`: monotonic time of the first count in this term
   * that had not passed the gap.
   */
  readonly blocking: { readonly nonce: number; readonly sinceMs: number } | null;
  /** Nonce gaps that the chain's count has passed, each with the chain's newest block when this was first found. */
  readonly passedHoles: ReadonlyMap<number, number>;
  /**
   * Searches, by nonce, for transactions that callers may have sent at nonces of expired reservations. A nonce is
   * absent if a transaction was found, or no search was made.
   */
  readonly searches: ReadonlyMap<number, Search>;
  /**
   * When a placeholder may next be put at the nonce of an expired reservation. Set when the lane has reached its hourly
   * limit of placeholders.
   */
  readonly nextRepair: When;
  /** True if the alert about too many reserved nonces was raised and is not resolved. */
  readonly pileSaid: boolean;
  /** Time at which a `validUntil` may next have passed: then the database is queried. */
  readonly expiry: When;
  /** Time of the next try to cancel, by id of the transaction that is past its `validUntil` and may have been sent. */
  readonly overdue: ReadonlyMap<string, When>;
}

/** The lane's lowest open transaction, as its owner last saw it. */
export type Head = { readonly kind: "not looked" } | { readonly kind: "none" } | HeadOfLine;

/** The lane's lowest open transaction, which all later nonces wait for, and how long they have waited for it. */
export interface HeadOfLine {
  readonly kind: "at";
  readonly nonce: number;
  /**
   * Monotonic start of its waiting time: when it became the lane's lowest open transaction, or was last repaired or
   * released. It is before this term if the database shows that the transaction was sent earlier.
   */
  readonly sinceMs: number;
  /** Monotonic time at which this term first saw the transaction as the lane's lowest open one. */
  readonly seenMs: number;
  /** Number of sends before its waiting time began: only later sends count. */
  readonly sentBefore: number;
  /** True if an alert was raised because the transaction blocks the later ones. */
  readonly blocks: boolean;
  /** True if it was STUCK or on hold at the last check: once that ends, its waiting time starts anew. */
  readonly stuck: boolean;
}

/** A node's treatment of future nonces, those above the next one to be mined: accepted (open) or refused (closed). */
export type Window =
  | { readonly kind: "open" }
  /**
   * The node refused future nonces `closures` times in a row. Until the monotonic time `untilMs` only the lane's lowest
   * open transaction is sent, then one more nonce as a trial.
   */
  | { readonly kind: "closed"; readonly untilMs: number; readonly closures: number };

/** Availability of the signer (key holder). */
export type SignerPace =
  | { readonly kind: "there" }
  /** The signer failed `failures` times in a row, and gets no request before the monotonic time `untilMs`. */
  | {
      readonly kind: "away";
      readonly untilMs: number;
      readonly failures: number;
      readonly since: Date;
      readonly reason: string;
      /** True if the signer returned something other than the requested signature. */
      readonly lies: boolean;
    };

const OPEN: Window = { kind: "open" };
const THERE: SignerPace = { kind: "there" };
const NO_HEAD: Head = { kind: "none" };

const NO_COUNTS: CountPace = {
  comparedAtMs: null,
  failures: 0,
  proven: 0,
  claim: null,
  unproved: null,
  reported: 0,
  check: null,
  standing: null,
};

/** Pace of a lane that was just acquired. */
export const NEW_LANE_PACE: LanePace = {
  lookOwed: true,
  nextLook: AT_ONCE,
  doubt: NO_DOUBT,
  distrust: null,
  reconcileAtMs: null,
  uncompared: null,
  counts: NO_COUNTS,
  externalLook: AT_ONCE,
  head: { kind: "not looked" },
  window: OPEN,
  unpaidSince: null,
  signer: THERE,
  usedBelow: 0,
  holeLookOwed: true,
  blocking: null,
  passedHoles: new Map(),
  searches: new Map(),
  nextRepair: AT_ONCE,
  pileSaid: false,
  expiry: NEVER,
  overdue: new Map(),
};

/** True if it is unknown whether the endpoint serves the configured chain. */
export function isUnsure({ lookOwed, doubt }: LanePace): boolean {
  return lookOwed || doubt !== NO_DOUBT;
}

export const chainLookOwed = (pace: LanePace): LanePace => (pace.lookOwed ? pace : { ...pace, lookOwed: true });

/** The chain's identity was checked. The argument is the evidence against it; null: none. */
export function chainJudged(pace: LanePace, evidence: string | null, nextLookMs: number): LanePace {
  const doubt = weigh(pace.doubt, evidence === null ? "nothing" : "evidence");
  const distrust = doubt === NO_DOUBT ? null : (evidence ?? pace.distrust);
  return { ...pace, lookOwed: false, nextLook: at(nextLookMs), doubt, distrust };
}

export const comparisonSet = (pace: LanePace, reconcileAtMs: number): LanePace => ({ ...pace, reconcileAtMs });

/** A comparison with the chain ended: `uncompared` is the reason why it failed, null if it succeeded. */
export const compared = (pace: LanePace, uncompared: string | null): LanePace =>
  pace.uncompared === uncompared ? pace : { ...pace, uncompared };

/** The chain has used a nonce, but no endpoint could show the transaction: search again at `nextLookMs`. */
export function externalUseUnseen(pace: LanePace, nextLookMs: number): LanePace {
  return { ...pace, externalLook: at(nextLookMs) };
}

export interface SeenAtHead {
  readonly nonce: number;
  readonly stuck: boolean;
  /** Time since the transaction's first send; 0 if it was never sent. */
  readonly ageMs: number;
  /** Number of sends of the transaction so far. */
  readonly sends: number;
}

/**
 * Updates the lane's lowest open transaction. If it is a new one, its waiting time starts now; at the first check of a
 * term, it starts when the transaction was first sent.
 */
export function headSeen(pace: LanePace, seen: SeenAtHead | null, nowMs: number): LanePace {
  const { head } = pace;
  if (seen === null) return head.kind === "none" ? pace : { ...pace, head: NO_HEAD };
  const { nonce, stuck } = seen;
  if (head.kind !== "at" || head.nonce !== nonce) {
    const isFirst = head.kind === "not looked";
    const sinceMs = nowMs - (isFirst ? seen.ageMs : 0);
    // Do not count the first send, which is no repeat, nor sends made while the transaction waited behind others.
    const sentBefore = isFirst ? Math.min(1, seen.sends) : Math.max(1, seen.sends);
    return { ...pace, head: { kind: "at", nonce, sinceMs, seenMs: nowMs, sentBefore, blocks: false, stuck } };
  }
  if (head.stuck === stuck) return pace;
  return { ...pace, head: stuck ? { ...head, stuck } : { ...head, stuck, sinceMs: nowMs, sentBefore: seen.sends } };
}

/**
 * The lane's lowest open transaction was reported as STUCK. If it is repaired before the next check, its waiting time
 * still starts anew.
 */
export function headStuck(pace: LanePace, nonce: number): LanePace {
  const { head } = pace;
  return head.kind === "at" && head.nonce === nonce ? { ...pace, head: { ...head, stuck: true } } : pace;
}

/** An alert was raised because the lane's lowest open transaction blocks the later ones. */
export function blockReported(pace: LanePace): LanePace {
  return pace.head.kind === "at" ? { ...pace, head: { ...pace.head, blocks: true } } : pace;
}

/** Pauses before a node that refused a future nonce is sent one again. Most such nodes never accept one. */
const REOPEN: BackoffRule = { firstMs: 2_000, mostMs: 600_000 };

/**
 * A node refused a nonce because lower ones are missing: the lower ones are sent first, then this one, with growing
 * pauses.
 */
export function futureRefused(pace: LanePace, { nowMs, random }: { nowMs: number; random: number }): LanePace {
  const { window } = pace;
  if (window.kind === "closed" && nowMs < window.untilMs) return pace;
  const closures = window.kind === "closed" ? window.closures + 1 : 1;
  const untilMs = nowMs + backoffMs(REOPEN, closures, random);
  return { ...pace, window: { kind: "closed", untilMs, closures } };
}

/** A node accepted a nonce above the next one to be mined, so it accepts future nonces. */
export const futureTaken = (pace: LanePace): LanePace =>
  pace.window.kind === "open" ? pace : { ...pace, window: OPEN };

/** How many nonces a node accepts, from the lane's lowest open one on; null: no limit. */
export function openNonces({ window }: LanePace, nowMs: number): number | null {
  if (window.kind === "open") return null;
  return nowMs < window.untilMs ? 1 : 2;
}

export function paymentFailed(pace: LanePace, unpaidSince: Date): LanePace {
  return pace.unpaidSince === null ? { ...pace, unpaidSince } : pace;
}

export const paid = (pace: LanePace): LanePace => (pace.unpaidSince === null ? pace : { ...pace, unpaidSince: null });

/**
 * Pauses before a failed signer gets another request: short at first, because most failures pass, then a few times a
 * minute.
 */
const ASK_SIGNER: BackoffRule = { firstMs: 500, mostMs: 30_000 };

export interface SignerFailure {
  readonly nowMs: number;
  readonly now: Date;
  readonly random: number;
  readonly reason: string;
  readonly lies: boolean;
}

export function signerFailed(pace: LanePace, { nowMs, now, random, reason, lies }: SignerFailure): LanePace {
  const before = pace.signer.kind === "away" ? pace.signer : { failures: 0, since: now, lies };
  const failures = before.failures + 1;
  const untilMs = nowMs + backoffMs(ASK_SIGNER, failures, random);
  // A wrong signature is another trouble than a missing one, with its own code, so it has its own start.
  const since = before.lies === lies ? before.since : now;
  return { ...pace, signer: { kind: "away", untilMs, failures, since, reason, lies } };
}

/** Another node reported the failure first: sets when it began. */
export const signerAwaySince = (pace: LanePace, since: Date): LanePace =>
  pace.signer.kind === "away" ? { ...pace, signer: { ...pace.signer, since } } : pace;

export const signerAnswered = (pace: LanePace): LanePace =>
  pace.signer.kind === "there" ? pace : { ...pace, signer: THERE };

/** Reason why the signer must not be called yet; null if it may be called. */
export function signerAwaited({ signer }: LanePace, nowMs: number): string | null {
  return signer.kind === "away" && nowMs < signer.untilMs ? signer.reason : null;
}

/**
 * A nonce above a gap was mined, so another program used the nonce of the gap. This may be undone by a reorg, so the
 * chain's count must be read.
 */
export const holeLookDue = (pace: LanePace): LanePace => (pace.holeLookOwed ? pace : { ...pace, holeLookOwed: true });

/** The chain's transaction count was read, to decide which nonce gaps it has passed. */
export function countSeen(pace: LanePace, count: number): LanePace {
  return { ...pace, usedBelow: Math.max(count, 0), holeLookOwed: false };
}

/** Records which nonce gaps the chain's count has passed, and at which block. */
export function holesPassed(pace: LanePace, nonces: readonly number[], head: number): LanePace {
  const { passedHoles: before } = pace;
  return { ...pace, passedHoles: new Map(nonces.map((nonce) => [nonce, before.get(nonce) ?? head])) };
}

/** Records at which nonces callers' transactions were searched for, and at which of them one was found. */
export function callersLookedFor(
  pace: LanePace,
  { nonces, found, atMs }: { nonces: readonly number[]; found: ReadonlySet<number>; atMs: number },
): LanePace {
  const searches = new Map<number, Search>();
  for (const nonce of nonces) {
    const search = looked(pace.searches.get(nonce), found.has(nonce), atMs);
    if (search !== undefined) searches.set(nonce, search);
  }
  return { ...pace, searches };
}

/** The lane has reached its limit of repairs for this hour, as counted by the database. */
export const repairsLimited = (pace: LanePace, againAtMs: number): LanePace => ({ ...pace, nextRepair: at(againAtMs) });

/** State of the alert about too many reserved nonces: raised once, and again only after it was resolved. */
export function pileSeen(pace: LanePace, isPiledUp: boolean): LanePace {
  return pace.pileSaid === isPiledUp ? pace : { ...pace, pileSaid: isPiledUp };
}

/** The chain's count, requested at `askedAtMs`, has not passed this nonce gap, so the gap blocks the lane. */
export function blockedBy(pace: LanePace, nonce: number, askedAtMs: number): LanePace {
  return pace.blocking?.nonce === nonce ? pace : { ...pace, blocking: { nonce, sinceMs: askedAtMs } };
}

export const unblocked = (pace: LanePace): LanePace => (pace.blocking === null ? pace : { ...pace, blocking: null });

/**
 * Search for a transaction that a caller may have sent at the nonce of an expired reservation. A placeholder is signed
 * there only if all searches found nothing for as long as the reservation had lasted.
 */
export interface Search {
  /** Monotonic times of the first and the last of several searches in a row that found nothing. */
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** A search got a response. A search without a response changes nothing. */
export function looked(search: Search | undefined, found: boolean, atMs: number): Search | undefined {
  return found ? undefined : { sinceMs: search?.sinceMs ?? atMs, lastMs: atMs };
}

/**
 * True if searches without a result lasted as long as the reservation itself: a transaction that the caller sent would
 * have been found by now.
 */
export function isThrough(search: Search | undefined, ttlMs: number): boolean {
  return search !== undefined && search.lastMs - search.sinceMs >= ttlMs;
}

/**
 * The chain's transaction counts of a signer, compared with its lane since the lane was last read from the database. A
 * reload discards them: an operator may just have corrected a false count.
 */
export interface CountPace {
  /**
   * Monotonic time of the request for the count that was last compared with the cursor; null: request the count again.
   */
  readonly comparedAtMs: number | null;
  /** Number of failed batches. A comparison that began before the last failure does not make the count fresh. */
  readonly failures: number;
  /**
   * Count proved by the last comparison. No nonce below it is given, even if the cursor has not been raised to it yet.
   */
  readonly proven: number;
  /**
   * A mined count above the cursor that is not proved yet, and the newest followed block when it was first reported.
   */
  readonly claim: { readonly count: number; readonly atBlock: number } | null;
  /** A count that was not proved in time, and since when: creates are refused because of it. Shown to people. */
  readonly unproved: { readonly count: number; readonly since: Date } | null;
  /**
   * A mined count reported by a check. If a transaction below it is not mined, another program may have used its nonce.
   * Only a hint.
   */
  readonly reported: number;
  /**
   * Nonce of the lane's lowest open transaction, which is next compared with the chain's count, and the monotonic time
   * of that comparison.
   */
  readonly check: { readonly nonce: number; readonly dueMs: number } | null;
  readonly standing: StandingHead | null;
}

/**
 * The lane's lowest open transaction if it does not advance. `count`: the chain's count at the last check if it showed
 * a skipped nonce, else null. Times are monotonic.
 */
export interface StandingHead {
  readonly head: number;
  /**
   * The chain's newest block when this nonce was first seen as the lane's lowest open one. Only an endpoint that has
   * reached this block may report lower nonces as unused.
   */
  readonly atBlock: number;
  readonly count: number | null;
  readonly dueMs: number;
}

/** Reasons why the lane's next transaction is not signed yet; the first that applies decides. */
export const WINDOW_LIMITS = ["SUSPENDED", "CHAIN_UNSURE", "SIGNER_AWAY", "HELD", "NO_FUTURE_NONCES", "FULL"] as const;
export type WindowLimit = (typeof WINDOW_LIMITS)[number];
