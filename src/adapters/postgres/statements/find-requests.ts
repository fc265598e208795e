import { statement } from "./statement.ts";

/**
 * The second idempotency check, behind the lane's lock: it sees every allocation of the lane that ever committed. Found
 * by request id; the caller drops what belongs to a lane it did not mean.
 */
export const findRequests = statement<ExistingRow>(
  "find-requests",
  `SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.nonce, t.state,
     (SELECT encode(p.fingerprint, 'hex') FROM fencepost.payload AS p WHERE p.tx_id = t.tx_id) AS fingerprint
   FROM fencepost.transaction AS t
   WHERE t.request_id = ANY ($1::text[]) AND t.owns_request AND t.request_id IS NOT NULL
     AND t.signer = ANY ($2::text[])`,
);

export interface ExistingRow {
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly nonce: number | null;
  readonly state: string;
  readonly fingerprint: string;
}
