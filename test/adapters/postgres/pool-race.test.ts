import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { insertIntake } from "../../../src/adapters/postgres/insert-intake.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { type AllocateResult, OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { aLane, anIntent, holdLane } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/**
 * Two nodes own different lanes of one pool and receive the same requests. They lock different lane rows, so no lock
 * serialises them.
 */
describe("concurrent requests to a pool of signers", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let stores: readonly [PostgresStore, PostgresStore];
  let direct: PostgresStore;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const open = (databaseUrl: string) =>
      openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 12_000 });
    stores = [await open(proxy.through(subject.url)), await open(subject.url)];
    direct = stores[1];
  });
  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await proxy.close();
    await subject.close();
  });

  const inPool = ({ lane }: Fence, requestId: string) => ({ ...anIntent(lane, { requestId }), pool: "payouts" });
  const requests = (count: number) => Array.from({ length: count }, () => `request-${randomUUID()}`);

  /**
   * Creates these requests on each lane in one commit. Like the node's writer, it retries a commit that lost a race.
   */
  const create = async (store: PostgresStore, wanted: readonly (readonly [Fence, readonly string[]])[]) => {
    const writes = wanted.map(([fence, ids]) => {
      const items = ids.map((id) => ({ intent: inPool(fence, id) }));
      return { kind: "allocate", fence, floor: 0, items } as const;
    });
    for (let tries = 1; ; tries++) {
      try {
        const { outcomes } = await store.commit(writes);
        return outcomes.map((outcome): readonly AllocateResult[] =>
          outcome.status === "allocated" ? outcome.items : [],
        );
      } catch (error) {
        if (!(error instanceof StoreUnavailable && error.busy) || tries > 50) throw error;
      }
    }
  };
  const count = async (sql: string) => Number((await subject.client.query<{ n: string }>(sql)).rows[0]?.n);

  // protects [Pools] src/domain/ledger/allocate.ts, src/adapters/postgres/statements/pool-choice.ts
  it("create one transaction per request id", async () => {
    const fences = await Promise.all(
      stores.map(async (store) => [await holdLane(store), await holdLane(store)] as const),
    );
    const ids = requests(120);
    const turns = Array.from({ length: 12 }, (_, turn) => ids.slice(turn * 10, turn * 10 + 10));
    const all = await Promise.all(
      stores.map(async (store, side) => {
        const [one, other] = fences[side] as readonly [Fence, Fence];
        const results: AllocateResult[] = [];
        for (const turn of turns) {
          const own = side === 0 ? turn : [...turn].reverse();
          results.push(
            ...(
              await create(store, [
                [one, own.slice(0, 5)],
                [other, own.slice(5)],
              ])
            ).flat(),
          );
        }
        return results;
      }),
    );
    expect(all.flat().filter(({ result }) => result === "created")).toHaveLength(ids.length);
    expect(all.flat().filter(({ result }) => result === "duplicate")).toHaveLength(ids.length);
    expect(await count("SELECT count(*) AS n FROM fencepost.transaction WHERE request_id LIKE 'request-%'")).toBe(120);
    const given = fences.flat().map(async (fence) => (await direct.loadLane(fence))?.cursor ?? 0);
    expect((await Promise.all(given)).reduce((sum, each) => sum + each, 0)).toBe(120);
  });

  // protects [Pools] src/adapters/postgres/statements/pool-choice.ts
  it("are inserted in a fixed order, so that they cannot deadlock", async () => {
    const fences = [await holdLane(direct), await holdLane(direct)] as const;
    const ids = requests(20).sort().reverse();
    await create(direct, [
      [fences[1], ids.slice(10)],
      [fences[0], ids.slice(0, 10)],
    ]);
    const { rows } = await subject.client.query<{ requestId: string }>(
      'SELECT request_id AS "requestId" FROM fencepost.pool_choice WHERE request_id = ANY ($1) ORDER BY ctid',
      [ids],
    );
    expect(rows.map(({ requestId }) => requestId)).toEqual([...ids].reverse());
  });

  it.each(["cut-before", "cut-after"] as const)(
    // protects [Pools] src/application/stages/1-create/pools.ts, src/adapters/postgres/statements/pool-choice.ts
    "create one transaction if a commit got no answer (%s)",
    async (fault) => {
      const [first, second] = [await holdLane(direct), await holdLane(direct)];
      const [id] = requests(1) as [string];
      const hit = proxy.atNextCommit(fault);
      const firstResult = create(stores[0], [[first, [id]]]).then(
        ([results]) => results?.[0]?.result,
        (error: unknown) => (error instanceof OutcomeUnknown ? "unknown" : Promise.reject(error)),
      );
      const [[other] = []] = await create(direct, [[second, [id]]]);
      await hit;
      const results = [await firstResult, other?.result];
      expect(results.filter((result) => result === "created").length).toBeLessThanOrEqual(1);
      const found = await direct.findPooled([{ chainId: 1, pool: "payouts", requestId: id }]);
      expect(found).toHaveLength(1);
      expect(await count(`SELECT count(*) AS n FROM fencepost.transaction WHERE request_id = '${id}'`)).toBe(1);
    },
  );

  // protects [Pools] src/domain/ledger/allocate.ts, src/adapters/postgres/statements/pool-choice.ts
  it("wait for an open commit with the same request id", async () => {
    for (const end of ["COMMIT", "ROLLBACK"]) {
      const [first, second] = [await holdLane(direct), await holdLane(direct)];
      const [id] = requests(1) as [string];
      const intent = inPool(first, id);
      const { client } = subject;
      await client.query("BEGIN");
      await insertIntake(client, intent);
      const waits = "UPDATE fencepost.intake SET awaits = 'a rule', expires_at = now() + '1h' WHERE tx_id = $1";
      await client.query(waits, [intent.txId]);
      await client.query(
        "INSERT INTO fencepost.pool_choice (tx_id, request_id, pool, chain_id, signer) VALUES ($1, $2, 'payouts', 1, $3)",
        [intent.txId, id, first.lane.signer],
      );
      const [fresh] = requests(1) as [string];
      const waiting = create(direct, [[second, [id, fresh]]]);
      const isWaiting = () => count("SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'transactionid'");
      await expect.poll(isWaiting, { interval: 5 }).toBeGreaterThan(0);
      await client.query(end);
      const [results] = await waiting;
      expect(results?.map(({ result }) => result)).toEqual([end === "COMMIT" ? "duplicate" : "created", "created"]);
    }
  });

  it("are committed in one round trip, like requests to a single signer", async () => {
    const fence = await holdLane(direct, aLane());
    await create(stores[0], [[fence, requests(1)]]);
    const before = proxy.roundTrips;
    await create(stores[0], [[fence, requests(3)]]);
    expect(proxy.roundTrips - before).toBe(1);
  });
});
