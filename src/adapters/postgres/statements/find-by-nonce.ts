import { statement } from "./statement.ts";

/** Whose nonce it is. */
export const findByNonce = statement<{ readonly tx_id: string }>(
  "find-by-nonce",
  `SELECT t.tx_id
   FROM fencepost.transaction AS t
   WHERE t.chain_id = $1 AND t.signer = $2 AND t.nonce = $3`,
);
