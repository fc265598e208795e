import { randomUUID } from "node:crypto";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertIntake } from "../../../src/adapters/postgres/insert-intake.ts";
import { beginRequests } from "../../../src/adapters/postgres/statements/left-request.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import type { Store } from "../../contracts/store-subject.ts";
import { aLane, allocate, anInstance, anIntent, commitOne, holdLane, nonces } from "../../support/lane-samples.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/**
 * A request sent inside the caller's own database transaction: the business row and the payment commit together, or
 * neither does.
 */
describe("a send within the caller's database transaction", () => {
  let subject: PostgresSubject;
  let store: Store;
  let caller: Client;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    store = await subject.connect();
    caller = await connectClient(subject.url);
    await caller.query("CREATE TABLE public.orders (id text PRIMARY KEY, tx_id uuid)");
  });
  afterAll(async () => {
    await caller.end();
    await store.close();
    await subject.close();
  });

  const waiting = async (lane: Lane) => (await store.loadIntake([lane], 100)).map(({ intent }) => intent.txId);
  const order = (client: Client, id: string, txId: string) =>
    client.query("INSERT INTO public.orders VALUES ($1, $2)", [id, txId]);

  // protects [Replicas that embed the library] src/adapters/postgres/statements/left-request.ts
  it("cannot be withdrawn once the lane's owner has begun to process it", async () => {
    const lane = aLane();
    const { instanceId } = anInstance();
    const leftId = randomUUID();
    const request = { leftId, lane, action: "create", body: "{}", owner: null, repeatable: true };
    await store.leaveRequests([request], 60_000);
    await caller.query("BEGIN");
    const begun = await caller.query(beginRequests.sql, [[`${lane.chainId} ${lane.signer}`], instanceId, []]);
    expect(begun.rows).toHaveLength(1);
    const withdrawing = store.withdrawRequest(leftId, [anIntent(lane)]);
    const waits =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DELETE FROM fencepost.left_request%'";
    const isWaiting = async () => {
      // Within a transaction, PostgreSQL keeps the statistics snapshot of the first read of pg_stat_activity; clear it
      // so that the next read is current.
      await caller.query("SELECT pg_stat_clear_snapshot()");
      return ((await caller.query(waits)).rowCount ?? 0) > 0;
    };
    await waitUntil(isWaiting, "the sender waits for the owner");
    await caller.query("COMMIT");
    expect(await withdrawing).toBe(false);
    expect(await waiting(lane)).toEqual([]);
  });

  it("takes effect only when the caller's transaction commits", async () => {
    const lane = aLane();
    const intent = anIntent(lane, { requestId: "o1" });
    await caller.query("BEGIN");
    await order(caller, "o1", intent.txId);
    await insertIntake(caller, intent);
    expect(await waiting(lane)).toEqual([]);
    expect(await store.transaction(intent.txId)).toBeNull();
    await caller.query("COMMIT");
    expect(await waiting(lane)).toEqual([intent.txId]);
    expect(await store.transaction(intent.txId)).toMatchObject({ state: "CREATED" });
  });

  it("has no effect if the caller's transaction rolls back", async () => {
    const lane = aLane();
    await caller.query("BEGIN");
    await insertIntake(caller, anIntent(lane));
    await caller.query("ROLLBACK");
    await caller.query("BEGIN");
    await caller.query("SAVEPOINT before");
    await insertIntake(caller, anIntent(lane));
    await caller.query("ROLLBACK TO before");
    await caller.query("COMMIT");
    const doomed = await connectClient(subject.url);
    const { rows } = await doomed.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    await doomed.query("BEGIN");
    await insertIntake(doomed, anIntent(lane));
    await caller.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
    await waitUntil(async () => {
      const { rowCount } = await caller.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [rows[0]?.pid]);
      return rowCount === 0;
    }, "the killed backend is gone");
    expect(await waiting(lane)).toEqual([]);
    await doomed.end().catch(() => undefined);
  });

  it("blocks no other create while the caller's transaction is open", async () => {
    const fence = await holdLane(store);
    const mine = anIntent(fence.lane, { requestId: "42" });
    await caller.query("BEGIN");
    await insertIntake(caller, mine);
    const theirs = anIntent(fence.lane, { requestId: "42" });
    expect(nonces(await allocate(store, fence, [theirs, anIntent(fence.lane)]))).toEqual([0, 1]);
    await caller.query("COMMIT");
    const [row] = await store.loadIntake([fence.lane], 10);
    const items = [{ intent: mine, intakeId: row?.intakeId ?? 0 }];
    expect(await commitOne(store, { kind: "allocate", fence, floor: 0, items })).toMatchObject({
      items: [{ result: "duplicate", samePayload: true, existing: { txId: theirs.txId } }],
    });
    expect((await store.loadLane(fence))?.cursor).toBe(2);
  });

  it("is found even if a higher intake id was already consumed", async () => {
    const fence = await holdLane(store);
    const slow = await connectClient(subject.url);
    const [early, late] = [anIntent(fence.lane), anIntent(fence.lane)] as const;
    await slow.query("BEGIN");
    await insertIntake(slow, early);
    await subject.intake(late);
    const [first] = await store.loadIntake([fence.lane], 10);
    expect(first?.intent.txId).toBe(late.txId);
    const consume = (row: typeof first, intent: typeof early) =>
      commitOne(store, {
        kind: "allocate",
        fence,
        floor: 0,
        items: [{ intent, intakeId: row?.intakeId ?? 0 }],
      });
    await consume(first, late);
    await slow.query("COMMIT");
    const [second] = await store.loadIntake([fence.lane], 10);
    expect(second?.intakeId).toBeLessThan(first?.intakeId ?? 0);
    expect(await consume(second, early)).toMatchObject({ items: [{ nonce: 1 }] });
    await slow.end();
  });

  it("is consumed once, even if two owners try at the same time", async () => {
    const old = await holdLane(store);
    const intents = Array.from({ length: 10 }, () => anIntent(old.lane));
    await subject.intake(...intents);
    const rows = await store.loadIntake([old.lane], 100);
    const items = rows.map(({ intakeId }, index) => ({ intakeId, intent: intents[index] as (typeof intents)[number] }));
    const heir = anInstance();
    await store.registerInstance(heir);
    await store.releaseLane(old);
    const taken = await store.acquireLane(old.lane, heir.instanceId);
    if (taken.result === "notLeader") throw new Error("not taken");
    const write = (fence: typeof old) => commitOne(store, { kind: "allocate", fence, floor: 0, items });
    const outcomes = await Promise.all([write(old), write(taken.fence), write(taken.fence), write(old)]);
    const created = outcomes.flatMap((outcome) => (outcome.status === "allocated" ? nonces(outcome.items) : []));
    expect(created.filter((nonce) => nonce !== null)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(outcomes.filter(({ status }) => status === "fenced")).toHaveLength(2);
    expect(await waiting(old.lane)).toEqual([]);
    expect((await store.loadLane(taken.fence))?.cursor).toBe(10);
  });

  it("needs only the method `query` of the client", async () => {
    const lane = aLane();
    const calls: string[] = [];
    const intent = anIntent(lane, { metadata: { a: "ü" }, payload: { accessList: [], data: "0x00ff" } });
    await insertIntake(
      {
        query: async (text, values) => {
          calls.push(text);
          return caller.query(text, values);
        },
      },
      intent,
    );
    expect(calls).toHaveLength(1);
    expect(calls[0]).toMatch(/^INSERT INTO fencepost\.intake/);
    expect((await store.loadIntake([lane], 1))[0]?.intent).toMatchObject({
      payload: intent.payload,
      metadata: intent.metadata,
      fingerprint: intent.fingerprint,
    });
  });

  it("fails immediately if the table cannot store the values", async () => {
    await expect(insertIntake(caller, anIntent(aLane(), { requestId: "x".repeat(256) }))).rejects.toMatchObject({
      constraint: "intake_request_id",
    });
    await expect(insertIntake(caller, anIntent({ chainId: 0, signer: "0xABC" }))).rejects.toMatchObject({
      code: "23514",
    });
    await expect(insertIntake(caller, anIntent(aLane(), { requestId: "nul\0" }))).rejects.toMatchObject({
      code: "22021",
    });
  });
});
