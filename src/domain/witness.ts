/**
 * When the end of another node's session lock may be taken for that node's death. A lock also ends while its process
 * lives: the server was restarted or failed over, one of its processes crashed, or an operator ended sessions. Then all
 * locks end together, ours among them. So a node that has just begun its own session may not judge the others yet.
 */

/** Two looks that both miss a lock are at least so far apart. */
export const LOOKS_APART_MS = 300;

const OWN_SESSION_MS = 2_000;
const SERVER_UP_MS = 10_000;

/** The session that the observer's own lock lasts with. */
export interface OwnSession {
  readonly sinceMs: number;
  /** How long sessions had been possible on the server when it began. */
  readonly serverUpMs: number;
  /** No other came before it in this process, so no restart of the server can have ended one. */
  readonly isFirst: boolean;
  /** A first look, as old as the session. */
  readonly missed: readonly MissedLock[];
}

/** A lock that its instance had told of, and that was missing in a look that ended then. */
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

/** One look at another instance, asked and heard at these moments of our own clock. */
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
  // A counter that moved is a sign of life: the looks begin anew.
  return before.gone?.counter === counter ? before : { ...before, gone: { counter, sinceMs: heardMs } };
}

/** Whether a missing lock may be judged at all. A process that has just started goes by how long the server has been up. */
export function mayJudge(own: OwnSession | null, { wasHeld }: Sighting, nowMs: number): boolean {
  if (own === null) return false;
  const ageMs = nowMs - own.sinceMs;
  return (wasHeld && ageMs >= OWN_SESSION_MS) || (own.isFirst && own.serverUpMs + ageMs > SERVER_UP_MS);
}

/** Missed from the end of one look to the start of another: a pause of our own in between is no time that was watched. */
export function isGone(sighting: Sighting, { askedMs }: LockLook): boolean {
  const atMs = goneAtMs(sighting);
  return atMs !== null && askedMs >= atMs;
}

/** Earliest time of the second look without the lock; null: no look has missed it. */
export function goneAtMs({ gone }: Sighting): number | null {
  return gone === null ? null : gone.sinceMs + LOOKS_APART_MS;
}
