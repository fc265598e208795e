import { MOST_ACKNOWLEDGED, type Notice, type NoticeEvidence } from "../../../domain/cluster/notices.ts";
import type { Address, Hex } from "../../../domain/lane.ts";
import { LANE, lists } from "../rows/columns.ts";
import { MERGED, OPEN } from "../rows/notice-parts.ts";
import { statement, taking } from "./statement.ts";

const FOREIGN_USE = `${LANE}, times bigint, evidence jsonb` as const;

/** Foreign uses of keys, one row for each lane. The lane's lock is held: one commit of a lane after the other. */
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

/** At most $1 open notices, the oldest first. */
export const listOpenNotices = statement<NoticeRow>("list-open-notices")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n WHERE ${OPEN} ORDER BY n.first_seen_at, n.notice_id LIMIT $1`;

/** At most $1, newest first: of a signer ($2), a chain ($3), open ones alone ($4); null: any. */
export const listNotices = statement<NoticeRow>("list-notices")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n
  WHERE ($2::text IS NULL OR n.signer = $2) AND ($3::bigint IS NULL OR n.chain_id = $3) AND (NOT $4::boolean OR (${OPEN}))
  ORDER BY n.last_seen_at DESC, n.notice_id LIMIT $1`;

export const readNotice = statement<NoticeRow>("read-notice")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n WHERE n.notice_id = $1`;

/** The same, locked until COMMIT. */
export const lockNotice = statement<NoticeRow>("lock-notice")`
  SELECT ${COLUMNS} FROM fencepost.notice AS n WHERE n.notice_id = $1 FOR NO KEY UPDATE`;

/** $1 by whom $2 and why $3, under the key $4 with these words $5; null: it was named by none. */
export const markAcknowledged = statement("mark-acknowledged")`
  UPDATE fencepost.notice AS n
  SET acknowledged_at = clock_timestamp(), acknowledged_by = $2, acknowledged_why = $3, acknowledged_key = $4,
    acknowledged_words = decode($5, 'hex')
  WHERE n.notice_id = $1 AND n.acknowledged_at IS NULL`;

/** The oldest acknowledged notices beyond the limit, of the lane or node that notice $1 is about. */
export const boundNotices = statement("bound-notices")`
  DELETE FROM fencepost.notice WHERE notice_id = ANY (ARRAY(
    SELECT old.notice_id FROM fencepost.notice AS own
    JOIN fencepost.notice AS old ON old.kind = own.kind AND old.signer IS NOT DISTINCT FROM own.signer
      AND old.chain_id IS NOT DISTINCT FROM own.chain_id AND old.node_id IS NOT DISTINCT FROM own.node_id
    WHERE own.notice_id = $1 AND old.acknowledged_at IS NOT NULL
    ORDER BY old.acknowledged_at DESC, old.notice_id OFFSET ${MOST_ACKNOWLEDGED}
  ))`;

/** At most $2 that were acknowledged, or are over, longer ago than $1 milliseconds. */
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
  /** Times in it are text. */
  readonly evidence: readonly (Omit<NoticeEvidence, "at"> & { readonly at: string })[];
  readonly acknowledgedAt: Date | null;
  readonly acknowledgedBy: string | null;
  readonly acknowledgedWhy: string | null;
  readonly acknowledgedKey: string | null;
  readonly acknowledgedWords: Hex | null;
}
