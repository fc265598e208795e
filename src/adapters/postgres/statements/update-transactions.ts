import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "tx_id uuid, from_state text, sets_nonce boolean, nonce bigint, state text, sub_state text, " +
    "history_count integer, last_event text, attempt_count integer, claim_token bigint, claim_ordinal integer, " +
    "accepted_ordinal integer, claims integer, sets_error boolean, last_error text, steps integer",
);

/**
 * Moves transactions on, each only from the state it was read in. Several steps of one transaction within a commit
 * arrive here as one; its history has them all. Not asked: whether it is live. That was judged behind the lock, a CHECK
 * refuses otherwise, and naming it would let a plan from an empty table walk the index of all live ones. What gave its
 * nonce up is over at once: nothing of it is on any chain, so there is nothing to watch. $1 to $16, a place for each; a
 * column that none of them has anything in is null; $16 the steps that stand on the row (commit/ordinary-life.ts). $17 how
 * many they are.
 */
export const updateTransactions = statement<unknown>(
  "update-transactions",
  `WITH moved AS (
     UPDATE fencepost.transaction AS t
     SET state = m.state,
       nonce = CASE WHEN m.sets_nonce THEN m.nonce ELSE t.nonce END,
       live = CASE WHEN m.sets_nonce AND m.nonce IS NULL THEN false ELSE t.live END,
       outcome = CASE WHEN m.sets_nonce AND m.nonce IS NULL THEN m.state ELSE t.outcome END,
       sub_state = m.sub_state,
       history_count = m.history_count,
       last_event = m.last_event,
       attempt_count = m.attempt_count,
       claim_token = coalesce(m.claim_token, t.claim_token),
       claim_ordinal = coalesce(m.claim_ordinal, t.claim_ordinal),
       accepted_ordinal = m.accepted_ordinal,
       submit_attempts = t.submit_attempts + m.claims,
       last_submitted_at = CASE WHEN m.claims > 0 THEN now() ELSE t.last_submitted_at END,
       last_error = CASE WHEN m.sets_error THEN m.last_error ELSE t.last_error END,
       confirmed_at = CASE WHEN m.state <> 'CONFIRMED' THEN NULL ELSE coalesce(t.confirmed_at, now()) END,
       updated_at = now(),
       signed_at = CASE WHEN m.steps & 1 <> 0 THEN now() ELSE t.signed_at END,
       broadcast_at = CASE WHEN m.steps & 2 <> 0 THEN now() ELSE t.broadcast_at END,
       mined_at = CASE WHEN m.steps & 4 <> 0 THEN now() ELSE t.mined_at END,
       settled_at = CASE WHEN m.steps & 8 <> 0 THEN now() ELSE t.settled_at END
     FROM (${ROWS}) AS m
     WHERE t.tx_id = ANY ($1::uuid[]) AND t.tx_id = m.tx_id AND t.state = m.from_state
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM moved), $17, 'moved transactions')`,
);
