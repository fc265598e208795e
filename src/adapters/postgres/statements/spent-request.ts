import { lists } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

/**
 * Columns of a look-up of request ids whose transactions may have been removed by retention. `scope` is a lane's
 * signer, or `pool ` and a pool's name. The ids are looked up one by one, like request ids of stored transactions.
 */
const ASKED = "chain_id bigint, scope text, request_id text";

const FOUND = `
  FROM (${lists(ASKED)}) AS asked
  CROSS JOIN LATERAL (
    SELECT FROM fencepost.spent_request AS own
    WHERE own.digest = fencepost.request_digest(asked.chain_id, asked.scope, asked.request_id)
    OFFSET 0
  ) AS s`;

/**
 * Finds which of these request ids belonged to removed transactions. $1: the chain, $2: the scope and $3: the id of
 * each.
 */
export const findSpent = taking(ASKED)<SpentRow>("find-spent")`
  SELECT asked.chain_id, asked.scope, asked.request_id ${FOUND}`;

export interface SpentRow {
  readonly chainId: number;
  readonly scope: string;
  readonly requestId: string;
}

/**
 * In a commit of one round trip, ends the transaction if one of these request ids belonged to a removed transaction.
 * Runs after statements that may wait for a row that is being removed. $1 to $3 as in `findSpent`; $4: the
 * transaction's marker.
 */
export const proveUnspent = taking(ASKED)("prove-unspent")`
  SELECT fencepost.require_still((SELECT count(*) ${FOUND}), 0, 'request ids of transactions that are kept no more'),
    fencepost.require_open($4)`;

/**
 * Deletes hashes of request ids that are older than $1 milliseconds, at most $2, oldest first; rows that another node
 * has locked are skipped.
 */
export const forgetSpent = statement<{ readonly digest: string }>("forget-spent")`
  DELETE FROM fencepost.spent_request WHERE digest = ANY (ARRAY(
    SELECT s.digest FROM fencepost.spent_request AS s
    WHERE s.left_at < now() - $1::bigint * interval '1 millisecond'
    ORDER BY s.left_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ))
  RETURNING encode(digest, 'hex') AS digest`;
