import { expect, it } from "vitest";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import { aLane, allocate, anIntent, commitOne, holdLane, outcomesOf } from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

export function intakeContract(context: LaneStoreContext): void {
  const waiting = async (lane: Parameters<typeof anIntent>[0]) => context.store.loadIntake([lane], 100);
  const idOf = async (lane: Parameters<typeof anIntent>[0], txId: string) => {
    const row = (await waiting(lane)).find(({ intent }) => intent.txId === txId);
    if (row === undefined) throw new Error("not waiting");
    return row.intakeId;
  };

  const asIntent = ({ gas: _, gasCost: __, ...intent }: Partial<ReturnType<typeof anIntent>> = {}) => intent;

  it("the intake table returns waiting intents in order of their calls, for the requested lanes", async () => {
    const [one, two, three] = [aLane(1), aLane(2), aLane(3)];
    const intents = [
      anIntent(two),
      anIntent(one, { requestId: "x", metadata: { a: 1 } }),
      anIntent(three),
      anIntent(one),
    ];
    expect(await context.store.whatWaits()).toMatchObject({ intents: false });
    await context.subject.intake(...intents);
    expect(await context.store.whatWaits()).toMatchObject({ intents: true });
    const rows = await context.store.loadIntake([one, two], 100);
    expect(rows.map(({ intent }) => intent.txId)).toEqual([intents[0], intents[1], intents[3]].map((i) => i?.txId));
    expect(rows[1]?.intent).toMatchObject(asIntent(intents[1]));
    expect(await context.store.loadIntake([one, two], 1)).toHaveLength(1);
    expect(await context.store.loadIntake([], 10)).toEqual([]);
  });

  // protects [Holes] src/application/detours/intake.ts, src/application/lane/unconfirmed-refusals.ts, src/adapters/postgres/statements/intake.ts
  it("the intake table omits deferred rows, unless their validUntil has passed", async () => {
    const lane = aLane();
    const over = { ...anIntent(lane), validUntil: new Date(Date.UTC(2020, 0, 1)) };
    await context.subject.intake(anIntent(lane), anIntent(lane), over);
    const [first, second, third] = await waiting(lane);
    const resting = [first, third].map((row) => row?.intakeId ?? 0);
    expect(await context.store.loadIntake([lane], 100, resting)).toEqual([second, third]);
    expect(await context.store.loadIntake([lane], 1, resting)).toEqual([second]);
  });

  it("an intent in the intake table keeps its allowNoCode flag", async () => {
    const lane = aLane();
    await context.subject.intake({ ...anIntent(lane), allowNoCode: true }, anIntent(lane));
    expect((await waiting(lane)).map(({ intent }) => intent.allowNoCode)).toEqual([true, undefined]);
  });

  it("an intent in the intake table has the state CREATED in every query", async () => {
    const lane = aLane();
    const wishes = { requestId: "c", owner: "checkout", payload: { data: "0x1234" }, metadata: { m: [1] } } as const;
    const intent = anIntent(lane, wishes);
    await context.subject.intake(intent);
    const record = await context.store.transaction(intent.txId);
    expect(record).toMatchObject({
      state: "CREATED",
      nonce: null,
      gas: null,
      payload: intent.payload,
      owner: "checkout",
      metadata: { m: [1] },
    });
    expect(await context.store.transactionByRequest(lane, "c")).toEqual(record);
    expect(await context.store.history(intent.txId)).toMatchObject([{ ordinal: 1, event: "accept", state: "CREATED" }]);
    expect(await context.store.findByRequestIds([{ lane: lane, requestIds: ["c"] }])).toEqual([
      {
        ...{ txId: intent.txId, lane, requestId: "c", owner: "checkout" },
        ...{ nonce: null, state: "CREATED", fingerprint: intent.fingerprint },
      },
    ]);
  });

  it("an intent becomes a transaction with the same id and the time of its acceptance", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane, { requestId: "t", owner: "checkout" });
    await context.subject.intake(intent);
    await context.subject.tick();
    const accepted = await context.store.transaction(intent.txId);
    const intakeId = await idOf(fence.lane, intent.txId);
    const items = [{ intent: anIntent(fence.lane) }, { intent, intakeId }];
    const outcome = await commitOne(context.store, { kind: "allocate", fence, floor: 0, items });
    expect(outcome).toMatchObject({ items: [{ nonce: 0 }, { nonce: 1 }] });
    expect(await waiting(fence.lane)).toEqual([]);
    expect(await context.store.transaction(intent.txId)).toMatchObject({
      state: "ALLOCATED",
      nonce: 1,
      gas: intent.gas,
      createdAt: accepted?.createdAt,
    });
    expect(await context.store.history(intent.txId)).toMatchObject([
      { ordinal: 1, event: "accept", fromState: null, state: "CREATED", nodeId: null, token: null },
      { ordinal: 2, event: "allocate", fromState: "CREATED", state: "ALLOCATED", token: fence.token },
    ]);
  });

  it("an intent that is allocated again is a repeat of itself, with or without a request id", async () => {
    const fence = await holdLane(context.store);
    for (const requestId of ["again", null]) {
      const intent = anIntent(fence.lane, { requestId });
      await context.subject.intake(intent);
      const intakeId = await idOf(fence.lane, intent.txId);
      const write = { kind: "allocate", fence, floor: 0, items: [{ intent, intakeId }] } as const;
      expect(await commitOne(context.store, write)).toMatchObject({ items: [{ result: "created" }] });
      expect(await commitOne(context.store, write)).toMatchObject({
        items: [{ result: "duplicate", samePayload: true, existing: { txId: intent.txId } }],
      });
    }
    expect((await context.store.loadLane(fence))?.cursor).toBe(2);
  });

  it("an allocation for an intake row that does not exist is refused", async () => {
    const fence = await holdLane(context.store);
    const items = [{ intent: anIntent(fence.lane), intakeId: 999_999 }];
    await expect(commitOne(context.store, { kind: "allocate", fence, floor: 0, items })).rejects.toBeInstanceOf(
      BatchRefused,
    );
    expect((await context.store.loadLane(fence))?.cursor).toBeNull();
  });

  it("a stored request id takes precedence over a waiting intent", async () => {
    const fence = await holdLane(context.store);
    const first = anIntent(fence.lane, { requestId: "dup" });
    await allocate(context.store, fence, [first]);
    const late = anIntent(fence.lane, { requestId: "dup" });
    await context.subject.intake(late);
    const intakeId = await idOf(fence.lane, late.txId);
    const items = [{ intent: late, intakeId }];
    expect(await commitOne(context.store, { kind: "allocate", fence, floor: 0, items })).toMatchObject({
      items: [{ result: "duplicate", samePayload: true, existing: { txId: first.txId } }],
    });
    expect(await context.store.findByRequestIds([{ lane: fence.lane, requestIds: ["dup"] }])).toMatchObject([
      { txId: first.txId },
    ]);
    expect(await waiting(fence.lane)).toHaveLength(1);
  });

  it("an intent with a known request id becomes an alias of the existing transaction", async () => {
    const fence = await holdLane(context.store);
    const first = anIntent(fence.lane, { requestId: "alias" });
    await allocate(context.store, fence, [first]);
    const late = anIntent(fence.lane, { requestId: "alias" });
    await context.subject.intake(late);
    const results = [{ intakeId: await idOf(fence.lane, late.txId), result: "alias", of: first.txId } as const];
    expect(await commitOne(context.store, { kind: "settleIntake", fence, results })).toEqual({ status: "done" });
    expect(await waiting(fence.lane)).toEqual([]);
    expect(await context.store.transaction(late.txId)).toEqual(await context.store.transaction(first.txId));
    expect(await context.store.history(late.txId)).toEqual(await context.store.history(first.txId));
    const listed = await context.store.transactions({ signer: fence.lane.signer, order: "oldest", limit: 10 });
    expect(listed.map(({ txId }) => txId)).toEqual([first.txId]);
    expect(await commitOne(context.store, { kind: "settleIntake", fence, results })).toEqual({ status: "done" });
  });

  it("a refused transaction of the intake table ends without a nonce", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane, {
      requestId: "bad",
      metadata: { k: "v" },
      payload: { type: "legacy", gasPrice: 1n },
    });
    await context.subject.intake(intent);
    const results = [
      {
        intakeId: await idOf(fence.lane, intent.txId),
        result: "refused",
        event: "refuse",
        reason: "it reverts",
      } as const,
    ];
    const settle = () => commitOne(context.store, { kind: "settleIntake", fence, results });
    await settle();
    await settle();
    expect(await context.store.transaction(intent.txId)).toMatchObject({
      state: "FAILED_FINAL",
      subState: "REJECTED",
      nonce: null,
      gas: null,
      lastError: "it reverts",
      metadata: { k: "v" },
      payload: intent.payload,
    });
    expect(await context.store.history(intent.txId)).toMatchObject([
      { ordinal: 1, event: "accept" },
      {
        ordinal: 2,
        event: "refuse",
        fromState: "CREATED",
        subState: "REJECTED",
        reason: "it reverts",
        token: fence.token,
      },
    ]);
    const feed = (await context.store.feed(0, 100_000)).items.filter(({ txId }) => txId === intent.txId);
    expect(feed).toMatchObject([
      { state: "FAILED_FINAL", subState: "REJECTED", settled: true, nonce: null, txHash: null },
    ]);
    expect((await context.store.lanes(fence.lane.signer))[0]).toMatchObject({ failed: 1, pending: 0, cursor: null });
    const again = await allocate(context.store, fence, [
      anIntent(fence.lane, { requestId: "bad", payload: intent.payload }),
    ]);
    expect(again).toMatchObject([
      { result: "duplicate", existing: { txId: intent.txId, state: "FAILED_FINAL", nonce: null } },
    ]);
  });

  it("a refused intent does not take the request id from the transaction that owns it", async () => {
    const fence = await holdLane(context.store);
    const owner = anIntent(fence.lane, { requestId: "owned" });
    await allocate(context.store, fence, [owner]);
    const [reused, rejected] = [
      anIntent(fence.lane, { requestId: "owned", payload: { value: 77n } }),
      anIntent(fence.lane, { requestId: "owned", payload: { value: 78n } }),
    ] as const;
    await context.subject.intake(reused, rejected);
    const results = [
      {
        intakeId: await idOf(fence.lane, reused.txId),
        result: "refused",
        event: "refuseReusedRequestId",
        reason: "reused",
      },
      { intakeId: await idOf(fence.lane, rejected.txId), result: "refused", event: "refuse", reason: "reverts" },
    ] as const;
    await commitOne(context.store, { kind: "settleIntake", fence, results });
    expect(await context.store.transaction(reused.txId)).toMatchObject({ subState: "REQUEST_ID_REUSED", nonce: null });
    expect(await context.store.transaction(rejected.txId)).toMatchObject({ subState: "REJECTED", nonce: null });
    expect((await context.store.transactionByRequest(fence.lane, "owned"))?.txId).toBe(owner.txId);
    const found = await context.store.transactions({ requestId: "owned", order: "oldest", limit: 10 });
    expect(found.map(({ txId }) => txId)).toEqual([owner.txId, reused.txId, rejected.txId]);
  });

  it("if two intents with one request id are refused together, the request id belongs to the first", async () => {
    const fence = await holdLane(context.store);
    const twins = [1, 2].map(() => anIntent(fence.lane, { requestId: "twins" }));
    await context.subject.intake(...twins);
    const results = (await waiting(fence.lane)).map(
      ({ intakeId }) => ({ intakeId, result: "refused", event: "refuse", reason: "reverts" }) as const,
    );
    const late = anIntent(fence.lane, { requestId: "twins" });
    const outcomes = await outcomesOf(context.store, [
      { kind: "settleIntake", fence, results },
      { kind: "allocate", fence, floor: 0, items: [{ intent: late }] },
    ]);
    expect(outcomes).toMatchObject([
      { status: "done" },
      { items: [{ result: "duplicate", existing: { txId: twins[0]?.txId } }] },
    ]);
    expect((await context.store.transactionByRequest(fence.lane, "twins"))?.txId).toBe(twins[0]?.txId);
    expect(await waiting(fence.lane)).toEqual([]);
  });

  it("an intent is settled only by the owner of its lane", async () => {
    const [fence, stranger] = [await holdLane(context.store), await holdLane(context.store)];
    const intent = anIntent(fence.lane);
    await context.subject.intake(intent);
    const results = [
      {
        intakeId: await idOf(fence.lane, intent.txId),
        result: "refused",
        event: "refuse",
        reason: "not mine",
      } as const,
    ];
    await commitOne(context.store, { kind: "settleIntake", fence: stranger, results });
    expect(await waiting(fence.lane)).toHaveLength(1);
    expect(await context.store.transaction(intent.txId)).toMatchObject({ state: "CREATED" });
  });
}
