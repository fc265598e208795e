import { statement } from "./statement.ts";

/** Receipts whose block left the canonical chain. */
export const deleteReceipts = statement<unknown>(
  "delete-receipts",
  "DELETE FROM fencepost.receipt AS r WHERE r.tx_id = ANY ($1::uuid[])",
);
