/**
 * SQL parts shared by the statements that read pages of lists.
 *
 * A page is merged from one index scan per chain. The index has two columns: a number (such as the chain id) and the
 * row's id. The scan compares and orders rows by both. So it begins at the end of the previous page and ends with the
 * last entry of that number. With a second column before the id, a server before version 18 would not stop there, but
 * continue over the entries of all other signers.
 *
 * No other index has this order. If sorting is made expensive (`preferOrder`), the server uses this index even in a
 * generic plan whose estimates are wrong. An optional condition (`$4 IS NULL OR …`) would make the server scan the
 * whole table for rows that do not exist.
 */

/** SQL: the chains of a page as a table `scope`: the requested ones ($4), else all chains that have lanes. */
export const CHAINS = `
  scope AS MATERIALIZED (
    SELECT unnest($4::bigint[]) AS chain_id
    UNION
    SELECT l.chain_id FROM fencepost.lane AS l WHERE $4::bigint[] IS NULL
  )`;

/** SQL: the lanes of these signers as a table `scope`, on the requested chains ($4) or on all. */
export const lanesOf = (signers: "$5" | "$6") => `
  scope AS MATERIALIZED (
    SELECT l.chain_id, l.signer FROM fencepost.lane AS l
    WHERE l.signer = ANY (${signers}::text[]) AND ($4::bigint[] IS NULL OR l.chain_id = ANY ($4))
  )`;

/** SQL: chain id of an intake row that is not an alias, as in the index of waiting intents. */
export const WAITING_CHAIN = "CASE WHEN t.alias_of IS NULL THEN t.chain_id END";

/**
 * SQL: the chains of waiting intents as a table `scope`. Their lanes may not exist yet, so the intake table is read,
 * with one index look-up per chain.
 */
export const CHAINS_OF_INTAKE = `
  scope AS MATERIALIZED (
    WITH RECURSIVE waiting (chain_id) AS (
      SELECT ${nextInIntake("0")} WHERE $4::bigint[] IS NULL
      UNION ALL
      SELECT ${nextInIntake("waiting.chain_id")} FROM waiting WHERE waiting.chain_id IS NOT NULL
    )
    SELECT waiting.chain_id FROM waiting WHERE waiting.chain_id IS NOT NULL
    UNION ALL
    SELECT unnest($4::bigint[])
  )`;

function nextInIntake(after: string) {
  return `(
        SELECT t.chain_id FROM fencepost.intake AS t WHERE ${WAITING_CHAIN} > ${after} ORDER BY ${WAITING_CHAIN}, t.tx_id LIMIT 1
      )`;
}

const FIRST = "'00000000-0000-0000-0000-000000000000'";
const LAST = "'ffffffff-ffff-ffff-ffff-ffffffffffff'";

/**
 * An index scan. The index has a number and the row's id. `number`: the number's expression for a row `t`; `is`: its
 * requested value; `where`: further conditions.
 */
export interface Walk {
  readonly number: string;
  readonly is: string;
  readonly where: string;
  readonly table?: "transaction" | "intake";
  /** Table expression that is used instead of `scope`. */
  readonly from?: string;
}

/**
 * SQL of a page by index scan. $1: the order, $2: the end of the previous page, $3: the page size. Only the half with
 * the requested order is executed.
 */
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

/** Up to this many rows, reading and sorting them is as fast as an index scan. */
const FEW = 1_000;

/**
 * SQL: live rows in one state ($5). No index contains the state: it changes at every step, and each step would then
 * update every index. Instead, the stored counts per lane and state decide how the rows are found.
 *
 * If these rows are the smaller part of a chain's live rows, they are collected as a table `few`. Each lane is then
 * read in nonce order until the last such row is found. The read starts at the end of the lane at which rows of this
 * state are: unsigned rows have the highest nonces, all others the lowest. If they are the larger part (`live.many`), a
 * scan by id finds them soon. Either way no more rows are read than the smaller part has.
 *
 * `counts`: the condition by which `c`, the stored counts, belong to `scope`. `met`: a table of chains and ids; a chain with a full page in it is
 * not collected.
 */
export const liveIn = (counts: string, met = NONE_MET) => `
  kept AS MATERIALIZED (
    SELECT c.signer, c.chain_id, c.state, c.count FROM scope JOIN fencepost.live_count AS c ON ${counts}
    WHERE c.state IN ('ALLOCATED', 'TRACKING', 'STUCK', 'CONFIRMED', 'FAILED_FINAL')
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
 * SQL: tries to find a page of transactions in flight with a short read, because all of them would be too many with
 * many lanes; if the page is not full, they are collected after all. The newest ones are found among the last signed
 * transactions. Every transaction in flight was signed (CHECK transaction_signed), so it has a first attempt. The
 * oldest ones are found among the oldest live rows, which also include settled transactions that are still watched for
 * reorgs.
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

/** SQL: the chains in which most live rows have the requested state, so that an index scan is used (`liveIn`). */
export const MANY = "(SELECT live.chain_id FROM live WHERE live.many) AS scope";

/** SQL: the same for `lanesOf`: the lanes on these chains. */
export const MANY_OF_LANES =
  "(SELECT scope.* FROM scope JOIN live ON live.chain_id = scope.chain_id WHERE live.many) AS scope";

/** SQL: a page of `rows` by id. $1: the order, $2: the end of the previous page, $3: the page size. */
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
