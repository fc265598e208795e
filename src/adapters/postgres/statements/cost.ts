import type { Address, Hex } from "../../../domain/lane.ts";
import type { State } from "../../../domain/transaction/transitions.ts";
import { statement } from "./statement.ts";

export interface CostRow {
  readonly txId: string;
  readonly chainId: number;
  readonly signer: Address;
  readonly owner: string | null;
  readonly state: State;
  readonly createdAt: Date;
  readonly receiver: Address | null;
  readonly fees: bigint;
  readonly value: bigint;
  readonly replacement: Hex | null;
}

/**
 * Reads what these transactions have cost. Only a final transaction has a cost, and only if one of its own payloads was
 * mined: another program's transaction at its nonce is not its cost. A cancel and a placeholder move nothing. A
 * replacement that the chain's node signed is in `queued_change`, every other one in its signed bytes. Each table has the
 * condition on the ids: a plan that was made from empty tables would otherwise walk whole indexes to merge them. IS TRUE
 * for the same reason: the index of hashes must not be walked.
 */
export const readCosts = statement<CostRow>("read-costs")`
  SELECT t.tx_id, t.chain_id, t.signer, t.owner, t.state, t.created_at,
    CASE WHEN q.tx_id IS NULL THEN p.to_address ELSE q.to_address END AS receiver,
    CASE WHEN a.tx_id IS NULL THEN 0
      ELSE r.gas_used * coalesce(r.effective_gas_price, a.max_fee_per_gas, a.gas_price) + coalesce(r.beside_gas, 0)
    END::numeric AS fees,
    CASE
      WHEN a.tx_id IS NULL OR r.status <> 'success' OR a.kind IN ('cancel', 'placeholder') THEN 0
      WHEN q.tx_id IS NOT NULL THEN q.value
      ELSE p.value
    END::numeric AS value,
    CASE WHEN a.kind = 'replace' AND r.status = 'success' THEN '0x' || encode(a.raw_transaction, 'hex') END AS replacement
  FROM fencepost.transaction AS t
  JOIN fencepost.payload AS p ON p.tx_id = ANY ($1::uuid[]) AND p.tx_id = t.tx_id
  LEFT JOIN fencepost.receipt AS r
    ON r.tx_id = ANY ($1::uuid[]) AND r.tx_id = t.tx_id AND t.state IN ('CONFIRMED', 'FAILED_FINAL')
  LEFT JOIN fencepost.attempt AS a
    ON a.tx_id = ANY ($1::uuid[]) AND a.tx_id = t.tx_id AND (a.tx_hash = r.tx_hash) IS TRUE AND NOT a.is_foreign
  LEFT JOIN fencepost.queued_change AS q
    ON q.tx_id = ANY ($1::uuid[]) AND q.tx_id = t.tx_id AND a.kind = 'replace' AND a.raw_transaction IS NULL
  WHERE t.tx_id = ANY ($1::uuid[])`;
