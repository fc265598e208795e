import { expect, it } from "vitest";
import { isSpent } from "../../../src/domain/ledger/index.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import { aLane, allocate, anIntent, commitOne, holdLane, nonces, outcomesOf } from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

export function allocationContract(context: LaneStoreContext): void {
  const hold = (lane = aLane()) => holdLane(context.store, lane);
  const cursorOf = async (fence: Awaited<ReturnType<typeof hold>>) => (await context.store.loadLane(fence))?.cursor;

  it("an allocation gives consecutive nonces in order, starting at the given floor on a new lane", async () => {
    const fence = await hold();
    const intents = [1, 2, 3].map(() => anIntent(fence.lane));
    expect(nonces(await allocate(context.store, fence, intents, 7))).toEqual([7, 8, 9]);
    expect(await cursorOf(fence)).toBe(10);
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], null))).toEqual([10]);
  });

  it("an allocation starts at the lane's next nonce or at the given minimum, whichever is higher", async () => {
    const fence = await hold();
    await allocate(context.store, fence, [anIntent(fence.lane)], 5);
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], 2))).toEqual([6]);
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], 10))).toEqual([10]);
    expect(await cursorOf(fence)).toBe(11);
  });

  // protects [JSON-RPC] src/domain/ledger/allocate.ts, src/domain/ledger/allocate.ts, src/adapters/postgres/statements/transaction.ts
  it("an allocation gives exactly the nonce that the request names, or none", async () => {
    const fence = await hold();
    const named = (exactNonce: number) => ({ ...anIntent(fence.lane), exactNonce });
    expect(await allocate(context.store, fence, [named(3)], null)).toEqual([{ result: "noCursor" }]);
    const results = await allocate(
      context.store,
      fence,
      [named(6), named(5), named(5), anIntent(fence.lane), named(7)],
      5,
    );
    expect(results).toMatchObject([
      { result: "otherNonce", next: 5 },
      { result: "created", nonce: 5 },
      { result: "otherNonce", next: 6 },
      { result: "created", nonce: 6 },
      { result: "created", nonce: 7 },
    ]);
    expect(await cursorOf(fence)).toBe(8);
    const pinned = (await context.store.loadAllocated(fence.lane, 0, 10)).map((row) => row.pinned === true);
    expect(pinned, "whoever owns the lane next knows of it").toEqual([true, false, true]);
    expect(await allocate(context.store, fence, [named(8)], 10)).toEqual([{ result: "otherNonce", next: 10 }]);
    expect(await cursorOf(fence)).toBe(8);
  });

  it("an allocation recognises a repeated request id whatever nonce the request names", async () => {
    const fence = await hold();
    const first = anIntent(fence.lane, { requestId: "named" });
    await allocate(context.store, fence, [first], 0);
    const repeat = { ...anIntent(fence.lane, { requestId: "named" }), exactNonce: 9 };
    expect(await allocate(context.store, fence, [repeat], null)).toMatchObject([
      { result: "duplicate", existing: { txId: first.txId, nonce: 0 } },
    ]);
  });

  it("an allocation on a new lane without a floor gives no nonce", async () => {
    const fence = await hold();
    const intent = anIntent(fence.lane, { requestId: "early" });
    expect(await allocate(context.store, fence, [intent], null)).toEqual([{ result: "noCursor" }]);
    expect(await context.store.transaction(intent.txId)).toBeNull();
    expect(await cursorOf(fence)).toBeNull();
    expect(nonces(await allocate(context.store, fence, [intent], 0))).toEqual([0]);
  });

  it("an allocation returns the creation time and the lane's next nonce", async () => {
    const fence = await hold();
    const items = [{ intent: anIntent(fence.lane) }];
    const outcome = await commitOne(context.store, { kind: "allocate", fence, floor: 3, items });
    expect(outcome).toMatchObject({ status: "allocated", cursor: 4 });
    const created = outcome.status === "allocated" && outcome.items[0]?.result === "created" ? outcome.items[0] : null;
    const record = await context.store.transaction(items[0]?.intent.txId ?? "");
    expect(Math.abs((record?.createdAt.getTime() ?? 0) - (created?.createdAt.getTime() ?? 0))).toBeLessThanOrEqual(1);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts, src/adapters/postgres/rows/transaction-fields.ts
  it("an allocation stores the API key's name with the request", async () => {
    const fence = await hold();
    const owned = anIntent(fence.lane, { requestId: "mine", owner: "checkout" });
    const nobodys = anIntent(fence.lane, { requestId: "nobody's" });
    await allocate(context.store, fence, [owned, nobodys], 0);
    expect(await context.store.transaction(owned.txId)).toMatchObject({ owner: "checkout" });
    expect(await context.store.transaction(nobodys.txId)).toMatchObject({ owner: null });
    const asked = [{ lane: fence.lane, requestIds: ["mine", "nobody's"] }];
    const found = await context.store.findByRequestIds(asked);
    expect(new Map(found.map((each) => [each.requestId, isSpent(each) ? "spent" : each.owner]))).toEqual(
      new Map([
        ["mine", "checkout"],
        ["nobody's", null],
      ]),
    );
    const repeated = anIntent(fence.lane, { requestId: "mine", owner: "somebody else" });
    expect(await allocate(context.store, fence, [repeated], null)).toMatchObject([
      { result: "duplicate", existing: { txId: owned.txId, owner: "checkout" } },
    ]);
  });

  it("an allocation for a stored request id consumes no nonce", async () => {
    const fence = await hold();
    const first = anIntent(fence.lane, { requestId: "order-1" });
    await allocate(context.store, fence, [first], 0);
    const honest = anIntent(fence.lane, { requestId: "order-1" });
    const other = anIntent(fence.lane, { requestId: "order-1", payload: { value: 2n } });
    const next = anIntent(fence.lane, { requestId: "order-2" });
    const existing = {
      txId: first.txId,
      lane: fence.lane,
      requestId: "order-1",
      nonce: 0,
      state: "ALLOCATED",
      fingerprint: first.fingerprint,
    };
    expect(await allocate(context.store, fence, [honest, other, next], 0)).toMatchObject([
      { result: "duplicate", samePayload: true, existing },
      { result: "duplicate", samePayload: false, existing },
      { result: "created", nonce: 1 },
    ]);
    expect(await context.store.transaction(honest.txId)).toBeNull();
    expect(await cursorOf(fence)).toBe(2);
  });

  it("an allocation removes repeats within a batch before it gives nonces", async () => {
    const fence = await hold();
    const [a, again, b, reused] = [
      anIntent(fence.lane, { requestId: "a" }),
      anIntent(fence.lane, { requestId: "a" }),
      anIntent(fence.lane, { requestId: "b" }),
      anIntent(fence.lane, { requestId: "a", payload: { value: 9n } }),
    ] as const;
    expect(await allocate(context.store, fence, [a, again, b, reused], 0)).toMatchObject([
      { result: "created", nonce: 0 },
      { result: "duplicate", samePayload: true, existing: { txId: a.txId, nonce: 0 } },
      { result: "created", nonce: 1 },
      { result: "duplicate", samePayload: false, existing: { txId: a.txId } },
    ]);
    expect(await cursorOf(fence)).toBe(2);
  });

  it("an allocation of repeats only does not change the lane's next nonce", async () => {
    const fence = await hold();
    await allocate(context.store, fence, [anIntent(fence.lane, { requestId: "x" })], 0);
    await allocate(context.store, fence, [anIntent(fence.lane, { requestId: "x" })], 50);
    expect(await cursorOf(fence)).toBe(1);
  });

  it("request ids are separate per lane, that is per signer and chain", async () => {
    const [one, two] = [await hold(aLane(1)), await hold(aLane(1))];
    const three = await hold({ chainId: 2, signer: one.lane.signer });
    for (const fence of [one, two, three]) {
      const results = await allocate(context.store, fence, [anIntent(fence.lane, { requestId: "same" })], 0);
      expect(nonces(results)).toEqual([0]);
    }
  });

  it("requests without a request id are never repeats of each other", async () => {
    const fence = await hold();
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane), anIntent(fence.lane)], 0))).toEqual([
      0, 1,
    ]);
  });

  it("request ids are compared byte by byte", async () => {
    const fence = await hold();
    const ids = [
      "Order",
      "order",
      "order ",
      "заказ",
      "注文🙂",
      '"quoted", \\back{s}lash',
      "x".repeat(255),
      "🙂".repeat(255),
    ];
    const results = await allocate(
      context.store,
      fence,
      ids.map((requestId) => anIntent(fence.lane, { requestId })),
      0,
    );
    expect(nonces(results)).toEqual(ids.map((_, index) => index));
    const found = await context.store.findByRequestIds([{ lane: fence.lane, requestIds: ids }]);
    expect(new Set(found.map(({ requestId }) => requestId))).toEqual(new Set(ids));
  });

  it("an allocation stores every field of an intent", async () => {
    const fence = await hold();
    const full = anIntent(fence.lane, {
      requestId: "full",
      gas: 123_456n,
      metadata: { order: "A-1", nested: { list: [1, "zwei", null, true], empty: {} }, unicode: "→ 🙂" },
      payload: {
        to: null,
        data: "0x60006000",
        value: 2n ** 256n - 1n,
        gas: 100_000n,
        type: "eip1559",
        maxFeePerGas: 10n ** 30n,
        maxPriorityFeePerGas: 7n,
        accessList: [{ address: `0x${"d".repeat(40)}`, storageKeys: [`0x${"e".repeat(64)}`] }],
      },
    });
    const bare = anIntent(fence.lane);
    const legacy = anIntent(fence.lane, { payload: { type: "legacy", gasPrice: 5n } });
    await allocate(context.store, fence, [full, bare, legacy], 0);
    for (const intent of [full, bare, legacy]) {
      expect(await context.store.transaction(intent.txId)).toMatchObject({
        txId: intent.txId,
        lane: fence.lane,
        requestId: intent.requestId,
        state: "ALLOCATED",
        subState: null,
        gas: intent.gas,
        metadata: intent.metadata,
        attempts: [],
        receipt: null,
      });
      expect((await context.store.transaction(intent.txId))?.payload).toEqual(intent.payload);
    }
    const rows = await context.store.loadAllocated(fence.lane, 0, 10);
    expect(rows.map(({ payload, gas, requestId }) => ({ payload, gas, requestId }))).toEqual(
      [full, bare, legacy].map(({ payload, gas, requestId }) => ({ payload, gas, requestId })),
    );
  });

  it("an allocation writes the first entry of the history", async () => {
    const fence = await hold();
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent], 0);
    const instance = (await context.store.instances()).find(({ instanceId }) => instanceId === fence.instanceId);
    expect(await context.store.history(intent.txId)).toMatchObject([
      {
        ordinal: 1,
        event: "allocate",
        fromState: null,
        state: "ALLOCATED",
        subState: null,
        nodeId: instance?.nodeId,
        token: fence.token,
        reason: null,
        count: 1,
      },
    ]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/detours/reconcile.ts, src/domain/ledger/standing.ts
  it("an alignment with the chain never lowers the lane's next nonce", async () => {
    const fence = await hold();
    const align = (floor: number) => commitOne(context.store, { kind: "align", fence, floor });
    expect(await align(4)).toEqual({ status: "aligned", cursor: 4 });
    expect(await align(2)).toEqual({ status: "aligned", cursor: 4 });
    expect(await align(9)).toEqual({ status: "aligned", cursor: 9 });
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], null))).toEqual([9]);
  });

  it("operators' decisions about a lane are listed newest first", async () => {
    const fence = await holdLane(context.store);
    const by = (action: string) => ({ action, actor: "operator:ops", reason: `${action} it` });
    const write = (suspended: boolean, decision = by(suspended ? "suspend" : "resume")) =>
      ({ kind: "suspend", fence, suspended, decision }) as const;
    await commitOne(context.store, write(true));
    await commitOne(context.store, write(false));
    await commitOne(context.store, { kind: "suspend", fence, suspended: true });
    await commitOne(context.store, { ...write(true, by("late")), fence: { ...fence, token: fence.token + 1 } });
    const kept = await context.store.laneDecisions(fence.lane, 10);
    expect(kept.map(({ action, actor, reason, token }) => ({ action, actor, reason, token }))).toEqual([
      { ...by("resume"), token: fence.token },
      { ...by("suspend"), token: fence.token },
    ]);
    expect(await context.store.laneDecisions(fence.lane, 1)).toEqual(kept.slice(0, 1));
    expect(await context.store.laneDecisions({ ...fence.lane, chainId: 99 }, 10)).toEqual([]);
  });

  it("a lane is suspended and resumed", async () => {
    const fence = await hold();
    await commitOne(context.store, { kind: "suspend", fence, suspended: true });
    expect(await context.store.loadLane(fence)).toMatchObject({ suspendedBy: "OPERATOR" });
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], 0))).toEqual([0]);
    expect(await context.store.loadLane(fence)).toMatchObject({ suspendedBy: "OPERATOR", cursor: 1 });
    await commitOne(context.store, { kind: "suspend", fence, suspended: false });
    expect(await context.store.loadLane(fence)).toMatchObject({ suspendedBy: null, cursor: 1 });
  });

  it("several writes of one lane in a commit are applied in order", async () => {
    const fence = await hold();
    const intents = [anIntent(fence.lane, { requestId: "1" }), anIntent(fence.lane, { requestId: "1" })] as const;
    const outcomes = await outcomesOf(context.store, [
      { kind: "align", fence, floor: 3 },
      { kind: "allocate", fence, floor: null, items: [{ intent: intents[0] }] },
      { kind: "align", fence, floor: 20 },
      { kind: "allocate", fence, floor: null, items: [{ intent: anIntent(fence.lane) }, { intent: intents[1] }] },
    ]);
    expect(outcomes).toMatchObject([
      { status: "aligned", cursor: 3 },
      { status: "allocated", items: [{ nonce: 3 }], cursor: 4 },
      { status: "aligned", cursor: 20 },
      { status: "allocated", items: [{ nonce: 20 }, { result: "duplicate" }], cursor: 21 },
    ]);
  });

  it("an allocation of a transaction id that exists is refused with an error and consumes nothing", async () => {
    const fence = await hold();
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent], 0);
    await expect(allocate(context.store, fence, [anIntent(fence.lane), intent], 0)).rejects.toBeInstanceOf(
      BatchRefused,
    );
    expect(await cursorOf(fence)).toBe(1);
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], 0))).toEqual([1]);
  });
}
