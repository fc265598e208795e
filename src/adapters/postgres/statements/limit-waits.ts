import { statement } from "./statement.ts";

/** Before the writing half of a transaction: what is left of its time, and the short wait for the feed's counter. */
export const limitWaits = statement<unknown>(
  "limit-waits",
  "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)",
);
