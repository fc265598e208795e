import { statement } from "./statement.ts";

/**
 * Ends the transaction unless the history is the one that this process goes on in: what judge-history.ts finds out in two
 * round trips, for the one case in which nothing is to be decided. $1 system, $2 timeline, $3 epoch; $4 the highest of the
 * feed that was told; $5 this store, $6 its slots and $7, for each, the markers of which one must be there, joined by
 * commas; $8 the newest migration known.
 */
export const proveContinuity = statement<unknown>(
  "prove-continuity",
  `SELECT fencepost.require_rows(
     (
       SELECT count(*)
       FROM (SELECT * FROM fencepost.database_history AS newest ORDER BY newest.ordinal DESC LIMIT 1) AS h
       WHERE h.system_identifier = $1 AND h.timeline = $2 AND h.epoch = $3::integer
         AND NOT h.may_have_lost AND h.wal_position <= (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric
         AND (SELECT f.last_seq FROM fencepost.feed AS f WHERE f.only_row) >= $4::bigint
         AND (
           SELECT count(*)
           FROM unnest($6::integer[], $7::text[]) AS expected (slot, markers)
           JOIN fencepost.commit_marker AS m ON m.store_id = $5::uuid AND m.slot = expected.slot
           WHERE m.marker::text = ANY (string_to_array(expected.markers, ','))
         ) = cardinality($6::integer[])
         AND (SELECT count(*) FROM fencepost.migration AS later WHERE later.name > $8) = 0
     )::integer, 1, 'histories that go on'
   )`,
);
