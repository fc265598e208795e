import { expect, it } from "vitest";
import type { Fence, Hash } from "../../../src/domain/lane.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  aReceipt,
  BY_ANYBODY,
  commitOne,
  confirm,
  holdLane,
  mine,
  nonces,
  outcomesOf,
  step,
  uniqueHash,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const FOREIGN = { kind: "external", foreign: true, rawTransaction: null } as const;

/**
 * Cases with a cause outside Fencepost: another program uses the key, an endpoint serves another chain, or the lane's
 * next nonce was set too high.
 */
export function externalContract(context: LaneStoreContext): void {
  /** A transaction whose nonce was used by a mined transaction of another program. */
  async function lost(fence: Fence) {
    const intent = anIntent(fence.lane);
    const [first, foreign] = [anAttempt(1), anAttempt(2, FOREIGN)];
    const [nonce] = nonces(await allocate(context.store, fence, [intent]));
    await apply(context.store, fence, [
      step(intent.txId, AT.allocated, "sign", { attempt: first, claim: { ordinal: 1 } }),
    ]);
    const receipt = aReceipt(foreign.txHash);
    const accepted = { ordinal: 1 };
    await apply(context.store, fence, [step(intent.txId, AT.pending, "mine", { accepted, attempt: foreign, receipt })]);
    return { intent, first, foreign, receipt, nonce: nonce as number };
  }

  it("a foreign transaction is stored as an attempt without raw bytes, with its receipt", async () => {
    const fence = await holdLane(context.store);
    const { intent, foreign, receipt } = await lost(fence);
    const [tracked] = (await context.store.loadLane(fence))?.tracking ?? [];
    expect(tracked).toMatchObject({ txId: intent.txId, subState: "MINED", receipt });
    expect(tracked?.attempts.map(({ kind, foreign }) => [kind, foreign ?? false])).toEqual([
      ["initial", false],
      ["external", true],
    ]);
    expect((await context.store.transaction(intent.txId))?.attempts[1]).toMatchObject({ txHash: foreign.txHash });
  });

  it("a payload that the chain node signs is stored without hash and raw bytes, until the hash is known", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane, { payload: { value: 77n } });
    const attempt = { ...anAttempt(1), txHash: null, rawTransaction: null, nodeSigned: true } as const;
    await allocate(context.store, fence, [intent]);
    await apply(context.store, fence, [step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
    const [tracked] = (await context.store.loadLane(fence))?.tracking ?? [];
    expect(tracked?.attempts).toMatchObject([{ txHash: null, nodeSigned: true, kind: "initial" }]);
    expect(await context.store.loadPayloads([intent.txId])).toMatchObject([{ payload: intent.payload, gas: 21_000n }]);
    await apply(context.store, fence, [step(intent.txId, AT.pending, "loseSight", { lastError: "no answer" })]);
    const unknown = { state: "TRACKING", subState: "UNKNOWN_SUBMIT_RESULT" } as const;
    const txHash = uniqueHash();
    const identified = { ordinal: 1, txHash };
    await apply(context.store, fence, [step(intent.txId, unknown, "adopt", { identified, accepted: { ordinal: 1 } })]);
    const found = await context.store.transactions({ txHash, order: "newest", limit: 5 });
    expect(found.map(({ txId }) => txId)).toEqual([intent.txId]);
    expect(found[0]?.attempts).toMatchObject([{ txHash, nodeSigned: true }]);
    const receipt = aReceipt(txHash);
    expect(await apply(context.store, fence, [step(intent.txId, AT.broadcast, "mine", { receipt })])).toEqual([
      "applied",
    ]);
  });

  it("the hash of an attempt never changes, and a locally signed attempt never gets another hash", async () => {
    const fence = await holdLane(context.store);
    const [named, own] = [anIntent(fence.lane), anIntent(fence.lane)];
    const attempt = { ...anAttempt(1), txHash: null, rawTransaction: null, nodeSigned: true } as const;
    await allocate(context.store, fence, [named, own]);
    const first = { ordinal: 1, txHash: uniqueHash() };
    await apply(context.store, fence, [
      step(named.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } }),
      step(named.txId, AT.pending, "broadcast", { identified: first, accepted: { ordinal: 1 } }),
      step(own.txId, AT.allocated, "sign", { attempt: anAttempt(1), claim: { ordinal: 1 } }),
    ]);
    const again = (txHash: Hash) =>
      apply(context.store, fence, [step(named.txId, AT.broadcast, "resubmit", { identified: { ordinal: 1, txHash } })]);
    expect(await again(first.txHash)).toEqual(["applied"]);
    await expect(again(uniqueHash())).rejects.toThrow(BatchRefused);
    const other = { ordinal: 1, txHash: uniqueHash() };
    await expect(
      apply(context.store, fence, [step(own.txId, AT.pending, "broadcast", { identified: other })]),
    ).rejects.toThrow(BatchRefused);
  });

  it("loading a lane also returns the next nonce that the lane had when the epoch began", async () => {
    const fence = await holdLane(context.store);
    await allocate(context.store, fence, [anIntent(fence.lane), anIntent(fence.lane)]);
    expect((await context.store.loadLane(fence))?.epochFloor).toBe(0);
  });

  it("the genesis hash of a chain is stored once and never replaced", async () => {
    const fence = await holdLane(context.store, aLane(900_001));
    const other = await holdLane(context.store, aLane(900_001));
    const elsewhere = await holdLane(context.store, aLane(900_002));
    const [one, two] = [uniqueHash(), uniqueHash()];
    expect((await context.store.loadLane(fence))?.genesisHash).toBeNull();
    await commitOne(context.store, { kind: "identify", fence, genesisHash: one });
    await commitOne(context.store, { kind: "identify", fence: other, genesisHash: two });
    expect((await context.store.loadLane(other))?.genesisHash).toBe(one);
    expect((await context.store.loadLane(elsewhere))?.genesisHash).toBeNull();
  });

  it("the store reports the nonce below which all transactions are settled and no longer watched for reorgs", async () => {
    const fence = await holdLane(context.store);
    expect(await context.store.settledBelow(fence.lane)).toBe(0);
    await confirm(context.store, fence, { blockNumber: 5 });
    await confirm(context.store, fence, { blockNumber: 9 });
    await mine(context.store, fence, { blockNumber: 5 });
    expect(await context.store.settledBelow(fence.lane)).toBe(0);
    await commitOne(context.store, { kind: "unwatch", fence, throughBlock: 5 });
    expect(await context.store.settledBelow(fence.lane)).toBe(1);
    await commitOne(context.store, { kind: "unwatch", fence, throughBlock: 9 });
    expect(await context.store.settledBelow(fence.lane)).toBe(2);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/ledger/standing.ts
  it("a realignment never lowers a lane's next nonce to a nonce that may have been sent", async () => {
    const fence = await holdLane(context.store);
    const realign = (floor: number) => commitOne(context.store, { kind: "realign", fence, floor });
    await allocate(context.store, fence, [anIntent(fence.lane), anIntent(fence.lane)]);
    await commitOne(context.store, { kind: "align", fence, floor: 600 });
    expect(await realign(700)).toEqual({ status: "aligned", cursor: 600 });
    expect(await realign(40)).toEqual({ status: "aligned", cursor: 40 });
    expect(await realign(0)).toEqual({ status: "aligned", cursor: 2 });
    expect(nonces(await allocate(context.store, fence, [anIntent(fence.lane)], null))).toEqual([2]);
    expect(await realign(0)).toEqual({ status: "aligned", cursor: 3 });
  });

  it("a realignment never lowers a lane's next nonce below a reserved nonce or one allocated in the same commit", async () => {
    const fence = await holdLane(context.store);
    await commitOne(context.store, { kind: "align", fence, floor: 10 });
    const { instanceId: reservationId } = anInstance();
    await commitOne(context.store, {
      ...{ kind: "reserve", fence, floor: null, reservationId, requestId: null, ttlMs: 60_000, ...BY_ANYBODY },
    });
    expect(await commitOne(context.store, { kind: "realign", fence, floor: 0 })).toEqual({
      status: "aligned",
      cursor: 11,
    });
    await commitOne(context.store, { kind: "release", fence, reservationId });
    const outcomes = await outcomesOf(context.store, [
      { kind: "allocate", fence, floor: 20, items: [{ intent: anIntent(fence.lane) }] },
      { kind: "realign", fence, floor: 0 },
    ]);
    expect(outcomes[1]).toEqual({ status: "aligned", cursor: 21 });
    expect((await context.store.loadLane(fence))?.holes.map(({ nonce }) => nonce)).toEqual([10]);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/ledger/standing.ts
  it("a realignment never lowers a lane's next nonce below a nonce reserved in the same commit", async () => {
    const fence = await holdLane(context.store);
    const [nonce] = nonces(await allocate(context.store, fence, [anIntent(fence.lane)]));
    const { instanceId: reservationId } = anInstance();
    const realign = { kind: "realign", fence, floor: 0 } as const;
    const reserve = {
      kind: "reserve",
      fence,
      floor: null,
      reservationId,
      requestId: null,
      ttlMs: 60_000,
      ...BY_ANYBODY,
    } as const;
    const [, afterReserve] = await outcomesOf(context.store, [reserve, realign]);
    expect(afterReserve).toEqual({ status: "aligned", cursor: (nonce as number) + 2 });
  });

  it("a realignment drops free nonces above the lowered next nonce, since they were never given out", async () => {
    const fence = await holdLane(context.store);
    await commitOne(context.store, { kind: "align", fence, floor: 10 });
    const { instanceId: reservationId } = anInstance();
    await commitOne(context.store, {
      ...{ kind: "reserve", fence, floor: null, reservationId, requestId: null, ttlMs: 60_000, ...BY_ANYBODY },
    });
    await commitOne(context.store, { kind: "release", fence, reservationId });
    expect(await commitOne(context.store, { kind: "realign", fence, floor: 4 })).toMatchObject({ cursor: 4 });
    expect((await context.store.loadLane(fence))?.holes).toEqual([]);
  });

  it("a realignment of the next nonce is fenced if the lane's ownership has ended", async () => {
    const fence = await holdLane(context.store);
    await commitOne(context.store, { kind: "align", fence, floor: 9 });
    const stale = { ...fence, token: fence.token + 1 };
    expect(await commitOne(context.store, { kind: "realign", fence: stale, floor: 0 })).toEqual({ status: "fenced" });
    expect((await context.store.loadLane(fence))?.cursor).toBe(9);
  });
}
