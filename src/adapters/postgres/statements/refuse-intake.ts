import { statement } from "./statement.ts";

/**
 * Intake rows that get no nonce: final at once, with both steps of their history. Their completions follow. A refused
 * row owns its request id unless somebody does already, stored or earlier in the same commit. That is asked by a
 * sub-select per row, because an anti-join would invite a plan that reads every transaction there is.
 */
export const refuseIntake = statement<unknown>(
  "refuse-intake",
  `WITH fate AS MATERIALIZED (
     SELECT * FROM json_to_recordset($1::json) AS f(
       intake_id bigint, event text, sub_state text, reason text, owns_request boolean, node_id text, token bigint
     )
   ), consumed AS (
     DELETE FROM fencepost.intake AS i USING fate AS f
     WHERE i.intake_id = ANY ($2::bigint[]) AND i.intake_id = f.intake_id
     RETURNING i.*, f.event, f.sub_state, f.reason, f.owns_request, f.node_id, f.token
   ), refused AS (
     INSERT INTO fencepost.transaction (
       tx_id, chain_id, signer, request_id, owns_request, state, sub_state, live, outcome, history_count, last_event,
       last_error, created_at, updated_at
     )
     SELECT c.tx_id, c.chain_id, c.signer, c.request_id,
       c.owns_request
         AND row_number() OVER (PARTITION BY c.owns_request, c.chain_id, c.signer, c.request_id ORDER BY c.intake_id) = 1
         AND (
           SELECT count(*) FROM fencepost.transaction AS t
           WHERE t.request_id = c.request_id AND t.owns_request AND t.request_id IS NOT NULL
             AND t.signer = c.signer AND t.chain_id = c.chain_id
         ) = 0,
       'FAILED_FINAL', c.sub_state, false, 'FAILED_FINAL', 2, c.event, c.reason, c.created_at, now()
     FROM consumed AS c
     RETURNING 1
   ), payload AS (
     INSERT INTO fencepost.payload (
       tx_id, chain_id, to_address, data, value, gas, fee_type, gas_price, max_fee_per_gas, max_priority_fee_per_gas,
       access_list, metadata, fingerprint
     )
     SELECT tx_id, chain_id, to_address, data, value, gas, fee_type, gas_price, max_fee_per_gas,
       max_priority_fee_per_gas, access_list, metadata, fingerprint
     FROM consumed
   ), history AS (
     INSERT INTO fencepost.step (
       tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, first_at, last_at
     )
     SELECT tx_id, 1, chain_id, 'accept', NULL, 'CREATED', NULL, NULL, NULL, NULL, created_at, created_at FROM consumed
     UNION ALL
     SELECT tx_id, 2, chain_id, event, 'CREATED', 'FAILED_FINAL', sub_state, node_id, token, reason, now(), now()
     FROM consumed
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM refused), $3, 'refused intake rows')`,
);
