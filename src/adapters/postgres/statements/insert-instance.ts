import { statement } from "./statement.ts";

/**
 * Begins an instance. All times are the clock of the database at that moment, not of the transaction's start. $11: the
 * marker of the transaction where it leaves in one write, else null.
 */
export const insertInstance = statement<unknown>(
  "insert-instance",
  `INSERT INTO fencepost.node_instance (
     instance_id, node_id, url, version, mode, started_at, heartbeat_at, expires_at, chains, signers,
     stands_back, knows_migration
   )
   SELECT $1, $2, $3, $4, $5, c.now, c.now, c.now + $6::bigint * interval '1 millisecond', $7::bigint[], $8::text[],
     $9::boolean, $10
   FROM (SELECT clock_timestamp() AS now) AS c
   WHERE fencepost.require_open($11)`,
);
