/**
 * Decides when the end of another node's session lock proves that the node is dead. A lock can also end while its
 * process lives: the server was restarted or failed over, a server process crashed, or an operator ended sessions. Then
 * all locks end together, ours included. So a node whose own session has just begun must not yet conclude anything
 * about other nodes.
 */

/** Minimum time between two checks that find a lock missing. */
export const LOOKS_APART_MS = 300;

const OWN_SESSION_MS = 2_000;
const SERVER_UP_MS = 10_000;

/** The database session of the observing node, through which that node holds its own lock. */
export interface OwnSession {
  readonly sinceMs: number;
  /** How long the server had accepted sessions when this session began. */
  readonly serverUpMs: number;
  /** True if this is the process's first session: there was no earlier one that a server restart could have ended. */
  readonly isFirst: boolean;
  /** Locks of other instances that were missing in a first check, made when this session began. */
  readonly missed: readonly MissedLock[];
}

/** Another instance's lock that was missing in a check, and the time at which that check ended. */
export interface MissedLock {
  readonly instanceId: string;
  readonly counter: number;
  readonly answeredMs: number;
}

export interface Sighting {
  /** True if the other instance's lock was seen held since our own session began. */
  readonly wasHeld: boolean;
  /** Since when the lock has been missing, with the heartbeat counter at that time; null if it is not missing. */
  readonly gone: { readonly counter: number; readonly sinceMs: number } | null;
}

export const UNSEEN: Sighting = { wasHeld: false, gone: null };

/** One check of another instance's lock, with its start and end on our own clock. */
export interface LockLook {
  readonly lock: "none" | "held" | "gone";
  readonly counter: number;
  readonly askedMs: number;
  readonly answeredMs: number;
}

export function missedBefore({ counter, answeredMs }: MissedLock): Sighting {
  return { wasHeld: false, gone: { counter, sinceMs: answeredMs } };
}

export function sight(before: Sighting, { lock, counter, answeredMs }: LockLook): Sighting {
  if (lock !== "gone") return { wasHeld: before.wasHeld || lock === "held", gone: null };
  // A changed heartbeat counter shows that the instance is alive: the checks start over.
  return before.gone?.counter === counter ? before : { ...before, gone: { counter, sinceMs: answeredMs } };
}

/**
 * True if a missing lock may count as evidence at all. A process that has just started relies on the server's uptime.
 */
export function mayJudge(own: OwnSession | null, { wasHeld }: Sighting, nowMs: number): boolean {
  if (own === null) return false;
  const ageMs = nowMs - own.sinceMs;
  return (wasHeld && ageMs >= OWN_SESSION_MS) || (own.isFirst && own.serverUpMs + ageMs > SERVER_UP_MS);
}

/**
 * True if the lock was missing in two checks that are far enough apart. The time is measured from the end of the first
 * to the start of the second, so that a pause of this process during a check does not count.
 */
export function isGone(sighting: Sighting, { askedMs }: LockLook): boolean {
  const atMs = goneAtMs(sighting);
  return atMs !== null && askedMs >= atMs;
}

/**
 * Earliest time of the second check; null if no check has found the lock missing. If the lock is missing in two checks
 * this far apart, the other process is dead.
 */
export function goneAtMs({ gone }: Sighting): number | null {
  return gone === null ? null : gone.sinceMs + LOOKS_APART_MS;
}
