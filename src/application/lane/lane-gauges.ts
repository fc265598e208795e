import type { OwnedLane } from "./owned-lane.ts";

/** What metrics say of the lanes that this node holds. */
export function laneGauges(lanes: readonly OwnedLane[], now: Date) {
  const sumOf = (of: (lane: OwnedLane) => number): number => lanes.reduce((sum, lane) => sum + of(lane), 0);
  const oldestOf = (lane: OwnedLane): number => lane.oldestPendingAt()?.getTime() ?? Number.POSITIVE_INFINITY;
  const oldest = lanes.reduce((least, lane) => Math.min(least, oldestOf(lane)), Number.POSITIVE_INFINITY);
  return {
    lanesHeld: lanes.length,
    pendingDepth: sumOf((lane) => lane.pendingDepth()),
    signersAway: sumOf((lane) => (lane.pace.signer.kind === "away" ? 1 : 0)),
    noncesReserved: sumOf((lane) => lane.nonces.reserved),
    oldestPendingAgeSeconds: Number.isFinite(oldest) ? (now.getTime() - oldest) / 1_000 : 0,
  };
}
