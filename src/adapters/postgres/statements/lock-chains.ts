import { statement } from "./statement.ts";

/**
 * Two nodes may store blocks of one chain under fences of different lanes. They take turns here: after the lanes, before
 * the feed, chains ascending.
 */
export const lockChains = statement<unknown>(
  "lock-chains",
  `SELECT pg_advisory_xact_lock(hashtextextended('fencepost confirmation ' || c.chain_id, 0))
   FROM unnest($1::bigint[]) AS c(chain_id)`,
);
