import { statement } from "./statement.ts";

/** Registrations take turns in judging the history. Not by the feed's row: completions must not wait for them. */
export const lockRegistration = statement<unknown>(
  "lock-registration",
  "SELECT pg_advisory_xact_lock(hashtextextended('fencepost registration', 0))",
);
