import type { OwnedLane } from "./owned-lane.ts";

/** A node may hold ten thousand lanes with nothing in flight: what ends there, ends by the second. */
const BEATS_APART = 10;

/**
 * Wakes what has something to do by now: what is in flight at every beat, and of the lanes at rest, where reservations end
 * and signers come back, a tenth.
 */
export function kickDueLanes(lanes: Iterable<OwnedLane>, beat: number, nowMs: number): void {
  const turn = beat % BEATS_APART;
  let place = 0;
  for (const lane of lanes) {
    const isItsTurn = place++ % BEATS_APART === turn;
    if (isItsTurn || lane.unmined.size > 0) lane.kickDue(nowMs);
  }
}
