import { statement } from "./statement.ts";

/** The bytes of attempts, found by transaction; the caller picks the ordinals it asked for. */
export const readRawTransactions = statement<RawRow>(
  "read-raw-transactions",
  `SELECT a.tx_id, a.ordinal, encode(a.raw_transaction, 'hex') AS raw_transaction
   FROM fencepost.attempt AS a
   WHERE a.tx_id = ANY ($1::uuid[]) AND a.raw_transaction IS NOT NULL`,
);

export interface RawRow {
  readonly tx_id: string;
  readonly ordinal: number;
  readonly raw_transaction: string;
}
