import type { ExistingRow } from "./find-requests.ts";
import { statement } from "./statement.ts";

/** Intake rows that wait under one of these request ids, the earliest first. */
export const findWaitingRequests = statement<ExistingRow>(
  "find-waiting-requests",
  `SELECT i.tx_id, i.chain_id, i.signer, i.request_id, NULL::bigint AS nonce, 'CREATED' AS state,
     encode(i.fingerprint, 'hex') AS fingerprint
   FROM fencepost.intake AS i
   WHERE i.request_id = ANY ($1::text[]) AND i.request_id IS NOT NULL AND i.alias_of IS NULL
     AND i.chain_id = $2 AND i.signer = $3
   ORDER BY i.intake_id`,
);
