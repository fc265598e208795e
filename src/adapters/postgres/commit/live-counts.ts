/**
 * How many live transactions a lane has in each state is kept on its row, by whoever changes it: the statements of this
 * folder are told what a plan adds up to. The triggers that count for everybody else stand back (opening.ts).
 */
import { type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { State } from "../../../domain/transitions.ts";
import { laneOf } from "../columns.ts";
import type { Move, Plan } from "./plan.ts";

/** In the order of the columns in `updateLanes`. */
export const LIVE_STATES = [
  "ALLOCATED",
  "TRACKING",
  "STUCK",
  "CONFIRMED",
  "FAILED_FINAL",
] as const satisfies readonly State[];

/** What is added to a lane's counts, by state; what is missing stays. */
export type LiveChanges = Record<string, number>;

export function liveChangesOf(plan: Plan, moved: readonly Move[]): ReadonlyMap<LaneKey, LiveChanges> {
  const lanes = new Map<LaneKey, LiveChanges>();
  const count = (key: LaneKey, state: string, change: 1 | -1) => {
    const changes = lanes.get(key) ?? {};
    changes[state] = (changes[state] ?? 0) + change;
    lanes.set(key, changes);
  };
  for (const { lane } of plan.allocations) count(lane.key, "ALLOCATED", 1);
  for (const move of moved) {
    if (move.row.state === move.state) continue;
    const key = laneKey(laneOf(move.row));
    count(key, move.row.state, -1);
    if (!givesUp(move)) count(key, move.state, 1);
  }
  for (const { state, ...row } of plan.pastWatch()) count(laneKey(laneOf(row)), state, -1);
  return lanes;
}

/** Over at once: nothing of it is on any chain, so it is not watched. */
function givesUp({ nonce, row }: Move): boolean {
  return nonce === null && row.nonce !== null;
}
