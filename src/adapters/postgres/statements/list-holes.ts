import type { HoleRow } from "./read-holes.ts";
import { statement } from "./statement.ts";

/** Every hole there is, of one signer where given. */
export const listHoles = statement<HoleRow>(
  "list-holes",
  `SELECT h.chain_id, h.signer, h.nonce, h.why, h.detail, h.reservation_id, h.since
   FROM fencepost.hole AS h
   WHERE ($1::text IS NULL OR h.signer = $1)
   ORDER BY h.signer, h.chain_id, h.nonce`,
);
