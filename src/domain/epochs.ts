/**
 * Where a new epoch of the feed begins. Numbers repeat after commits were lost, so the epoch starts above every one that
 * a live node has seen. Only the node that begins it knows what itself has seen; where commits may be lost, the others
 * may have seen more than the database remembers, and there is room for that.
 */
const ROOM_FOR_THE_LOST = 1_000_000;

export function epochStart(seen: readonly number[], mayHaveLost: boolean): number {
  return Math.max(...seen) + (mayHaveLost ? ROOM_FOR_THE_LOST : 0);
}
