/** What holds a lane up beside its fence: a changed history of the database, and operators. */
import type { WriteOutcome } from "../../../ports/lane-store.ts";
import type { LanePlan, Plan } from "./plan.ts";

/**
 * Raises the cursor, never lowers it. A lane without one that the chain knows all the same may be one whose rows were
 * lost: then somebody must look at it.
 */
export function planReconciliation(plan: Plan, lane: LanePlan, floor: number): WriteOutcome {
  const isNews = lane.reconciledEpoch < plan.epoch;
  if (isNews && plan.mayHaveLost && lane.cursor === null && floor > 0) lane.suspendedBy = "HISTORY";
  lane.cursor = Math.max(lane.cursor ?? floor, floor);
  lane.reconciledEpoch = plan.epoch;
  lane.changed = true;
  return { status: "reconciled", cursor: lane.cursor, suspendedBy: lane.suspendedBy };
}

/** The stop by a lost history is the stricter one: an operator's does not replace it, but ends it when taken back. */
export function planSuspension(lane: LanePlan, suspended: boolean): WriteOutcome {
  const suspendedBy = suspended ? (lane.suspendedBy ?? "OPERATOR") : null;
  lane.changed ||= lane.suspendedBy !== suspendedBy;
  lane.suspendedBy = suspendedBy;
  return { status: "done" };
}
