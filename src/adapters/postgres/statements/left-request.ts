import type { BegunRequest, LeftStanding } from "../../../ports/left-request-store.ts";
import { behind, type Flat, LANE, lists, names, stored } from "../rows/columns.ts";
import { INTENT } from "../rows/transaction-fields.ts";
import { statement, taking } from "./statement.ts";

/** Number of queued requests that one statement starts. */
const AT_ONCE = 50;

const REQUEST = `left_id uuid, ${LANE}, action text, body text, owner text, repeatable boolean` as const;

/**
 * Queues requests for the owners of lanes. $8: time within which they may be started, in milliseconds. Old rows that
 * were never read are deleted as well.
 */
export const leaveRequests = taking(REQUEST)("leave-requests")`
  WITH old AS (
    DELETE FROM fencepost.left_request WHERE until < now() - interval '1 minute'
  )
  INSERT INTO fencepost.left_request (${names(REQUEST)}, until)
  SELECT ${names(REQUEST)}, now() + $8 * interval '1 millisecond'
  FROM (${lists(REQUEST)}, generate_subscripts($1::uuid[], 1) AS place) AS w ORDER BY place`;

/**
 * Starts queued requests. $1: chain and signer of each lane. A request that another statement has locked is skipped:
 * its sender withdraws it, or the next poll finds it.
 */
export const beginRequests = statement<Flat<BegunRequest>>("begin-requests")`
  WITH due AS MATERIALIZED (
    SELECT r.left_id, r.begun_by IS NOT NULL AS begun_before
    FROM fencepost.left_request AS r
    WHERE r.until > now() AND r.answer IS NULL AND r.chain_id || ' ' || r.signer = ANY ($1::text[])
      AND r.left_id <> ALL ($3::uuid[])
    ORDER BY r.until, r.left_id
    LIMIT ${AT_ONCE}
    FOR UPDATE OF r SKIP LOCKED
  ), begun AS (
    UPDATE fencepost.left_request AS r SET begun_by = $2
    FROM due WHERE r.left_id = due.left_id AND r.left_id = ANY (ARRAY(SELECT due.left_id FROM due))
    RETURNING r.*, due.begun_before
  )
  SELECT b.left_id, b.chain_id, b.signer, b.action, b.body, b.owner, b.repeatable, b.begun_before
  FROM begun AS b ORDER BY b.until, b.left_id`;

export const answerRequest = statement("answer-request")`
  UPDATE fencepost.left_request SET answer = $3 WHERE left_id = $1 AND begun_by = $2 AND answer IS NULL`;

export const putBackRequest = statement("put-back-request")`
  UPDATE fencepost.left_request SET begun_by = NULL WHERE left_id = $1 AND begun_by = $2 AND answer IS NULL`;

export const readLeftRequests = statement<LeftStanding>("read-left-requests")`
  SELECT r.left_id, r.begun_by IS NOT NULL AS begun, r.answer
  FROM fencepost.left_request AS r
  WHERE r.left_id = ANY ($1::uuid[])`;

/**
 * Withdraws a queued request and accepts its intents instead, if the request was not started. If the owner is starting
 * it right now, the DELETE waits and then finds it started, so only one of the two succeeds. The last parameter, after
 * the intents, is the request's id.
 */
export const withdrawRequest = taking(INTENT)<{ readonly leftId: string }>("withdraw-request")`
  WITH withdrawn AS (
    DELETE FROM fencepost.left_request WHERE left_id = ${behind(INTENT)} AND begun_by IS NULL AND answer IS NULL
    RETURNING left_id
  ), accepted AS (
    INSERT INTO fencepost.intake (${names(INTENT)})
    SELECT ${stored(INTENT)}
    FROM (${lists(INTENT)}, generate_subscripts($1::uuid[], 1) AS place) AS w
    WHERE EXISTS (SELECT 1 FROM withdrawn) ORDER BY place
  )
  SELECT left_id FROM withdrawn`;
