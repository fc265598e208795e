import { statement } from "./statement.ts";

/** The newest decisions about a lane, newest first. */
export const readLaneDecisions = statement<LaneDecisionRow>(
  "read-lane-decisions",
  `SELECT d.action, d.actor, d.reason, d.node_id, d.token, d.at
   FROM fencepost.lane_decision AS d
   WHERE d.signer = $1 AND d.chain_id = $2
   ORDER BY d.decision_id DESC
   LIMIT $3`,
);

export interface LaneDecisionRow {
  readonly action: string;
  readonly actor: string;
  readonly reason: string;
  readonly node_id: string | null;
  readonly token: number;
  readonly at: Date;
}
