/** When the owner of a lane next asks whether a `validUntil` is over. Times are the database's; what is left of them is waited for here. */
import { expiryAhead, expiryLookDue } from "../../domain/pace/lane-time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { happened } from "./tracked.ts";

/** Of a lane that was just taken. What waits to be signed is in the database, which is asked about it once. */
export function keepTime(lane: OwnedLane, hasUnsigned: boolean, clock: Clock): void {
  if (hasUnsigned) happened(lane, expiryLookDue);
  else for (const tx of lane.unmined.values()) noteTime(lane, tx, clock);
}

/** One more is to be mined by a certain time, or not at all. */
export function noteTime(
  lane: OwnedLane,
  { validUntil }: { readonly validUntil?: Date | null },
  clock: Pick<Clock, "now" | "monotonicMs">,
): void {
  if (validUntil === undefined || validUntil === null) return;
  happened(lane, expiryAhead, clock.monotonicMs(), validUntil.getTime() - clock.now().getTime());
}
