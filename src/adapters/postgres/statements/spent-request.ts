import { lists } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

/**
 * Request ids of transactions that are kept no more. `scope` is a lane's signer, or `pool ` and a pool's name. One look-up
 * for each, as of request ids that are kept.
 */
const ASKED = "chain_id bigint, scope text, request_id text";

const FOUND = `
  FROM (${lists(ASKED)}) AS asked
  CROSS JOIN LATERAL (
    SELECT FROM fencepost.spent_request AS own
    WHERE own.digest = fencepost.request_digest(asked.chain_id, asked.scope, asked.request_id)
    OFFSET 0
  ) AS s`;

/** Which of these there were; $1 the chain, $2 the scope and $3 the id of each. */
export const findSpent = taking(ASKED)<SpentRow>("find-spent")`
  SELECT asked.chain_id, asked.scope, asked.request_id ${FOUND}`;

export interface SpentRow {
  readonly chainId: number;
  readonly scope: string;
  readonly requestId: string;
}

/**
 * In a commit of one round trip, behind statements that may wait for a row that is being removed: ends the transaction
 * if one of these belonged to a removed transaction. $1 to $3 as above; $4 the transaction's marker.
 */
export const proveUnspent = taking(ASKED)("prove-unspent")`
  SELECT fencepost.require_still((SELECT count(*) ${FOUND}), 0, 'request ids of transactions that are kept no more'),
    fencepost.require_open($4)`;

/** Some of those that are older than $1 milliseconds, at most $2, lowest first; another node's are passed over. */
export const forgetSpent = statement<{ readonly digest: string }>("forget-spent")`
  DELETE FROM fencepost.spent_request WHERE digest = ANY (ARRAY(
    SELECT s.digest FROM fencepost.spent_request AS s
    WHERE s.left_at < now() - $1::bigint * interval '1 millisecond'
    ORDER BY s.left_at LIMIT $2 FOR UPDATE SKIP LOCKED
  ))
  RETURNING encode(digest, 'hex') AS digest`;
