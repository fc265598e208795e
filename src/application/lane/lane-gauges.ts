import type { OwnedLane } from "./owned-lane.ts";

/** What metrics say of the lanes that this node holds. */
export function laneGauges(lanes: readonly OwnedLane[], now: Date) {
  const sumOf = (of: (lane: OwnedLane) => number) => lanes.reduce((sum, lane) => sum + of(lane), 0);
  const ageMs = (lane: OwnedLane) => now.getTime() - (lane.oldestPendingAt() ?? now).getTime();
  return {
    lanesHeld: lanes.length,
    pendingDepth: sumOf((lane) => lane.pendingDepth()),
    signersAway: sumOf((lane) => (lane.pace.signer.kind === "away" ? 1 : 0)),
    noncesReserved: sumOf((lane) => lane.nonces.reserved),
    oldestPendingAgeSeconds: lanes.reduce((most, lane) => Math.max(most, ageMs(lane)), 0) / 1_000,
  };
}
