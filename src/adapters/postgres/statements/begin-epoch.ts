import { statement } from "./statement.ts";

/** A new epoch of the feed, above every number that this process has seen. */
export const beginEpoch = statement<unknown>(
  "begin-epoch",
  `UPDATE fencepost.feed AS f
   SET epoch = f.epoch + 1, last_seq = greatest(f.last_seq, $1), epoch_starts_after = greatest(f.last_seq, $1)
   WHERE f.only_row`,
);
