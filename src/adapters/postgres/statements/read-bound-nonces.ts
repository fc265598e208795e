import { statement } from "./statement.ts";

/** The highest nonce of each lane that may have left: a transaction's, or one that a caller had reserved and not released. */
export const readBoundNonces = statement<BoundNonceRow>(
  "read-bound-nonces",
  `SELECT l.chain_id, l.signer, greatest(
     (SELECT max(t.nonce) FROM fencepost.transaction AS t WHERE t.chain_id = l.chain_id AND t.signer = l.signer),
     (
       SELECT max(r.nonce) FROM fencepost.reservation AS r
       WHERE r.chain_id = l.chain_id AND r.signer = l.signer AND r.state <> 'RELEASED'
     )
   ) AS nonce
   FROM fencepost.lane AS l
   WHERE l.signer = ANY ($1::text[]) AND l.chain_id = ANY ($2::bigint[])`,
);

export interface BoundNonceRow {
  readonly chain_id: number;
  readonly signer: string;
  readonly nonce: number | null;
}
