import { statement } from "./statement.ts";

/** Nonces of these lanes that nothing holds, lowest first. */
export const readHoles = statement<HoleRow>(
  "read-holes",
  `SELECT h.chain_id, h.signer, h.nonce, h.why, h.detail, h.reservation_id, h.since
   FROM fencepost.hole AS h
   WHERE h.signer = ANY ($1::text[]) AND h.chain_id = ANY ($2::bigint[])
   ORDER BY h.signer, h.chain_id, h.nonce`,
);

export interface HoleRow {
  readonly chain_id: number;
  readonly signer: string;
  readonly nonce: number;
  readonly why: string;
  readonly detail: string;
  readonly reservation_id: string | null;
  readonly since: Date;
}
