import type { ExistingTransaction } from "../../../ports/lane-store.ts";
import { type Flat, lists, names } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const CHOICE = "request_id text, pool text, chain_id bigint, signer text, tx_id uuid";
const ASKED = "chain_id bigint, pool text, request_id text";

/**
 * Records which lane was chosen for a request to a pool. No lane's lock covers these rows, so two nodes may allocate
 * nonces to the same request on two lanes. The second insert then waits for the first commit. If the first succeeds,
 * the second inserts nothing and ends its transaction. Its node decides again with the current rows and finds that the
 * request is a repeat. Rows are inserted in the order of the constraint's columns, so that two commits with several
 * common requests cannot deadlock. $6: the transaction's marker if the response to BEGIN is outstanding.
 */
export const insertPoolChoices = taking(CHOICE)("insert-pool-choices")`
  WITH chosen AS (
    INSERT INTO fencepost.pool_choice (${names(CHOICE)})
    SELECT ${names(CHOICE)} FROM (${lists(CHOICE)}) AS c
    ORDER BY c.request_id, c.pool, c.chain_id
    ON CONFLICT ON CONSTRAINT pool_choice_request DO NOTHING
    RETURNING 1
  )
  SELECT fencepost.require_still((SELECT count(*) FROM chosen), cardinality($5), 'requests that no other lane of the pool has'),
    fencepost.require_open($6)`;

/**
 * Finds the transaction, or the intent that waits for approval, that a pool created for each request. $1: the chain,
 * $2: the pool and $3: the request id of each. OFFSET 0 makes it one look-up for each. Waiting intents are looked up by
 * request id, and their own id is only compared. If they were looked up by their own id, a plan made while the table
 * was empty could scan another index from end to end.
 */
export const findPooled = taking(ASKED)<PooledRow>("find-pooled")`
  SELECT c.pool, c.tx_id, c.chain_id, c.signer, c.request_id, owned.owner, owned.nonce, owned.state, owned.fingerprint
  FROM (${lists(ASKED)}) AS asked
  CROSS JOIN LATERAL (
    SELECT own.* FROM fencepost.pool_choice AS own
    WHERE own.request_id = asked.request_id AND own.pool = asked.pool AND own.chain_id = asked.chain_id
    OFFSET 0
  ) AS c
  CROSS JOIN LATERAL (
    SELECT t.owner, t.nonce, t.state,
      (SELECT '0x' || encode(p.fingerprint, 'hex') FROM fencepost.payload AS p WHERE p.tx_id = t.tx_id) AS fingerprint
    FROM fencepost.transaction AS t WHERE t.tx_id = c.tx_id
    UNION ALL
    SELECT i.owner, NULL, 'CREATED', '0x' || encode(i.fingerprint, 'hex')
    FROM fencepost.intake AS i
    WHERE i.request_id = c.request_id AND i.signer = c.signer AND i.chain_id = c.chain_id
      AND i.awaits IS NOT NULL AND i.alias_of IS NULL AND i.request_id IS NOT NULL
      AND i.tx_id IS NOT DISTINCT FROM c.tx_id
    OFFSET 0
  ) AS owned`;

export type PooledRow = Flat<ExistingTransaction> & { readonly pool: string };

/** Reads the pool on which a transaction was created. */
export const readPoolOf = statement<{ readonly pool: string }>("read-pool-of")`
  SELECT c.pool FROM fencepost.pool_choice AS c WHERE c.tx_id = $1`;
