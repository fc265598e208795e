import type { Hex, Lane } from "../../../domain/lane.ts";
import type { LedgerTransaction, Watched } from "../../../domain/ledger/index.ts";
import type { ExistingTransaction, ExpiringRecord, OpenTransaction, TrackedRecord } from "../../../ports/lane-store.ts";
import type { TransactionRecord } from "../../../ports/query-store.ts";
import { behind, type Flat, LANE, lists, names, OUT_OF_THE_WAY, selected, stored } from "../rows/columns.ts";
import { ASKED, PAYLOAD, type PayloadColumns, SAID, SHOWN } from "../rows/transaction-fields.ts";
import { changing, counted, statement, taking } from "./statement.ts";

const ALLOCATION = `${ASKED}, ${SAID}, nonce bigint, accepted_at timestamptz, gas_limit gas, node_id text, token bigint,
  steps_before integer, pinned boolean` as const;

/**
 * Allocates nonces: inserts the transaction and payload of everything that a commit allocates. The node and the time of
 * the allocation are the first step of the history, unless the transaction was accepted before. Plain inserts: a nonce
 * or a request id that already exists must end the commit with an error, never be skipped. One element per transaction;
 * a column that is empty for all of them is null. Last parameter: the transaction's marker if the response to BEGIN is
 * still outstanding, else null.
 *
 * COPY would cost the server even less, but is not used: while COPY waits for the rest of its rows, no timer of the
 * server runs. A node that stalls in the middle would keep the lane's lock until TCP gives up.
 */
export const insertTransactions = taking(ALLOCATION)("insert-transactions")`
  WITH item AS MATERIALIZED (
    ${lists(ALLOCATION)}
  ), bound AS (
    INSERT INTO fencepost.transaction (
      ${names(ASKED)}, nonce, state, history_count, last_event, created_at, updated_at, allocated_by, allocated_under, pinned
    )
    SELECT ${names(ASKED)}, nonce, 'ALLOCATED', coalesce(steps_before, 0) + 1, 'allocate', coalesce(accepted_at, now()), now(),
      CASE WHEN accepted_at IS NULL THEN node_id END, CASE WHEN accepted_at IS NULL THEN token END,
      coalesce(pinned, false)
    FROM item
    RETURNING 1
  ), payload AS (
    INSERT INTO fencepost.payload (tx_id, chain_id, gas_limit, ${names(SAID)})
    SELECT tx_id, chain_id, gas_limit, ${stored(SAID)} FROM item
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM bound), cardinality($1), 'allocated transactions'),
    fencepost.require_open(${behind(ALLOCATION)})`;

const MOVE = `tx_id uuid, from_state text, sets_nonce boolean, nonce bigint, state text, sub_state text,
  history_count integer, last_event text, attempt_count integer, claim_token bigint, claim_ordinal integer,
  accepted_ordinal integer, claims integer, sets_error boolean, last_error text, steps integer, holds boolean,
  expires boolean` as const;

/**
 * Changes the state of transactions, each only from the state in which it was read. If a commit contains several steps
 * of one transaction, only the resulting state is written here; its history has all steps. There is no condition on
 * `live`, because it was checked under the lock and a CHECK enforces it. Such a condition could make a plan from an
 * empty table scan the index of all live rows. A transaction that gives its nonce up is no longer live, because nothing
 * of it can be on a chain. $1 to $18, one element per transaction; null for a column that is empty in all of them; $16:
 * the steps that are stored as columns of the row (commit/ordinary-life.ts), $17: whether the transaction is put on
 * hold or released.
 */
export const updateTransactions = changing(MOVE, "update-transactions", "moved transactions")`
  UPDATE fencepost.transaction AS t
  SET state = m.state,
    nonce = CASE WHEN m.sets_nonce THEN m.nonce ELSE t.nonce END,
    live = CASE WHEN m.sets_nonce AND m.nonce IS NULL THEN false ELSE t.live END,
    outcome = CASE WHEN m.sets_nonce AND m.nonce IS NULL THEN m.state ELSE t.outcome END,
    sub_state = m.sub_state,
    history_count = m.history_count,
    last_event = m.last_event,
    attempt_count = m.attempt_count,
    claim_token = coalesce(m.claim_token, t.claim_token),
    claim_ordinal = coalesce(m.claim_ordinal, t.claim_ordinal),
    accepted_ordinal = m.accepted_ordinal,
    submit_attempts = t.submit_attempts + m.claims,
    last_submitted_at = CASE WHEN m.claims > 0 THEN now() ELSE t.last_submitted_at END,
    last_error = CASE WHEN m.sets_error THEN m.last_error ELSE t.last_error END,
    confirmed_at = CASE WHEN m.state <> 'CONFIRMED' THEN NULL ELSE coalesce(t.confirmed_at, now()) END,
    updated_at = now(),
    signed_at = CASE WHEN m.steps & 1 <> 0 THEN now() ELSE t.signed_at END,
    broadcast_at = CASE WHEN m.steps & 2 <> 0 THEN now() ELSE t.broadcast_at END,
    mined_at = CASE WHEN m.steps & 4 <> 0 THEN now() ELSE t.mined_at END,
    settled_at = CASE WHEN m.steps & 8 <> 0 THEN now() ELSE t.settled_at END,
    held_since = CASE
      WHEN m.state IN ('CONFIRMED', 'FAILED_FINAL') THEN NULL
      WHEN m.holds THEN coalesce(t.held_since, now())
      WHEN m.holds IS NULL THEN t.held_since
    END,
    expired_at = CASE WHEN m.expires THEN now() ELSE t.expired_at END
  FROM (${lists(MOVE)}) AS m
  WHERE t.tx_id = ANY ($1::uuid[]) AND t.tx_id = m.tx_id AND t.state = m.from_state`;

/**
 * Ends the reorg check of transactions whose block is so deep that no reorg is expected there. Owners no longer load
 * them.
 */
export const unwatchTransactions = counted("unwatch-transactions", "transactions past their watch")`
  UPDATE fencepost.transaction AS t SET live = false, outcome = t.state
  WHERE t.tx_id = ANY ($1::uuid[])`;

/**
 * Moves transactions that are about to change their nonce to nonces that are not in use, 2^52 higher. PostgreSQL checks
 * the unique index row by row, so otherwise a row could get a nonce that another row still has.
 */
export const vacateNonces = counted("vacate-nonces", "vacated nonces")`
  UPDATE fencepost.transaction AS t
  SET nonce = t.nonce + ${OUT_OF_THE_WAY}
  WHERE t.tx_id = ANY ($1::uuid[]) AND t.state = 'ALLOCATED' AND t.attempt_count = 0`;

/** Time columns of a transaction: its deadline, the start of its hold, and the time at which its deadline ended it. */
const TIMES = "t.valid_until, t.held_since, t.expired_at";

/**
 * Reads the transactions that a commit changes, while their lanes are locked, so that no other node can change them.
 * $2: ids of those whose payload fingerprint is needed; $3: ids of those whose block is needed. Both are in other
 * tables, so they are read only on request.
 */
export const readTransactions = statement<CurrentRow>("read-transactions")`
  SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.nonce, t.state, t.sub_state, t.live,
    t.history_count AS steps, t.last_event, t.attempt_count, t.pinned, t.accepted_ordinal, t.allocated_by, t.allocated_under, t.owner,
    ${TIMES},
    CASE WHEN t.tx_id = ANY ($2::uuid[]) THEN (
      SELECT '0x' || encode(p.fingerprint, 'hex') FROM fencepost.payload AS p WHERE p.tx_id = t.tx_id
    ) END AS fingerprint,
    CASE WHEN t.tx_id = ANY ($3::uuid[]) THEN (
      SELECT r.block_number FROM fencepost.receipt AS r WHERE r.tx_id = t.tx_id
    ) END AS mined_in
  FROM fencepost.transaction AS t
  WHERE t.tx_id = ANY ($1::uuid[])`;

export interface CurrentRow extends Lane, Omit<LedgerTransaction, "minedIn" | "fingerprint" | "attempts" | "details"> {
  /** Node that made the history steps stored as columns of the row; null if there are none. */
  readonly allocatedBy: string | null;
  readonly allocatedUnder: number | null;
  /** Fingerprint of the payload; null if it was not requested. */
  readonly fingerprint: Hex | null;
  /** Block of the receipt; null if there is no receipt, or it was not requested. */
  readonly minedIn: number | null;
}

/**
 * Reads transactions as a caller sees them, without attempts and receipt. Transaction and payload are both found by
 * key.
 */
export const readRecords = statement<RecordRow>("read-records")`
  SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.owner, t.nonce, t.state, t.sub_state, t.last_error,
    t.submit_attempts, t.last_submitted_at, t.created_at, t.updated_at, t.confirmed_at, ${TIMES},
    p.gas_limit::numeric AS gas_limit, ${selected("p", SHOWN)}
  FROM fencepost.transaction AS t
  JOIN fencepost.payload AS p ON p.tx_id = t.tx_id
  WHERE t.tx_id = ANY ($1::uuid[]) AND p.tx_id = ANY ($1::uuid[])`;

export type RecordRow = Flat<Omit<TransactionRecord, "payload" | "gas" | "attempts" | "receipt" | keyof TimeColumns>> &
  PayloadColumns &
  TimeColumns & { readonly gasLimit: bigint | null };

/** Time columns of a transaction; null if not set. */
export type TimeColumns = Pick<LedgerTransaction, "validUntil" | "heldSince" | "expiredAt">;

/** Reads a page of unsigned transactions, in nonce order. The page is found first, then its payloads by key. */
export const readAllocated = statement<AllocatedRow>("read-allocated")`
  WITH page AS MATERIALIZED (
    SELECT t.tx_id, t.nonce, t.request_id, t.created_at, t.pinned, ${TIMES}
    FROM fencepost.transaction AS t
    WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state = 'ALLOCATED' AND t.nonce >= $3
    ORDER BY t.nonce
    LIMIT $4
  )
  SELECT page.*, p.gas_limit::numeric AS gas_limit, ${selected("p", PAYLOAD)}
  FROM page
  JOIN fencepost.payload AS p ON p.tx_id = page.tx_id
  WHERE p.tx_id = ANY (ARRAY(SELECT page.tx_id FROM page))
  ORDER BY page.nonce`;

export interface AllocatedRow
  extends PayloadColumns,
    TimeColumns,
    Pick<TrackedRow, "txId" | "nonce" | "requestId" | "createdAt"> {
  readonly gasLimit: bigint;
  /** True if the caller chose the nonce. */
  readonly pinned: boolean;
}

const TRACKED = `t.tx_id, t.nonce, t.state, t.sub_state, t.submit_attempts, t.created_at, t.request_id, t.last_submitted_at,
    t.accepted_ordinal, t.last_error, ${TIMES}`;

/** Reads a lane's transactions that are signed and not settled, in nonce order, for the lane's owner. */
export const readTracked = statement<TrackedRow>("read-tracked")`
  SELECT ${TRACKED},
    CASE WHEN t.state = 'STUCK' OR t.sub_state = 'UNKNOWN_SUBMIT_RESULT' THEN (
      SELECT max(h.last_at) FROM fencepost.step AS h WHERE h.tx_id = t.tx_id AND h.event = 'loseSight'
    ) END AS lost_sight_at
  FROM fencepost.transaction AS t
  WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('TRACKING', 'STUCK')
  ORDER BY t.nonce`;

export type TrackedRow = Omit<
  TrackedRecord,
  "attempts" | "receipt" | "firstSentAt" | "lostSightAt" | "validUntil" | "held" | "expired"
> &
  TimeColumns & { readonly lostSightAt: Date | null };

/** SQL: true if the live row `t` must keep its nonce (domain/ledger/may-move.ts). */
const FIXED = "(t.state <> 'ALLOCATED' OR t.attempt_count > 0 OR t.pinned)";

/**
 * Reads transactions that have a deadline which was not handled yet, and are neither mined nor on hold; the earliest
 * deadline first. Only such rows are in the index that is scanned. Whether each may give up its nonce is checked again
 * while the lane is locked.
 */
export const readExpiring = statement<ExpiringRecord>("read-expiring")`
  SELECT e.tx_id, e.nonce, e.request_id, e.created_at, e.state, e.valid_until,
    ceil(extract(epoch FROM e.valid_until - clock_timestamp()) * 1000)::bigint AS left_ms,
    e.state = 'ALLOCATED' AND e.attempt_count = 0 AND e.nonce >= coalesce(greatest(
      (SELECT f.next_nonce FROM fencepost.epoch_floor AS f WHERE f.signer = $2 AND f.chain_id = $1),
      (SELECT t.nonce FROM fencepost.transaction AS t
       WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND ${FIXED} ORDER BY t.nonce DESC LIMIT 1),
      (SELECT max(r.nonce) FROM fencepost.reservation AS r
       WHERE r.chain_id = $1 AND r.signer = $2 AND r.state = 'RESERVED')
    ), 0) AS may_give_up
  FROM fencepost.transaction AS e
  WHERE e.chain_id = $1 AND e.signer = $2 AND e.live AND e.valid_until IS NOT NULL AND e.held_since IS NULL
    AND e.expired_at IS NULL AND e.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND coalesce(e.sub_state, '-') <> 'MINED'
  ORDER BY e.valid_until, e.nonce
  LIMIT $3`;

/**
 * Reads an API key's transactions on a lane that have a nonce and no outcome. It runs only once per key each time a
 * lane gets an owner, so no index exists for it.
 */
export const readOpenOf = statement<OpenTransaction>("read-open-of")`
  SELECT t.tx_id, coalesce(t.sub_state = 'MINED', false) AS is_mined
  FROM fencepost.transaction AS t
  WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND t.owner = $3
  ORDER BY t.nonce`;

/**
 * Reads the nonce after the highest one that is settled and no longer checked for reorgs, on one lane. Transactions
 * removed by retention count too. The index is scanned from its end.
 */
export const readSettledBelow = statement<{ readonly settledBelow: number }>("read-settled-below")`
  SELECT greatest(
    (
      SELECT t.nonce + 1 FROM fencepost.transaction AS t
      WHERE t.chain_id = $1 AND t.signer = $2 AND t.nonce IS NOT NULL AND NOT t.live
      ORDER BY t.nonce DESC
      LIMIT 1
    ), l.departed_below, 0
  ) AS settled_below
  FROM fencepost.lane AS l
  WHERE l.signer = $2 AND l.chain_id = $1`;

const REQUEST = `${LANE}, request_id text` as const;

/**
 * Second idempotency check, while the lane is locked: it sees every allocation of the lane that ever committed. $1: the
 * chain, $2: the signer and $3: the id of each request. Each request is one look-up. With lists of signers and of ids
 * instead, PostgreSQL before 17 would look up every combination: a million for a thousand lanes with one request each.
 * OFFSET 0 keeps the planner from turning the look-ups into a join, for which it would scan the whole index.
 */
export const findRequests = taking(REQUEST)<Flat<ExistingTransaction>>("find-requests")`
  SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.owner, t.nonce, t.state,
    (SELECT '0x' || encode(p.fingerprint, 'hex') FROM fencepost.payload AS p WHERE p.tx_id = t.tx_id) AS fingerprint
  FROM (${lists(REQUEST)}) AS asked
  CROSS JOIN LATERAL (
    SELECT own.* FROM fencepost.transaction AS own
    WHERE own.request_id = asked.request_id AND own.signer = asked.signer AND own.chain_id = asked.chain_id
      AND own.owns_request AND own.request_id IS NOT NULL
    OFFSET 0
  ) AS t`;

/** Finds every transaction and waiting intake row with a request id, on every lane, including refused ones. */
export const findByRequest = statement<{ readonly txId: string }>("find-by-request")`
  SELECT t.tx_id FROM fencepost.transaction AS t
  WHERE t.request_id = $1 AND t.owns_request AND t.request_id IS NOT NULL
  UNION ALL
  SELECT t.tx_id FROM fencepost.transaction AS t
  WHERE t.request_id = $1 AND NOT t.owns_request AND t.request_id IS NOT NULL
  UNION ALL
  SELECT i.tx_id FROM fencepost.intake AS i
  WHERE i.request_id = $1 AND i.request_id IS NOT NULL AND i.alias_of IS NULL`;

/** Finds the transaction that has a nonce. */
export const findByNonce = statement<{ readonly txId: string }>("find-by-nonce")`
  SELECT t.tx_id
  FROM fencepost.transaction AS t
  WHERE t.chain_id = $1 AND t.signer = $2 AND t.nonce = $3`;

/** Finds which of these nonces a transaction has, final or not. */
export const findHeldNonces = statement<HeldNonceRow>("find-held-nonces")`
  SELECT t.chain_id, t.signer, t.nonce, t.tx_id
  FROM fencepost.transaction AS t
  WHERE t.signer = ANY ($1::text[]) AND t.chain_id = ANY ($2::bigint[]) AND t.nonce = ANY ($3::bigint[])`;

/**
 * Finds rows of these lanes that may not move to another nonce. Lanes are read one by one, because for lists of lanes
 * PostgreSQL 15 scanned another index.
 */
export const findFixedNonces = statement<HeldNonceRow>("find-fixed-nonces")`
  SELECT c.chain_id, s.signer, fixed.nonce, fixed.tx_id
  FROM unnest($1::text[]) AS s(signer)
  CROSS JOIN unnest($2::bigint[]) AS c(chain_id)
  CROSS JOIN LATERAL (
    SELECT t.nonce, t.tx_id
    FROM fencepost.transaction AS t
    WHERE t.chain_id = c.chain_id AND t.signer = s.signer AND t.live AND ${FIXED}
    ORDER BY t.nonce
    OFFSET 0
  ) AS fixed`;

export type HeldNonceRow = Lane & { readonly nonce: number; readonly txId: string };

const WATCHED = `${LANE}, through_block bigint` as const;

/**
 * Finds settled transactions of these lanes that were mined at or below a block. A chain mines a signer's transactions
 * in nonce order, so they have the lowest nonces of the lane's live rows. Only one page is read, even if many
 * transactions are pending above it.
 */
export const findUnwatchable = taking(WATCHED)<UnwatchableRow>("find-unwatchable")`
  SELECT settled.*
  FROM (
    SELECT k.chain_id, k.signer, k.through_block, t.tx_id, t.nonce, t.state,
      (SELECT r.block_number FROM fencepost.receipt AS r WHERE r.tx_id = t.tx_id) AS block_number
    FROM (${lists(WATCHED)}) AS k
    CROSS JOIN LATERAL (
      SELECT low.tx_id, low.nonce, low.state
      FROM fencepost.transaction AS low
      WHERE low.chain_id = k.chain_id AND low.signer = k.signer AND low.live
      ORDER BY low.nonce
      LIMIT $4
    ) AS t
    WHERE t.state IN ('CONFIRMED', 'FAILED_FINAL')
    OFFSET 0
  ) AS settled
  WHERE settled.block_number <= settled.through_block`;

export type UnwatchableRow = Lane & Watched & { readonly throughBlock: number; readonly blockNumber: number };

/**
 * Finds open transactions that an older version moved to a second nonce, which is recorded as a step of their history.
 * They have at least two attempts, so only few histories have to be read. Histories are read by key, not by a join.
 */
export const findRequeued = statement<RequeuedRow>("find-requeued")`
  SELECT t.chain_id, t.signer, t.nonce, t.tx_id
  FROM fencepost.transaction AS t
  WHERE t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND t.attempt_count >= 2
    AND (SELECT true FROM fencepost.step AS h WHERE h.tx_id = t.tx_id AND h.event = 'requeue' LIMIT 1)
  ORDER BY t.chain_id, t.signer, t.nonce`;

export type RequeuedRow = HeldNonceRow;

/** Finds settled transactions of a lane that were mined in one of these blocks and are still checked for reorgs. */
export const findWatched = statement<TrackedRow>("find-watched")`
  SELECT ${TRACKED}, NULL::timestamptz AS lost_sight_at
  FROM fencepost.transaction AS t
  WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('CONFIRMED', 'FAILED_FINAL')
    AND (SELECT r.block_hash FROM fencepost.receipt AS r WHERE r.tx_id = t.tx_id) = ANY ($3::text[])
  ORDER BY t.nonce`;
