import { statement } from "./statement.ts";

/**
 * Settled transactions of these lanes that were mined at or below a block. A chain mines a lane in nonce order, so they
 * are the lowest of what is live: a page of that is looked at, and no more, however much is pending behind it.
 */
export const findUnwatchable = statement<UnwatchableRow>(
  "find-unwatchable",
  `SELECT k.chain_id, k.signer, t.tx_id, t.state
   FROM json_to_recordset($1::json) AS k(chain_id bigint, signer text, through_block bigint)
   CROSS JOIN LATERAL (
     SELECT low.tx_id, low.state
     FROM fencepost.transaction AS low
     WHERE low.chain_id = k.chain_id AND low.signer = k.signer AND low.live
     ORDER BY low.nonce
     LIMIT $2
   ) AS t
   WHERE t.state IN ('CONFIRMED', 'FAILED_FINAL')
     AND (SELECT r.block_number FROM fencepost.receipt AS r WHERE r.tx_id = t.tx_id) <= k.through_block`,
);

export interface UnwatchableRow {
  readonly chain_id: number;
  readonly signer: string;
  readonly tx_id: string;
  readonly state: string;
}
