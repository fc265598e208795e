import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { allocate, anIntent, commitOne, holdLane } from "../../support/lane-samples.ts";
import { anOldIntent, anOldTransaction, confirmOld, DAY_MS, letDaysPass, OLD_DAYS } from "../../support/old-transactions.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const KEPT_MS = 90 * DAY_MS;
const MANY = 100;

describe("transactions that are older than the retention", () => {
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
  beforeEach(async () => {
    expect(await store.closeToOlder()).toBeNull();
  });

  const tables = async (txId: string): Promise<readonly string[]> => {
    const all = ["transaction", "payload", "attempt", "receipt", "step", "charge", "queued_change", "pool_choice"];
    const found = await Promise.all(
      [...all, "completion", "reservation"].map(async (table) => {
        const sql = `SELECT count(*)::int AS n FROM fencepost.${table} WHERE tx_id = $1`;
        return ((await subject.client.query<{ n: number }>(sql, [txId])).rows[0]?.n ?? 0) > 0 ? [table] : [];
      }),
    );
    return found.flat();
  };

  it("leave with everything that hangs on them, and their request ids are refused from then on", async () => {
    const fence = await holdLane(store);
    const old = await anOldTransaction(store, fence, anOldIntent(fence.lane, { requestId: "old" }));
    await letDaysPass(subject.client, OLD_DAYS);
    const young = await anOldTransaction(store, fence, anIntent(fence.lane, { requestId: "young" }));
    expect(await store.shortenFeed(KEPT_MS, MANY)).toMatchObject({ completions: 1, more: false });
    expect(await store.lanesWithOld([fence.lane], KEPT_MS)).toEqual([fence.lane]);
    expect(await store.removeOld([fence], KEPT_MS, MANY)).toEqual({ transactions: 1, more: false });
    expect(await tables(old.txId)).toEqual([]);
    expect(await store.transaction(old.txId)).toBeNull();
    expect(await store.transaction(young.txId)).not.toBeNull();
    expect(await store.findByRequestIds([{ lane: fence.lane, requestIds: ["old", "never"] }])).toEqual([
      { spent: true, lane: fence.lane, requestId: "old" },
    ]);
    const repeat = { ...anIntent(fence.lane), requestId: "old" };
    expect(await allocate(store, fence, [repeat, anIntent(fence.lane, { requestId: "new" })])).toMatchObject([
      { fate: "spent" },
      { fate: "created", nonce: 2 },
    ]);
    expect(await store.settledBelow(fence.lane)).toBe(2);
  });
});
