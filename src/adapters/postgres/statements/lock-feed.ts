import { statement } from "./statement.ts";

/** The feed's counter, held by a registration that may have to begin a new epoch. */
export const lockFeed = statement<{ readonly epoch: number; readonly last_seq: number }>(
  "lock-feed",
  "SELECT f.epoch, f.last_seq FROM fencepost.feed AS f WHERE f.only_row FOR NO KEY UPDATE",
);
