/**
 * When the end of another node's session lock proves that node's death. A lock also ends while its process lives: the
 * server was restarted or failed over, a server process crashed, or an operator ended sessions. Then all locks end
 * together, ours included. So a node whose own session has just begun may not judge others yet.
 */

/** Minimum time between two looks that both miss a lock. */
export const LOOKS_APART_MS = 300;

const OWN_SESSION_MS = 2_000;
const SERVER_UP_MS = 10_000;

/** The observer's own session. */
export interface OwnSession {
  readonly sinceMs: number;
  /** How long the server had accepted sessions when it began. */
  readonly serverUpMs: number;
  /** It is the process's first session, so no server restart can have ended an earlier one. */
  readonly isFirst: boolean;
  /** A first look, as old as the session. */
  readonly missed: readonly MissedLock[];
}

/** A recorded lock that was missing in a look that ended at this time. */
export interface MissedLock {
  readonly instanceId: string;
  readonly counter: number;
  readonly heardMs: number;
}

export interface Sighting {
  /** The lock was seen since our own session began. */
  readonly wasHeld: boolean;
  /** Since when the lock has been missing, at this counter. */
  readonly gone: { readonly counter: number; readonly sinceMs: number } | null;
}

export const UNSEEN: Sighting = { wasHeld: false, gone: null };

/** One look at another instance's lock, with its start and end on our own clock. */
export interface LockLook {
  readonly lock: "none" | "held" | "gone";
  readonly counter: number;
  readonly askedMs: number;
  readonly heardMs: number;
}

export function missedBefore({ counter, heardMs }: MissedLock): Sighting {
  return { wasHeld: false, gone: { counter, sinceMs: heardMs } };
}

export function sight(before: Sighting, { lock, counter, heardMs }: LockLook): Sighting {
  if (lock !== "gone") return { wasHeld: before.wasHeld || lock === "held", gone: null };
  // A counter that moved is a sign of life: the looks start over.
  return before.gone?.counter === counter ? before : { ...before, gone: { counter, sinceMs: heardMs } };
}

/** True if a missing lock may be judged at all. A process that has just started uses the server's uptime. */
export function mayJudge(own: OwnSession | null, { wasHeld }: Sighting, nowMs: number): boolean {
  if (own === null) return false;
  const ageMs = nowMs - own.sinceMs;
  return (wasHeld && ageMs >= OWN_SESSION_MS) || (own.isFirst && own.serverUpMs + ageMs > SERVER_UP_MS);
}

/** Missing from the end of one look to the start of another: a pause of this process in between was not observed. */
export function isGone(sighting: Sighting, { askedMs }: LockLook): boolean {
  const atMs = goneAtMs(sighting);
  return atMs !== null && askedMs >= atMs;
}

/** Earliest time of the second look: two looks without the lock, this far apart, mean that the process is dead. Null: no look has missed it. */
export function goneAtMs({ gone }: Sighting): number | null {
  return gone === null ? null : gone.sinceMs + LOOKS_APART_MS;
}
