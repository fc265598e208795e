import { type Fence, type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { LanePlan } from "./plan.ts";

/** After this many failures in a row a lane is not guessed at for twice as many commits, and so on up to the most. */
const MOST_SKIPPED = 64;
/** A node forgets them all rather than grow without end; each is remembered again with its next commit. */
const MOST_LANES = 20_000;

/**
 * Lanes as this process's last commits left them. Nothing relies on it: what is planned from memory the server
 * compares with the row, under its lock, before anything is kept.
 */
export class RememberedLanes {
  private readonly rows = new Map<LaneKey, LockedLaneRow>();
  private readonly failed = new Map<LaneKey, { failures: number; skip: number }>();

  remember(lanes: Iterable<LanePlan>): void {
    if (this.rows.size > MOST_LANES) this.rows.clear();
    for (const lane of lanes) {
      const known = this.rows.get(lane.key);
      const left = lane.left();
      // Four of five commits leave a lane as it was: what is known stays, and nothing new grows old here.
      if (known === undefined || !isSame(known, left)) this.rows.set(lane.key, left);
    }
  }

  /** The lane of this term with a cursor to continue from; null if it is unknown, or guesses were wrong lately. */
  recall({ lane, instanceId, token }: Fence): LockedLaneRow | null {
    const key = laneKey(lane);
    const failed = this.failed.get(key);
    if (failed !== undefined && failed.skip-- > 0) return null;
    const row = this.rows.get(key);
    if (row === undefined || row.nextNonce === null) return null;
    return row.ownerInstance === instanceId && row.token === token ? row : null;
  }

  /** A repeat in every batch, say, would cost every commit twice. */
  wasWrong(lanes: Iterable<LanePlan>): void {
    for (const { key } of lanes) {
      const failures = (this.failed.get(key)?.failures ?? 0) + 1;
      this.failed.set(key, { failures, skip: Math.min(2 ** failures, MOST_SKIPPED) });
      this.rows.delete(key);
    }
  }

  wasRight(lanes: Iterable<LanePlan>): void {
    for (const { key } of lanes) this.failed.delete(key);
    this.remember(lanes);
  }
}

const COMPARED = [
  ...(["token", "ownerInstance", "nextNonce", "suspendedBy", "departedBelow"] as const),
  ...(["policyStamp", "reconciledEpoch", "nodeId"] as const),
];

function isSame(known: LockedLaneRow, left: LockedLaneRow) {
  return COMPARED.every((member) => known[member] === left[member]);
}
