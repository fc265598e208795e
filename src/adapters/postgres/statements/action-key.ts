import type { Hex, Lane } from "../../../domain/lane.ts";
import type { ActionKey } from "../../../ports/lane-store.ts";
import { lists, names, stored } from "../rows/columns.ts";
import { taking } from "./statement.ts";

const KEPT = "subject text, key text, signer text, chain_id bigint";
const CARRIED_OUT = `${KEPT}, fingerprint bytea` as const;

/**
 * Stores idempotency keys of operator actions by plain inserts: a key that already exists must end the commit. Some
 * keys that are too old to be repeated (docs/errors.md) are deleted as well, except rows that another commit has
 * locked.
 */
export const insertActionKeys = taking(CARRIED_OUT)("insert-action-keys")`
  WITH old AS (
    DELETE FROM fencepost.order_key WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM fencepost.order_key AS k
      WHERE k.carried_out_at < now() - interval '30 days'
      ORDER BY k.carried_out_at LIMIT 50 FOR UPDATE SKIP LOCKED
    ))
  )
  INSERT INTO fencepost.order_key (${names(CARRIED_OUT)}, carried_out_at)
  SELECT ${stored(CARRIED_OUT)}, now() FROM (${lists(CARRIED_OUT)}) AS o`;

/**
 * Finds idempotency keys of operator actions. $1 to $4, an array each: the id that the action is about, key, signer and
 * chain. Each key is one index look-up.
 */
export const findActionKeys = taking(KEPT)<ActionKeyRow>("find-action-keys")`
  SELECT k.subject, k.key, k.signer, k.chain_id, '0x' || encode(k.fingerprint, 'hex') AS fingerprint
  FROM (${lists(KEPT)}) AS asked
  CROSS JOIN LATERAL (
    SELECT own.* FROM fencepost.order_key AS own
    WHERE own.subject = asked.subject AND own.key = asked.key AND own.signer = asked.signer
      AND own.chain_id = asked.chain_id
    OFFSET 0
  ) AS k`;

export type ActionKeyRow = ActionKey & Lane & { readonly fingerprint: Hex };
