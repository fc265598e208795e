import { type ErrorExtras, FencepostError, notLeader } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { type TermOver, unlessOver } from "./term.ts";

const NOTHING_ACCEPTED = { consequence: "nothing was accepted", extras: {} };

/**
 * Error: this node may not act for the lane at the moment, because it is handing the lane over or its lease has lapsed.
 * Nothing was accepted. The router first tries another node, or this one again; after that the caller gets 503.
 */
export class BetweenOwners extends FencepostError {
  constructor(
    detail: string,
    { consequence, extras }: { readonly consequence: string; readonly extras: ErrorExtras } = NOTHING_ACCEPTED,
  ) {
    super("UNAVAILABLE", `${detail}; ${consequence}`, { retryAfterSeconds: 1, ...extras });
  }

  /** The error in the form that is sent to another node: its code shows that node that it may try elsewhere. */
  toPeer(): FencepostError {
    return new FencepostError("NOT_LEADER", this.message, { ownerUrl: null, ...this.extras });
  }
}

/**
 * A `BetweenOwners` error for an action whose commit got no answer before this node released the lane. The commit may
 * still happen; a takeover waits for it or ends it. So only the next owner can find out the outcome, and a refusal by
 * any other node proves nothing.
 */
export class LeftInDoubt extends BetweenOwners {
  constructor(refusal: unknown, extras: Pick<ErrorExtras, "txId">) {
    const ownerUrl = refusal instanceof FencepostError ? (refusal.extras.ownerUrl ?? null) : null;
    super("the database did not say whether this was done, and this node no longer acts for the signer", {
      consequence: "read GET /tx/{id}?include=history before repeating it",
      extras: { ...extras, ownerUrl, outcome: "unknown" },
    });
  }
}

/**
 * Returns the result of the work. If the lane's term ended before anything was done, throws a refusal that states
 * whether another node, or this one again, may do the work now.
 */
export function orRefused<T>(work: Promise<T>): Promise<T> {
  return unlessOver(work, (over) => Promise.reject<T>(refusalAfter(over)));
}

function refusalAfter({ how }: TermOver) {
  if (how === "lost") return notLeader("another node took this signer over");
  if (how === "lapsed") return new LeaseLapsed();
  return new PutOff();
}

/**
 * Runs work that consists of a single write. If the lane's term ended before the write, nothing was changed, and the
 * work is repeated under the next term.
 */
export function underNextTerm<T>(
  lanes: { own(lane: Lane): Promise<OwnedLane> },
  lane: OwnedLane,
  work: (lane: OwnedLane) => Promise<T>,
): Promise<T> {
  return unlessOver(work(lane), async () => orRefused(work(await lanes.own(lane.lane))));
}

/**
 * The lane is being reloaded here or handed over to another node, which takes moments: calling this node once more may
 * succeed.
 */
export class PutOff extends BetweenOwners {
  constructor() {
    super("this node reads the signer's state again, or is handing the signer over");
  }
}

/** The heartbeat was not renewed in time, because the database did not answer or because this process did not run. */
export class LeaseLapsed extends BetweenOwners {
  constructor(pausedMs = 0) {
    const paused = `this node was not scheduled for ${pausedMs} ms, and its lease ran out`;
    super(pausedMs > 0 ? paused : "this node's lease is not renewed");
  }

  afterPause(pausedMs: number): LeaseLapsed {
    return new LeaseLapsed(pausedMs);
  }
}
