import { type Fence, type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { LanePlan } from "./plan.ts";

/**
 * After a commit planned from a lane's remembered state failed, the memory of the lane is not used for some commits.
 * Their number doubles with each failure in a row, up to this limit.
 */
const MOST_SKIPPED = 64;
/**
 * Number of remembered lanes at which all are forgotten, to bound memory; each is remembered again with its next
 * commit.
 */
const MOST_LANES = 20_000;

/**
 * Lanes as this process's last commits left them. A wrong entry does no harm: before a commit planned from memory takes
 * effect, the server compares each remembered lane with its locked row.
 */
export class RememberedLanes {
  private readonly rows = new Map<LaneKey, LockedLaneRow>();
  private readonly failed = new Map<LaneKey, { failures: number; skip: number }>();

  remember(lanes: Iterable<LanePlan>): void {
    if (this.rows.size > MOST_LANES) this.rows.clear();
    for (const lane of lanes) {
      const known = this.rows.get(lane.key);
      const left = lane.left();
      // Keep the known row if nothing changed, as in four of five commits, so that no new object survives garbage
      // collection.
      if (known === undefined || !isSame(known, left)) this.rows.set(lane.key, left);
    }
  }

  /**
   * Returns the lane as remembered under this term, with its next nonce. Null if it is unknown, or if a commit planned
   * from memory failed recently.
   */
  recall({ lane, instanceId, token }: Fence): LockedLaneRow | null {
    const key = laneKey(lane);
    const failed = this.failed.get(key);
    if (failed !== undefined && failed.skip-- > 0) return null;
    const row = this.rows.get(key);
    if (row === undefined || row.nextNonce === null) return null;
    return row.ownerInstance === instanceId && row.token === token ? row : null;
  }

  /**
   * Stops using the memory of these lanes for a while, because a commit planned from it failed: for example, the lane
   * had changed, or a request id existed already. Otherwise a lane for which this happens often would need two attempts
   * for every commit.
   */
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
