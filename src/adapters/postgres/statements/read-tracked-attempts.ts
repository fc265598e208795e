import type { AttemptRow } from "./read-attempts.ts";
import { statement } from "./statement.ts";

/** Every attempt of what a lane's owner follows. The ids are collected first, so that attempts are found by key. */
export const readTrackedAttempts = statement<AttemptRow>(
  "read-tracked-attempts",
  `SELECT a.tx_id, a.ordinal, a.kind, a.tx_hash, a.gas, a.fee_type, a.gas_price, a.max_fee_per_gas,
     a.max_priority_fee_per_gas, a.is_foreign, a.node_signed, a.created_at, a.first_sent_at
   FROM fencepost.attempt AS a
   WHERE a.tx_id = ANY (ARRAY(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('TRACKING', 'STUCK')
     ORDER BY t.nonce
   ))
   ORDER BY a.tx_id, a.ordinal`,
);
