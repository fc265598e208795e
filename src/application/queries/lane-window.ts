/** How many of a lane may be on their way at once, how many are, and what keeps the next from being sent. Memory only. */
import { signerAwaited } from "../../domain/pace/lane-pace.ts";
import type { LaneWindow } from "../api.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

export function windowOf(lane: OwnedLane, configured: number, nowMs: number): LaneWindow {
  const open = lane.openWindow(configured, nowMs);
  return { configured, open, inFlight: lane.unmined.size, limitedBy: limitOf(lane, { configured, open }, nowMs) };
}

type Sizes = Pick<LaneWindow, "configured" | "open">;

/** What decides first; null: nothing waits to be signed, or it is being signed now. */
function limitOf(lane: OwnedLane, { configured, open }: Sizes, nowMs: number): LaneWindow["limitedBy"] {
  const { backlog, pace } = lane;
  if (backlog.isEmpty) return null;
  if (lane.suspended) return "SUSPENDED";
  if (lane.held) return "CHAIN_UNSURE";
  if (signerAwaited(pace, nowMs) !== null) return "SIGNER_AWAY";
  const [first] = backlog.atHand;
  if (first === undefined) return null;
  if (first.held === true) return "HELD";
  if (lane.toSign(open, 1).length > 0) return null;
  return open < configured ? "NO_FUTURE_NONCES" : "FULL";
}
