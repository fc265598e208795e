import { statement } from "./statement.ts";

/** Where every lane stands as a new epoch begins. Written by the registration that begins it, before anybody allocates. */
export const recordEpochFloors = statement<unknown>(
  "record-epoch-floors",
  `INSERT INTO fencepost.epoch_floor (chain_id, signer, next_nonce)
   SELECT l.chain_id, l.signer, l.next_nonce FROM fencepost.lane AS l WHERE l.next_nonce IS NOT NULL
   ON CONFLICT (signer, chain_id) DO UPDATE SET next_nonce = excluded.next_nonce`,
);
