import { HISTORY, LIMITS } from "../opening.ts";
import type { OpenedRow } from "./open-transaction.ts";
import { statement } from "./statement.ts";

/**
 * As open-transaction.ts, for a transaction that leaves in one write: whether the history is the one known cannot be
 * asked in between, so the server ends the transaction where it is another. $6 to $9 system, timeline, epoch and the
 * least WAL position.
 */
export const openKnown = statement<OpenedRow>(
  "open-known",
  `SELECT ${LIMITS},
     seen.*,
     fencepost.require_rows(
       (
         seen.system_identifier = $6::text AND seen.timeline = $7::text AND seen.epoch = $8::integer
           AND seen.wal_position >= $9::numeric
       )::integer, 1, 'histories as known'
     )
   FROM (
     SELECT ${HISTORY}
     OFFSET 0
   ) AS seen`,
);
