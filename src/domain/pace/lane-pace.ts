/**
 * Timing of a lane: when it is next compared with its chain, how far ahead of its head it sends, which alerts were
 * raised. All of it was learned under this term, and the next owner learns it again. Each function takes an event and
 * returns the new pace; nothing else changes it.
 */

import { type Doubt, NO_DOUBT, weigh } from "../chain/doubt.ts";
import { AT_ONCE, at, type BackoffRule, backoffMs, NEVER, type When } from "./when.ts";

export interface LanePace {
  /** The identity of the chain must be checked: before the first pass, and after every break. */
  readonly lookOwed: boolean;
  /** Earliest time of the next check. */
  readonly nextLook: When;
  readonly doubt: Doubt;
  /** Evidence against the chain, while there is doubt. */
  readonly distrust: string | null;
  /** Monotonic time of the next comparison with the chain; null: not scheduled yet. */
  readonly reconcileAtMs: number | null;
  /** Why the last comparison with the chain got no answer; null: it got one, or there was none. */
  readonly uncompared: string | null;
  readonly counts: CountPace;
  /** Earliest time of the next search for the transaction at a consumed nonce. */
  readonly externalLook: When;
  readonly head: Head;
  readonly window: Window;
  /** Since when the signer could not pay; null if it can, by the last answer of a node. */
  readonly unpaidSince: Date | null;
  readonly signer: SignerPace;
  /** The chain's count has passed everything below: holes there were used by another program, or will be refuted. */
  readonly usedBelow: number;
  /** The chain may have passed a hole since the last count. True for a new owner. */
  readonly holeLookOwed: boolean;
  /**
   * The hole that blocks the lane at the last check, and the monotonic time since which it does, by the first count of
   * this term that had not passed it.
   */
  readonly blocking: { readonly nonce: number; readonly sinceMs: number } | null;
  /** Head at which each hole was first found passed by the chain, while that lasts. */
  readonly passedHoles: ReadonlyMap<number, number>;
  /**
   * Searches by nonce, for transactions of callers whose reservations expired. Absent if one was found, or no search
   * was made.
   */
  readonly searches: ReadonlyMap<number, Search>;
  /** The lane has paid for its hourly limit of placeholders at expired reservations: earliest next try. */
  readonly nextRepair: When;
  /** The alert about too many reserved nonces was raised and is not resolved. */
  readonly pileSaid: boolean;
  /** Time at which a `validUntil` may next be over: then the database is asked. */
  readonly expiry: When;
  /** Next try to cancel, by id of a transaction that is past its `validUntil` and may have been sent. */
  readonly overdue: ReadonlyMap<string, When>;
}

/** State at the lane loop's last look under this term. */
export type Head = { readonly kind: "not looked" } | { readonly kind: "none" } | HeadOfLine;

/** The transaction that everything behind it waits for, and how long it has been the head. */
export interface HeadOfLine {
  readonly kind: "at";
  readonly nonce: number;
  /** Monotonic; before this term if the database says that it was sent earlier. */
  readonly sinceMs: number;
  /** Monotonic time at which this term first saw it at the head. */
  readonly seenMs: number;
  /** Number of sends when its patience began: only later ones count. */
  readonly sentBefore: number;
  /** The head was reported for blocking others. */
  readonly blocks: boolean;
  /** It was STUCK at the last look: once repaired, it gets the lane's patience anew. */
  readonly stuck: boolean;
}

/** How many nonces ahead of the head a node accepts. */
export type Window =
  | { readonly kind: "open" }
  /**
   * Future nonces were refused this many times in a row: until this monotonic time only the head is sent, then one more
   * to try.
   */
  | { readonly kind: "closed"; readonly untilMs: number; readonly closures: number };

/** State of the signer. */
export type SignerPace =
  | { readonly kind: "there" }
  /** The signer failed `failures` times in a row, and is not asked before the monotonic time `untilMs`. */
  | {
      readonly kind: "away";
      readonly untilMs: number;
      readonly failures: number;
      readonly since: Date;
      readonly reason: string;
      /** The signer returns something else than the requested signature. */
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

/** Pace of a lane that was just taken. */
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

/** True if it is unknown whether the chain that answers is ours. */
export function isUnsure({ lookOwed, doubt }: LanePace): boolean {
  return lookOwed || doubt !== NO_DOUBT;
}

export const chainLookOwed = (pace: LanePace): LanePace => (pace.lookOwed ? pace : { ...pace, lookOwed: true });

/** The chain was checked, with this evidence against it; null: none. */
export function chainJudged(pace: LanePace, evidence: string | null, nextLookMs: number): LanePace {
  const doubt = weigh(pace.doubt, evidence === null ? "nothing" : "evidence");
  const distrust = doubt === NO_DOUBT ? null : (evidence ?? pace.distrust);
  return { ...pace, lookOwed: false, nextLook: at(nextLookMs), doubt, distrust };
}

export const comparisonSet = (pace: LanePace, reconcileAtMs: number): LanePace => ({ ...pace, reconcileAtMs });

/** The comparison got an answer, or none for this reason. */
export const compared = (pace: LanePace, uncompared: string | null): LanePace =>
  pace.uncompared === uncompared ? pace : { ...pace, uncompared };

/** No endpoint could show the transaction at a consumed nonce. */
export function externalUseUnseen(pace: LanePace, nextLookMs: number): LanePace {
  return { ...pace, externalLook: at(nextLookMs) };
}

export interface SeenAtHead {
  readonly nonce: number;
  readonly stuck: boolean;
  /** How long it had been sent when this term began. */
  readonly ageMs: number;
  /** Number of sends so far. */
  readonly sends: number;
}

/** A transaction that becomes head now starts now; one that was head at the first look keeps its age. */
export function headSeen(pace: LanePace, seen: SeenAtHead | null, nowMs: number): LanePace {
  const { head } = pace;
  if (seen === null) return head.kind === "none" ? pace : { ...pace, head: NO_HEAD };
  const { nonce, stuck } = seen;
  if (head.kind !== "at" || head.nonce !== nonce) {
    const isFirst = head.kind === "not looked";
    const sinceMs = nowMs - (isFirst ? seen.ageMs : 0);
    // The first send is no repeat, and sends while it waited behind others do not count.
    const sentBefore = isFirst ? Math.min(1, seen.sends) : Math.max(1, seen.sends);
    return { ...pace, head: { kind: "at", nonce, sinceMs, seenMs: nowMs, sentBefore, blocks: false, stuck } };
  }
  if (head.stuck === stuck) return pace;
  return { ...pace, head: stuck ? { ...head, stuck } : { ...head, stuck, sinceMs: nowMs, sentBefore: seen.sends } };
}

/** It was reported as STUCK: if it is repaired before the next look, it still gets patience anew. */
export function headStuck(pace: LanePace, nonce: number): LanePace {
  const { head } = pace;
  return head.kind === "at" && head.nonce === nonce ? { ...pace, head: { ...head, stuck: true } } : pace;
}

/** The head was reported for blocking others. */
export function blockReported(pace: LanePace): LanePace {
  return pace.head.kind === "at" ? { ...pace, head: { ...pace.head, blocks: true } } : pace;
}

/** When a node that refused a future nonce gets one again. Most such nodes never accept one. */
const REOPEN: BackoffRule = { firstMs: 2_000, mostMs: 600_000 };

/** A node refused a nonce because lower ones are missing: those are sent first, then this one, with growing pauses. */
export function futureRefused(pace: LanePace, { nowMs, random }: { nowMs: number; random: number }): LanePace {
  const { window } = pace;
  if (window.kind === "closed" && nowMs < window.untilMs) return pace;
  const closures = window.kind === "closed" ? window.closures + 1 : 1;
  const untilMs = nowMs + backoffMs(REOPEN, closures, random);
  return { ...pace, window: { kind: "closed", untilMs, closures } };
}

/** A node accepted a nonce beyond the head: it takes future nonces. */
export const futureTaken = (pace: LanePace): LanePace =>
  pace.window.kind === "open" ? pace : { ...pace, window: OPEN };

/** Number of nonces from the head on that a node accepts; null: no limit. */
export function openNonces({ window }: LanePace, nowMs: number): number | null {
  if (window.kind === "open") return null;
  return nowMs < window.untilMs ? 1 : 2;
}

export function paymentFailed(pace: LanePace, unpaidSince: Date): LanePace {
  return pace.unpaidSince === null ? { ...pace, unpaidSince } : pace;
}

export const paid = (pace: LanePace): LanePace => (pace.unpaidSince === null ? pace : { ...pace, unpaidSince: null });

/**
 * Pauses before a failed signer is asked again: short at first, because most failures pass, then a few times a minute.
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
  const before = pace.signer.kind === "away" ? pace.signer : { failures: 0, since: now };
  const failures = before.failures + 1;
  const untilMs = nowMs + backoffMs(ASK_SIGNER, failures, random);
  return { ...pace, signer: { kind: "away", untilMs, failures, since: before.since, reason, lies } };
}

export const signerAnswered = (pace: LanePace): LanePace =>
  pace.signer.kind === "there" ? pace : { ...pace, signer: THERE };

/** Null if it may be asked; else the reason why not yet. */
export function signerAwaited({ signer }: LanePace, nowMs: number): string | null {
  return signer.kind === "away" && nowMs < signer.untilMs ? signer.reason : null;
}

/**
 * A nonce above a hole was mined: another program used the lower ones. A reorg may be in progress, so the count is
 * read.
 */
export const holeLookDue = (pace: LanePace): LanePace => (pace.holeLookOwed ? pace : { ...pace, holeLookOwed: true });

/** The chain's count, read for the holes below it. */
export function countSeen(pace: LanePace, count: number): LanePace {
  return { ...pace, usedBelow: Math.max(count, 0), holeLookOwed: false };
}

/** The holes that the count has passed, and the chain's head. */
export function holesPassed(pace: LanePace, nonces: readonly number[], head: number): LanePace {
  const { passedHoles: before } = pace;
  return { ...pace, passedHoles: new Map(nonces.map((nonce) => [nonce, before.get(nonce) ?? head])) };
}

/** All nonces that were searched, and those at which a caller's transaction was found. */
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

/** The database has counted as many repairs this hour as the lane may pay for. */
export const repairsLimited = (pace: LanePace, againAtMs: number): LanePace => ({ ...pace, nextRepair: at(againAtMs) });

/** Alert about too many reserved nonces: raised once, and again only after it was over. */
export function pileSeen(pace: LanePace, isPiledUp: boolean): LanePace {
  return pace.pileSaid === isPiledUp ? pace : { ...pace, pileSaid: isPiledUp };
}

/** The count at that time has not passed this hole, which everything waits for. */
export function blockedBy(pace: LanePace, nonce: number, askedAtMs: number): LanePace {
  return pace.blocking?.nonce === nonce ? pace : { ...pace, blocking: { nonce, sinceMs: askedAtMs } };
}

export const unblocked = (pace: LanePace): LanePace => (pace.blocking === null ? pace : { ...pace, blocking: null });

/**
 * Search for a caller's transaction at a nonce whose reservation expired. A placeholder is signed there only after
 * every look during one more reservation time has found nothing.
 */
export interface Search {
  /** Monotonic times of the first and the last look in a row that found nothing. */
  readonly sinceMs: number;
  readonly lastMs: number;
}

/** A look was answered. A look without an answer changes nothing. */
export function looked(search: Search | undefined, found: boolean, atMs: number): Search | undefined {
  return found ? undefined : { sinceMs: search?.sinceMs ?? atMs, lastMs: atMs };
}

/** The search lasted as long as the reservation: a transaction sent before is no longer in flight. */
export function isThrough(search: Search | undefined, ttlMs: number): boolean {
  return search !== undefined && search.lastMs - search.sinceMs >= ttlMs;
}

/**
 * The chain's counts of a signer, as far as they were compared with its lane since that was last read from the database. A
 * reload forgets all of it: an operator may just have undone a lie that was believed before.
 */
export interface CountPace {
  /** When the count was asked for that was last compared with the cursor. Monotonic; null: ask anew. */
  readonly comparedAtMs: number | null;
  /** How many batches failed. A comparison that began before the last failure makes nothing fresh. */
  readonly failures: number;
  /** Proved by that comparison. No nonce below it is given, also while the cursor has not followed yet. */
  readonly proven: number;
  /** A mined count above the cursor that is not proved yet, and the follower's head when it was first met. */
  readonly claim: { readonly count: number; readonly atBlock: number } | null;
  /** A claim that was not proved in time, and since when: creates are refused for it. Shown to people. */
  readonly unproved: { readonly count: number; readonly since: Date } | null;
  /** A mined count that a look has reported: a nonce below it that is not mined for us may be another program's. A hint. */
  readonly reported: number;
  /** The head of line that the count is next compared with, and when. Monotonic. */
  readonly check: { readonly nonce: number; readonly dueMs: number } | null;
  readonly standing: StandingHead | null;
}

/** A head of line that does not move, and the chain's count at the last look. Monotonic. */
export interface StandingHead {
  readonly head: number;
  /** The chain's head when this one was first seen: an endpoint that has come so far may say that nonces below are unused. */
  readonly atBlock: number;
  readonly count: number | null;
  readonly dueMs: number;
}

/** Reasons why the lane's next transaction is not signed yet; the first that applies decides. */
export const WINDOW_LIMITS = ["SUSPENDED", "CHAIN_UNSURE", "SIGNER_AWAY", "HELD", "NO_FUTURE_NONCES", "FULL"] as const;
export type WindowLimit = (typeof WINDOW_LIMITS)[number];
