/**
 * Late writes, counted. Most are refused by the database, which is what makes them harmless. Some it never sees: this node
 * learns, or knows by its own clock, that the term is over while the write is still being made ready. Both kinds
 * are counted alike.
 */
import type { Fence } from "../../domain/lane.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { OwnedLane } from "./owned-lane.ts";

export function noteFenced(
  telemetry: Telemetry,
  { lane, token }: Fence,
  how: { readonly write: string; readonly stoppedBy: "database" | "deadline" },
): void {
  telemetry.emit({ type: "lease.fenced", lane, token, ...how });
}

/**
 * For work that finds, with something ready to be written, that it may not go on. A lane that was let go, or is about to
 * be read again, has put it off; one that is lost, or past the deadline, has come too late with it.
 */
export function stopLate({ telemetry }: { readonly telemetry: Telemetry }, lane: OwnedLane, write: string): false {
  if (lane.lost || !lane.stopped) noteFenced(telemetry, lane.fence, { write, stoppedBy: "deadline" });
  return false;
}
