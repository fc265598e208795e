/**
 * Which chains a page is merged from, as a table `scope`: the one that was asked for ($4), else all that have lanes. Few,
 * so that one walk of an index for each of them costs little; and never a condition that may be absent, because a plan for
 * parameters that it does not know would then walk the whole table for rows that are not there.
 */
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

/** Up to so many rows are found lane by lane and sorted; more of them are so many that walking by id soon meets them. */
const FEW = 10_000;

/**
 * Live rows in one state, as a table `few` of ids where they are few by the kept counts: every lane's live ones by nonce,
 * from the end where they lie (what waits to be signed is the newest, everything else the oldest) and no further than the
 * last of them. `lanes` are the counts to look at, $5 the state.
 */
export const fewOf = (lanes: string): string => `
  kept AS MATERIALIZED (${lanes}),
  total AS MATERIALIZED (SELECT coalesce(sum(k.count), 0) > ${FEW} AS many FROM kept AS k),
  few AS MATERIALIZED (
    SELECT low.tx_id FROM kept AS k CROSS JOIN LATERAL (
      SELECT t.tx_id FROM fencepost.transaction AS t
      WHERE t.chain_id = k.chain_id AND t.signer = k.signer AND t.live AND t.state = $5
      ORDER BY t.nonce LIMIT k.count
    ) AS low
    WHERE $5::text <> 'ALLOCATED' AND NOT (SELECT total.many FROM total)
    UNION ALL
    SELECT high.tx_id FROM kept AS k CROSS JOIN LATERAL (
      SELECT t.tx_id FROM fencepost.transaction AS t
      WHERE t.chain_id = k.chain_id AND t.signer = k.signer AND t.live AND t.state = $5
      ORDER BY t.nonce DESC LIMIT k.count
    ) AS high
    WHERE $5::text = 'ALLOCATED' AND NOT (SELECT total.many FROM total)
  )`;
