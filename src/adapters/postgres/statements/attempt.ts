import type { Hex } from "../../../domain/lane.ts";
import type { AttemptRecord, FirstHash } from "../../../ports/query-store.ts";
import { lists, liveIds, names, selected } from "../rows/columns.ts";
import { FEES, type FeeColumns } from "../rows/transaction-fields.ts";
import { changing, statement, taking } from "./statement.ts";

const SIGNED = `tx_id uuid, ordinal integer, chain_id bigint, tx_hash text, kind text, gas gas, ${FEES}` as const;
const ATTEMPT = `${SIGNED}, is_foreign boolean, node_signed boolean, is_private boolean, raw_transaction bytea,
  claimed boolean` as const;

/**
 * Stores signed payloads before any byte of them is sent. `first_sent_at` is set if the same commit also stores the
 * right to send them. $1 to $15, an array each; null for a column that is empty in all rows.
 */
export const insertAttempts = taking(ATTEMPT)("insert-attempts")`
  INSERT INTO fencepost.attempt (
    ${names(SIGNED)}, is_foreign, node_signed, is_private, raw_transaction, created_at, first_sent_at
  )
  SELECT ${names(SIGNED)}, is_foreign IS TRUE, node_signed IS TRUE, is_private IS TRUE, decode(raw_transaction, 'hex'), now(),
    CASE WHEN claimed THEN now() END
  FROM (${lists(ATTEMPT)}) AS a`;

const KEY = "tx_id uuid, ordinal integer";

/**
 * Marks attempts as sent, in the commit that first stores the right to send them: from then on, the network may have
 * them. Attempts already marked stay unchanged.
 */
export const markAttemptsSent = taking(KEY)("mark-attempts-sent")`
  UPDATE fencepost.attempt AS a SET first_sent_at = now() FROM (${lists(KEY)}) AS c
  WHERE a.tx_id = ANY ($1::uuid[]) AND a.tx_id = c.tx_id AND a.ordinal = c.ordinal AND a.first_sent_at IS NULL`;

const COLUMNS = `${selected("a", SIGNED)}, a.is_foreign, a.node_signed, a.is_private, a.created_at, a.first_sent_at`;

/** Reads every attempt of these transactions. */
export const readAttempts = statement<AttemptRow>("read-attempts")`
  SELECT ${COLUMNS}
  FROM fencepost.attempt AS a
  WHERE a.tx_id = ANY ($1::uuid[])
  ORDER BY a.tx_id, a.ordinal`;

export type AttemptRow = Omit<AttemptRecord, "fees" | "foreign" | "nodeSigned" | "private"> &
  FeeColumns &
  Readonly<Record<"isForeign" | "nodeSigned" | "isPrivate", boolean>> & { readonly txId: string };

/**
 * Reads every attempt of a lane's transactions that are sent and not settled, for the lane's owner. The ids are
 * collected first, so that attempts are found by key.
 */
export const readTrackedAttempts = statement<AttemptRow>("read-tracked-attempts")`
  SELECT ${COLUMNS}
  FROM fencepost.attempt AS a
  WHERE a.tx_id = ANY (${liveIds("'TRACKING', 'STUCK'")})
  ORDER BY a.tx_id, a.ordinal`;

/** Reads the signed bytes of all attempts of these transactions; the caller picks the ordinals that it needs. */
export const readRawTransactions = statement<{ readonly txId: string; readonly ordinal: number; readonly bytes: Hex }>(
  "read-raw-transactions",
)`
  SELECT a.tx_id, a.ordinal, '0x' || encode(a.raw_transaction, 'hex') AS bytes
  FROM fencepost.attempt AS a
  WHERE a.tx_id = ANY ($1::uuid[]) AND a.raw_transaction IS NOT NULL`;

/** Reads the first hash of each transaction, for callers that wait for it. */
export const readFirstHashes = statement<FirstHash>("read-first-hashes")`
  SELECT t.tx_id, t.state, a.tx_hash
  FROM fencepost.transaction AS t
  LEFT JOIN fencepost.attempt AS a ON a.tx_id = t.tx_id AND a.ordinal = 1
  WHERE t.tx_id = ANY ($1::uuid[])`;

/** Finds the transaction of an attempt's hash, including old attempts; at most one per chain. */
export const findByHash = statement<{ readonly txId: string }>("find-by-hash")`
  SELECT a.tx_id FROM fencepost.attempt AS a WHERE a.tx_hash = $1`;

/** Allows sending these transactions to public endpoints, by an operator's action or by `publicAfter`. */
export const discloseAttempts = statement("disclose-attempts")`
  UPDATE fencepost.attempt AS a
  SET is_private = false
  WHERE a.tx_id = ANY ($1::uuid[]) AND a.is_private`;

const IDENTIFIED = `${KEY}, tx_hash text` as const;

/** Sets the hashes of attempts that a chain node signed itself. A known hash never changes. */
export const identifyAttempts = changing(IDENTIFIED, "identify-attempts", "identified attempts")`
  UPDATE fencepost.attempt AS a SET tx_hash = i.tx_hash FROM (${lists(IDENTIFIED)}) AS i
  WHERE a.tx_id = ANY ($1::uuid[]) AND a.tx_id = i.tx_id AND a.ordinal = i.ordinal
    AND a.node_signed AND coalesce(a.tx_hash, i.tx_hash) = i.tx_hash`;
