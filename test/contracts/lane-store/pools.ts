import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import type { PreparedIntent } from "../../../src/domain/transaction/transaction.ts";
import {
  aLane,
  allocate,
  anIntent,
  commitOne,
  holdLane,
  mine,
  nonces,
  outcomesOf,
} from "../../support/lane-samples.ts";
import { policiesOf } from "../../support/policies.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";
import type { Store } from "../store-subject.ts";

/**
 * A request to a pool gets one transaction, on one of the pool's lanes. Repeating the request uses no further nonce.
 */
export function poolsContract(context: LaneStoreContext): void {
  const twoLanes = async (store: Store = context.store, chainId = 1) => {
    return [await holdLane(store, aLane(chainId)), await holdLane(store, aLane(chainId))] as const;
  };
  const pooled = ({ lane }: Fence, requestId: string | null, pool = "payouts"): PreparedIntent => ({
    ...anIntent(lane, { requestId }),
    pool,
  });
  const unique = () => `request-${randomUUID()}`;
  const cursorOf = async (fence: Fence) => (await context.store.loadLane(fence))?.cursor;

  // protects [Pools] src/adapters/postgres/commit/pool-rows.ts
  it("a pool request that was accepted on one lane is a duplicate on a second lane", async () => {
    const [first, second] = await twoLanes();
    const requestId = unique();
    const intent = pooled(first, requestId);
    expect(nonces(await allocate(context.store, first, [intent], 4))).toEqual([4]);
    const { txId, fingerprint } = intent;
    const existing = { txId, lane: first.lane, requestId, nonce: 4, state: "ALLOCATED", fingerprint, owner: null };
    const other = { ...anIntent(second.lane, { requestId, payload: { value: 7n } }), pool: "payouts" };
    const batch = [pooled(second, unique()), pooled(second, requestId), anIntent(second.lane, { requestId }), other];
    expect(await allocate(context.store, second, batch.slice(0, 2), 0)).toMatchObject([
      { result: "created", nonce: 0 },
      { result: "duplicate", samePayload: true, existing },
    ]);
    expect(await allocate(context.store, second, [other])).toMatchObject([{ result: "duplicate", samePayload: false }]);
    expect(await allocate(context.store, second, batch.slice(2, 3))).toMatchObject([{ result: "created", nonce: 1 }]);
    expect(await cursorOf(second)).toBe(2);
    const asked = { chainId: 1, pool: "payouts", requestId };
    expect(await context.store.findPooled([asked, { ...asked, pool: "none" }])).toEqual([
      { ...existing, pool: "payouts" },
    ]);
    expect(await context.store.poolOf(txId)).toBe("payouts");
    expect(await context.store.poolOf(batch[2]?.txId ?? "")).toBeNull();
  });

  // protects [Pools] src/adapters/postgres/commit/pool-rows.ts
  it("a pool request is created once if one commit contains it for two lanes", async () => {
    const [first, second] = await twoLanes();
    const requestId = unique();
    const writes = [first, second].map((fence) => {
      const items = [{ intent: pooled(fence, requestId) }, { intent: pooled(fence, unique()) }];
      return { kind: "allocate", fence, floor: 0, items } as const;
    });
    const results = (await outcomesOf(context.store, writes)).map((outcome) =>
      outcome.status === "allocated" ? outcome.items.map(({ result }) => result) : [],
    );
    expect(results.map(([result]) => result).sort()).toEqual(["created", "duplicate"]);
    expect(results.map(([, result]) => result)).toEqual(["created", "created"]);
    expect(await context.store.findPooled([{ chainId: 1, pool: "payouts", requestId }])).toHaveLength(1);
  });

  it("pool requests are distinguished by pool and chain, and never match without a request id", async () => {
    const [first, second] = await twoLanes();
    const [elsewhere] = await twoLanes(context.store, 2);
    const requestId = unique();
    await allocate(context.store, first, [pooled(first, requestId), pooled(first, null)], 0);
    const batch = [pooled(second, requestId, "refunds"), pooled(second, null), pooled(second, null)];
    expect(nonces(await allocate(context.store, second, batch, 0))).toEqual([0, 1, 2]);
    expect(nonces(await allocate(context.store, elsewhere, [pooled(elsewhere, requestId)], 0))).toEqual([0]);
    expect(await context.store.poolOf(batch[1]?.txId ?? "")).toBe("payouts");
  });

  // protects [Pools] src/adapters/postgres/commit/pool-rows.ts
  it("a repeated pool request finds a transaction that awaits approval", async () => {
    const store = await context.subject.connect(
      policiesOf({ signers: { "*": { requireApproval: { aboveValue: "0", expiresAfter: "60s" } } } }),
    );
    try {
      const [first, second] = await twoLanes(store);
      const requestId = unique();
      const intent = pooled(first, requestId);
      expect(await allocate(store, first, [intent], 0)).toMatchObject([{ result: "awaiting" }]);
      expect(await allocate(store, second, [pooled(second, requestId)], 0)).toMatchObject([
        { result: "duplicate", existing: { txId: intent.txId, lane: first.lane, nonce: null, state: "CREATED" } },
      ]);
      const intakeId = (await store.transaction(intent.txId))?.awaiting?.intakeId ?? 0;
      const word = { result: "decided", event: "approve", reason: "r", decision: null } as const;
      await commitOne(store, { kind: "settleIntake", fence: first, results: [{ ...word, intakeId, requestId }] });
      const rows = await store.loadIntake([first.lane], 10);
      const items = rows.map((row) => ({ ...row, intent: { ...row.intent, gas: 21_000n, gasCost: 0n } }));
      expect(await commitOne(store, { kind: "allocate", fence: first, floor: 0, items })).toMatchObject({
        items: [{ result: "created", nonce: 0 }],
      });
      expect(await store.findPooled([{ chainId: 1, pool: "payouts", requestId }])).toMatchObject([
        { txId: intent.txId, nonce: 0, state: "ALLOCATED" },
      ]);
    } finally {
      await store.close();
    }
  });

  it("the queue of a pool's lane reports the number of unmined transactions", async () => {
    const [first, second] = await twoLanes();
    await mine(context.store, first);
    await allocate(context.store, first, [anIntent(first.lane), anIntent(first.lane)]);
    const standing = async () => {
      const found = await context.store.queues([first.lane, second.lane, aLane()]);
      return new Map(found.map((queue) => [queue.lane.signer, queue]));
    };
    expect((await standing()).get(first.lane.signer)).toMatchObject({ ahead: 2, suspended: false, isStuck: false });
    expect((await standing()).get(second.lane.signer)).toMatchObject({ ahead: 0, headAgeMs: 0 });
    await context.store.commit([{ kind: "suspend", fence: first, suspended: true }]);
    await context.subject.tick();
    const stopped = (await standing()).get(first.lane.signer);
    expect(stopped).toMatchObject({ ahead: 2, suspended: true });
    expect(stopped?.headAgeMs).toBeGreaterThanOrEqual(0);
    expect((await standing()).size).toBe(2);
  });
}
