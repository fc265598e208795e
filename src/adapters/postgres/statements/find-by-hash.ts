import { statement } from "./statement.ts";

/** Which transaction an attempt's hash belongs to, old attempts too; one per chain at most. */
export const findByHash = statement<{ readonly tx_id: string }>(
  "find-by-hash",
  "SELECT a.tx_id FROM fencepost.attempt AS a WHERE a.tx_hash = $1",
);
