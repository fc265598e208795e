import type { QueuedChange } from "../../../ports/lane-store.ts";
import { lists, names, overwritten, selected, stored } from "../rows/columns.ts";
import { PAYLOAD, type PayloadColumns } from "../rows/transaction-fields.ts";
import { statement, taking } from "./statement.ts";

/** Reads the payloads of these transactions, as their callers gave them. */
export const readPayloads = statement<PayloadRow>("read-payloads")`
  SELECT p.tx_id, p.gas_limit::numeric AS gas_limit, ${selected("p", PAYLOAD)}
  FROM fencepost.payload AS p
  WHERE p.tx_id = ANY ($1::uuid[])`;

export interface PayloadRow extends PayloadColumns {
  readonly txId: string;
  readonly gasLimit: bigint;
}

/** Reads the changed payloads of these transactions, which are signed instead of the original ones. */
export const readQueuedChanges = statement<QueuedChangeRow>("read-queued-changes")`
  SELECT q.tx_id, q.kind, q.gas_limit::numeric AS gas_limit, ${selected("q", PAYLOAD)}
  FROM fencepost.queued_change AS q
  WHERE q.tx_id = ANY ($1::uuid[])`;

export type QueuedChangeRow = PayloadRow & Pick<QueuedChange, "kind">;

const CHANGE = `kind text, gas_limit gas, ${PAYLOAD}` as const;
const CHANGED = `tx_id uuid, chain_id bigint, ${CHANGE}` as const;

/**
 * Stores a changed payload, which is signed instead of the caller's. If it is changed again before it is signed, the
 * newer one replaces it.
 */
export const writeQueuedChanges = taking(CHANGED)("write-queued-changes")`
  INSERT INTO fencepost.queued_change AS q (${names(CHANGED)})
  SELECT ${stored(CHANGED)} FROM (${lists(CHANGED)}) AS c
  ON CONFLICT (tx_id) ${overwritten(CHANGE)}`;
