/** Lowers a lane's cursor on an operator's word, never to a nonce that may have left. */
import { laneKey } from "../../../domain/lane.ts";
import type { RealignWrite, WriteOutcome } from "../../../ports/lane-store.ts";
import type { LanePlan, Plan } from "./plan.ts";

export function planRealignment(plan: Plan, lane: LanePlan, { fence, floor }: RealignWrite): WriteOutcome {
  const bound = plan.bound.get(laneKey(fence.lane)) ?? -1;
  const lowest = Math.max(floor, bound + 1, lane.givenBelow);
  const cursor = Math.min(lane.cursor ?? lowest, lowest);
  plan.holes.forgetFrom(lane, cursor);
  lane.changed ||= cursor !== lane.cursor;
  lane.cursor = cursor;
  return { status: "aligned", cursor };
}
