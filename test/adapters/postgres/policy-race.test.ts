import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { lockLaneTable } from "../../../src/adapters/postgres/statements/lane.ts";
import { changePolicy, lockPolicy, stampLanes } from "../../../src/adapters/postgres/statements/policy.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { aLane, anInstance, anIntent, commitOne } from "../../support/lane-samples.ts";
import { asked, permitOf, permitPolicy } from "../../support/message-samples.ts";
import { enforced, forSigner, policiesOf } from "../../support/policies.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/**
 * With two nodes at once, lanes that change owner and commits without a response, the accepted amounts never exceed a
 * policy limit.
 */
describe("a policy limit", () => {
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
    const options = { databaseUrl: url, clock: systemClock, leaseDurationMs: 12_000, policyWords: createCodec() };
    const store = await openPostgresStore(options);
    opened.push(store);
    return enforced(store, policies);
  };
  const take = async (store: PostgresStore, lane: Lane): Promise<Fence> => {
    const instance = anInstance();
    await store.registerInstance(instance);
    const acquired = await store.acquireLane(lane, instance.instanceId);
    if (acquired.result === "notLeader") throw new Error("the lane has an owner");
    return acquired.fence;
  };
  /**
   * Returns the create's result as its caller receives it. Like the node's writer, it retries a commit that lost a
   * race.
   */
  const create = async (store: PostgresStore, fence: Fence, owner: string | null = null): Promise<string> => {
    const intent = { ...anIntent(fence.lane, { payload: { value: 10n } }), owner };
    for (;;) {
      try {
        const outcome = await commitOne(store, { kind: "allocate", fence, floor: 0, items: [{ intent }] });
        return outcome.status === "allocated" ? (outcome.items[0]?.result ?? "") : outcome.status;
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

  // protects [Attacks] src/adapters/postgres/statements/policy.ts
  it("is exact to the last wei for an API key whose signers are owned by different nodes", async () => {
    const policies = policiesOf({ keys: { payments: { maxValue: { perHour: "200" } } } });
    const stores = [await open(policies), await open(policies), await open(policies)];
    const lanes = stores.map(() => aLane(5));
    const fences = await Promise.all(stores.map((store, n) => take(store, lanes[n] as Lane)));
    const results = await Promise.all(
      fences.map(async (fence, n) => {
        const own: string[] = [];
        for (let i = 0; i < 12; i++) own.push(await create(stores[n] as PostgresStore, fence, "payments"));
        return own;
      }),
    );
    const accepted = await Promise.all(lanes.map(acceptedOf));
    expect(accepted.reduce((sum, { total }) => sum + total, 0)).toBe(200);
    expect(results.flat().filter((result) => result === "created")).toHaveLength(20);
    expect(results.flat().filter((result) => result === "forbidden")).toHaveLength(16);
  });

  // protects [Attacks] src/domain/ledger/guard.ts, src/adapters/postgres/commit/load.ts
  it("is exact for a signer whose lane changes owners while commits get no response", async () => {
    const lane = aLane(6);
    const policies = forSigner(lane.signer, { maxValue: { perDay: "150" } });
    const stores = [await open(policies, proxy.through(subject.url)), await open(policies)];
    const outcomes: string[] = [];
    for (let turn = 0; turn < 6; turn++) {
      const store = stores[turn % 2] as PostgresStore;
      const fence = await take(store, lane);
      const faulty = turn % 2 === 0 ? proxy.atNextCommit(turn === 0 ? "cut-before" : "cut-after") : null;
      outcomes.push(...(await Promise.all([1, 2, 3, 4].map(() => create(store, fence)))));
      await faulty;
      await subject.expire(fence.instanceId);
      const dead = (await store.instances()).find(({ instanceId }) => instanceId === fence.instanceId);
      await store.declareDead(fence.instanceId, dead?.counter ?? 0, "expired");
      expect(await create(store, fence)).toBe("fenced");
    }
    const { total, count } = await acceptedOf(lane);
    expect(total).toBe(150);
    expect(outcomes.filter((result) => result === "created").length).toBeLessThanOrEqual(count);
    expect(outcomes.filter((result) => result === "forbidden").length).toBeGreaterThan(0);
    expect((await (stores[1] as PostgresStore).policyUse(lane, {})).signer.day.value).toBe(150n);
  });

  describe("during a change of the policy document", () => {
    const limit = (lane: Lane) => forSigner(lane.signer, { maxValue: { perTransaction: "9" } });
    const change = (store: PostgresStore, policies: Policies) =>
      store.changePolicy({ policies, actor: "operator:a", reason: "a race", nodeId: "n", expectedVersion: null });
    /** Begins a policy change, with the statements of `changePolicy`, and leaves it uncommitted. */
    const beginChange = async ({ hash, document }: Policies) => {
      const { rows } = await subject.client.query<{ version: string }>("SELECT version FROM fencepost.policy");
      const stamp = randomUUID();
      const version = Number(rows[0]?.version) + 1;
      await subject.client.query("BEGIN");
      await subject.client.query(lockPolicy.sql);
      await subject.client.query(lockLaneTable.sql);
      const kept = ["n", hash, JSON.stringify(document), version, "operator:a", "a race", stamp];
      await subject.client.query(changePolicy.sql, kept);
      await subject.client.query(stampLanes.sql, [stamp]);
    };

    it.each([
      ["in one round trip", policiesOf({})],
      ["in two round trips", policiesOf({ keys: { nobody: { maxValue: { perDay: "1" } } }, signers: { "*": {} } })],
      // protects [Attacks] src/adapters/postgres/commit/commit.ts, src/adapters/postgres/statements/lane.ts
    ])("is checked again for a waiting allocation: %s", async (_, before) => {
      const lane = aLane(7);
      const store = await open(before);
      const fence = await take(store, lane);
      expect(await create(store, fence)).toBe("created");
      await beginChange(limit(lane));
      const creating = create(store, fence);
      await subject.whenWaiting(1);
      await subject.client.query("COMMIT");
      expect(await creating).toBe("forbidden");
      expect(await acceptedOf(lane)).toMatchObject({ count: 1 });
    });

    // protects [Messages] src/domain/ledger/messages.ts, src/adapters/postgres/commit/commit.ts
    it("is checked again for a signature that waits to be stored", async () => {
      const lane = aLane(1);
      const store = await open(forSigner(lane.signer, permitPolicy()));
      const fence = await take(store, lane);
      const request = asked(permitOf(lane.signer, { value: "5" }));
      expect(await commitOne(store, { kind: "signMessage", fence, asked: request })).toMatchObject({ result: "kept" });
      await beginChange(forSigner(lane.signer, permitPolicy({ fields: { value: { max: "4" } } })));
      const { requestId, signatureId } = request;
      const event = { kind: "sign", signature: `0x${"1".repeat(128)}1b` } as const;
      const storing = commitOne(store, { kind: "settleMessage", fence, requestId, event });
      await subject.whenWaiting(1);
      await subject.client.query("COMMIT");
      expect(await storing).toMatchObject({ result: "forbidden", rule: "signer.messages.usdc.fields.value" });
      expect(await store.signature(signatureId)).toMatchObject({ state: "ALLOWED", signature: null });
    });

    // protects [Attacks] src/adapters/postgres/commit/commit.ts, src/adapters/postgres/statements/lane.ts
    it("changes only after earlier allocations have committed", async () => {
      const lane = aLane(7);
      const [store, other] = [await open(policiesOf({})), await open(policiesOf({}))];
      const fence = await take(store, lane);
      expect(await create(store, fence)).toBe("created");
      await subject.client.query("BEGIN");
      await subject.client.query("SELECT 1 FROM fencepost.lane WHERE signer = $1 FOR UPDATE", [lane.signer]);
      const creating = create(store, fence);
      await subject.whenWaiting(1);
      const changing = change(other, limit(lane));
      await subject.whenWaiting(2);
      await subject.client.query("COMMIT");
      expect(await creating).toBe("created");
      expect(await changing).toMatchObject({ outcome: "changed" });
      expect(await create(store, fence)).toBe("forbidden");
    });

    // protects [Attacks] src/adapters/postgres/commit/policies.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
    it("also applies to a lane that is created meanwhile", async () => {
      const [late, early] = [aLane(7), aLane(7)];
      const store = await open(policiesOf({}));
      await beginChange(limit(late));
      const taking = take(store, late);
      await subject.whenWaiting(1);
      await subject.client.query("COMMIT");
      expect(await create(store, await taking)).toBe("forbidden");

      await subject.client.query("BEGIN");
      await subject.client.query("INSERT INTO fencepost.lane (chain_id, signer) VALUES (7, $1)", [early.signer]);
      const changing = change(store, limit(early));
      await subject.whenWaiting(1);
      await subject.client.query("COMMIT");
      await changing;
      expect(await create(store, await take(store, early))).toBe("forbidden");
    });

    it("takes effect on all nodes at the same time", async () => {
      const admin = await open(policiesOf({}));
      const stores = await Promise.all([1, 2, 3].map(() => open(policiesOf({}))));
      const lanes = stores.map(() => aLane(8));
      const fences = await Promise.all(stores.map((store, n) => take(store, lanes[n] as Lane)));
      let isOver = false;
      const working = fences.map(async (fence, n) => {
        const store = stores[n] as PostgresStore;
        while (!isOver) await Promise.all([create(store, fence), create(store, fence)]);
      });
      const created = async () => (await Promise.all(lanes.map(acceptedOf))).reduce((sum, { count }) => sum + count, 0);
      const none = policiesOf({ signers: { "*": { maxValue: { perTransaction: "9" } } } });
      for (let round = 0; round < 5; round++) {
        const before = await created();
        expect(await change(admin, policiesOf({}))).toMatchObject({ outcome: round === 0 ? "unchanged" : "changed" });
        await waitUntil(async () => (await created()) > before, "something is created");
        expect(await change(admin, none)).toMatchObject({ outcome: "changed" });
        const after = await created();
        await Promise.all(fences.map((fence, n) => create(stores[n] as PostgresStore, fence)));
        expect(await created()).toBe(after);
      }
      isOver = true;
      await Promise.all(working);
    });
  });
});
