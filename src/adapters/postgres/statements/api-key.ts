import type { KeyTerms } from "../../../ports/key-store.ts";
import { statement } from "./statement.ts";

/** Reads API keys with one row per secret; a key without a secret has one row. */
export const readApiKeys = statement<ApiKeyRow>("read-api-keys")`
  SELECT k.name, k.scopes, k.signers, to_json(k.chains) AS chains, k.creates_per_second,
    k.reads_per_second, k.queue_share, k.created_at, encode(s.digest, 'hex') AS digest,
    s.created_at AS secret_created_at
  FROM fencepost.api_key AS k
  LEFT JOIN fencepost.api_secret AS s ON s.name = k.name
  ORDER BY k.name, s.created_at, s.slot`;

export interface ApiKeyRow extends KeyTerms {
  readonly createdAt: Date;
  readonly digest: string | null;
  readonly secretCreatedAt: Date | null;
}

/**
 * Adds a secret to an API key. If the key exists with the same scopes and limits, its row is locked by an update that
 * changes nothing; if they differ, no row matches. If two concurrent requests take the same free slot, the second one
 * must retry.
 */
export const insertApiSecret = statement<{ readonly result: "added" | "differs" | "full" | "again" }>(
  "insert-api-secret",
)`
  WITH key AS (
    INSERT INTO fencepost.api_key AS k (name, scopes, signers, chains, creates_per_second, reads_per_second, queue_share, created_at)
    VALUES ($1, $2, $3, $4::bigint[], $5, $6, $7, now())
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
      WHERE k.scopes = excluded.scopes AND k.signers IS NOT DISTINCT FROM excluded.signers
        AND k.chains IS NOT DISTINCT FROM excluded.chains
        AND k.creates_per_second IS NOT DISTINCT FROM excluded.creates_per_second
        AND k.reads_per_second IS NOT DISTINCT FROM excluded.reads_per_second
        AND k.queue_share IS NOT DISTINCT FROM excluded.queue_share
    RETURNING k.name
  ), free AS (
    SELECT min(slot) AS slot
    FROM unnest('{1, 2}'::smallint[]) AS slot
    WHERE slot NOT IN (SELECT s.slot FROM fencepost.api_secret AS s WHERE s.name = $1)
  ), secret AS (
    INSERT INTO fencepost.api_secret (digest, name, slot, created_at)
    SELECT decode($8, 'hex'), key.name, free.slot, now() FROM key, free WHERE free.slot IS NOT NULL
    ON CONFLICT (name, slot) DO NOTHING
    RETURNING name
  ), noted AS (
    INSERT INTO fencepost.key_decision (name, action, actor, detail, at)
    SELECT name, 'add', $9, json_build_object('secret', left($8, 8), 'scopes', $2::text[]), now() FROM secret
  )
  SELECT CASE
    WHEN NOT EXISTS (SELECT FROM key) THEN 'differs'
    WHEN NOT EXISTS (SELECT FROM secret) AND (SELECT slot FROM free) IS NULL THEN 'full'
    WHEN NOT EXISTS (SELECT FROM secret) THEN 'again'
    ELSE 'added'
  END AS result`;

/** Deletes the secret whose digest begins with $2, or all secrets and the API key itself. */
export const deleteApiKey = statement<{ readonly name: string }>("delete-api-key")`
  WITH secret AS (
    DELETE FROM fencepost.api_secret AS s
    WHERE s.name = $1 AND ($2::text IS NULL OR left(encode(s.digest, 'hex'), length($2)) = $2)
    RETURNING s.name, left(encode(s.digest, 'hex'), 8) AS id
  ), key AS (
    DELETE FROM fencepost.api_key AS k WHERE k.name = $1 AND $2::text IS NULL
    RETURNING k.name
  ), gone AS (
    SELECT name FROM secret UNION SELECT name FROM key
  ), noted AS (
    INSERT INTO fencepost.key_decision (name, action, actor, detail, at)
    SELECT name, 'revoke', $3, json_build_object('secrets', (SELECT json_agg(id) FROM secret)), now() FROM gone
  )
  SELECT name FROM gone`;
