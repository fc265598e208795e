import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { aLane, anInstance, anIntent, commitOne } from "../../support/lane-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/** Two nodes at once, lanes that change hands, commits without an answer: what was accepted never exceeds a limit. */
describe("a limit under a race", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  const opened: PostgresStore[] = [];

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
  });
  afterAll(async () => {
    await Promise.all(opened.map((store) => store.close()));
    await proxy.close();
    await subject.close();
  });

  const open = async (policies: Policies, url = subject.url): Promise<PostgresStore> => {
    const store = await openPostgresStore({ databaseUrl: url, clock: systemClock, leaseDurationMs: 12_000, policies });
    opened.push(store);
    return store;
  };
  const take = async (store: PostgresStore, lane: Lane): Promise<Fence> => {
    const instance = anInstance();
    await store.registerInstance(instance);
    const acquired = await store.acquireLane(lane, instance.instanceId);
    if (acquired.result === "notLeader") throw new Error("the lane has an owner");
    return acquired.fence;
  };
  /** What became of it, as its caller hears it; a commit that lost a race is tried again, as the writer does. */
  const create = async (store: PostgresStore, fence: Fence, owner: string | null = null): Promise<string> => {
    const intent = { ...anIntent(fence.lane, { payload: { value: 10n } }), owner };
    for (;;) {
      try {
        const outcome = await commitOne(store, { kind: "allocate", fence, floor: 0, items: [{ intent }] });
        return outcome.status === "allocated" ? (outcome.items[0]?.fate ?? "") : outcome.status;
      } catch (error) {
        if (error instanceof OutcomeUnknown) return "unknown";
        if (!(error instanceof StoreUnavailable && error.busy)) throw error;
      }
    }
  };
  const acceptedOf = async (lane: Lane) => {
    const { rows } = await subject.client.query<{ total: string | null; count: string }>(
      `SELECT sum(p.value) AS total, count(*) FROM fencepost.transaction AS t JOIN fencepost.payload AS p USING (tx_id)
       WHERE t.signer = $1 AND t.chain_id = $2`,
      [lane.signer, lane.chainId],
    );
    return { total: Number(rows[0]?.total ?? 0), count: Number(rows[0]?.count ?? 0) };
  };

  it("holds for a key whose signers are with different nodes, to the last wei", async () => {
    const policies = policiesOf({ keys: { payments: { maxValue: { perHour: "200" } } } });
    const stores = [await open(policies), await open(policies), await open(policies)];
    const lanes = stores.map(() => aLane(5));
    const fences = await Promise.all(stores.map((store, n) => take(store, lanes[n] as Lane)));
    const fates = await Promise.all(
      fences.map(async (fence, n) => {
        const own: string[] = [];
        for (let i = 0; i < 12; i++) own.push(await create(stores[n] as PostgresStore, fence, "payments"));
        return own;
      }),
    );
    const accepted = await Promise.all(lanes.map(acceptedOf));
    expect(accepted.reduce((sum, { total }) => sum + total, 0)).toBe(200);
    expect(fates.flat().filter((fate) => fate === "created")).toHaveLength(20);
    expect(fates.flat().filter((fate) => fate === "forbidden")).toHaveLength(16);
  });

  it("holds for a signer whose lane changes hands while commits get no answer", async () => {
    const lane = aLane(6);
    const policies = forSigner(lane.signer, { maxValue: { perDay: "150" } });
    const stores = [await open(policies, proxy.through(subject.url)), await open(policies)];
    const told: string[] = [];
    for (let turn = 0; turn < 6; turn++) {
      const store = stores[turn % 2] as PostgresStore;
      const fence = await take(store, lane);
      const faulty = turn % 2 === 0 ? proxy.atNextCommit(turn === 0 ? "cut-before" : "cut-after") : null;
      told.push(...(await Promise.all([1, 2, 3, 4].map(() => create(store, fence)))));
      await faulty;
      await subject.expire(fence.instanceId);
      const dead = (await store.instances()).find(({ instanceId }) => instanceId === fence.instanceId);
      await store.declareDead(fence.instanceId, dead?.counter ?? 0, "expired");
      expect(await create(store, fence)).toBe("fenced");
    }
    const { total, count } = await acceptedOf(lane);
    expect(total).toBe(150);
    expect(told.filter((fate) => fate === "created").length).toBeLessThanOrEqual(count);
    expect(told.filter((fate) => fate === "forbidden").length).toBeGreaterThan(0);
    expect((await (stores[1] as PostgresStore).policyUse(lane, {})).signer.day.value).toBe(150n);
  });
});
