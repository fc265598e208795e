import { statement } from "./statement.ts";

/** Every transaction and waiting intake row under a request id, on whatever lane, refused ones too. */
export const findByRequest = statement<{ readonly tx_id: string }>(
  "find-by-request",
  `SELECT t.tx_id FROM fencepost.transaction AS t
   WHERE t.request_id = $1 AND t.owns_request AND t.request_id IS NOT NULL
   UNION ALL
   SELECT t.tx_id FROM fencepost.transaction AS t
   WHERE t.request_id = $1 AND NOT t.owns_request AND t.request_id IS NOT NULL
   UNION ALL
   SELECT i.tx_id FROM fencepost.intake AS i
   WHERE i.request_id = $1 AND i.request_id IS NOT NULL AND i.alias_of IS NULL`,
);
