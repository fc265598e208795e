import { statement } from "./statement.ts";

/** A new epoch of the feed ($1), above $2. */
export const beginEpoch = statement<unknown>(
  "begin-epoch",
  `UPDATE fencepost.feed AS f
   SET epoch = $1, last_seq = greatest(f.last_seq, $2), epoch_starts_after = greatest(f.last_seq, $2)
   WHERE f.only_row`,
);
