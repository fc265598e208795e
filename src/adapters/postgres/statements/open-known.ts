import { HISTORY, LIMITS } from "../opening.ts";
import type { OpenedRow } from "./open-transaction.ts";
import { statement } from "./statement.ts";

/**
 * As open-transaction.ts, for a transaction that leaves in one write: whether the history is the one known cannot be
 * asked in between, so the server ends the transaction where it is another. $6 is the transaction's marker, by which its
 * other statements know that it is open; $7 to $10 system, timeline, epoch and the least WAL position.
 */
export const openKnown = statement<OpenedRow>(
  "open-known",
  `SELECT ${LIMITS},
     set_config('fencepost.transaction', $6, true),
     seen.*,
     fencepost.require_rows(
       (
         seen.system_identifier = $7::text AND seen.timeline = $8::text AND seen.epoch = $9::integer
           AND seen.wal_position >= $10::numeric
       )::integer, 1, 'histories as known'
     )
   FROM (
     SELECT ${HISTORY}
     OFFSET 0
   ) AS seen`,
);
