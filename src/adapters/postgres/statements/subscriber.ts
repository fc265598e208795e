import type { Address } from "../../../domain/lane.ts";
import type { CompletionState } from "../../../domain/transaction/transitions.ts";
import { MOST_SUBSCRIBERS, type PausedBy, type Subscriber } from "../../../domain/webhooks/subscriber.ts";
import type { SubscriberRecord } from "../../../ports/subscriber-store.ts";
import { behind, lists } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const COLUMNS = `s.subscriber_id, s.name, s.url, s.signers, to_json(s.chains) AS chains, s.keys, s.states, s.generation,
    s.rotated_until, s.secret_id, s.give_up_after_ms, s.paused_by, s.paused_why, s.paused_at, s.epoch, s.position,
    s.failing_since, s.last_status, s.last_reason, s.last_at, s.next_try_at, s.delivered_at, s.token, s.created_by,
    s.created_at, s.changed_by, s.changed_at`;

type Same =
  | "subscriberId"
  | "name"
  | "url"
  | "generation"
  | "rotatedUntil"
  | "secretId"
  | "giveUpAfterMs"
  | "epoch"
  | "position"
  | "failingSince"
  | "nextTryAt"
  | "deliveredAt"
  | "createdBy"
  | "createdAt"
  | "changedBy"
  | "changedAt";

export interface SubscriberRow extends Pick<Subscriber, Same> {
  readonly signers: readonly Address[] | null;
  readonly chains: readonly number[] | null;
  readonly keys: readonly string[] | null;
  readonly states: readonly CompletionState[] | null;
  readonly pausedBy: PausedBy | null;
  readonly pausedWhy: string | null;
  readonly pausedAt: Date | null;
  readonly lastStatus: number | null;
  readonly lastReason: string | null;
  readonly lastAt: Date | null;
  readonly token: number;
}

export interface ListedRow extends SubscriberRow, Pick<SubscriberRecord, "behind" | "behindSince" | "readAt"> {
  readonly instanceId: string | null;
  readonly nodeId: string | null;
}

/**
 * Lists all subscribers with their live owners and their backlogs. A new epoch of the feed begins far above the last
 * outcome (domain/cluster/epochs.ts): the numbers in between are no backlog.
 */
export const listSubscribers = statement<ListedRow>("list-subscribers")`
  SELECT ${COLUMNS}, o.instance_id, o.node_id,
    (
      SELECT greatest(f.last_seq - s.position, 0) - CASE
        WHEN s.position >= f.epoch_starts_after THEN 0
        ELSE f.epoch_starts_after - greatest(
          s.position,
          (SELECT c.seq FROM fencepost.completion AS c WHERE c.seq <= f.epoch_starts_after ORDER BY c.seq DESC LIMIT 1)
        )
      END
      FROM fencepost.feed AS f WHERE f.only_row
    ) AS behind,
    (SELECT c.at FROM fencepost.completion AS c WHERE c.seq > s.position ORDER BY c.seq LIMIT 1) AS behind_since,
    clock_timestamp() AS read_at
  FROM fencepost.subscriber AS s
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = s.owner_instance AND NOT o.dead
  ORDER BY s.name`;

/** SQL: records who changed the subscribers of the CTE `changed`. $1: the actor; $2: the reason or null. */
const noted = (action: string) => `
  noted AS (
    INSERT INTO fencepost.subscriber_decision (subscriber_id, name, action, actor, detail, at)
    SELECT c.subscriber_id, c.name, ${action}, $1, json_build_object('reason', $2::text), now() FROM changed AS c
  )`;

/**
 * Adds a subscriber. Without a position ($11), it begins at the end of the feed. Subscribers beyond the limit are not
 * added.
 */
export const insertSubscriber = statement<{ readonly result: "added" | "taken" | "full" }>("insert-subscriber")`
  WITH room AS (
    SELECT count(*) < ${MOST_SUBSCRIBERS} AS is_left FROM fencepost.subscriber
  ), changed AS (
    INSERT INTO fencepost.subscriber (subscriber_id, name, url, signers, chains, keys, states, secret_id, give_up_after_ms,
      position, epoch, created_by, created_at, changed_by, changed_at)
    SELECT $3::uuid, $4, $5, $6::text[], $7::bigint[], $8::text[], $9::text[], $10, $12::bigint,
      coalesce($11::bigint, f.last_seq), f.epoch, $13, now(), $1, now()
    FROM fencepost.feed AS f, room
    WHERE f.only_row AND room.is_left
    ON CONFLICT (name) DO NOTHING
    RETURNING subscriber_id, name
  ), ${noted("'add'")}
  SELECT CASE
    WHEN EXISTS (SELECT FROM changed) THEN 'added'
    WHEN (SELECT is_left FROM room) THEN 'taken'
    ELSE 'full'
  END AS result`;

/** SQL: a change by a person ends the term, so that nothing that was delivered under it is stored any more. */
const CHANGED = "token = s.token + 1, changed_by = $1, changed_at = clock_timestamp()";

interface ChangedRow {
  readonly subscriberId: string;
}

/** SQL: subscriber $3, if it still has the filter $4 to $7 that its caller was permitted to change. */
const SEEN = `s.subscriber_id = $3
      AND (s.signers, s.chains, s.keys, s.states)
        IS NOT DISTINCT FROM ($4::text[], $5::bigint[], $6::text[], $7::text[])`;

/** SQL: changes the subscriber, and records it. */
const change = (action: string, set: string, where = "") => `
  WITH changed AS (
    UPDATE fencepost.subscriber AS s SET ${set}, ${CHANGED} WHERE ${SEEN}${where}
    RETURNING s.subscriber_id, s.name
  ), ${noted(`'${action}'`)}
  SELECT subscriber_id FROM changed`;

/** Changes the URL ($8), the filter ($10 to $13) if it is given ($9), and `giveUpAfter` ($14). */
export const changeSubscriber = statement<ChangedRow>("change-subscriber")`${change(
  "change",
  `url = coalesce($8, s.url),
      signers = CASE WHEN $9::boolean THEN $10::text[] ELSE s.signers END,
      chains = CASE WHEN $9::boolean THEN $11::bigint[] ELSE s.chains END,
      keys = CASE WHEN $9::boolean THEN $12::text[] ELSE s.keys END,
      states = CASE WHEN $9::boolean THEN $13::text[] ELSE s.states END,
      give_up_after_ms = coalesce($14::bigint, s.give_up_after_ms)`,
)}`;

/** Pauses a subscriber. One that is paused already stays as it is. */
export const pauseSubscriber = statement<ChangedRow>("pause-subscriber")`${change(
  "pause",
  `owner_instance = NULL, paused_by = coalesce(s.paused_by, 'OPERATOR'),
      paused_why = coalesce(s.paused_why, coalesce($2, 'no reason was given')),
      paused_at = coalesce(s.paused_at, clock_timestamp())`,
)}`;

/** Resumes a subscriber, or has one that fails tried at once. */
export const resumeSubscriber = statement<ChangedRow>("resume-subscriber")`${change(
  "resume",
  "paused_by = NULL, paused_why = NULL, paused_at = NULL, failing_since = NULL, next_try_at = NULL",
)}`;

/** Has a subscriber continue after position $8. A new epoch that it has not heard of is still announced to it. */
export const replaySubscriber = statement<ChangedRow>("replay-subscriber")`${change(
  "replay",
  "position = $8::bigint, done = '{}', failing_since = NULL, next_try_at = NULL",
)}`;

/** Begins the next generation of a secret. $8: the present one; $9: the secret's id; $10: overlap. */
export const rotateSubscriber = statement<ChangedRow>("rotate-subscriber")`${change(
  "rotate",
  `generation = s.generation + 1, secret_id = $9,
      rotated_until = clock_timestamp() + $10::bigint * interval '1 millisecond'`,
  " AND s.generation = $8::integer",
)}`;

export const removeSubscriber = statement<ChangedRow>("remove-subscriber")`
  WITH changed AS (
    DELETE FROM fencepost.subscriber AS s WHERE ${SEEN} RETURNING s.subscriber_id, s.name
  ), ${noted("'remove'")}
  SELECT subscriber_id FROM changed`;

/**
 * Locks those of the subscribers $1 that are not paused and that instance $2 owns, or nobody alive. Those that other
 * transactions have locked are skipped.
 */
export const pickSubscribers = statement<PickedSubscriberRow>("pick-subscribers")`
  SELECT s.subscriber_id, s.owner_instance IS NOT DISTINCT FROM $2::uuid AS kept
  FROM fencepost.subscriber AS s
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = s.owner_instance
  WHERE s.subscriber_id = ANY ($1::uuid[]) AND s.paused_by IS NULL
    AND (s.owner_instance IS NULL OR s.owner_instance = $2 OR coalesce(o.dead, true))
  ORDER BY s.subscriber_id
  FOR NO KEY UPDATE OF s SKIP LOCKED`;

export interface PickedSubscriberRow {
  readonly subscriberId: string;
  readonly kept: boolean;
}

const ID = "subscriber_id uuid" as const;

/**
 * Begins the terms of instance $2 for subscribers that an earlier statement has locked. Checks again that they are
 * free, and that the instance is alive, because that statement may have read an older snapshot.
 */
export const takeSubscribers = changing(ID, "take-subscribers", "subscribers taken")`
  UPDATE fencepost.subscriber AS s
  SET owner_instance = $2, token = s.token + 1
  WHERE s.subscriber_id = ANY ($1::uuid[]) AND s.paused_by IS NULL
    AND (
      s.owner_instance IS NULL
      OR coalesce((SELECT o.dead FROM fencepost.node_instance AS o WHERE o.instance_id = s.owner_instance), true)
    )
    AND (
      SELECT NOT n.dead AND n.expires_at > clock_timestamp() FROM fencepost.node_instance AS n WHERE n.instance_id = $2
    )`;

/** Reads those of the subscribers $1 that instance $2 owns. */
export const readOwnSubscribers = statement<SubscriberRow & { readonly done: readonly number[] }>(
  "read-own-subscribers",
)`
  SELECT ${COLUMNS}, to_json(s.done) AS done
  FROM fencepost.subscriber AS s
  WHERE s.subscriber_id = ANY ($1::uuid[]) AND s.owner_instance = $2`;

const PROGRESS =
  `subscriber_id uuid, token bigint, epoch integer, position bigint, done text, failing_since timestamptz,
  last_status integer, last_reason text, last_at timestamptz, next_try_at timestamptz, delivered_at timestamptz,
  paused_by text, paused_why text` as const;
const INSTANCE = behind(PROGRESS);

/**
 * Stores the progress of deliveries, each only if the instance still has the term. The rows are locked in ascending
 * order, so that two nodes never wait for each other. A takeover waits for these locks; if this statement had to wait
 * for a takeover instead, PostgreSQL evaluates the conditions again on the changed row, and it is not returned.
 */
export const writeDeliveries = taking(PROGRESS)<{ readonly subscriberId: string }>("write-deliveries")`
  WITH held AS MATERIALIZED (
    SELECT s.subscriber_id
    FROM fencepost.subscriber AS s
    JOIN (${lists(PROGRESS)}) AS p ON p.subscriber_id = s.subscriber_id AND p.token = s.token
    WHERE s.subscriber_id = ANY ($1::uuid[]) AND s.owner_instance = ${INSTANCE}
      AND (
        SELECT NOT n.dead AND n.expires_at > clock_timestamp() FROM fencepost.node_instance AS n
        WHERE n.instance_id = ${INSTANCE}
      )
    ORDER BY s.subscriber_id
    FOR NO KEY UPDATE OF s
  )
  UPDATE fencepost.subscriber AS s
  SET epoch = p.epoch, position = p.position, done = p.done::bigint[], failing_since = p.failing_since,
    last_status = p.last_status, last_reason = p.last_reason, last_at = p.last_at, next_try_at = p.next_try_at,
    delivered_at = p.delivered_at, paused_by = p.paused_by, paused_why = p.paused_why,
    paused_at = CASE WHEN p.paused_by IS NULL THEN NULL ELSE clock_timestamp() END,
    owner_instance = CASE WHEN p.paused_by IS NULL THEN s.owner_instance END
  FROM held, (${lists(PROGRESS)}) AS p
  WHERE s.subscriber_id = ANY ($1::uuid[]) AND s.subscriber_id = held.subscriber_id
    AND p.subscriber_id = held.subscriber_id
  RETURNING s.subscriber_id`;

/**
 * Deletes what people did to subscribers longer than $1 milliseconds ago, at most $2, oldest first; rows that another
 * node has locked are skipped.
 */
export const forgetDecisions = statement<{ readonly action: string }>("forget-decisions")`
  DELETE FROM fencepost.subscriber_decision WHERE ctid = ANY (ARRAY(
    SELECT d.ctid FROM fencepost.subscriber_decision AS d
    WHERE d.at < now() - $1::bigint * interval '1 millisecond'
    ORDER BY d.at LIMIT $2 FOR UPDATE SKIP LOCKED
  ))
  RETURNING action`;
