import { statement } from "./statement.ts";

/** As the first half of insert-transactions.ts, for what nobody had accepted before. Its rows: commit/copies.ts. */
export const copyTransactions = statement<unknown>(
  "copy-transactions",
  `COPY fencepost.transaction (
     tx_id, chain_id, signer, request_id, nonce, state, history_count, last_event, created_at, updated_at
   ) FROM STDIN`,
);
