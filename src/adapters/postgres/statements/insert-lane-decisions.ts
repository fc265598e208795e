import { statement } from "./statement.ts";

/** Who decided what about a lane, in the transaction that did it. */
export const insertLaneDecisions = statement<unknown>(
  "insert-lane-decisions",
  `INSERT INTO fencepost.lane_decision (chain_id, signer, action, actor, reason, node_id, token, at)
   SELECT chain_id, signer, action, actor, reason, node_id, token, now()
   FROM json_to_recordset($1::json) AS d(
     chain_id bigint, signer text, action text, actor text, reason text, node_id text, token bigint
   )`,
);
