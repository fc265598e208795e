import { FencepostError, notLeader } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { unlessOver } from "./term.ts";

/**
 * Nobody may act for the lane through this node right now, nothing was accepted, and that is a matter of moments: it is
 * leaving, or its lease has lapsed. A caller hears 503; the router asks elsewhere, or once more, before it comes to that.
 */
export class BetweenOwners extends FencepostError {
  constructor(detail: string) {
    super("UNAVAILABLE", `${detail}; nothing was accepted`, { retryAfterSeconds: 1 });
  }

  /** As another node is told: it knows by the code that it may ask elsewhere. */
  toPeer(): FencepostError {
    return notLeader(this.message);
  }
}

/** The lane was ours when the work began, and is no more: nothing was done. */
export function lostLane(): FencepostError {
  return notLeader("another node took this signer over");
}

/** Whoever asked for it is told, and asks the next owner. */
export function orLostLane<T>(work: Promise<T>): Promise<T> {
  return unlessOver(work, () => Promise.reject<T>(lostLane()));
}

/** Work whose one effect is one write has consumed nothing where the term ended before it: done under the next term. */
export function underNextTerm<T>(
  lanes: { own(lane: Lane): Promise<OwnedLane> },
  lane: OwnedLane,
  work: (lane: OwnedLane) => Promise<T>,
): Promise<T> {
  return unlessOver(work(lane), async () => orLostLane(work(await lanes.own(lane.lane))));
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
