import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { insertIntake } from "../../../../src/adapters/postgres/insert-intake.ts";
import { deleteTransactions } from "../../../../src/adapters/postgres/statements/old-row.ts";
import type { PostgresStore } from "../../../../src/adapters/postgres/store.ts";
import type { Fence } from "../../../../src/domain/lane.ts";
import type { PreparedIntent } from "../../../../src/domain/transaction/transaction.ts";
import { EVERY_OUTCOME } from "../../../../src/domain/webhooks/subscriber.ts";
import { StoreUnavailable } from "../../../../src/ports/lane-store.ts";
import { crowding } from "../../../support/crowding.ts";
import {
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  BY_ANYBODY,
  commitOne,
  holdLane,
} from "../../../support/lane-samples.ts";
import {
  anOldIntent,
  anOldTransaction,
  confirmOld,
  DAY_MS,
  letDaysPass,
  OLD_DAYS,
} from "../../../support/old-transactions.ts";
import { createPostgresSubject, type PostgresSubject } from "../postgres-subject.ts";

const KEPT_MS = 90 * DAY_MS;
const MANY = 100;

let subject: PostgresSubject;
let store: PostgresStore;

beforeAll(async () => {
  subject = await createPostgresSubject();
  store = (await subject.connect()) as PostgresStore;
});
afterAll(async () => {
  await store.close();
  await subject.close();
});

/** Makes the rows of earlier tests recent again and empties the feed, so that each test sees only its own rows. */
beforeEach(async () => {
  await subject.client.query("UPDATE fencepost.transaction SET updated_at = now()");
  await subject.client.query("DELETE FROM fencepost.completion");
});

const count = async (sql: string, values: readonly unknown[] = []): Promise<number> =>
  Number((await subject.client.query<{ n: string }>(`SELECT count(*) AS n FROM ${sql}`, [...values])).rows[0]?.n);

const OF_TRANSACTIONS = ["payload", "attempt", "receipt", "step", "charge", "queued_change", "pool_choice"];

/** Names of the tables that have a row of this transaction. */
const tablesOf = async (txId: string): Promise<readonly string[]> => {
  const tables = ["transaction", ...OF_TRANSACTIONS, "completion", "reservation"];
  const counts = await Promise.all(tables.map((table) => count(`fencepost.${table} WHERE tx_id = $1`, [txId])));
  return tables.filter((_, at) => (counts[at] ?? 0) > 0);
};

/** Removes everything that retention may remove by now. */
const leave = async (...fences: readonly Fence[]) => {
  await store.shortenFeed(KEPT_MS, MANY);
  return store.removeOld(fences, KEPT_MS, MANY);
};

const resultsOf = async (fence: Fence, ...intents: readonly PreparedIntent[]) =>
  (await allocate(store, fence, intents)).map(({ result }) => result);

describe("a transaction past its retention", () => {
  it("is removed with all its rows", async () => {
    const fence = await holdLane(store);
    const old = await anOldTransaction(store, fence, anOldIntent(fence.lane, { requestId: "old" }));
    await letDaysPass(subject.client, OLD_DAYS);
    const young = await anOldTransaction(store, fence, anOldIntent(fence.lane));
    expect(await store.shortenFeed(KEPT_MS, MANY)).toMatchObject({ completions: 1 });
    expect(await store.lanesWithOld([fence.lane, { ...fence.lane, chainId: 2 }], KEPT_MS)).toEqual([fence.lane]);
    expect(await store.removeOld([fence], KEPT_MS, MANY)).toBe(1);
    expect(await tablesOf(old.txId)).toEqual([]);
    expect(await tablesOf(young.txId)).toContain("transaction");
    expect(await store.lanesWithOld([fence.lane], KEPT_MS)).toEqual([]);
    expect(await store.removeOld([fence], KEPT_MS, MANY)).toBe(0);
  });

  // protects [Retention] src/application/loops/housekeeping.ts, src/adapters/postgres/stores/old-rows.ts
  it("can be removed after a node acquires the unowned lane", async () => {
    const fence = await holdLane(store);
    await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    await store.shortenFeed(KEPT_MS, MANY);
    const abandoned = async () => (await store.abandonedLanes()).filter(({ signer }) => signer === fence.lane.signer);
    expect(await abandoned(), "it has an owner").toEqual([]);
    await store.retireInstance(fence.instanceId);
    const withKey = anInstance({ signers: [fence.lane.signer] });
    await store.registerInstance(withKey);
    expect(await abandoned(), "a live instance has the key").toEqual([]);
    await store.retireInstance(withKey.instanceId);
    await subject.client.query(
      "UPDATE fencepost.lane SET suspended = true, suspended_by = 'HISTORY' WHERE signer = $1",
      [fence.lane.signer],
    );
    expect(await abandoned(), "its history is in doubt").toEqual([]);
    await subject.client.query("UPDATE fencepost.lane SET suspended = false, suspended_by = NULL WHERE signer = $1", [
      fence.lane.signer,
    ]);
    expect(await abandoned()).toEqual([fence.lane]);
    const keeper = anInstance({ signers: [] });
    await store.registerInstance(keeper);
    expect(await store.removeOld([fence], KEPT_MS, MANY), "of a term that is over").toBe(0);
    const taken = await store.acquireLane(fence.lane, keeper.instanceId);
    if (taken.result === "notLeader") throw new Error("somebody owns it");
    expect(await store.removeOld([taken.fence], KEPT_MS, MANY)).toBe(1);
    expect(await store.releaseLane(taken.fence)).toBe(true);
    expect(await store.lanesWithOld(await abandoned(), KEPT_MS), "nothing is due").toEqual([]);
  });

  // protects [Retention] src/domain/cluster/retention.ts
  it("is not removed while it is open or checked for reorgs", async () => {
    const fence = await holdLane(store);
    const watched = await confirmOld(store, fence, anOldIntent(fence.lane));
    const open = anOldIntent(fence.lane);
    await allocate(store, fence, [open]);
    await letDaysPass(subject.client, OLD_DAYS);
    expect(await leave(fence)).toBe(0);
    expect(await tablesOf(watched.txId)).toContain("transaction");
    expect(await tablesOf(open.txId)).toContain("transaction");
  });

  it("is not removed while the feed still contains its completion", async () => {
    const fence = await holdLane(store);
    await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    expect(await store.removeOld([fence], KEPT_MS, MANY)).toBe(0);
    await store.shortenFeed(KEPT_MS, MANY);
    expect(await store.removeOld([fence], KEPT_MS, MANY)).toBe(1);
  });

  it("is removed in batches", async () => {
    const fence = await holdLane(store);
    for (let many = 0; many < 5; many++) await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    await store.shortenFeed(KEPT_MS, MANY);
    expect(await store.removeOld([fence], KEPT_MS, 3)).toBe(3);
    expect(await store.removeOld([fence], KEPT_MS, 3)).toBe(2);
    expect(await store.settledBelow(fence.lane)).toBe(5);
    expect(await allocate(store, fence, [anIntent(fence.lane)])).toMatchObject([{ nonce: 5 }]);
  });

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts
  it("is removed only by the current owner of the lane", async () => {
    const [fence, other] = [await holdLane(store), await holdLane(store)];
    await anOldTransaction(store, fence);
    const theirs = await anOldTransaction(store, other);
    await letDaysPass(subject.client, OLD_DAYS);
    expect(await leave({ ...fence, token: fence.token + 1 })).toBe(0);
    expect(await leave(fence)).toBe(1);
    expect(await tablesOf(theirs.txId)).toContain("transaction");
    expect(await leave(fence, other)).toBe(1);
  });

  it("is checked for finality again when it is deleted", async () => {
    const fence = await holdLane(store);
    const open = anIntent(fence.lane);
    await allocate(store, fence, [open]);
    const removed = subject.client.query(deleteTransactions.sql, [[open.txId]]);
    await expect(removed).rejects.toThrow("transactions that leave: 0 rows where 1 were planned");
    expect(await tablesOf(open.txId)).toEqual(["transaction", "payload"]);
  });

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/application/loops/housekeeping.ts
  it("is not removed while the lane is locked", async () => {
    const fence = await holdLane(store);
    const old = await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    await store.shortenFeed(KEPT_MS, MANY);
    await subject.client.query("BEGIN");
    await subject.client.query("SELECT FROM fencepost.lane WHERE signer = $1 FOR UPDATE", [fence.lane.signer]);
    const beganMs = performance.now();
    const error = await store.removeOld([fence], KEPT_MS, MANY).catch((thrown: unknown) => thrown);
    const waitedMs = performance.now() - beganMs;
    await subject.client.query("ROLLBACK");
    expect(waitedMs).toBeLessThan(1_500 * crowding());
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ busy: true });
    expect(await tablesOf(old.txId)).toContain("transaction");
  });

  // protects [Retention] src/adapters/postgres/statements/old-row.ts
  it("is removed together with its nonce reservation", async () => {
    const fence = await holdLane(store);
    const reservationId = crypto.randomUUID();
    const wanted = { ...BY_ANYBODY, reservationId, requestId: "kept for me", ttlMs: 60_000, floor: 0 };
    const reserve = () => commitOne(store, { kind: "reserve", fence, ...wanted });
    expect(await reserve()).toMatchObject({ result: { result: "created" } });
    const intent = anOldIntent(fence.lane);
    const attempt = anAttempt();
    const bound = await commitOne(store, {
      ...{ kind: "bind", fence, intent, attempt, nonce: 0, reason: "a test" },
      reservation: { reservationId, becomes: "SUBMITTED" },
    });
    expect(bound).toMatchObject({ result: "settled" });
    const over = "live = false, state = 'CONFIRMED', sub_state = NULL, outcome = 'CONFIRMED'";
    await subject.client.query(`UPDATE fencepost.transaction SET ${over} WHERE tx_id = $1`, [intent.txId]);
    await letDaysPass(subject.client, OLD_DAYS);
    expect(await leave(fence)).toBe(1);
    expect(await store.reservation(reservationId)).toBeNull();
    expect(await reserve()).toMatchObject({ result: { result: "spent" } });
    await subject.client.query("UPDATE fencepost.lane SET live_tracking = 0 WHERE signer = $1", [fence.lane.signer]);
  });

  it("is removed together with the intake rows of repeated requests", async () => {
    const fence = await holdLane(store);
    const old = await anOldTransaction(store, fence, anOldIntent(fence.lane, { requestId: "named twice" }));
    const name = anIntent(fence.lane, { requestId: "named twice" });
    await subject.intake(name);
    const [row] = await store.loadIntake([fence.lane], MANY);
    const results = [{ intakeId: row?.intakeId ?? 0, result: "alias", of: old.txId }] as const;
    await commitOne(store, { kind: "settleIntake", fence, results });
    expect(await store.transaction(name.txId)).toMatchObject({ txId: old.txId });
    await letDaysPass(subject.client, OLD_DAYS);
    await leave(fence);
    expect(await store.transaction(name.txId)).toBeNull();
    expect(await count("fencepost.intake WHERE tx_id = $1", [name.txId])).toBe(0);
  });

  // protects [Retention] src/domain/ledger/standing.ts, src/domain/ledger/standing.ts, src/adapters/postgres/statements/transaction.ts
  it("leaves no nonce gap", async () => {
    const fence = await holdLane(store);
    for (let many = 0; many < 3; many++) await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    await leave(fence);
    await allocate(store, fence, [anIntent(fence.lane)]);
    expect(await commitOne(store, { kind: "findSkipped", fence, from: 0, below: 4 })).toEqual({
      status: "skipped",
      holes: [],
    });
    expect(await commitOne(store, { kind: "realign", fence, floor: 0 })).toMatchObject({ cursor: 4 });
    expect(await store.nonces(fence.lane, 0, 9)).toMatchObject({ departedBelow: 3 });
  });

  // protects [Retention] src/domain/ledger/standing.ts, src/domain/ledger/standing.ts, src/adapters/postgres/statements/transaction.ts
  it("does not lower the lane's next nonce when it is removed", async () => {
    const fence = await holdLane(store);
    for (let many = 0; many < 3; many++) await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    await leave(fence);
    expect(await commitOne(store, { kind: "realign", fence, floor: 0 })).toMatchObject({ cursor: 3 });
    expect(await store.settledBelow(fence.lane)).toBe(3);
  });
});

describe("the request id of a removed transaction", () => {
  const gone = async (requestId: string, wishes: Partial<PreparedIntent> = {}) => {
    const fence = await holdLane(store);
    await anOldTransaction(store, fence, { ...anOldIntent(fence.lane, { requestId }), ...wishes });
    await letDaysPass(subject.client, OLD_DAYS);
    expect(await leave(fence)).toBe(1);
    return fence;
  };

  // protects [Retention] src/adapters/postgres/commit/spent-requests.ts, src/adapters/postgres/commit/lookup.ts, src/domain/ledger/allocate.ts
  it("stays refused while new ids of the same batch are created", async () => {
    const fence = await gone("once");
    // The first commit reads its rows before it writes, because this process does not have the lane's current state in
    // memory; later commits take one round trip.
    for (let times = 0; times < 4; times++) {
      expect(await resultsOf(fence, anIntent(fence.lane, { requestId: `new ${times}` }))).toEqual(["created"]);
      const both = [anIntent(fence.lane, { requestId: "once" }), anIntent(fence.lane, { requestId: `and ${times}` })];
      expect(await resultsOf(fence, ...both)).toEqual(["spent", "created"]);
    }
    expect(await count("fencepost.transaction WHERE request_id = 'once'")).toBe(0);
  });

  // protects [Retention] src/adapters/postgres/statements/lane.ts
  it("stays refused by a process that owns the lane during the removal", async () => {
    const fence = await holdLane(store);
    const old = anOldIntent(fence.lane, { requestId: "remembered" });
    await anOldTransaction(store, fence, old);
    await letDaysPass(subject.client, OLD_DAYS);
    await allocate(store, fence, [anIntent(fence.lane)]);
    await allocate(store, fence, [anIntent(fence.lane)]);
    const other = (await subject.connect()) as PostgresStore;
    await other.shortenFeed(KEPT_MS, MANY);
    expect(await other.removeOld([fence], KEPT_MS, MANY)).toBe(1);
    await other.close();
    expect(await resultsOf(fence, anIntent(fence.lane, { requestId: "remembered" }))).toEqual(["spent"]);
  });

  // protects [Retention] src/adapters/postgres/statements/old-row.ts
  it("stays refused on other lanes of the chain for requests to the same pool", async () => {
    const fence = await gone("of a pool", { pool: "payouts" });
    const second = await holdLane(store);
    await allocate(store, second, [anIntent(second.lane)]);
    const asked = { ...anIntent(second.lane, { requestId: "of a pool" }), pool: "payouts" };
    expect(await store.findPooled([{ chainId: 1, pool: "payouts", requestId: "of a pool" }])).toEqual([
      { spent: true, chainId: 1, pool: "payouts", requestId: "of a pool" },
    ]);
    for (let times = 0; times < 2; times++) {
      expect(await resultsOf(second, anIntent(second.lane))).toEqual(["created"]);
      expect(await resultsOf(second, { ...asked, txId: anIntent(second.lane).txId })).toEqual(["spent"]);
    }
    expect(await resultsOf(second, { ...asked, pool: "refunds", txId: anIntent(second.lane).txId })).toEqual([
      "created",
    ]);
    expect(await resultsOf(fence, anIntent(fence.lane, { requestId: "of a pool" }))).toEqual(["spent"]);
    const third = await holdLane(store);
    expect(await resultsOf(third, anIntent(third.lane, { requestId: "of a pool" }))).toEqual(["created"]);
  });

  it("is not confused with the same id on another chain", async () => {
    const fence = await gone("a b");
    const elsewhere = await holdLane(store, { ...fence.lane, chainId: 7 });
    expect(await resultsOf(elsewhere, anIntent(elsewhere.lane, { requestId: "a b" }))).toEqual(["created"]);
    expect(await resultsOf(fence, anIntent(fence.lane, { requestId: "A b" }))).toEqual(["created"]);
    expect(await resultsOf(fence, anIntent(fence.lane, { requestId: "a b " }))).toEqual(["created"]);
    const digests = "SELECT fencepost.request_digest(1, $1, $2) = fencepost.request_digest(1, $3, $4) AS same";
    const { rows } = await subject.client.query(digests, ["pool a", "b c", "pool a b", "c"]);
    expect(rows).toEqual([{ same: false }]);
  });

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/adapters/postgres/commit/commands.ts
  it("stays refused during the removal", async () => {
    for (const end of ["COMMIT", "ROLLBACK"]) {
      const requestId = `at the time of ${end}`;
      const fence = await holdLane(store);
      const old = await anOldTransaction(store, fence, anOldIntent(fence.lane, { requestId }));
      await allocate(store, fence, [anIntent(fence.lane)]);
      const { client } = subject;
      await client.query("BEGIN");
      await client.query("UPDATE fencepost.lane SET departed_below = 1 WHERE signer = $1", [fence.lane.signer]);
      const kept = "INSERT INTO fencepost.spent_request VALUES (fencepost.request_digest(1, $1, $2), 1, now())";
      await client.query(kept, [fence.lane.signer, requestId]);
      await client.query("DELETE FROM fencepost.transaction WHERE tx_id = $1", [old.txId]);
      const repeat = resultsOf(fence, anIntent(fence.lane, { requestId }));
      await subject.whenWaiting(1);
      await client.query(end);
      expect(await repeat).toEqual([end === "COMMIT" ? "spent" : "duplicate"]);
    }
  });

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/adapters/postgres/commit/commands.ts
  it("stays refused for a pool during the removal, even on another lane", async () => {
    const requestId = "of a pool, in that moment";
    const fence = await holdLane(store);
    const intent = { ...anOldIntent(fence.lane, { requestId }), pool: "payouts" };
    await anOldTransaction(store, fence, intent);
    const second = await holdLane(store);
    await allocate(store, second, [anIntent(second.lane)]);
    const { client } = subject;
    await client.query("BEGIN");
    const kept =
      "INSERT INTO fencepost.spent_request VALUES (fencepost.request_digest(1, 'pool payouts', $1), 1, now())";
    await client.query(kept, [requestId]);
    await client.query("DELETE FROM fencepost.pool_choice WHERE tx_id = $1", [intent.txId]);
    await client.query("DELETE FROM fencepost.transaction WHERE tx_id = $1", [intent.txId]);
    const repeat = resultsOf(second, { ...anIntent(second.lane, { requestId }), pool: "payouts" });
    await subject.whenWaiting(1);
    await client.query("COMMIT");
    expect(await repeat).toEqual(["spent"]);
  });

  it("may be used again only after the retention of request ids", async () => {
    const fence = await gone("for a while");
    expect(await store.forgetRequestIds(DAY_MS, MANY)).toBe(0);
    await subject.client.query("UPDATE fencepost.spent_request SET left_at = left_at - interval '2 days'");
    expect(await store.forgetRequestIds(DAY_MS, 1)).toBe(1);
    while ((await store.forgetRequestIds(DAY_MS, MANY)) > 0);
    expect(await resultsOf(fence, anIntent(fence.lane, { requestId: "for a while" }))).toEqual(["created"]);
  });

  it("is not stored if the transaction was refused as a duplicate", async () => {
    const fence = await holdLane(store);
    const first = anIntent(fence.lane, { requestId: "mine" });
    await allocate(store, fence, [first]);
    const second = anOldIntent(fence.lane, { requestId: "mine" });
    await subject.client.query("BEGIN");
    await insertIntake(subject.client, second);
    await subject.client.query("COMMIT");
    const [row] = await store.loadIntake([fence.lane], MANY);
    const refused = { result: "refused", event: "refuseReusedRequestId", reason: "a test" } as const;
    await commitOne(store, { kind: "settleIntake", fence, results: [{ intakeId: row?.intakeId ?? 0, ...refused }] });
    await letDaysPass(subject.client, OLD_DAYS);
    expect(await leave(fence)).toBe(1);
    expect(await resultsOf(fence, anIntent(fence.lane, { requestId: "mine" }))).toEqual(["duplicate"]);
    const hash = "fencepost.spent_request WHERE digest = fencepost.request_digest(1, $1, 'mine')";
    expect(await count(hash, [fence.lane.signer])).toBe(0);
  });
});

describe("the retention of the completion feed", () => {
  // protects [Retention] src/domain/cluster/retention.ts, src/adapters/postgres/stores/old-rows.ts
  it("truncates the feed from its beginning", async () => {
    const fence = await holdLane(store);
    const all = [];
    for (let many = 0; many < 4; many++) all.push(await anOldTransaction(store, fence));
    const { items } = await store.feed(0, MANY);
    const seqs = items.slice(-4).map(({ seq }) => seq) as [number, number, number, number];
    const age = "UPDATE fencepost.completion SET at = now() - interval '100 days' WHERE seq = ANY ($1)";
    await subject.client.query(age, [[seqs[0], seqs[1], seqs[3]]]);
    expect(await store.shortenFeed(KEPT_MS, 1)).toMatchObject({ completions: 1 });
    const shortened = await store.shortenFeed(KEPT_MS, MANY);
    expect(shortened).toMatchObject({ completions: 1 });
    expect(Date.now() - (shortened.oldestAt?.getTime() ?? 0)).toBeLessThan(DAY_MS);
    expect(await store.feed(0, MANY)).toMatchObject({
      truncatedThrough: seqs[1],
      items: [{ seq: seqs[2] }, { seq: seqs[3] }],
    });
    expect(await store.shortenFeed(KEPT_MS, MANY)).toMatchObject({ completions: 0 });
  });

  it("is done by one node at a time", async () => {
    const fence = await holdLane(store);
    await anOldTransaction(store, fence);
    await letDaysPass(subject.client, OLD_DAYS);
    await subject.client.query("BEGIN");
    await subject.client.query("SELECT pg_advisory_xact_lock(hashtextextended('fencepost feed shortened', 0))");
    expect(await store.shortenFeed(KEPT_MS, MANY)).toMatchObject({ completions: 0 });
    await subject.client.query("ROLLBACK");
    expect(await store.shortenFeed(KEPT_MS, MANY)).toMatchObject({ completions: 1 });
  });
});

describe("a record of what people did to a webhook", () => {
  // protects [Retention] src/adapters/postgres/statements/subscriber.ts, src/application/loops/housekeeping.ts
  it("is removed past its retention, in batches, and the webhook stays", async () => {
    const subscriberId = randomUUID();
    const actor = "operator:me";
    const kept = { name: "receiver", url: "https://receiver.example", filter: EVERY_OUTCOME, secretId: "5f1d7a84" };
    await store.addSubscriber({ subscriberId, ...kept, giveUpAfterMs: 60_000, createdBy: null, after: null }, actor);
    for (const action of ["pause", "resume", "pause"] as const)
      await store.changeSubscriber({ seen: { subscriberId, ...kept }, change: { action }, actor, reason: null });
    const decisions = () => count("fencepost.subscriber_decision WHERE subscriber_id = $1", [subscriberId]);
    const age = "UPDATE fencepost.subscriber_decision SET at = at - interval '91 days' WHERE action <> 'resume'";
    await subject.client.query(age);
    expect(await store.forgetSubscriberDecisions(KEPT_MS, 2)).toBe(2);
    expect(await store.forgetSubscriberDecisions(KEPT_MS, 2)).toBe(1);
    expect(await store.forgetSubscriberDecisions(KEPT_MS, 2)).toBe(0);
    expect([await decisions(), (await store.subscribers()).length]).toEqual([1, 1]);
  });
});
