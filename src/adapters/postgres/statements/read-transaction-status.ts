import { statement } from "./statement.ts";

/** What became of a database transaction: committed, aborted, in progress, or null where it is too long ago. */
export const readTransactionStatus = statement<TransactionStatusRow>(
  "read-transaction-status",
  "SELECT pg_xact_status($1::xid8) AS status",
);

export interface TransactionStatusRow {
  readonly status: "committed" | "aborted" | "in progress" | null;
}
