import { MOST_ACKNOWLEDGED, type Notice, type NoticeEvidence } from "../../../domain/cluster/notices.ts";
import type { Address, Hex } from "../../../domain/lane.ts";
import { LANE, lists } from "../rows/columns.ts";
import { MERGED, OPEN } from "../rows/notice-parts.ts";
import { statement, taking } from "./statement.ts";

const FOREIGN_USE = `${LANE}, times bigint, evidence jsonb` as const;

/**
 * Records that another program used a signer's key, one row per lane. The lane is locked, so that commits of one lane
 * follow each other.
 */
export const writeNotices = taking(FOREIGN_USE)("write-notices")`
  INSERT INTO fencepost.notice AS n (kind, chain_id, signer, first_seen_at, last_seen_at, times, evidence)
  SELECT 'EXTERNAL_KEY_USE', u.chain_id, u.signer, now(), now(), u.times, u.evidence
  FROM (${lists(FOREIGN_USE)}) AS u
  ORDER BY u.signer, u.chain_id
  ON CONFLICT (signer, chain_id) WHERE kind = 'EXTERNAL_KEY_USE' AND acknowledged_at IS NULL
  DO UPDATE SET ${MERGED}`;

const COLUMNS = `n.notice_id, n.kind, n.chain_id, n.signer, n.node_id, n.first_seen_at, n.last_seen_at, n.times::float8 AS times,
    n.evidence, n.over_at, n.acknowledged_at, n.acknowledged_by, n.acknowledged_why, n.acknowledged_key,
    '0x' || encode(n.acknowledged_words, 'hex') AS acknowledged_words`;

/** Lists at most $1 open notices, the oldest first. */
export const listOpenNotices = statement<NoticeRow>("list-open-notices")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n WHERE ${OPEN} ORDER BY n.first_seen_at, n.notice_id LIMIT $1`;

/** Lists at most $1 notices, newest first. Filters: signer ($2), chain ($3), open ones only ($4); null for any. */
export const listNotices = statement<NoticeRow>("list-notices")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n
  WHERE ($2::text IS NULL OR n.signer = $2) AND ($3::bigint IS NULL OR n.chain_id = $3) AND (NOT $4::boolean OR (${OPEN}))
  ORDER BY n.last_seen_at DESC, n.notice_id LIMIT $1`;

export const readNotice = statement<NoticeRow>("read-notice")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n WHERE n.notice_id = $1`;

/** Reads a notice and locks it until COMMIT. */
export const lockNotice = statement<NoticeRow>("lock-notice")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n WHERE n.notice_id = $1 FOR NO KEY UPDATE`;

/**
 * Acknowledges notice $1. $2: by whom; $3: why; $4: the idempotency key; $5: digest of the request; both null if the
 * request had no key.
 */
export const markAcknowledged = statement("mark-acknowledged")`
  UPDATE fencepost.notice AS n
  SET acknowledged_at = clock_timestamp(), acknowledged_by = $2, acknowledged_why = $3, acknowledged_key = $4,
    acknowledged_words = decode($5, 'hex')
  WHERE n.notice_id = $1 AND n.acknowledged_at IS NULL`;

/** Limits the acknowledged notices about the lane or node of notice $1: deletes the oldest beyond the limit. */
export const boundNotices = statement("bound-notices")`
  DELETE FROM fencepost.notice WHERE notice_id = ANY (ARRAY(
    SELECT old.notice_id FROM fencepost.notice AS own
    JOIN fencepost.notice AS old ON old.kind = own.kind AND old.signer IS NOT DISTINCT FROM own.signer
      AND old.chain_id IS NOT DISTINCT FROM own.chain_id AND old.node_id IS NOT DISTINCT FROM own.node_id
    WHERE own.notice_id = $1 AND old.acknowledged_at IS NOT NULL
    ORDER BY old.acknowledged_at DESC, old.notice_id OFFSET ${MOST_ACKNOWLEDGED}
  ))`;

/** Deletes at most $2 notices that were acknowledged or ended more than $1 milliseconds ago. */
export const forgetNotices = statement<{ readonly noticeId: string }>("forget-notices")`
  DELETE FROM fencepost.notice WHERE notice_id = ANY (ARRAY(
    SELECT n.notice_id FROM fencepost.notice AS n
    WHERE greatest(n.acknowledged_at, n.over_at) < clock_timestamp() - $1::bigint * interval '1 millisecond'
    ORDER BY n.last_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ))
  RETURNING notice_id`;

export interface NoticeRow extends Omit<Notice, "lane" | "evidence" | "acknowledged"> {
  readonly chainId: number | null;
  readonly signer: Address | null;
  /** Evidence of the notice; its times are text. */
  readonly evidence: readonly (Omit<NoticeEvidence, "at"> & { readonly at: string })[];
  readonly acknowledgedAt: Date | null;
  readonly acknowledgedBy: string | null;
  readonly acknowledgedWhy: string | null;
  readonly acknowledgedKey: string | null;
  readonly acknowledgedWords: Hex | null;
}
