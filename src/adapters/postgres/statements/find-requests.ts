import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists("chain_id bigint, signer text, request_id text");

/**
 * The second idempotency check, behind the lane's lock: it sees every allocation of the lane that ever committed. $1 the
 * chain, $2 the signer and $3 the id of each request, one look-up for each: lists of signers and of ids would be looked up
 * in every combination before PostgreSQL 17, a million of them for a thousand lanes with a request each. OFFSET 0 keeps
 * the planner from turning that into a join, for which it would walk the whole index.
 */
export const findRequests = statement<ExistingRow>(
  "find-requests",
  `SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.nonce, t.state,
     (SELECT encode(p.fingerprint, 'hex') FROM fencepost.payload AS p WHERE p.tx_id = t.tx_id) AS fingerprint
   FROM (${ROWS}) AS asked
   CROSS JOIN LATERAL (
     SELECT own.* FROM fencepost.transaction AS own
     WHERE own.request_id = asked.request_id AND own.signer = asked.signer AND own.chain_id = asked.chain_id
       AND own.owns_request AND own.request_id IS NOT NULL
     OFFSET 0
   ) AS t`,
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
