import type { OwnedLane } from "./owned-lane.ts";

/**
 * Number of beats between two checks of an idle lane. A node may own ten thousand lanes, and their time limits need to
 * be accurate only to the second.
 */
const BEATS_APART = 10;

/**
 * Wakes a tenth of the lanes for work that became due, such as expired reservations and signers that are available
 * again.
 */
export function kickTenth(lanes: readonly OwnedLane[], beat: number, nowMs: number): void {
  for (let place = beat % BEATS_APART; place < lanes.length; place += BEATS_APART) lanes[place]?.kickDue(nowMs);
}

/**
 * Wakes lanes with transactions in flight that have work due now. Removes lanes that have nothing on the chain any
 * more.
 */
export function kickInFlight(onChain: Set<OwnedLane>, nowMs: number): void {
  for (const lane of onChain) {
    if (!lane.isOnChain) onChain.delete(lane);
    else if (lane.unmined.size > 0) lane.kickDue(nowMs);
  }
}
