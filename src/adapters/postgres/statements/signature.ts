import type { Lane } from "../../../domain/lane.ts";
import type { SignatureRecord } from "../../../domain/messages/record.ts";
import { type Flat, LANE, lists, names, overwritten, selected, stored } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const WHO =
  `signature_id uuid, ${LANE}, request_id text, owner text, kind text, domain text, digest bytea, message jsonb` as const;
const STEP = `state text, rule text, amount numeric, signature bytea, signed_at timestamptz, decided_at timestamptz,
  decided_by text, decided_why text, node_id text, token bigint` as const;
const KEPT = `${WHO}, ${STEP}, created_at timestamptz, expires_at timestamptz` as const;

/** Inserts requested signatures by plain inserts: a request id that exists already must end the commit. */
export const insertSignatures = taking(KEPT)("insert-signatures")`
  INSERT INTO fencepost.signature (${names(KEPT)})
  SELECT ${stored(KEPT)} FROM (${lists(KEPT)}) AS s`;

const CHANGED = `signature_id uuid, from_state text, ${STEP}` as const;

/**
 * Writes the next step of requested signatures, each only from the state in which it was read. The states are not
 * compared by `=`: PostgreSQL 15 would then walk the whole index by state.
 */
export const changeSignatures = changing(CHANGED, "change-signatures", "signatures in the state that was read")`
  UPDATE fencepost.signature AS s
  SET state = c.state, rule = c.rule, amount = c.amount, signature = decode(c.signature, 'hex'),
    signed_at = c.signed_at, decided_at = c.decided_at, decided_by = c.decided_by, decided_why = c.decided_why,
    node_id = c.node_id, token = c.token
  FROM (${lists(CHANGED)}) AS c
  WHERE s.signature_id = ANY ($1::uuid[]) AND s.signature_id = c.signature_id
    AND s.state IS NOT DISTINCT FROM c.from_state`;

const USE =
  "rule text, use_hour timestamptz, hour_amount numeric, hour_signatures bigint, day_amount numeric, day_signatures bigint";
const USED = `${LANE}, ${USE}` as const;

/** Writes what rules have counted, on lanes that are already locked. */
export const writeMessageUse = taking(USED)("write-message-use")`
  INSERT INTO fencepost.message_use AS u (${names(USED)})
  SELECT ${names(USED)} FROM (${lists(USED)}) AS n
  ORDER BY n.signer, n.chain_id, n.rule
  ON CONFLICT (signer, chain_id, rule) ${overwritten(USE)}`;

/** Reads what the rules of these lanes have counted. While the lanes are locked, this cannot change. */
export const readMessageUse = statement<MessageUseRow>("read-message-use")`
  SELECT u.chain_id, u.signer, u.rule, u.use_hour, u.hour_amount, u.hour_signatures, u.day_amount, u.day_signatures
  FROM fencepost.message_use AS u
  WHERE u.signer = ANY ($1::text[]) AND u.chain_id = ANY ($2::bigint[])`;

export interface MessageUseRow extends Lane {
  readonly rule: string;
  readonly useHour: Date;
  readonly hourAmount: bigint;
  readonly hourSignatures: number;
  readonly dayAmount: bigint;
  readonly daySignatures: number;
}

const ASKED = `${LANE}, request_id text` as const;

/** Finds requested signatures by lane and request id. $1 to $3, an array each. Each is one index look-up. */
export const findSignatures = taking(ASKED)<SignatureRow>("find-signatures")`
  SELECT ${selected("s", KEPT)}
  FROM (${lists(ASKED)}) AS asked
  CROSS JOIN LATERAL (
    SELECT own.* FROM fencepost.signature AS own
    WHERE own.chain_id = asked.chain_id AND own.signer = asked.signer AND own.request_id = asked.request_id
    OFFSET 0
  ) AS s`;

export const readSignature = statement<SignatureRow>("read-signature")`
  SELECT ${selected("s", KEPT)} FROM fencepost.signature AS s WHERE s.signature_id = $1`;

/**
 * SQL: one page of requested signatures, newest first. $1: only those before this id; $2 and $3: only of these signers
 * and chains, or null; $4: only of this API key, or null; $5: only in this state, or null; $6: the most; $7: only for
 * this domain, or null.
 */
const PAGE = `
  SELECT ${selected("s", KEPT)} FROM fencepost.signature AS s
  WHERE s.signature_id < $1 AND ($3::bigint[] IS NULL OR s.chain_id = ANY ($3)) AND ($5::text IS NULL OR s.state = $5)
    AND ($7::text IS NULL OR s.domain = $7)`;
const NEWEST = "ORDER BY s.signature_id DESC LIMIT $6";
const OF_SIGNERS = "($2::text[] IS NULL OR s.signer = ANY ($2))";

export const listSignatures = statement<SignatureRow>("list-signatures")`
  ${PAGE} AND ${OF_SIGNERS} AND ($4::text IS NULL OR s.owner = $4) ${NEWEST}`;

/** Lists the signatures that one API key asked for. */
export const listSignaturesOfKey = statement<SignatureRow>("list-signatures-of-key")`
  ${PAGE} AND ${OF_SIGNERS} AND s.owner = $4 ${NEWEST}`;

/**
 * Lists the signatures in one state: most are SIGNED, so those in another one are few. Those whose time for an approval
 * is over no longer wait.
 */
export const listSignaturesInState = statement<SignatureRow>("list-signatures-in-state")`
  SELECT ${selected("s", KEPT)} FROM fencepost.signature AS s
  WHERE s.signature_id < $1 AND ($3::bigint[] IS NULL OR s.chain_id = ANY ($3)) AND s.state = $5
    AND (s.state <> 'AWAITING_APPROVAL' OR s.expires_at > clock_timestamp()) AND ($7::text IS NULL OR s.domain = $7)
    AND ${OF_SIGNERS} AND ($4::text IS NULL OR s.owner = $4) ${NEWEST}`;

/** Lists the signatures for one domain. */
export const listSignaturesOfDomain = statement<SignatureRow>("list-signatures-of-domain")`
  ${PAGE} AND s.domain = $7 AND ${OF_SIGNERS} AND ($4::text IS NULL OR s.owner = $4) ${NEWEST}`;

/** Lists the signatures of some signers. */
export const listSignaturesOfSigners = statement<SignatureRow>("list-signatures-of-signers")`
  ${PAGE} AND s.signer = ANY ($2::text[]) AND ($4::text IS NULL OR s.owner = $4) ${NEWEST}`;

export type SignatureRow = Omit<Flat<SignatureRecord>, "decision"> & {
  readonly kind: string;
  readonly domain: string | null;
  readonly decidedAt: Date | null;
  readonly decidedBy: string | null;
  readonly decidedWhy: string | null;
};

/** SQL: rows of lane `k` that were asked for longer ago than $3 milliseconds and wait for nobody. */
const OLD = `
    SELECT own.signature_id, own.request_id FROM fencepost.signature AS own
    WHERE own.chain_id = k.chain_id AND own.signer = k.signer
      AND own.created_at < now() - $3::bigint * interval '1 millisecond'
      AND (own.expires_at IS NULL OR own.expires_at < now() OR own.state <> 'AWAITING_APPROVAL')
    ORDER BY own.signature_id`;

/** Finds which of these lanes have requested signatures that are old enough to be removed. */
export const findLanesWithOldSignatures = taking(LANE)<Lane>("find-lanes-with-old-signatures")`
  SELECT k.chain_id, k.signer FROM (${lists(LANE)}) AS k
  WHERE (SELECT count(*) FROM (${OLD} LIMIT 1) AS s) > 0`;

/** Reads the oldest removable requested signatures of these lanes, at most $4 of each lane. */
export const readOldSignatures = taking(LANE)<OldSignatureRow>("read-old-signatures")`
  SELECT k.chain_id, k.signer, s.signature_id
  FROM (${lists(LANE)}) AS k
  CROSS JOIN LATERAL (${OLD} LIMIT $4) AS s`;

export interface OldSignatureRow extends Lane {
  readonly signatureId: string;
}

/** Deletes requested signatures ($1), and keeps hashes of their request ids. */
export const deleteSignatures = statement("delete-signatures")`
  WITH gone AS (
    DELETE FROM fencepost.signature AS s WHERE s.signature_id = ANY ($1::uuid[])
    RETURNING s.chain_id, s.signer, s.request_id
  )
  INSERT INTO fencepost.spent_request (digest, chain_id, left_at)
  SELECT fencepost.request_digest(g.chain_id, 'sign ' || g.signer, g.request_id), g.chain_id, now()
  FROM gone AS g
  ORDER BY 1
  ON CONFLICT (digest) DO NOTHING`;
