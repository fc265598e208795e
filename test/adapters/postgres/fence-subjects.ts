/**
 * Every SQL statement that decides who may write. For each condition of a statement there are database states in which
 * that condition decides. The usual state: lanes (1, A), (2, A), (1, B) and (2, B), all owned by instance OWNER under
 * token 3 with next nonce 5; instance TWIN is alive as well, GONE is dead. The statements are called for (1, A) and (2,
 * B), or for (1, A) alone.
 */
import { CLOSED } from "../../../src/adapters/postgres/session/commit-slots.ts";
import { markCommit } from "../../../src/adapters/postgres/statements/commit-marker.ts";
import { lockLanes, proveLanes, readLane, updateLanes } from "../../../src/adapters/postgres/statements/lane.ts";
import { pickLanes, releaseLane, takeLanes } from "../../../src/adapters/postgres/statements/lease.ts";
import {
  declareDead,
  publishKnownLock,
  publishLock,
  readInstance,
  renewInstance,
  renewKnownInstance,
  replaceInstance,
} from "../../../src/adapters/postgres/statements/node-instance.ts";
import { openKnown, proveContinuity } from "../../../src/adapters/postgres/statements/session.ts";
import type { Statement } from "../../../src/adapters/postgres/statements/statement.ts";
import {
  pickSubscribers,
  takeSubscribers,
  writeDeliveries,
} from "../../../src/adapters/postgres/statements/subscriber.ts";
import { MOST_EVIDENCE } from "../../../src/domain/cluster/notices.ts";

export interface Case {
  readonly name: string;
  /** SQL that changes the usual database state for this case. */
  readonly world?: string;
  /** Parameters of the statement that differ from the usual ones in this case, by parameter number. */
  readonly values?: Readonly<Record<number, unknown>>;
}

export interface Subject {
  readonly statement: Pick<Statement<unknown>, "name" | "sql">;
  readonly values: readonly unknown[];
  /**
   * Number of rows that the statement returns if it accepts the writer. Rows about an instance that is not `alive` are
   * not counted.
   */
  readonly answers: number;
  readonly accepts: readonly Case[];
  readonly refuses: readonly Case[];
  /** Conditions of the statement that do not decide who may write, and why they are there. */
  readonly beside?: readonly (readonly [condition: RegExp, why: string])[];
}

const [OWNER, TWIN, GONE, UNKNOWN, STORE] = [1, 2, 3, 4, 5].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
/** Version id of the policy document in force. */
const STAMP = "00000000-0000-4000-8000-000000000006";
/** Two subscribers, both of instance OWNER under token 3. */
const [BOOKS, AUDIT] = [7, 8].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
const [A, B] = ["a", "b"].map((letter) => `0x${letter.repeat(40)}`);

export const WORLD = `
  INSERT INTO fencepost.node_instance (instance_id, node_id, url, version, mode, started_at, heartbeat_at, expires_at, dead)
  SELECT i.id::uuid, 'node', 'http://node', '1', 'basic', now(), now(), clock_timestamp() + interval '1 hour', i.dead
  FROM (VALUES ('${OWNER}', false), ('${TWIN}', false), ('${GONE}', true)) AS i(id, dead);
  INSERT INTO fencepost.lane (chain_id, signer, owner_instance, token, next_nonce, policy_stamp)
  SELECT c, s, '${OWNER}', 3, 5, '${STAMP}' FROM unnest(ARRAY[1, 2]) AS c, unnest(ARRAY['${A}', '${B}']) AS s;
  INSERT INTO fencepost.subscriber (subscriber_id, name, url, secret_id, give_up_after_ms, epoch, position, owner_instance,
    token, created_at, changed_by, changed_at)
  SELECT s::uuid, s, 'http://receiver', '', 0, 1, 5, '${OWNER}', 3, now(), '', now()
  FROM unnest(ARRAY['${BOOKS}', '${AUDIT}']) AS s;
  INSERT INTO fencepost.commit_marker (store_id, slot, marker, written_at) VALUES ('${STORE}', 1, '${UNKNOWN}', now())`;

export const TAKEOVER = `UPDATE fencepost.lane SET owner_instance = '${TWIN}', token = token + 1`;
export const HANDED_BACK = `UPDATE fencepost.lane SET owner_instance = '${OWNER}', token = 3, next_nonce = 5`;

/** Statements on the same tables that do not decide who may write, and why. */
export const NO_FENCES: Readonly<Record<string, string>> = {
  "insert-pool-choices": "behind the locks of its lanes; require_still: test/adapters/postgres/pool-race.test.ts",
  "announce-instance": "what an instance says of itself; nothing is decided by it",
  "charge-keys":
    "locks what API keys have used, which belongs to no lane; behind the lock of the lanes that were compared",
  "end-instances": "ends every instance, in the registration that begins an epoch",
  "end-terms": "ends every term, in the registration that begins an epoch",
  "ensure-lanes": "adds free lanes, under a unique key",
  "insert-instance": "adds an instance, under a unique key",
  "insert-transactions": "whether its transaction is open is tried with a BEGIN that fails, in one-trip.test.ts",
  "lock-lanes-by-key": "locks the lane of any owner, to compare it afterwards",
  "lock-lanes-of-instance": "locks what its next statement frees",
  "lock-notice": "locks one notice, which belongs to no term, to compare it afterwards",
  "lock-policy": "locks the policy document, which belongs to no lane: test/adapters/postgres/policy-race.test.ts",
  "mark-departed": "of lanes that its own transaction has locked and compared: what leaves is judged behind that",
  "prove-unspent": "behind the proof of its lanes; require_still: test/adapters/postgres/stores/old-rows.test.ts",
  "purge-instances": "removes what has been dead for a day",
  "release-lanes": "of a process that ends itself",
  "remember-position": "how far the log has come; it only grows",
  "retire-instance": "of a process that ends itself",
  "stamp-lanes":
    "marks every lane behind the lock of the table: those that commit prove it, test/adapters/postgres/policy-race.test.ts",
  "update-lane-use":
    "of lanes that its own transaction has locked and compared: what policies limit is never committed unread",
};

/** SQL that shows everything that a statement may have changed, in one line of text. */
export const SIGHT = `
  SELECT (SELECT string_agg(concat_ws(' ', chain_id, left(signer, 3), right(owner_instance::text, 1), token, next_nonce), ', '
                            ORDER BY chain_id, signer) FROM fencepost.lane) || ' | ' ||
    (SELECT string_agg(concat_ws(' ', right(instance_id::text, 1), dead, counter, session_lock), ', ' ORDER BY instance_id)
     FROM fencepost.node_instance) || ' | ' || (SELECT string_agg(marker::text, ', ') FROM fencepost.commit_marker) || ' | ' ||
    (SELECT string_agg(concat_ws(' ', right(subscriber_id::text, 1), right(owner_instance::text, 1), token, position, done,
       paused_by), ', ' ORDER BY subscriber_id) FROM fencepost.subscriber) || ' | ' ||
    (SELECT concat_ws(' ', count(*), sum(times), sum(jsonb_array_length(evidence)), string_agg(evidence -> 0 ->> 'lanes', ', '))
     FROM fencepost.notice) AS sight`;

/** SQL that changes the row of lane (1, A). Both single-lane and multi-lane statements use that lane. */
const lane = (change: string) => `UPDATE fencepost.lane SET ${change} WHERE chain_id = 1 AND signer = '${A}'`;
const books = (change: string) => `UPDATE fencepost.subscriber SET ${change} WHERE subscriber_id = '${BOOKS}'`;
const instance = (id: string | undefined, change: string) =>
  `UPDATE fencepost.node_instance SET ${change} WHERE instance_id = '${id}'`;
const PAST = "expires_at = clock_timestamp() - interval '1 second'";

const USUAL: Case = { name: "the term that holds" };
const TERM: readonly Case[] = [
  { name: "another instance under the same token", world: lane(`owner_instance = '${TWIN}'`) },
  { name: "a lane that was let go", world: lane("owner_instance = NULL") },
  { name: "a later token of the same instance", world: lane("token = 4") },
];
const LIFE: readonly Case[] = [
  { name: "an instance that was declared dead", world: instance(OWNER, "dead = true") },
  { name: "an instance whose heartbeat is past", world: instance(OWNER, PAST) },
  {
    name: "an instance that is not there",
    world: `DELETE FROM fencepost.node_instance WHERE instance_id = '${OWNER}'`,
  },
];
const AS_LEFT: readonly Case[] = [
  { name: "a cursor that moved", world: lane("next_nonce = 6") },
  { name: "a lane that was suspended", world: lane("suspended = true, suspended_by = 'OPERATOR'") },
  { name: "a lane of another epoch", world: lane("reconciled_epoch = 2") },
  { name: "a lane of which something left", world: lane("departed_below = 0") },
  { name: "a lane under another policy document", world: lane(`policy_stamp = '${UNKNOWN}'`) },
];

/** Ownership of two lanes, as columns of parameters: chain, signer, instance, token. */
const TERMS = [
  [1, 2],
  [A, B],
  [OWNER, OWNER],
  [3, 3],
];
const LEFT = [
  [5, 5],
  [null, null],
  [1, 1],
  [false, false],
  [STAMP, STAMP],
];
/** The progress of two subscribers: one list for each column. */
const DELIVERED = [
  [BOOKS, AUDIT],
  [3, 3],
  [1, 1],
  [7, 8],
  ["{9}", "{}"],
  ...Array.from({ length: 8 }, () => [null, null]),
];
const PAUSED = "owner_instance = NULL, paused_by = 'OPERATOR', paused_why = 'r', paused_at = now()";
const KEYS = [
  [1, 2],
  [A, B],
];
const FREE = "UPDATE fencepost.lane SET owner_instance = NULL";
const CLAIMS: readonly Case[] = [
  { name: "lanes without an owner", world: FREE },
  { name: "lanes of the dead", world: `UPDATE fencepost.lane SET owner_instance = '${GONE}'` },
];

/** SQL that takes an advisory lock in the tested session; a ROLLBACK releases it. */
const CLASS = "'fencepost.node_instance'::regclass::oid::integer";
const LOCKED = `SELECT pg_advisory_xact_lock(${CLASS}, 7)`;
const PUBLISHED = instance(OWNER, "session_lock = 7");
/** SQL for advisory locks other than the session lock 7. */
const OTHER_LOCKS: readonly (readonly [name: string, world: string])[] = [
  ["another key", `SELECT pg_advisory_xact_lock(${CLASS}, 8)`],
  ["another class", "SELECT pg_advisory_xact_lock(1, 7)"],
  ["a shared lock", `SELECT pg_advisory_xact_lock_shared(${CLASS}, 7)`],
  ["one number that looks like the two", `SELECT pg_advisory_xact_lock((${CLASS}::bigint << 32) | 7)`],
];
const OTHER_SESSIONS: Subject["beside"] = [
  [/^l\.locktype/, "no other kind of lock has a table of ours for its class"],
  [/^l\.granted$/, "takes a session that waits: session-lock.test.ts"],
  [/^l\.database/, "takes another database: session-lock.test.ts"],
];

/** Cases that show which dead instances leave a notice, and with how many lanes. */
const VANISHED: readonly Case[] = [
  {
    name: "an owner of some lanes among others",
    world: `${instance(OWNER, PAST)}; ${lane(`owner_instance = '${TWIN}'`)}`,
  },
  { name: "an owner of nothing", world: `${instance(OWNER, PAST)}; ${FREE}` },
  { name: "an owner that was draining", world: instance(OWNER, `${PAST}, draining = true`) },
  { name: "an owner of nothing that was draining", world: `${instance(OWNER, `${PAST}, draining = true`)}; ${FREE}` },
  {
    name: "an owner whose notice is full",
    world: `${instance(OWNER, PAST)};
      INSERT INTO fencepost.notice (kind, node_id, first_seen_at, last_seen_at, times, evidence)
      SELECT 'NODE_VANISHED', 'node', now(), now(), count(*), jsonb_agg('{}'::jsonb)
      FROM generate_series(1, ${MOST_EVIDENCE})`,
  },
];

const SEEN = `
  INSERT INTO fencepost.database_history (ordinal, system_identifier, timeline, wal_position, epoch, may_have_lost, seen_at)
  VALUES (1, 'system', 'timeline', 0, 1, false, now());
  UPDATE fencepost.feed SET last_seq = 5`;
const seen = (change: string) => `UPDATE fencepost.database_history SET ${change}`;

/** Parameters $7 to $10 of the statement `openKnown`. */
export type KnownHistory = readonly [system: string, timeline: string, epoch: number, walPosition: string];

/** The statements to test. `session`: process id of the database server process that serves the connection. */
export const subjectsIn = (history: KnownHistory, session: number): readonly Subject[] => [
  {
    statement: lockLanes,
    values: TERMS,
    answers: 2,
    accepts: [USUAL],
    refuses: [...TERM, ...LIFE],
  },
  {
    statement: proveLanes,
    values: [...TERMS, ...LEFT, null],
    answers: 1,
    accepts: [
      USUAL,
      { name: "inside its own transaction", world: "SET LOCAL fencepost.transaction = 'm'", values: { 10: "m" } },
      { name: "a lane of which something had left", world: lane("departed_below = 0"), values: { 8: [true, true] } },
    ],
    refuses: [...TERM, ...LIFE, ...AS_LEFT, { name: "a transaction that is not open", values: { 10: "m" } }],
  },
  {
    statement: updateLanes,
    values: [[1, 2], [A, B], [3, 3], [9, 9], [null, null], [1, 1], ...Array(7).fill([0, 0]), null],
    answers: 1,
    accepts: [
      USUAL,
      { name: "inside its own transaction", world: "SET LOCAL fencepost.transaction = 'm'", values: { 14: "m" } },
    ],
    refuses: [
      { name: "a later token", world: lane("token = 4") },
      { name: "a transaction that is not open", values: { 14: "m" } },
    ],
  },
  {
    statement: readLane,
    values: [1, A, OWNER, 3],
    answers: 1,
    accepts: [USUAL],
    refuses: [...TERM, ...LIFE],
    beside: [[/^([ceft]\.|l\.live_allocated )/, "what else is told of the lane"]],
  },
  {
    statement: takeLanes,
    values: [...KEYS, TWIN],
    answers: 1,
    accepts: [
      ...CLAIMS,
      {
        name: "lanes of an instance that is forgotten",
        world: `UPDATE fencepost.lane SET owner_instance = '${UNKNOWN}'`,
      },
    ],
    refuses: [
      { name: "a lane whose owner lives", world: lane("next_nonce = 5") },
      { name: "a lane whose owner lives, beside a free one", world: `${FREE}; ${lane(`owner_instance = '${OWNER}'`)}` },
      { name: "a claimant that was declared dead", world: `${FREE}; ${instance(TWIN, "dead = true")}` },
      { name: "a claimant whose heartbeat is past", world: `${FREE}; ${instance(TWIN, PAST)}` },
      { name: "a claimant that is not there", world: FREE, values: { 3: UNKNOWN } },
    ],
    beside: [[/^l\.owner_instance IS NULL$/, "said for the reader: a null owner is no live owner either"]],
  },
  {
    statement: pickSubscribers,
    values: [[BOOKS], TWIN],
    answers: 1,
    accepts: [
      { name: "a subscriber that nobody delivers for", world: books("owner_instance = NULL") },
      { name: "a subscriber of a dead instance", world: books(`owner_instance = '${GONE}'`) },
      { name: "a subscriber of an instance that is forgotten", world: books(`owner_instance = '${UNKNOWN}'`) },
      { name: "its own subscriber", values: { 2: OWNER } },
    ],
    refuses: [
      { name: "a subscriber whose owner lives" },
      {
        name: "another subscriber that is free",
        world: `UPDATE fencepost.subscriber SET owner_instance = NULL WHERE subscriber_id = '${AUDIT}'`,
      },
      { name: "a subscriber that is paused", world: books(PAUSED) },
    ],
    beside: [[/^s\.owner_instance IS NULL$/, "said for the reader: a null owner is no live owner either"]],
  },
  {
    statement: takeSubscribers,
    values: [[BOOKS], TWIN],
    answers: 1,
    accepts: [
      {
        name: "one of two that are free",
        world: `UPDATE fencepost.subscriber SET owner_instance = NULL`,
      },
      { name: "a subscriber that nobody delivers for", world: books("owner_instance = NULL") },
      { name: "a subscriber of a dead instance", world: books(`owner_instance = '${GONE}'`) },
      { name: "a subscriber of an instance that is forgotten", world: books(`owner_instance = '${UNKNOWN}'`) },
    ],
    refuses: [
      { name: "a subscriber whose owner lives" },
      { name: "a subscriber that is paused", world: books(PAUSED) },
      {
        name: "a claimant that was declared dead",
        world: `${books("owner_instance = NULL")}; ${instance(TWIN, "dead = true")}`,
      },
      {
        name: "a claimant whose heartbeat is past",
        world: `${books("owner_instance = NULL")}; ${instance(TWIN, PAST)}`,
      },
      { name: "a claimant that is not there", world: books("owner_instance = NULL"), values: { 2: UNKNOWN } },
    ],
    beside: [[/^s\.owner_instance IS NULL$/, "said for the reader: a null owner is no live owner either"]],
  },
  {
    statement: writeDeliveries,
    values: [...DELIVERED, OWNER],
    answers: 2,
    accepts: [
      USUAL,
      { name: "a pause by the delivering node", values: { 12: ["GONE", null], 13: ["HTTP 410", null] } },
    ],
    refuses: [
      { name: "another instance under the same token", world: books(`owner_instance = '${TWIN}'`) },
      { name: "a subscriber that was let go", world: books("owner_instance = NULL") },
      { name: "a later token of the same instance", world: books("token = 4") },
      {
        name: "a subscriber that was removed",
        world: `DELETE FROM fencepost.subscriber WHERE subscriber_id = '${BOOKS}'`,
      },
      { name: "an earlier token for one of them", values: { 2: [3, 2] } },
      ...LIFE,
    ],
    beside: [[/^s\.subscriber_id = ANY/, "finds the rows by key; the list has the same ids"]],
  },
  {
    statement: pickLanes,
    values: [...KEYS, TWIN, 9],
    answers: 2,
    accepts: [...CLAIMS, { name: "its own lanes", values: { 3: OWNER } }],
    refuses: [{ name: "a lane whose owner lives" }],
  },
  {
    statement: readInstance,
    values: [OWNER],
    answers: 1,
    accepts: [USUAL],
    refuses: LIFE,
  },
  {
    statement: releaseLane,
    values: [1, A, OWNER, 3],
    answers: 1,
    accepts: [USUAL],
    refuses: TERM,
  },
  {
    statement: renewInstance,
    values: [OWNER, 10_000],
    answers: 1,
    accepts: [USUAL],
    refuses: LIFE,
  },
  {
    statement: renewKnownInstance,
    values: [OWNER, 10_000, null],
    answers: 1,
    accepts: [
      USUAL,
      { name: "inside its own transaction", world: "SET LOCAL fencepost.transaction = 'm'", values: { 3: "m" } },
    ],
    refuses: [...LIFE, { name: "a transaction that is not open", values: { 3: "m" } }],
  },
  {
    statement: replaceInstance,
    values: [[OWNER], null],
    answers: 0,
    accepts: [USUAL],
    refuses: [{ name: "a transaction that is not open", values: { 2: "m" } }],
  },
  {
    statement: proveContinuity,
    values: ["system", "timeline", 1, 5, STORE, [1], [`${TWIN},${UNKNOWN}`], "9999"],
    answers: 1,
    accepts: [{ name: "the history that goes on", world: SEEN }],
    refuses: [
      { name: "a history that no node has seen" },
      { name: "another system", world: SEEN, values: { 1: "another" } },
      { name: "another timeline", world: SEEN, values: { 2: "another" } },
      { name: "another epoch", world: SEEN, values: { 3: 2 } },
      { name: "tables that were loaded anew", world: `${SEEN}; ${seen("place = '1.1'")}` },
      { name: "commits that may be lost", world: `${SEEN}; ${seen("may_have_lost = true")}` },
      { name: "a log that was further on", world: `${SEEN}; ${seen("wal_position = 1e18")}` },
      { name: "a feed that was further on", world: SEEN, values: { 4: 6 } },
      { name: "a marker that is gone", world: SEEN, values: { 7: [TWIN] } },
      { name: "a marker in another slot", world: SEEN, values: { 6: [2] } },
      { name: "a marker of another store", world: SEEN, values: { 5: TWIN } },
      { name: "a migration that is not known", world: SEEN, values: { 8: "0000" } },
    ],
    beside: [[/^f\.only_row$/, "the feed has one row"]],
  },
  {
    statement: declareDead,
    values: [OWNER, 1, "expired"],
    answers: 1,
    accepts: [
      { name: "a heartbeat that is past", world: instance(OWNER, PAST) },
      { name: "a counter that was watched standing still", values: { 3: "stood-still" } },
      { name: "a session lock that is gone", world: PUBLISHED, values: { 3: "lock-gone" } },
      ...OTHER_LOCKS.map(([name, world]) => ({
        name: `a session lock that is gone, and ${name} is held`,
        world: `${PUBLISHED}; ${world}`,
        values: { 3: "lock-gone" },
      })),
      ...VANISHED,
    ],
    refuses: [
      { name: "a heartbeat that is not past" },
      { name: "a renewal since", world: instance(OWNER, `${PAST}, counter = 2`) },
      { name: "an instance that is dead already", world: instance(OWNER, `${PAST}, dead = true`) },
      { name: "a session lock that was never told of", values: { 3: "lock-gone" } },
      { name: "a session lock that is held", world: `${PUBLISHED}; ${LOCKED}`, values: { 3: "lock-gone" } },
      { name: "a kind of evidence that does not exist", world: instance(OWNER, PAST), values: { 3: "hearsay" } },
    ],
    beside: OTHER_SESSIONS,
  },
  {
    statement: publishLock,
    values: [OWNER, 7, session],
    answers: 1,
    accepts: [
      { name: "a lock that it holds", world: LOCKED },
      { name: "a lock that another session holds", world: LOCKED, values: { 3: session + 1 } },
      ...OTHER_LOCKS.map(([name, world]) => ({ name: `no lock, while it holds ${name}`, world })),
    ],
    refuses: LIFE,
    beside: OTHER_SESSIONS,
  },
  {
    statement: publishKnownLock,
    values: [OWNER, null, null, null],
    answers: 1,
    accepts: [
      USUAL,
      { name: "a lock that it holds", world: LOCKED, values: { 2: 7, 3: session } },
      { name: "inside its own transaction", world: "SET LOCAL fencepost.transaction = 'm'", values: { 4: "m" } },
    ],
    refuses: [
      ...LIFE,
      { name: "a lock that another session holds", world: LOCKED, values: { 2: 7, 3: session + 1 } },
      ...OTHER_LOCKS.map(([name, world]) => {
        return { name: `a lock, while it holds ${name}`, world, values: { 2: 7, 3: session } };
      }),
      { name: "a transaction that is not open", values: { 4: "m" } },
    ],
    beside: OTHER_SESSIONS,
  },
  {
    statement: markCommit,
    values: [STORE, 1, TWIN, null],
    answers: 0,
    accepts: [
      { name: "a slot that was used before" },
      { name: "a slot that was never used", values: { 2: 2 } },
      { name: "inside its own transaction", world: "SET LOCAL fencepost.transaction = 'm'", values: { 4: "m" } },
    ],
    refuses: [
      { name: "a slot that was closed", world: `UPDATE fencepost.commit_marker SET marker = '${CLOSED}'` },
      { name: "a transaction that is not open", values: { 4: "m" } },
    ],
  },
  {
    statement: openKnown,
    values: ["0", "0", "0", "fencepost.transaction_timeout", "0", "m", ...history],
    answers: 1,
    accepts: [{ name: "the history that is known" }],
    refuses: [
      { name: "another system", values: { 7: "another" } },
      { name: "another timeline", values: { 8: "FFFFFFFF" } },
      { name: "another epoch", world: "UPDATE fencepost.feed SET epoch = epoch + 1" },
      { name: "a position below the highest seen", values: { 10: "99999999999999999999" } },
    ],
    beside: [
      [/^f\.only_row$/, "the feed has one row"],
      [/^current_setting/, "told, not required"],
    ],
  },
];
