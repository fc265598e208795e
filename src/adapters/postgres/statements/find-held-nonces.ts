import { statement } from "./statement.ts";

/** Which of these nonces a transaction has, whatever became of it. */
export const findHeldNonces = statement<HeldNonceRow>(
  "find-held-nonces",
  `SELECT t.chain_id, t.signer, t.nonce
   FROM fencepost.transaction AS t
   WHERE t.signer = ANY ($1::text[]) AND t.chain_id = ANY ($2::bigint[]) AND t.nonce = ANY ($3::bigint[])`,
);

export interface HeldNonceRow {
  readonly chain_id: number;
  readonly signer: string;
  readonly nonce: number;
}
