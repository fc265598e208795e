import type { QueuedChange } from "../../../ports/lane-store.ts";
import { names, overwritten, type PayloadColumns, payloadOf } from "../columns.ts";
import { statement } from "./statement.ts";

/** What these transactions say, as their callers gave it. */
export const readPayloads = statement<PayloadRow>("read-payloads")`
  SELECT p.tx_id, p.gas_limit::numeric AS gas_limit, ${payloadOf("p")}
  FROM fencepost.payload AS p
  WHERE p.tx_id = ANY ($1::uuid[])`;

export interface PayloadRow extends PayloadColumns {
  readonly txId: string;
  readonly gasLimit: bigint;
}

/** What is to be signed instead of the payloads of these transactions. */
export const readQueuedChanges = statement<QueuedChangeRow>("read-queued-changes")`
  SELECT q.tx_id, q.kind, q.gas_limit::numeric AS gas_limit, ${payloadOf("q")}
  FROM fencepost.queued_change AS q
  WHERE q.tx_id = ANY ($1::uuid[])`;

export type QueuedChangeRow = PayloadRow & Pick<QueuedChange, "kind">;

const CHANGE = `kind text, to_address text, data text, value numeric, gas bigint, gas_limit bigint, fee_type text,
  gas_price numeric, max_fee_per_gas numeric, max_priority_fee_per_gas numeric, access_list jsonb`;

/** What is signed instead of the caller's payload. Changed twice before it was signed, the last one counts. */
export const writeQueuedChanges = statement("write-queued-changes")`
  INSERT INTO fencepost.queued_change AS q (tx_id, chain_id, ${names(CHANGE)})
  SELECT tx_id, chain_id, kind, to_address, decode(data, 'hex'), value, gas, gas_limit, fee_type, gas_price,
    max_fee_per_gas, max_priority_fee_per_gas, access_list
  FROM json_to_recordset($1::json) AS c(tx_id uuid, chain_id bigint, ${CHANGE})
  ON CONFLICT (tx_id) ${overwritten(CHANGE)}`;
