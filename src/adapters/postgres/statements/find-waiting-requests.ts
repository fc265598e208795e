import type { ExistingRow } from "./find-requests.ts";
import { statement } from "./statement.ts";

/**
 * Intake rows that wait under one of these request ids, the earliest first; the caller drops those of lanes it did not
 * mean. OFFSET 0 keeps the planner from walking the ids of everything that waits, for the sake of their order.
 */
export const findWaitingRequests = statement<ExistingRow>(
  "find-waiting-requests",
  `SELECT i.tx_id, i.chain_id, i.signer, i.request_id, NULL::bigint AS nonce, 'CREATED' AS state,
     encode(i.fingerprint, 'hex') AS fingerprint
   FROM (
     SELECT w.* FROM fencepost.intake AS w
     WHERE w.request_id = ANY ($1::text[]) AND w.request_id IS NOT NULL AND w.alias_of IS NULL
       AND w.signer = ANY ($2::text[])
     OFFSET 0
   ) AS i
   ORDER BY i.intake_id`,
);
