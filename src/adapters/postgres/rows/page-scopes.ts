/**
 * Common parts of the statements of pages.
 *
 * A page is merged from one index walk for each chain. The index has one number in front of the id, and the walk
 * compares and orders rows by both: so it begins at the end of the page before, and ends with the entries of that
 * number. With a second column in front of the id a server before 18 would not end it, but go on over the entries of
 * all other signers. No other index gives that order, and with sorting disfavoured (`preferOrder`) this one is walked,
 * also by a plan for unknown parameters that is wrong about sizes. An optional condition (`$4 IS NULL OR …`) would make
 * it walk the whole table for rows that do not exist.
 */

/** The chains, as a table `scope`: the requested one ($4), else all that have lanes, of one signer if given. */
export const chainsOf = (signer?: "$5" | "$6") => `
  scope AS MATERIALIZED (
    SELECT $4::bigint AS chain_id WHERE $4 IS NOT NULL
    UNION
    SELECT l.chain_id FROM fencepost.lane AS l
    WHERE $4::bigint IS NULL${signer === undefined ? "" : ` AND l.signer = ${signer}::text`}
  )`;

/** For an intake row that is no alias. */
export const WAITING_CHAIN = "CASE WHEN t.alias_of IS NULL THEN t.chain_id END";

/** The same for what waits in the intake table, whose lanes need not be known yet: one look for each chain there. */
export const CHAINS_OF_INTAKE = `
  scope AS MATERIALIZED (
    WITH RECURSIVE waiting (chain_id) AS (
      SELECT coalesce($4::bigint, ${nextInIntake("0")})
      UNION ALL
      SELECT ${nextInIntake("waiting.chain_id")} FROM waiting WHERE waiting.chain_id IS NOT NULL AND $4 IS NULL
    )
    SELECT waiting.chain_id FROM waiting WHERE waiting.chain_id IS NOT NULL
  )`;

function nextInIntake(after: string) {
  return `(
        SELECT t.chain_id FROM fencepost.intake AS t WHERE ${WAITING_CHAIN} > ${after} ORDER BY ${WAITING_CHAIN}, t.tx_id LIMIT 1
      )`;
}

const FIRST = "'00000000-0000-0000-0000-000000000000'";
const LAST = "'ffffffff-ffff-ffff-ffff-ffffffffffff'";

/** An index of a number and the id: the number of a row `t`, the one that is asked for, and what must be true besides. */
export interface Walk {
  readonly number: string;
  readonly is: string;
  readonly where: string;
  readonly table?: "transaction" | "intake";
  /** Instead of `scope`. */
  readonly from?: string;
}

/** $1 the order, $2 the end of the page before, $3 how many. Only the half with the requested order is executed. */
export function walk(of: Walk): string {
  return `${half(of, "newest")}\n   UNION ALL\n${half(of, "oldest")}`;
}

function half(of: Walk, order: "newest" | "oldest") {
  const { number, is, where, table = "transaction", from = "scope" } = of;
  const [direction, beyond, within, end] = order === "newest" ? [" DESC", "<", ">=", LAST] : ["", ">", "<=", FIRST];
  return `   (
     SELECT page.tx_id FROM ${from} CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.${table} AS t
       WHERE (${number}, t.tx_id) ${beyond} (${is}, coalesce($2::uuid, ${end})) AND ${number} ${within} ${is}
         AND ${where}
       ORDER BY ${number}${direction}, t.tx_id${direction} LIMIT $3
     ) AS page
     WHERE $1::text = '${order}'
     ORDER BY page.tx_id${direction} LIMIT $3
   )`;
}

/** Collecting so many is as good as walking. */
const FEW = 1_000;

/**
 * Live rows in one state ($5). No index has the state: it changes at every step, and every step would write every index
 * again. If these rows are the smaller part of a chain's live rows, by the kept counts, they are collected as a table
 * `few`: for every lane by nonce, from the end at which they are (unsigned ones are the newest, all others the oldest),
 * and no further than the last of them. If they are the larger part (`live.many`), a walk by id soon finds them. Either
 * way no more rows are read than the smaller part has. `ofLane`: a condition on `c`, the kept counts. `met`: a table of
 * chains and ids; a chain with a full page in it is not collected.
 */
export const liveIn = (ofLane: string, met = NONE_MET) => `
  kept AS MATERIALIZED (
    SELECT c.signer, c.chain_id, c.state, c.count FROM scope JOIN fencepost.live_count AS c ON c.chain_id = scope.chain_id
    WHERE c.state IN ('ALLOCATED', 'TRACKING', 'STUCK', 'CONFIRMED', 'FAILED_FINAL') AND ${ofLane}
  ),
  live AS MATERIALIZED (
    SELECT sums.chain_id, sums.own, sums.settled, sums.own > greatest(${FEW}, sums.others) AS many FROM (
      SELECT k.chain_id, coalesce(sum(k.count) FILTER (WHERE k.state = $5), 0)::bigint AS own,
        coalesce(sum(k.count) FILTER (WHERE k.state <> $5), 0)::bigint AS others,
        coalesce(sum(k.count) FILTER (WHERE k.state IN ('CONFIRMED', 'FAILED_FINAL')), 0)::bigint AS settled
      FROM kept AS k GROUP BY k.chain_id
    ) AS sums
  ),
  ${met},
  lane AS MATERIALIZED (
    SELECT k.chain_id, k.signer, k.count FROM kept AS k JOIN live ON live.chain_id = k.chain_id
    WHERE k.state = $5 AND k.count > 0 AND NOT live.many
      AND live.chain_id NOT IN (SELECT met.chain_id FROM met GROUP BY met.chain_id HAVING count(*) >= $3)
  ),
  few AS MATERIALIZED (
    ${stateOfLane("t.nonce", "$5::text <> 'ALLOCATED'")}
    UNION ALL
    ${stateOfLane("t.nonce DESC", "$5::text = 'ALLOCATED'")}
    UNION
    SELECT met.tx_id FROM met
  )`;

function stateOfLane(order: "t.nonce" | "t.nonce DESC", where: string) {
  return `SELECT own.tx_id FROM lane CROSS JOIN LATERAL (
      SELECT t.tx_id FROM fencepost.transaction AS t
      WHERE t.chain_id = lane.chain_id AND t.signer = lane.signer AND t.live AND t.state = $5
      ORDER BY ${order} LIMIT lane.count
    ) AS own
    WHERE ${where}`;
}

const NONE_MET = "met AS MATERIALIZED (SELECT live.chain_id, NULL::uuid AS tx_id FROM live WHERE false)";

/**
 * Rows in flight are a window for each lane, too many to collect with many lanes. But the newest were signed last, and
 * the oldest are the oldest live ones, except for those that are settled and still watched: a short read there mostly
 * finds a page of them. Every row in flight was signed (CHECK transaction_signed), and has a first attempt.
 */
export const IN_FLIGHT_MET = `met AS MATERIALIZED (
    SELECT live.chain_id, page.tx_id FROM live CROSS JOIN LATERAL (
      SELECT t.tx_id FROM (
        SELECT a.tx_id, a.ordinal FROM fencepost.attempt AS a
        WHERE (a.tx_id, a.ordinal) < (coalesce($2::uuid, ${LAST}), 0)
        ORDER BY a.tx_id DESC, a.ordinal DESC LIMIT ${FEW}
      ) AS signed CROSS JOIN LATERAL (
        SELECT own.tx_id FROM fencepost.transaction AS own
        WHERE own.tx_id = signed.tx_id AND own.chain_id = live.chain_id AND own.live AND own.state = $5
        OFFSET 0
      ) AS t
      WHERE signed.ordinal = 1
      ORDER BY signed.tx_id DESC, signed.ordinal DESC LIMIT $3
    ) AS page
    WHERE $1::text = 'newest' AND $5::text = 'TRACKING' AND live.own > ${FEW} AND NOT live.many
    UNION ALL
    SELECT live.chain_id, page.tx_id FROM live CROSS JOIN LATERAL (
      SELECT entry.tx_id FROM (
        SELECT t.tx_id, t.chain_id, t.state FROM fencepost.transaction AS t
        WHERE (t.chain_id, t.tx_id) > (live.chain_id, coalesce($2::uuid, ${FIRST})) AND t.chain_id <= live.chain_id
          AND t.live
        ORDER BY t.chain_id, t.tx_id LIMIT ${FEW} + least(live.settled, live.own)
      ) AS entry
      WHERE entry.state = $5
      ORDER BY entry.chain_id, entry.tx_id LIMIT $3
    ) AS page
    WHERE $1::text = 'oldest' AND live.own > ${FEW} AND NOT live.many
  )`;

/** The chains of a walk for `liveIn`. */
export const MANY = "(SELECT live.chain_id FROM live WHERE live.many) AS scope";

/** A page of these rows by id: $1 the order, $2 the end of the page before, $3 how many. */
export function byId(rows: "few" | "fencepost.transaction"): string {
  const half = (order: "newest" | "oldest", beyond: string, sorted: string) => `   (
     SELECT r.tx_id FROM ${rows} AS r
     WHERE $1::text = '${order}' AND r.tx_id ${beyond}
     ORDER BY ${sorted} LIMIT $3
   )`;
  return `${half("newest", `< coalesce($2::uuid, ${LAST})`, "r.tx_id DESC")}
   UNION ALL
${half("oldest", `> coalesce($2::uuid, ${FIRST})`, "r.tx_id")}`;
}
