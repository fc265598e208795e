/**
 * First sequence number of a new feed epoch. Numbers repeat after lost commits, so the epoch starts above every number
 * that a live node has seen. The node that begins it knows only the numbers it has seen itself; if commits were lost,
 * other nodes may have seen more than the database has, so a margin is added.
 */
const ROOM_FOR_THE_LOST = 1_000_000;

export function epochStart(seen: readonly number[], mayHaveLost: boolean): number {
  return Math.max(...seen) + (mayHaveLost ? ROOM_FOR_THE_LOST : 0);
}
