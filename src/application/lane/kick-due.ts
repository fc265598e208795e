import type { OwnedLane } from "./owned-lane.ts";

/** A node may hold ten thousand lanes with nothing in flight: what ends there, ends by the second. */
const BEATS_APART = 10;

/** Wakes a tenth of the lanes for work that became due: reservations end, signers return. */
export function kickTenth(lanes: readonly OwnedLane[], beat: number, nowMs: number): void {
  for (let place = beat % BEATS_APART; place < lanes.length; place += BEATS_APART) lanes[place]?.kickDue(nowMs);
}

/** Wakes what is in flight and has something to do by now. Forgets lanes that have nothing on the chain any more. */
export function kickInFlight(onChain: Set<OwnedLane>, nowMs: number): void {
  for (const lane of onChain) {
    if (!lane.isOnChain) onChain.delete(lane);
    else if (lane.unmined.size > 0) lane.kickDue(nowMs);
  }
}
