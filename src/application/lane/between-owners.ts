import { type ErrorExtras, FencepostError, notLeader } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { type TermOver, unlessOver } from "./term.ts";

const NOTHING_ACCEPTED = { consequence: "nothing was accepted", extras: {} };

/**
 * This node may not act for the lane right now, nothing was accepted, and it is a matter of moments: it is leaving, or
 * its lease has lapsed. The caller gets 503; before that the router asks elsewhere, or once more.
 */
export class BetweenOwners extends FencepostError {
  constructor(
    detail: string,
    { consequence, extras }: { readonly consequence: string; readonly extras: ErrorExtras } = NOTHING_ACCEPTED,
  ) {
    super("UNAVAILABLE", `${detail}; ${consequence}`, { retryAfterSeconds: 1, ...extras });
  }

  /** The form for another node: its code says that it may ask elsewhere. */
  toPeer(): FencepostError {
    return new FencepostError("NOT_LEADER", this.message, { ownerUrl: null, ...this.extras });
  }
}

/**
 * The same for an action whose commit got no answer before the lane was released: it may still be carried out. The next
 * owner knows, because a takeover waits for that commit or ends it. The refusal of any other node proves nothing.
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

/** The lane was ours when the work began, and nothing was done. The caller gets the node that may do it now. */
export function orRefused<T>(work: Promise<T>): Promise<T> {
  return unlessOver(work, (over) => Promise.reject<T>(refusalAfter(over)));
}

function refusalAfter({ how }: TermOver) {
  if (how === "lost") return notLeader("another node took this signer over");
  if (how === "lapsed") return new LeaseLapsed();
  return new PutOff();
}

/** Work with a single write has consumed nothing if the term ended before it: it is repeated under the next term. */
export function underNextTerm<T>(
  lanes: { own(lane: Lane): Promise<OwnedLane> },
  lane: OwnedLane,
  work: (lane: OwnedLane) => Promise<T>,
): Promise<T> {
  return unlessOver(work(lane), async () => orRefused(work(await lanes.own(lane.lane))));
}

/** The next reading of the lane, here or on another node, is a moment away: it is worth asking this node once more. */
export class PutOff extends BetweenOwners {
  constructor() {
    super("this node reads the signer's state again, or is handing the signer over");
  }
}

/** The heartbeat was not renewed in time: for want of an answer, or because this process did not run. */
export class LeaseLapsed extends BetweenOwners {
  constructor(pausedMs = 0) {
    const paused = `this node was not scheduled for ${pausedMs} ms, and its lease ran out`;
    super(pausedMs > 0 ? paused : "this node's lease is not renewed");
  }

  afterPause(pausedMs: number): LeaseLapsed {
    return new LeaseLapsed(pausedMs);
  }
}
