import { statement } from "./statement.ts";

/** From the first claim on, the network may know an attempt. Later claims change nothing here. */
export const markAttemptsSent = statement<unknown>(
  "mark-attempts-sent",
  `UPDATE fencepost.attempt AS a
   SET first_sent_at = now()
   FROM json_to_recordset($1::json) AS c(tx_id uuid, ordinal integer)
   WHERE a.tx_id = ANY ($2::uuid[]) AND a.tx_id = c.tx_id AND a.ordinal = c.ordinal AND a.first_sent_at IS NULL`,
);
