import type { Intent } from "../../../domain/transaction/transaction.ts";
import type { ExistingTransaction } from "../../../ports/lane-store.ts";
import type { WhatWaits } from "../../../ports/left-request-store.ts";
import { type Flat, LANE, lists, names, parameters, selected, stored } from "../rows/columns.ts";
import { ASKED, INTENT, type PayloadColumns, SAID, SHOWN } from "../rows/transaction-fields.ts";
import { changing, counted, statement, taking } from "./statement.ts";
import type { RecordRow } from "./transaction.ts";

/**
 * Inserts an intent on the caller's connection, without checking a fencing token and with the caller's search path.
 * Sent as an unnamed statement. Every parameter has an explicit type, because some libraries send all of them as text.
 */
export const insertIntakeRow = taking(INTENT)("insert-intake-row")`
  INSERT INTO fencepost.intake (${names(INTENT)})
  VALUES (${parameters(INTENT)})`;

const AWAITS = "i.awaits, i.expires_at, i.approved_at IS NOT NULL AS approved, i.unanswered";

/** Approval columns of an intake row; null if no policy requires approval. */
interface AwaitsColumns {
  readonly awaits: string | null;
  readonly expiresAt: Date | null;
  readonly approved: boolean;
  /** True if the sender of the intent still waits for the result. */
  readonly unanswered: boolean;
}

/**
 * SQL: true if an intake row is due. It must not be on hold. In addition, it must need no approval, be approved, or
 * have an expired approval or deadline.
 */
function isDue(row: "i" | "w") {
  return `${row}.held_since IS NULL AND (${row}.awaits IS NULL OR ${row}.approved_at IS NOT NULL
    OR ${row}.expires_at <= clock_timestamp() OR ${row}.valid_until <= clock_timestamp())`;
}

/**
 * Reads whether intents or requests wait for the owner of any lane. The query has a condition on the signer that is
 * always true. It makes the planner use the index of waiting rows instead of scanning all ids, aliases included.
 */
export const findWhatWaits = statement<WhatWaits>("find-what-waits")`
  SELECT
    EXISTS (SELECT 1 FROM fencepost.intake AS i WHERE i.alias_of IS NULL AND i.signer >= '' AND ${isDue("i")}) AS intents,
    EXISTS (SELECT 1 FROM fencepost.left_request AS r WHERE r.answer IS NULL AND r.until > now()) AS requests`;

/**
 * Reads the waiting intake rows of these lanes, in call order, at most $3, without the ids $4 unless their deadline has
 * passed. Rows are never skipped for an id below the last one read, because a row with a lower id may become visible
 * later. OFFSET 0 keeps the planner from scanning all ids, aliases included.
 */
export const loadIntake = taking(LANE)<IntakeIntentRow>("load-intake")`
  SELECT i.intake_id, ${AWAITS}, coalesce(i.valid_until <= clock_timestamp(), false) AS lapsed, ${selected("i", INTENT)}
  FROM (
    SELECT w.* FROM fencepost.intake AS w
    WHERE w.alias_of IS NULL AND w.signer = ANY ($2::text[]) AND w.chain_id = ANY ($1::bigint[]) AND ${isDue("w")}
      AND (w.intake_id <> ALL ($4::bigint[]) OR w.valid_until <= clock_timestamp())
    OFFSET 0
  ) AS i
  JOIN (${lists(LANE)}) AS k ON i.chain_id = k.chain_id AND i.signer = k.signer
  ORDER BY i.intake_id
  LIMIT $3`;

export type IntakeIntentRow = Flat<Omit<Intent, "payload" | "allowNoCode" | "validUntil">> &
  PayloadColumns &
  AwaitsColumns & {
    readonly intakeId: number;
    readonly allowNoCode: boolean;
    readonly validUntil: Date | null;
    readonly lapsed: boolean;
  };

/**
 * Reads intake rows by id while the lane is locked. The caller drops rows that have become aliases. The rows are locked
 * too: when a sender stops waiting, its row is changed without the lane's lock (accept-intent).
 */
export const readIntake = statement<IntakeRow>("read-intake")`
  SELECT i.intake_id, i.tx_id, i.chain_id, i.signer, i.request_id, i.owner, i.alias_of, i.created_at, ${AWAITS},
    i.created_at::text AS accepted_at, '0x' || encode(i.fingerprint, 'hex') AS fingerprint, i.valid_until,
    i.held_since IS NOT NULL AS held, i.holds
  FROM fencepost.intake AS i
  WHERE i.intake_id = ANY ($1::bigint[])
  ORDER BY i.intake_id
  FOR UPDATE`;

export interface IntakeRow
  extends Flat<Pick<Intent, "txId" | "lane" | "requestId" | "owner" | "fingerprint">>,
    AwaitsColumns {
  readonly intakeId: number;
  readonly aliasOf: string | null;
  readonly createdAt: Date;
  /** `createdAt` as text, to the microsecond, which a Date cannot hold. */
  readonly acceptedAt: string;
  readonly validUntil: Date | null;
  readonly held: boolean;
  readonly holds: number;
}

/**
 * Reads intake rows by transaction id, with the columns of a transaction. For an alias, `alias_of` is the id of the
 * actual transaction.
 */
export const readIntakeRecords = statement<IntakeRecordRow>("read-intake-records")`
  SELECT ${selected("i", ASKED)}, NULL::bigint AS nonce, 'CREATED' AS state,
    CASE WHEN i.awaits IS NOT NULL AND i.approved_at IS NULL THEN 'AWAITING_APPROVAL' END AS sub_state,
    i.intake_id, i.awaits, i.expires_at, i.held_since, NULL::timestamptz AS expired_at,
    NULL::text AS last_error, 0 AS submit_attempts, NULL::timestamptz AS last_submitted_at, i.created_at,
    coalesce(i.approved_at, i.created_at) AS updated_at, NULL::timestamptz AS confirmed_at, NULL::numeric AS gas_limit,
    i.alias_of, ${selected("i", SHOWN)}
  FROM fencepost.intake AS i
  WHERE i.tx_id = ANY ($1::uuid[])`;

export type IntakeRecordRow = RecordRow &
  Omit<AwaitsColumns, "approved" | "unanswered"> & { readonly aliasOf: string | null; readonly intakeId: number };

/**
 * Finds waiting intake rows with one of these request ids, the earliest first; the caller drops rows of other lanes.
 * Rows whose sender still waits for the result are left out: such a row may still be declined and deleted, so nobody
 * may see it before. OFFSET 0 keeps the planner from scanning the ids of all waiting rows to get the order.
 */
export const findWaitingRequests = statement<Flat<ExistingTransaction>>("find-waiting-requests")`
  SELECT i.tx_id, i.chain_id, i.signer, i.request_id, i.owner, NULL::bigint AS nonce, 'CREATED' AS state,
    '0x' || encode(i.fingerprint, 'hex') AS fingerprint
  FROM (
    SELECT w.* FROM fencepost.intake AS w
    WHERE w.request_id = ANY ($1::text[]) AND w.request_id IS NOT NULL AND w.alias_of IS NULL
      AND w.signer = ANY ($2::text[]) AND NOT w.unanswered
    OFFSET 0
  ) AS i
  ORDER BY i.intake_id`;

/**
 * Finds intake rows that wait or waited for approval and have no nonce yet, while the lane is locked. They are found by
 * request id, and by their own id ($3). The caller drops rows of other lanes. OFFSET 0 separates the look-up by id from
 * the other conditions: without it, an older planner would scan an index of waiting rows.
 */
export const findAwaited = statement<Flat<ExistingTransaction>>("find-awaited")`
  SELECT i.tx_id, i.chain_id, i.signer, i.request_id, i.owner, NULL::bigint AS nonce, 'CREATED' AS state,
    '0x' || encode(i.fingerprint, 'hex') AS fingerprint
  FROM (
    SELECT w.* FROM fencepost.intake AS w
    WHERE w.request_id = ANY ($1::text[]) AND w.request_id IS NOT NULL AND w.signer = ANY ($2::text[])
    UNION ALL
    (SELECT w.* FROM fencepost.intake AS w WHERE w.tx_id = ANY ($3::uuid[]) OFFSET 0)
  ) AS i
  WHERE i.awaits IS NOT NULL AND i.alias_of IS NULL`;

const AWAITING = `${INTENT}, awaits text, expires_at timestamptz` as const;

/** Inserts intents that wait for approval from their creation on. */
export const insertAwaiting = changing(AWAITING, "insert-awaiting", "intents that wait for approval")`
  INSERT INTO fencepost.intake (${names(AWAITING)}, created_at)
  SELECT ${stored(AWAITING)}, now() FROM (${lists(AWAITING)}) AS w`;

const AWAITS_NOW = "intake_id bigint, awaits text, expires_at timestamptz";

/** Marks intake rows as waiting for approval, if a policy requires approval when a nonce is about to be allocated. */
export const awaitIntake = changing(AWAITS_NOW, "await-intake", "intake rows that wait for approval")`
  UPDATE fencepost.intake AS i SET awaits = w.awaits, expires_at = w.expires_at, unanswered = false
  FROM (${lists(AWAITS_NOW)}) AS w
  WHERE i.intake_id = ANY ($1::bigint[]) AND i.intake_id = w.intake_id AND i.awaits IS NULL`;

export const approveIntake = counted("approve-intake", "approved intake rows")`
  UPDATE fencepost.intake AS i SET approved_at = now()
  WHERE i.intake_id = ANY ($1::bigint[]) AND i.awaits IS NOT NULL AND i.approved_at IS NULL`;

const HELD = "intake_id bigint, holds boolean, steps integer";

/** Puts intake rows on hold or releases them; each action of the operator is one more step of their history. */
export const holdIntake = changing(HELD, "hold-intake", "intake rows that are held back or let go")`
  UPDATE fencepost.intake AS i SET held_since = CASE WHEN h.holds THEN now() END, holds = i.holds + h.steps
  FROM (${lists(HELD)}) AS h
  WHERE i.intake_id = ANY ($1::bigint[]) AND i.intake_id = h.intake_id`;

const ALIAS = "intake_id bigint, of uuid";

/**
 * Turns intake rows into aliases if a transaction with the same request id and the same payload already exists: the
 * row's id then refers to that transaction.
 */
export const aliasIntake = taking(ALIAS)("alias-intake")`
  UPDATE fencepost.intake AS i SET alias_of = a.of FROM (${lists(ALIAS)}) AS a
  WHERE i.intake_id = ANY ($1::bigint[]) AND i.intake_id = a.intake_id`;

const REFUSED =
  `intake_id bigint, event text, sub_state text, reason text, owns_request boolean, node_id text, token bigint,
  steps integer, actor text, audit jsonb` as const;

/**
 * Refuses intake rows: they get no nonce and are final at once. Their missing history steps are written here, their
 * completions by a later statement. A refused row owns its request id unless another transaction, stored or earlier in
 * the same commit, already owns it. A sub-select per row checks that, because an anti-join could lead to a plan that
 * reads every transaction.
 */
export const refuseIntake = taking(REFUSED)("refuse-intake")`
  WITH consumed AS (
    DELETE FROM fencepost.intake AS i USING (${lists(REFUSED)}) AS f
    WHERE i.intake_id = ANY ($1::bigint[]) AND i.intake_id = f.intake_id
    RETURNING i.*, f.event, f.sub_state, f.reason, f.owns_request, f.node_id, f.token, f.steps, f.actor, f.audit
  ), refused AS (
    INSERT INTO fencepost.transaction (
      ${names(ASKED)}, state, sub_state, live, outcome, history_count, last_event, last_error, created_at, updated_at, owns_request
    )
    SELECT ${names(ASKED)}, 'FAILED_FINAL', c.sub_state, false, 'FAILED_FINAL', c.steps + 1, c.event, c.reason, c.created_at, now(),
      c.owns_request
        AND row_number() OVER (PARTITION BY c.owns_request, c.chain_id, c.signer, c.request_id ORDER BY c.intake_id) = 1
        AND (
          SELECT count(*) FROM fencepost.transaction AS t
          WHERE t.request_id = c.request_id AND t.owns_request AND t.request_id IS NOT NULL
            AND t.signer = c.signer AND t.chain_id = c.chain_id
        ) = 0
        AND (
          SELECT count(*) FROM fencepost.intake AS a
          WHERE a.request_id = c.request_id AND a.awaits IS NOT NULL AND a.alias_of IS NULL AND a.request_id IS NOT NULL
            AND a.signer = c.signer AND a.chain_id = c.chain_id AND a.intake_id <> c.intake_id
        ) = 0
    FROM consumed AS c
    RETURNING 1
  ), payload AS (
    INSERT INTO fencepost.payload (tx_id, chain_id, ${names(SAID)})
    SELECT tx_id, chain_id, ${names(SAID)} FROM consumed
  ), history AS (
    INSERT INTO fencepost.step (
      tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, first_at, last_at
    )
    SELECT tx_id, 1, chain_id, 'accept', NULL, 'CREATED', NULL, NULL, NULL, NULL, NULL, NULL, created_at, created_at
    FROM consumed WHERE steps = 1
    UNION ALL
    SELECT tx_id, steps + 1, chain_id, event, 'CREATED', 'FAILED_FINAL', sub_state, node_id, token, reason, actor, audit,
      now(), now()
    FROM consumed
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM refused), cardinality($1), 'refused intake rows')`;

/** Deletes the intake rows that became transactions in this commit. */
export const deleteIntake = counted("delete-intake", "consumed intake rows")`
  DELETE FROM fencepost.intake AS i WHERE i.intake_id = ANY ($1::bigint[])`;
