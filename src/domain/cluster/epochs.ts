/**
 * The sequence number after which a new feed epoch starts. If the database lost commits, it would issue their numbers
 * again, so the epoch starts above every number that a live node has seen. The node that begins the epoch knows only
 * the database's last number and those that it has seen itself. Other nodes may have seen higher ones, so a margin is
 * added if commits were lost.
 */
const ROOM_FOR_THE_LOST = 1_000_000;

export function epochStart(seen: readonly number[], mayHaveLost: boolean): number {
  return Math.max(...seen) + (mayHaveLost ? ROOM_FOR_THE_LOST : 0);
}
