import type { Hex, Lane } from "../../../domain/lane.ts";
import type { OrderKey } from "../../../ports/lane-store.ts";
import { lists, names } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const KEPT = "subject text, key text, signer text, chain_id bigint";

/**
 * Plain inserts: a key that is kept already must end the commit. Some of those that are older than anybody repeats an order
 * (docs/errors.md) are thrown away on the way; what another commit throws away at the same time is passed over.
 */
export const insertOrderKeys = statement("insert-order-keys")`
  WITH old AS (
    DELETE FROM fencepost.order_key WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM fencepost.order_key AS k
      WHERE k.carried_out_at < now() - interval '30 days'
      ORDER BY k.carried_out_at LIMIT 50 FOR UPDATE SKIP LOCKED
    ))
  )
  INSERT INTO fencepost.order_key (${names(KEPT)}, fingerprint, carried_out_at)
  SELECT ${names(KEPT)}, decode(fingerprint, 'hex'), now()
  FROM json_to_recordset($1::json) AS o(${KEPT}, fingerprint text)`;

/** $1 to $4: subject, key, signer and chain of each; one look-up for each, as of request ids. */
export const findOrderKeys = taking(
  KEPT,
  statement<OrderKeyRow>("find-order-keys")`
  SELECT k.subject, k.key, k.signer, k.chain_id, '0x' || encode(k.fingerprint, 'hex') AS fingerprint
  FROM (${lists(KEPT)}) AS asked
  CROSS JOIN LATERAL (
    SELECT own.* FROM fencepost.order_key AS own
    WHERE own.subject = asked.subject AND own.key = asked.key AND own.signer = asked.signer
      AND own.chain_id = asked.chain_id
    OFFSET 0
  ) AS k`,
);

export type OrderKeyRow = OrderKey & Lane & { readonly fingerprint: Hex };
