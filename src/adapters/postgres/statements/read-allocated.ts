import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/** A page of what waits to be signed, in nonce order. The page is found first, then its payloads by key. */
export const readAllocated = statement<AllocatedRow>(
  "read-allocated",
  `WITH page AS MATERIALIZED (
     SELECT t.tx_id, t.nonce, t.request_id, t.created_at, t.attempt_count
     FROM fencepost.transaction AS t
     WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state = 'ALLOCATED' AND t.nonce >= $3
     ORDER BY t.nonce
     LIMIT $4
   )
   SELECT page.tx_id, page.nonce, page.request_id, page.created_at, page.attempt_count, p.to_address, encode(p.data, 'hex') AS data, p.value,
     p.gas, p.gas_limit, p.fee_type, p.gas_price, p.max_fee_per_gas, p.max_priority_fee_per_gas, p.access_list
   FROM page
   JOIN fencepost.payload AS p ON p.tx_id = page.tx_id
   WHERE p.tx_id = ANY (ARRAY(SELECT page.tx_id FROM page))
   ORDER BY page.nonce`,
);

export interface AllocatedRow extends PayloadColumns {
  readonly tx_id: string;
  readonly nonce: number;
  readonly request_id: string | null;
  readonly created_at: Date;
  readonly gas_limit: number;
  /** More than none where it was signed at another nonce before. */
  readonly attempt_count: number;
}
