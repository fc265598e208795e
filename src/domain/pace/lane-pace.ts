/**
 * When a lane is next compared with its chain, how far ahead of its head it is sent, and what was said aloud about it: what
 * its owner has found out under this term, and the next owner finds out again. Each function says what happened and gives
 * the pace that follows; nothing else changes one.
 */
import type { AlertCode } from "../alerts.ts";
import { type BackoffRule, backoffMs } from "../backoff.ts";
import { type Doubt, NO_DOUBT, weigh } from "../doubt.ts";
import { type CountPace, NO_COUNTS } from "./count-pace.ts";
import { looked, type Search } from "./search.ts";
import { AT_ONCE, at, NEVER, type When } from "./when.ts";

export interface LanePace {
  /** Whether the chain that answers is ours is still to be looked at: before the first pass, and after every break. */
  readonly lookOwed: boolean;
  /** Such a look is not repeated before. */
  readonly nextLook: When;
  readonly doubt: Doubt;
  /** What speaks against the chain, while there is a doubt. */
  readonly distrust: string | null;
  /** Monotonic: when the lane is next compared with the chain; null: not decided yet. */
  readonly reconcileAtMs: number | null;
  /** Why the last comparison with the chain got no answer; null: it got one, or there was none. */
  readonly uncompared: string | null;
  readonly counts: CountPace;
  /** What stands at a consumed nonce is not looked for before. */
  readonly externalLook: When;
  readonly head: Head;
  readonly window: Window;
  /** Since when the signer has not been able to pay; null: it can, as far as a node has said. */
  readonly unpaidSince: Date | null;
  readonly signer: SignerPace;
  /** The chain's count has passed everything below: what is a hole there was used by somebody else, or will prove not to be. */
  readonly usedBelow: number;
  /** The chain may have passed a hole since its count was last looked at. So it may for a new owner. */
  readonly holeLookOwed: boolean;
  /** The hole that holds the lane up, as last looked at. */
  readonly blocking: BlockingHole | null;
  /** The head at which each hole was first found to have been passed by the chain, for as long as it stays so. */
  readonly passedHoles: ReadonlyMap<number, number>;
  /** By nonce: the search for what callers whose reservations expired may have sent. None: a look found something, or none was made. */
  readonly searches: ReadonlyMap<number, Search>;
  /** As many nonces of expired reservations got placeholders as the lane pays for in one hour: not tried again before. */
  readonly nextRepair: When;
  /** That more nonces are kept for callers than should be was said, and is so still. */
  readonly pileSaid: boolean;
  /** Codes of the watch's alerts about the lane that are not over; null: the watch has not looked under this term. */
  readonly firing: ReadonlySet<AlertCode> | null;
  /** When the `validUntil` of a transaction may next be over: the database is asked then. */
  readonly expiry: When;
  /** By transaction that is past its `validUntil` and may have been sent: when it is next tried to cancel it. */
  readonly overdue: ReadonlyMap<string, When>;
}

/** As the lane's loop last saw it under this term. */
export type Head = { readonly kind: "not looked" } | { readonly kind: "none" } | HeadOfLine;

/** The transaction everything behind it waits for, and how long it has been that. */
export interface HeadOfLine {
  readonly kind: "at";
  readonly nonce: number;
  /** Monotonic; before this term where the database says that it was sent before. */
  readonly sinceMs: number;
  /** Monotonic: when this term first saw it at the head. */
  readonly seenMs: number;
  /** How often it had been sent when its patience began: what came later is what counts. */
  readonly sentBefore: number;
  /** Reported as holding up others. */
  readonly blocks: boolean;
  /** It was STUCK when last seen: once repaired, it has the lane's patience anew. */
  readonly stuck: boolean;
}

/** How far ahead of the head a node takes nonces. */
export type Window =
  | { readonly kind: "open" }
  /** It refused a future nonce, so often in a row: until then only the head is sent, then one more to try. Monotonic. */
  | { readonly kind: "closed"; readonly untilMs: number; readonly closures: number };

/** Whether who holds the key signs. */
export type SignerPace =
  | { readonly kind: "there" }
  /** So often in a row it did not: it is not asked before then. Monotonic. */
  | {
      readonly kind: "away";
      readonly untilMs: number;
      readonly failures: number;
      readonly since: Date;
      readonly reason: string;
      /** It answers with something else than it is asked for. */
      readonly lies: boolean;
    };

export interface BlockingHole {
  readonly nonce: number;
  /** Monotonic: since when it has held the lane up, by the first count of this term that had not passed it. */
  readonly sinceMs: number;
}

const OPEN: Window = { kind: "open" };
const THERE: SignerPace = { kind: "there" };
const NO_HEAD: Head = { kind: "none" };

/** Of a lane that was just taken. */
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
  firing: null,
  expiry: NEVER,
  overdue: new Map(),
};

/** It is not known whether the chain that answers is ours. */
export function isUnsure({ lookOwed, doubt }: LanePace): boolean {
  return lookOwed || doubt !== NO_DOUBT;
}

export const chainLookOwed = (pace: LanePace): LanePace => (pace.lookOwed ? pace : { ...pace, lookOwed: true });

/** The chain was looked at, and this speaks against it; null: nothing does. */
export function chainJudged(pace: LanePace, evidence: string | null, nextLookMs: number): LanePace {
  const doubt = weigh(pace.doubt, evidence === null ? "nothing" : "evidence");
  const distrust = doubt === NO_DOUBT ? null : (evidence ?? pace.distrust);
  return { ...pace, lookOwed: false, nextLook: at(nextLookMs), doubt, distrust };
}

export const comparisonSet = (pace: LanePace, reconcileAtMs: number): LanePace => ({ ...pace, reconcileAtMs });

/** The comparison got an answer, or none for this reason. */
export const compared = (pace: LanePace, uncompared: string | null): LanePace =>
  pace.uncompared === uncompared ? pace : { ...pace, uncompared };

/** What stands at a consumed nonce could not be shown. */
export function externalUseUnseen(pace: LanePace, nextLookMs: number): LanePace {
  return { ...pace, externalLook: at(nextLookMs) };
}

export interface SeenAtHead {
  readonly nonce: number;
  readonly stuck: boolean;
  /** How long it was on its way when this term began. */
  readonly ageMs: number;
  /** How often it was sent so far. */
  readonly sends: number;
}

/** What comes to the head while we look comes to it now; what was there at the first look has its age. */
export function headSeen(pace: LanePace, seen: SeenAtHead | null, nowMs: number): LanePace {
  const { head } = pace;
  if (seen === null) return head.kind === "none" ? pace : { ...pace, head: NO_HEAD };
  const { nonce, stuck } = seen;
  if (head.kind !== "at" || head.nonce !== nonce) {
    const isFirst = head.kind === "not looked";
    const sinceMs = nowMs - (isFirst ? seen.ageMs : 0);
    // The first send is no repeat; what was sent while it waited behind others says nothing about it.
    const sentBefore = isFirst ? Math.min(1, seen.sends) : Math.max(1, seen.sends);
    return { ...pace, head: { kind: "at", nonce, sinceMs, seenMs: nowMs, sentBefore, blocks: false, stuck } };
  }
  if (head.stuck === stuck) return pace;
  return { ...pace, head: stuck ? { ...head, stuck } : { ...head, stuck, sinceMs: nowMs, sentBefore: seen.sends } };
}

/** It was reported as STUCK: who repairs it before the next look gives it patience anew all the same. */
export function headStuck(pace: LanePace, nonce: number): LanePace {
  const { head } = pace;
  return head.kind === "at" && head.nonce === nonce ? { ...pace, head: { ...head, stuck: true } } : pace;
}

/** It was reported that the head holds up others. */
export function blockReported(pace: LanePace): LanePace {
  return pace.head.kind === "at" ? { ...pace, head: { ...pace.head, blocks: true } } : pace;
}

/** When a node that refused a future nonce is offered one again. Most such nodes never take one. */
const REOPEN: BackoffRule = { firstMs: 2_000, mostMs: 600_000 };

/** A node refused a nonce because others before it are missing: those first, then again; each time more patiently. */
export function futureRefused(pace: LanePace, { nowMs, random }: { nowMs: number; random: number }): LanePace {
  const { window } = pace;
  if (window.kind === "closed" && nowMs < window.untilMs) return pace;
  const closures = window.kind === "closed" ? window.closures + 1 : 1;
  const untilMs = nowMs + backoffMs(REOPEN, closures, random);
  return { ...pace, window: { kind: "closed", untilMs, closures } };
}

/** A node took a nonce beyond the head: it has room for the future. */
export const futureTaken = (pace: LanePace): LanePace =>
  pace.window.kind === "open" ? pace : { ...pace, window: OPEN };

/** How many nonces from the head on a node has room for; null: as many as there are. */
export function openNonces({ window }: LanePace, nowMs: number): number | null {
  if (window.kind === "open") return null;
  return nowMs < window.untilMs ? 1 : 2;
}

export function paymentFailed(pace: LanePace, unpaidSince: Date): LanePace {
  return pace.unpaidSince === null ? { ...pace, unpaidSince } : pace;
}

export const paid = (pace: LanePace): LanePace => (pace.unpaidSince === null ? pace : { ...pace, unpaidSince: null });

/** When a signer that did not sign is asked again: soon, because most failures pass, and then a few times a minute. */
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

/** Null: it may be asked. Else why not yet. */
export function signerAwaited({ signer }: LanePace, nowMs: number): string | null {
  return signer.kind === "away" && nowMs < signer.untilMs ? signer.reason : null;
}

/** Something was mined above a hole: whatever lies below was used, by whomever. A reorg may be on its way, so it is asked. */
export const holeLookDue = (pace: LanePace): LanePace => (pace.holeLookOwed ? pace : { ...pace, holeLookOwed: true });

/** The chain's count, as it was looked at for the holes below it. */
export function countSeen(pace: LanePace, count: number): LanePace {
  return { ...pace, usedBelow: Math.max(count, 0), holeLookOwed: false };
}

/** The holes that the count has passed, and the chain's head now. */
export function holesPassed(pace: LanePace, nonces: readonly number[], head: number): LanePace {
  const { passedHoles: before } = pace;
  return { ...pace, passedHoles: new Map(nonces.map((nonce) => [nonce, before.get(nonce) ?? head])) };
}

/** All the nonces that were looked at, and those of them at which something of a caller's was found. */
export function callersLookedFor(
  pace: LanePace,
  {
    nonces,
    found,
    atMs,
  }: { readonly nonces: readonly number[]; readonly found: ReadonlySet<number>; readonly atMs: number },
): LanePace {
  const searches = new Map<number, Search>();
  for (const nonce of nonces) {
    const search = looked(pace.searches.get(nonce), found.has(nonce), atMs);
    if (search !== undefined) searches.set(nonce, search);
  }
  return { ...pace, searches };
}

/** The database counts as many repairs of this hour as the lane may pay for. */
export const repairsLimited = (pace: LanePace, againAtMs: number): LanePace => ({ ...pace, nextRepair: at(againAtMs) });

/** Whether more nonces are kept for callers than should be: said once, and again only after it was over. */
export function pileSeen(pace: LanePace, isPiledUp: boolean): LanePace {
  return pace.pileSaid === isPiledUp ? pace : { ...pace, pileSaid: isPiledUp };
}

export const watchLooked = (pace: LanePace, firing: ReadonlySet<AlertCode>): LanePace => ({ ...pace, firing });

/** The count that was asked for then has not passed this hole, for which everything waits. */
export function blockedBy(pace: LanePace, nonce: number, askedAtMs: number): LanePace {
  return pace.blocking?.nonce === nonce ? pace : { ...pace, blocking: { nonce, sinceMs: askedAtMs } };
}

export const unblocked = (pace: LanePace): LanePace => (pace.blocking === null ? pace : { ...pace, blocking: null });
