/**
 * What the statements of pages share.
 *
 * A page is merged from one walk of an index for each chain. Each walk compares and orders rows by the whole key of its
 * index: then no other index gives that order, and with sorting out of favour (prefer-order.ts) it is this one that is
 * walked, from where the page before ended, whatever a plan for unknown parameters believes about sizes. A condition that may be absent (`$4 IS NULL OR …`) would have it walk the
 * whole table for rows that are not there.
 */

/** The chains, as a table `scope`: the one that was asked for ($4), else all that have lanes. */
export const CHAINS = `
  scope AS MATERIALIZED (
    SELECT $4::bigint AS chain_id WHERE $4 IS NOT NULL
    UNION
    SELECT l.chain_id FROM fencepost.lane AS l WHERE $4::bigint IS NULL
  )`;

/** The same for one signer, the parameter of that number. */
export const chainsOf = (signer: "$5" | "$6"): string => `
  scope AS MATERIALIZED (
    SELECT $4::bigint AS chain_id WHERE $4 IS NOT NULL
    UNION
    SELECT l.chain_id FROM fencepost.lane AS l WHERE $4::bigint IS NULL AND l.signer = ${signer}::text
  )`;

const FIRST = "'00000000-0000-0000-0000-000000000000'";
const LAST = "'ffffffff-ffff-ffff-ffff-ffffffffffff'";

/** An index that ends in the id, what its other columns must be, and its rows' condition. */
export interface Walk {
  readonly key: readonly string[];
  readonly is: readonly string[];
  readonly where: string;
  /** Of the walk as a whole, where it is not always wanted. */
  readonly when?: string;
}

/** $1 the order, $2 where the page before ended, $3 how many. Only the half whose order was asked for is executed. */
export function walk(of: Walk): string {
  return `${half(of, "newest")}\n   UNION ALL\n${half(of, "oldest")}`;
}

function half({ key, is, where, when }: Walk, order: "newest" | "oldest"): string {
  const newest = order === "newest";
  const columns = key.map((column) => `t.${column}`);
  const direction = newest ? " DESC" : "";
  const end = newest ? `coalesce($2::uuid, ${LAST})` : `coalesce($2::uuid, ${FIRST})`;
  return `   (
     SELECT page.tx_id FROM scope CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE (${[...columns, "t.tx_id"].join(", ")}) ${newest ? "<" : ">"} (${[...is, end].join(", ")})
         AND (${columns.join(", ")}) ${newest ? ">=" : "<="} (${is.join(", ")})
         AND ${where}
       ORDER BY ${[...columns, "t.tx_id"].map((column) => column + direction).join(", ")} LIMIT $3
     ) AS page
     WHERE $1::text = '${order}'${when === undefined ? "" : ` AND ${when}`}
     ORDER BY page.tx_id${direction} LIMIT $3
   )`;
}

/** Collecting so many is as good as walking. */
const FEW = 1_000;

/**
 * Live rows in one state ($5), which no index knows: it changes at every step, and every step would write every index
 * again. Where they are the smaller part of what is live in the scope, by the kept counts, they are collected as a table
 * `few`: every lane's by nonce, from the end where they lie (what waits to be signed is the newest, everything else the
 * oldest), and no further than the last of them. Where they are the larger part (`live.many`), a walk by id soon meets
 * them. Either way no more rows are looked at than the smaller part has. `ofLane`: a condition on `c`, the kept counts.
 */
export const liveIn = (ofLane: string): string => `
  kept AS MATERIALIZED (
    SELECT c.signer, c.chain_id, c.state, c.count FROM scope JOIN fencepost.live_count AS c ON c.chain_id = scope.chain_id
    WHERE c.state IN ('ALLOCATED', 'TRACKING', 'STUCK', 'CONFIRMED', 'FAILED_FINAL') AND ${ofLane}
  ),
  live AS MATERIALIZED (
    SELECT coalesce(sum(k.count) FILTER (WHERE k.state = $5), 0)
      > greatest(${FEW}, sum(k.count) FILTER (WHERE k.state <> $5)) AS many
    FROM kept AS k
  ),
  few AS MATERIALIZED (
    SELECT low.tx_id FROM kept AS k CROSS JOIN LATERAL (
      SELECT t.tx_id FROM fencepost.transaction AS t
      WHERE t.chain_id = k.chain_id AND t.signer = k.signer AND t.live AND t.state = $5
      ORDER BY t.nonce LIMIT k.count
    ) AS low
    WHERE k.state = $5 AND k.count > 0 AND $5::text <> 'ALLOCATED' AND NOT (SELECT live.many FROM live)
    UNION ALL
    SELECT high.tx_id FROM kept AS k CROSS JOIN LATERAL (
      SELECT t.tx_id FROM fencepost.transaction AS t
      WHERE t.chain_id = k.chain_id AND t.signer = k.signer AND t.live AND t.state = $5
      ORDER BY t.nonce DESC LIMIT k.count
    ) AS high
    WHERE k.state = $5 AND k.count > 0 AND $5::text = 'ALLOCATED' AND NOT (SELECT live.many FROM live)
  )`;

/** A page of what was collected. */
export const FEW_OF_THEM = `   (
     SELECT f.tx_id FROM few AS f
     WHERE $1::text = 'newest' AND f.tx_id < coalesce($2::uuid, ${LAST})
     ORDER BY f.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT f.tx_id FROM few AS f
     WHERE $1::text = 'oldest' AND f.tx_id > coalesce($2::uuid, ${FIRST})
     ORDER BY f.tx_id LIMIT $3
   )`;

export const MANY = "(SELECT live.many FROM live)";
