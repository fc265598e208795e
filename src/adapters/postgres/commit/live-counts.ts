/**
 * How many live transactions a lane has in each state is kept on its row, by whoever changes it: the statements of this
 * folder are told what a plan adds up to. The triggers that count for everybody else stand back (session/opening.ts).
 */
import type { State } from "../../../domain/transitions.ts";

/** In the order of the columns in `updateLanes`. */
export const LIVE_STATES = [
  "ALLOCATED",
  "TRACKING",
  "STUCK",
  "CONFIRMED",
  "FAILED_FINAL",
] as const satisfies readonly State[];

/** What is added to a lane's counts, by state; what is missing stays. */
export type LiveChanges = Partial<Record<State, number>>;

/** The same, where a transaction that was live in one state is so in another; null: in none. */
export function counted(changes: LiveChanges | null, from: State | null, to: State | null): LiveChanges | null {
  if (from === to) return changes;
  const counts = changes ?? {};
  if (from !== null) counts[from] = (counts[from] ?? 0) - 1;
  if (to !== null) counts[to] = (counts[to] ?? 0) + 1;
  return counts;
}
