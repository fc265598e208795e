import type { Lane } from "../../../domain/lane.ts";
import type { Charge } from "../../../domain/policy/charges.ts";
import type { PolicyRecord } from "../../../domain/policy/in-force.ts";
import { LANE, lists, names } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const USE = "use_hour timestamptz, hour_value numeric, hour_cost numeric, day_value numeric, day_cost numeric";

/**
 * Reads how much of the policy limits each signer has used. While the lanes are locked, this cannot change. $1:
 * signers, $2: chains.
 */
export const readLaneUse = statement<Lane & UseColumns>("read-lane-use")`
  SELECT l.chain_id, l.signer, ${names(USE)}
  FROM fencepost.lane AS l
  WHERE l.signer = ANY ($1::text[]) AND l.chain_id = ANY ($2::bigint[])`;

/** Lists how much of the policy limits each lane has used; lanes without charges are left out. */
export const listLaneUse = statement<Lane & UseColumns>("list-lane-use")`
  SELECT l.chain_id, l.signer, ${names(USE)}
  FROM fencepost.lane AS l
  WHERE l.use_hour IS NOT NULL AND l.signer > ''
  ORDER BY l.signer, l.chain_id`;

/**
 * Reads how much of the policy limits the API keys $1, and the owners of the transactions $2, have used on the chains
 * $3. The rows are not locked, so the result may be outdated.
 */
export const readKeyUse = statement<KeyUseRow>("read-key-use")`
  SELECT k.owner, k.chain_id, ${names(USE)}
  FROM fencepost.key_use AS k
  WHERE k.owner = ANY ($1::text[] || ARRAY(SELECT t.owner FROM fencepost.transaction AS t WHERE t.tx_id = ANY ($2::uuid[])))
    AND k.chain_id = ANY ($3::bigint[])`;

const KEY = "owner text, chain_id bigint";
const CHARGED = `${KEY}, hour timestamptz, value numeric, cost numeric, corrections jsonb, most_hour_value numeric,
  most_hour_cost numeric, most_day_value numeric, most_day_cost numeric` as const;

/** Inserts a row for each API key and chain that has none yet, in lock order. */
export const ensureKeyUse = taking(KEY)("ensure-key-use")`
  INSERT INTO fencepost.key_use (owner, chain_id, ${names(USE)})
  SELECT k.owner, k.chain_id, 'epoch', 0, 0, 0, 0 FROM (${lists(KEY)}) AS k
  ORDER BY k.owner, k.chain_id
  ON CONFLICT (owner, chain_id) DO NOTHING`;

/**
 * SQL: amount already used in the hour or day of the charge `w`; zero if the row `u` still counts an earlier hour or
 * day.
 */
const begun = (window: "hour" | "day", amount: "value" | "cost") =>
  `CASE WHEN date_trunc('${window}', w.hour, 'UTC') > date_trunc('${window}', u.use_hour, 'UTC') THEN 0
      ELSE u.${window}_${amount} END AS ${window}_${amount}`;

/**
 * SQL: new used amount: the old one, plus the charge, plus corrections (refunds or their reversal) of hours and days
 * that have not ended.
 */
const summed = (window: "hour" | "day", amount: "value" | "cost") =>
  `b.${window}_${amount} + w.${amount} + coalesce((
      SELECT sum(c.${amount}) FROM jsonb_to_recordset(w.corrections) AS c(hour timestamptz, value numeric, cost numeric)
      WHERE date_trunc('${window}', c.hour, 'UTC') = date_trunc('${window}', b.use_hour, 'UTC')
    ), 0) AS ${window}_${amount}`;

const allowed = (window: "hour" | "day", amount: "value" | "cost") =>
  `(w.${amount} = 0 OR s.${window}_${amount} <= coalesce(w.most_${window}_${amount}, 'Infinity'))`;

/**
 * Adds a commit's charges to the amounts that API keys have used, after everything else except the feed. No lane's lock
 * covers these rows, and an earlier read of them may be outdated, so the charges are added to the current rows. Ends
 * the transaction if a sum would exceed a limit. The write is then checked again with the current rows, and its caller
 * gets the refusal.
 */
export const chargeKeys = taking(CHARGED)("charge-keys")`
  WITH wanted AS MATERIALIZED (
    ${lists(CHARGED)}
  ), locked AS MATERIALIZED (
    SELECT k.* FROM fencepost.key_use AS k
    WHERE k.owner = ANY ($1::text[]) AND k.chain_id = ANY ($2::bigint[])
      AND (k.owner, k.chain_id) IN (SELECT w.owner, w.chain_id FROM wanted AS w)
    ORDER BY k.owner, k.chain_id
    FOR NO KEY UPDATE OF k
  ), begun AS (
    SELECT u.owner, u.chain_id, greatest(u.use_hour, w.hour) AS use_hour,
      ${begun("hour", "value")}, ${begun("hour", "cost")}, ${begun("day", "value")}, ${begun("day", "cost")}
    FROM locked AS u
    JOIN wanted AS w ON u.owner = w.owner AND u.chain_id = w.chain_id
  ), summed AS (
    SELECT b.owner, b.chain_id, b.use_hour,
      ${summed("hour", "value")}, ${summed("hour", "cost")}, ${summed("day", "value")}, ${summed("day", "cost")}
    FROM begun AS b
    JOIN wanted AS w ON b.owner = w.owner AND b.chain_id = w.chain_id
  ), changed AS (
    UPDATE fencepost.key_use AS k
    SET use_hour = s.use_hour, hour_value = s.hour_value, hour_cost = s.hour_cost, day_value = s.day_value,
      day_cost = s.day_cost
    FROM summed AS s
    JOIN wanted AS w ON s.owner = w.owner AND s.chain_id = w.chain_id
    WHERE k.owner = ANY ($1::text[]) AND k.chain_id = ANY ($2::bigint[]) AND k.owner = s.owner AND k.chain_id = s.chain_id
      AND ${allowed("hour", "value")} AND ${allowed("hour", "cost")}
      AND ${allowed("day", "value")} AND ${allowed("day", "cost")}
    RETURNING 1
  )
  SELECT fencepost.require_still((SELECT count(*) FROM changed), cardinality($1), 'keys with room for what is charged')`;

export const listKeyUse = statement<KeyUseRow>("list-key-use")`
  SELECT k.owner, k.chain_id, ${names(USE)}
  FROM fencepost.key_use AS k
  WHERE k.owner > ''
  ORDER BY k.owner, k.chain_id`;

export type KeyUseRow = UseColumns & { readonly owner: string; readonly chainId: number };

/**
 * Reads the database's clock, which decides when a limit's window begins and ends; the owner of the transaction $1; and
 * the version stamp of the policy document in force.
 */
export const readPolicyClock = statement<PolicyClockRow>("read-policy-clock")`
  SELECT clock_timestamp() AS at, (SELECT p.stamp FROM fencepost.policy AS p WHERE p.only_row) AS stamp,
    (SELECT t.owner FROM fencepost.transaction AS t WHERE t.tx_id = ANY ($1::uuid[]) LIMIT 1) AS owner`;

export interface PolicyClockRow {
  readonly at: Date;
  readonly owner: string | null;
  readonly stamp: string;
}

/** Amounts used of the policy limits; all null if nothing was ever counted. */
export type UseColumns = Readonly<Record<"hourValue" | "hourCost" | "dayValue" | "dayCost", bigint | null>> & {
  readonly useHour: Date | null;
};

const USED_LANE = `${LANE}, ${USE}` as const;

/** Updates the amounts used of the policy limits, on lanes that are already locked. */
export const updateLaneUse = changing(USED_LANE, "update-lane-use", "lanes with another use")`
  UPDATE fencepost.lane AS l
  SET use_hour = u.use_hour, hour_value = u.hour_value, hour_cost = u.hour_cost, day_value = u.day_value,
    day_cost = u.day_cost
  FROM (${lists(USED_LANE)}) AS u
  WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
    AND l.chain_id = u.chain_id AND l.signer = u.signer`;

/**
 * Reads the policy document in force. Earlier documents are stored too, and may be long. The second comparison of the
 * change's id makes the planner find the document by key.
 */
export const readPolicy = statement<PolicyRecord>("read-policy")`
  SELECT p.version, p.stamp, c.document, c.at AS changed_at, c.actor AS changed_by, c.reason
  FROM fencepost.policy AS p
  LEFT JOIN fencepost.policy_change AS c ON c.change_id = p.change_id
    AND c.change_id = ANY (ARRAY(SELECT q.change_id FROM fencepost.policy AS q WHERE q.only_row))
  WHERE p.only_row`;

/**
 * Locks the policy document, so that no other change happens before COMMIT. Commits of transactions never wait for this
 * lock: they compare the document's version stamp on their lanes instead.
 */
export const lockPolicy = statement("lock-policy")`
  SELECT 1 FROM fencepost.policy AS p WHERE p.only_row FOR NO KEY UPDATE OF p`;

/**
 * Changes the policy document. $1: the node; $2 and $3: hash and document; $4: version; $5 and $6: actor and reason;
 * $7: the document's version stamp.
 */
export const changePolicy = statement("change-policy")`
  WITH kept AS (
    INSERT INTO fencepost.policy_change (node_id, hash, document, version, actor, reason)
    VALUES ($1, $2, $3::jsonb, $4, $5, $6)
    RETURNING change_id
  ), changed AS (
    UPDATE fencepost.policy AS p
    SET version = $4, stamp = $7, change_id = (SELECT k.change_id FROM kept AS k)
    WHERE p.only_row
    RETURNING 1
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM changed), 1, 'policy documents')`;

/**
 * Copies the policy document's version stamp ($1) to every lane, in the transaction that changes the document. So a
 * commit that has locked its lanes can read the stamp there, without another lock. (If every commit of every node
 * locked one row for share, the change would never get its lock.) The lane table is already locked (`lockLaneTable`).
 * So every commit that held a lane has ended, every commit that waits for a lane will read the new stamp, and lanes
 * that were being inserted are visible (they got the stamp in force by default).
 */
export const stampLanes = statement("stamp-lanes")`
  UPDATE fencepost.lane AS l SET policy_stamp = $1 WHERE l.signer > ''`;

const CHARGE =
  "tx_id uuid, chain_id bigint, ordinal integer, moves numeric, counted_in timestamptz, value numeric, cost numeric, settles boolean";

/** Inserts charges, in order. $1 to $8, an array each. */
export const insertCharges = taking(CHARGE)("insert-charges")`
  INSERT INTO fencepost.charge (${names(CHARGE)}) ${lists(CHARGE)}`;

export const readCharges = statement<ChargeRow>("read-charges")`
  SELECT c.tx_id, c.ordinal, c.moves, c.counted_in, c.value, c.cost, c.settles
  FROM fencepost.charge AS c
  WHERE c.tx_id = ANY ($1::uuid[])
  ORDER BY c.tx_id, c.charge_id`;

export type ChargeRow = Omit<Charge, "hourMs"> & { readonly txId: string; readonly countedIn: Date };
