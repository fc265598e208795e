import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { allocate, anIntent, holdLane } from "../../support/lane-samples.ts";
import { anOldIntent, anOldTransaction, DAY_MS, letDaysPass, OLD_DAYS } from "../../support/old-transactions.ts";
import { type CommitFault, TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const KEPT_MS = 90 * DAY_MS;

describe("deleting old rows by retention", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let cut: PostgresStore;
  let direct: PostgresStore;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const open = (databaseUrl: string) =>
      openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 12_000 });
    [cut, direct] = [await open(proxy.through(subject.url)), await open(subject.url)];
  });
  afterAll(async () => {
    await Promise.all([cut.close(), direct.close()]);
    await proxy.close();
    await subject.close();
  });

  const counts = async (requestId: string) => {
    const { rows } = await subject.client.query<{ kept: number; steps: number; spent: number }>(
      `SELECT count(*)::int AS kept,
         (SELECT count(*)::int FROM fencepost.payload WHERE tx_id IN (SELECT tx_id FROM fencepost.transaction WHERE request_id = $1)) AS steps,
         (SELECT count(*)::int FROM fencepost.spent_request WHERE digest IN (
           SELECT fencepost.request_digest(l.chain_id, l.signer, $1) FROM fencepost.lane AS l)) AS spent
       FROM fencepost.transaction WHERE request_id = $1`,
      [requestId],
    );
    return rows[0];
  };

  /**
   * Repeats a batch until its COMMIT got no answer. On a busy machine a batch may end before its COMMIT, because it waits
   * for the lane's lock for 100 ms only; housekeeping then repeats it, too.
   */
  const repeatUntilCut = async (fault: CommitFault, batch: () => Promise<unknown>) => {
    const cutting = { isOver: false };
    void proxy.atNextCommit(fault).then(() => {
      cutting.isOver = true;
    });
    while (!cutting.isOver) await batch().catch(() => undefined);
  };

  it.each(["cut-before", "cut-after"] as const)(
    // protects [Retention] src/adapters/postgres/stores/old-rows.ts
    "deletes a transaction completely or not at all if the commit got no answer (%s)",
    async (fault) => {
      const fence = await holdLane(direct);
      const requestId = `of ${fault}`;
      await anOldTransaction(direct, fence, anOldIntent(fence.lane, { requestId }));
      await letDaysPass(subject.client, OLD_DAYS);
      await direct.shortenFeed(KEPT_MS, 100);
      await repeatUntilCut(fault, () => cut.removeOld([fence], KEPT_MS, 100));
      const { kept, steps, spent } = (await counts(requestId)) ?? { kept: -1, steps: -1, spent: -1 };
      expect([kept, steps, spent]).toEqual(kept === 1 ? [1, 1, 0] : [0, 0, 1]);
      const [result] = await allocate(direct, fence, [anIntent(fence.lane, { requestId })]);
      expect(result?.result).toBe(kept === 1 ? "duplicate" : "spent");
      await direct.removeOld([fence], KEPT_MS, 100);
      expect(await counts(requestId)).toMatchObject({ kept: 0, spent: 1 });
    },
  );

  it.each(["cut-before", "cut-after"] as const)(
    // protects [Retention] src/domain/cluster/retention.ts, src/adapters/postgres/stores/old-rows.ts
    "truncates the feed completely or not at all if the commit got no answer (%s)",
    async (fault) => {
      const fence = await holdLane(direct);
      await anOldTransaction(direct, fence);
      await letDaysPass(subject.client, OLD_DAYS);
      const before = await direct.feed(0, 100);
      await repeatUntilCut(fault, () => cut.shortenFeed(KEPT_MS, 100));
      const after = await direct.feed(0, 100);
      const isShort = after.items.length === 0;
      expect(after.truncatedThrough).toBe(isShort ? before.lastSeq : before.truncatedThrough);
      expect(after.items).toEqual(isShort ? [] : before.items);
    },
  );

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/adapters/postgres/commit/commands.ts
  it("deletes each row once if two nodes delete at the same time", async () => {
    const fence = await holdLane(direct);
    for (let index = 0; index < 20; index++)
      await anOldTransaction(direct, fence, anOldIntent(fence.lane, { requestId: `both ${index}` }));
    await letDaysPass(subject.client, OLD_DAYS);
    await direct.shortenFeed(KEPT_MS, 100);
    const remove = async (store: PostgresStore) => {
      let removed = 0;
      for (let tries = 0; tries < 40; tries++) removed += await store.removeOld([fence], KEPT_MS, 3).catch(() => 0);
      return removed;
    };
    const create = async () => {
      const results: string[] = [];
      for (let index = 0; index < 20; index++) {
        const both = [anIntent(fence.lane, { requestId: `both ${index}` }), anIntent(fence.lane)];
        results.push(...(await allocate(direct, fence, both)).map(({ result }) => result));
      }
      return results;
    };
    const [one, other, results] = await Promise.all([remove(cut), remove(direct), create()]);
    expect(one + other).toBe(20);
    expect(results.filter((result) => result === "created")).toHaveLength(20);
    expect(results.filter((result) => result === "spent" || result === "duplicate")).toHaveLength(20);
  });
});
