import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { laneKey } from "../../../src/domain/lane.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  apply,
  confirm,
  holdLane,
  mine,
  step,
  uniqueHash,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

export function loadingContract(context: LaneStoreContext): void {
  /** The time at which the transaction was sent, as shown to callers. */
  const sentOf = async (txId: string) => {
    const record = await context.store.transaction(txId);
    expect(record?.lastSubmittedAt).toBeInstanceOf(Date);
    return { lastSubmittedAt: record?.lastSubmittedAt, firstSentAt: record?.attempts[0]?.firstSentAt };
  };

  it("a loaded transaction has its last error and its highest accepted attempt", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent]);
    await apply(context.store, fence, [step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(1) })]);
    expect((await context.store.loadLane(fence))?.tracking).toMatchObject([
      { firstSentAt: null, lastSubmittedAt: null, acceptedOrdinal: null, lastError: null },
    ]);
    await apply(context.store, fence, [
      step(intent.txId, AT.pending, "reprice", { attempt: anAttempt(2), claim: { ordinal: 2 } }),
    ]);
    await apply(context.store, fence, [step(intent.txId, AT.pending, "broadcast", { accepted: { ordinal: 2 } })]);
    await apply(context.store, fence, [
      step(intent.txId, AT.broadcast, "submitFailed", { accepted: { ordinal: 1 }, lastError: "in its own words" }),
    ]);
    expect((await context.store.loadLane(fence))?.tracking).toMatchObject([
      { firstSentAt: null, acceptedOrdinal: 2, lastError: "in its own words" },
    ]);
  });

  it("a loaded transaction has the time since which its submit result is unknown, until the result is known", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent]);
    const unnamed = { ...anAttempt(1), txHash: null, rawTransaction: null, nodeSigned: true as const };
    const lost = { state: "TRACKING", subState: "UNKNOWN_SUBMIT_RESULT" } as const;
    const tracked = async () => (await context.store.loadLane(fence))?.tracking[0];
    await apply(context.store, fence, [
      step(intent.txId, AT.allocated, "sign", { attempt: unnamed, claim: { ordinal: 1 } }),
    ]);
    expect(await tracked()).not.toHaveProperty("lostSightAt");
    await apply(context.store, fence, [step(intent.txId, AT.pending, "loseSight", { reason: "no answer" })]);
    const [entry] = (await context.store.history(intent.txId)).filter(({ event }) => event === "loseSight");
    expect((await tracked())?.lostSightAt).toEqual(entry?.lastAt);
    await apply(context.store, fence, [step(intent.txId, lost, "submitFailed", { lastError: "no answer" })]);
    expect((await tracked())?.lostSightAt).toEqual(entry?.lastAt);
    await apply(context.store, fence, [step(intent.txId, lost, "sendAnew", { reason: "free still" })]);
    expect(await tracked()).not.toHaveProperty("lostSightAt");
  });

  // protects [Attacks] src/application/lane/queue-shares.ts, src/application/stages/1-create/create.ts, src/adapters/postgres/stores/loads.ts
  it("the store loads the open transactions of one API key on a lane", async () => {
    const [fence, other] = [await holdLane(context.store), await holdLane(context.store)];
    const owned = (owner: string | null, lane = fence.lane) => ({ ...anIntent(lane), owner });
    const [queued, pending] = [owned("shop"), owned("shop")];
    const final = await confirm(context.store, fence, {}, owned("shop"));
    const { intent: mined } = await mine(context.store, fence, {}, owned("shop"));
    await allocate(context.store, fence, [pending, queued, owned("wallet"), owned(null)]);
    await allocate(context.store, other, [owned("shop", other.lane)]);
    await apply(context.store, fence, [step(pending.txId, AT.allocated, "sign", { attempt: anAttempt(1) })]);
    expect((await context.store.transaction(final.intent.txId))?.owner).toBe("shop");
    const open = await context.store.openOf(fence.lane, "shop");
    expect(new Map(open.map(({ txId, isMined }) => [txId, isMined]))).toEqual(
      new Map([
        [mined.txId, true],
        [pending.txId, false],
        [queued.txId, false],
      ]),
    );
    expect(await context.store.openOf(fence.lane, "nobody")).toEqual([]);
  });

  it("an empty lane is loaded without transactions", async () => {
    const fence = await holdLane(context.store);
    expect(await context.store.loadLane(fence)).toEqual({
      cursor: null,
      suspendedBy: null,
      reconciled: true,
      epochFloor: 0,
      genesisHash: null,
      tracking: [],
      allocated: 0,
      watched: [],
      holes: [],
      reservations: [],
    });
  });

  it("a lane is not loaded for an ownership (term) that has ended, has expired or does not exist", async () => {
    const fence = await holdLane(context.store);
    expect(await context.store.loadLane({ ...fence, token: 2 })).toBeNull();
    expect(await context.store.loadLane({ ...fence, instanceId: randomUUID() })).toBeNull();
    expect(await context.store.loadLane({ ...fence, lane: aLane() })).toBeNull();
    await context.subject.expire(fence.instanceId);
    expect(await context.store.loadLane(fence)).toBeNull();
  });

  it("a loaded lane contains its open transactions in the order of their nonces", async () => {
    const fence = await holdLane(context.store);
    const block = { blockNumber: 9, blockHash: uniqueHash() };
    await confirm(context.store, fence, block);
    await confirm(context.store, fence, block);
    const mined = await mine(context.store, fence, { blockNumber: 10, blockHash: uniqueHash() });
    const open = anIntent(fence.lane, { requestId: "open" });
    await allocate(context.store, fence, [open, anIntent(fence.lane), anIntent(fence.lane)]);
    const attempts = [anAttempt(1), anAttempt(2)] as const;
    await apply(context.store, fence, [
      step(open.txId, AT.allocated, "sign", { attempt: attempts[0], claim: { ordinal: 1 } }),
    ]);
    await apply(context.store, fence, [step(open.txId, AT.pending, "resubmit", { attempt: attempts[1] })]);
    const lane = await context.store.loadLane(fence);
    const visible = ({ rawTransaction, ...attempt }: (typeof attempts)[0]) => attempt;
    expect(lane).toMatchObject({ cursor: 6, suspendedBy: null, allocated: 2 });
    expect(lane?.watched).toEqual([{ number: 9, hash: block.blockHash }]);
    expect(lane?.tracking).toEqual([
      {
        txId: mined.intent.txId,
        nonce: 2,
        state: "TRACKING",
        subState: "MINED",
        attempts: [visible(mined.attempt)],
        receipt: mined.receipt,
        submitAttempts: 1,
        createdAt: (await context.store.transaction(mined.intent.txId))?.createdAt,
        requestId: null,
        ...(await sentOf(mined.intent.txId)),
        acceptedOrdinal: 1,
        lastError: null,
      },
      {
        txId: open.txId,
        nonce: 3,
        state: "TRACKING",
        subState: "PENDING",
        attempts: attempts.map(visible),
        receipt: null,
        submitAttempts: 1,
        createdAt: (await context.store.transaction(open.txId))?.createdAt,
        requestId: "open",
        ...(await sentOf(open.txId)),
        acceptedOrdinal: null,
        lastError: null,
      },
    ]);
  });

  it("allocated transactions are loaded page by page from a given nonce", async () => {
    const fence = await holdLane(context.store);
    const intents = Array.from({ length: 7 }, () => anIntent(fence.lane));
    await allocate(context.store, fence, intents, 100);
    await apply(context.store, fence, [step(intents[1]?.txId ?? "", AT.allocated, "sign", { attempt: anAttempt() })]);
    const page = async (fromNonce: number, limit: number) =>
      (await context.store.loadAllocated(fence.lane, fromNonce, limit)).map(({ nonce }) => nonce);
    expect(await page(0, 3)).toEqual([100, 102, 103]);
    expect(await page(104, 3)).toEqual([104, 105, 106]);
    expect(await page(107, 3)).toEqual([]);
    expect(await context.store.loadAllocated(aLane(), 0, 3)).toEqual([]);
  });

  it("the store throws if a requested raw transaction does not exist", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent]);
    await expect(context.store.loadRawTransactions([{ txId: intent.txId, ordinal: 1 }])).rejects.toThrow();
    expect(await context.store.loadRawTransactions([])).toEqual([]);
  });

  it("settled transactions that are checked for reorgs are found by the number of their block", async () => {
    const fence = await holdLane(context.store);
    const [a, b] = [uniqueHash(), uniqueHash()];
    const first = await confirm(context.store, fence, { blockNumber: 1, blockHash: a });
    const second = await confirm(context.store, fence, { blockNumber: 2, blockHash: b });
    await mine(context.store, fence, { blockNumber: 2, blockHash: b });
    const found = await context.store.loadWatched(fence.lane, [a, b, uniqueHash()]);
    expect(found.map(({ txId, state, receipt }) => ({ txId, state, receipt }))).toEqual([
      { txId: first.intent.txId, state: "CONFIRMED", receipt: first.receipt },
      { txId: second.intent.txId, state: "CONFIRMED", receipt: second.receipt },
    ]);
    expect(found[0]?.attempts.map(({ txHash }) => txHash)).toEqual([first.attempt.txHash]);
    expect(await context.store.loadWatched(fence.lane, [])).toEqual([]);
  });

  it("request ids are found only on their own lane", async () => {
    const [one, two] = [await holdLane(context.store), await holdLane(context.store)];
    const intent = anIntent(one.lane, { requestId: "mine" });
    await allocate(context.store, one, [intent]);
    expect(await context.store.findByRequestIds([{ lane: one.lane, requestIds: ["mine", "mine", "other"] }])).toEqual([
      {
        txId: intent.txId,
        lane: one.lane,
        requestId: "mine",
        owner: null,
        nonce: 0,
        state: "ALLOCATED",
        fingerprint: intent.fingerprint,
      },
    ]);
    expect(await context.store.findByRequestIds([{ lane: two.lane, requestIds: ["mine"] }])).toEqual([]);
    expect(
      await context.store.findByRequestIds([{ lane: { ...one.lane, chainId: 99 }, requestIds: ["mine"] }]),
    ).toEqual([]);
    expect(await context.store.findByRequestIds([{ lane: one.lane, requestIds: [] }])).toEqual([]);
  });

  // protects [Many lanes] src/application/stages/1-create/answer-existing.ts, src/adapters/postgres/stores/loads.ts
  it("request ids of many lanes are found with one query, each under its own lane", async () => {
    const [one, two, three] = [
      await holdLane(context.store),
      await holdLane(context.store),
      await holdLane(context.store),
    ];
    await allocate(context.store, one, [anIntent(one.lane, { requestId: "same" })]);
    await allocate(context.store, two, [anIntent(two.lane, { requestId: "same" })]);
    await allocate(context.store, three, [anIntent(three.lane, { requestId: "not asked for here" })]);
    const found = await context.store.findByRequestIds([
      { lane: one.lane, requestIds: ["same", "not asked for here"] },
      { lane: two.lane, requestIds: ["same"] },
      { lane: three.lane, requestIds: ["same"] },
    ]);
    const places = found.map(({ lane, requestId }) => `${laneKey(lane)} ${requestId}`);
    expect(places.sort()).toEqual([`${laneKey(one.lane)} same`, `${laneKey(two.lane)} same`].sort());
    expect(await context.store.findByRequestIds([])).toEqual([]);
  });
}
