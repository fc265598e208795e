import type { HoleRow } from "./read-holes.ts";
import { statement } from "./statement.ts";

/** Every hole of the signers from $1 to $2. */
export const listHoles = statement<HoleRow>(
  "list-holes",
  `SELECT h.chain_id, h.signer, h.nonce, h.why, h.detail, h.reservation_id, h.since
   FROM fencepost.hole AS h
   WHERE h.signer >= $1::text AND h.signer <= $2::text
   ORDER BY h.signer, h.chain_id, h.nonce`,
);
