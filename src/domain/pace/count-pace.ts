/**
 * The chain's counts of a signer, as far as they were compared with its lane since that was last read from the database. A
 * reload forgets all of it: an operator may just have undone a lie that was believed before.
 */
export interface CountPace {
  /** When the count was asked for that was last compared with the cursor. Monotonic; null: ask anew. */
  readonly comparedAtMs: number | null;
  /** How many batches failed. A comparison that began before the last failure makes nothing fresh. */
  readonly failures: number;
  /** What that comparison proved. No nonce below it is given, also while the cursor has not followed yet. */
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

export const NO_COUNTS: CountPace = {
  comparedAtMs: null,
  failures: 0,
  proven: 0,
  claim: null,
  unproved: null,
  reported: 0,
  check: null,
  standing: null,
};
