import { expect, it } from "vitest";
import type { Hash } from "../../../src/domain/lane.ts";
import {
  AT,
  aLane,
  allocate,
  anIntent,
  apply,
  commitOne,
  confirm,
  holdLane,
  mine,
  outcomesOf,
  step,
  uniqueHash,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

let nextChain = 1_000;

export function chainContract(context: LaneStoreContext): void {
  const onNewChain = () => holdLane(context.store, aLane(++nextChain));
  const blocks = (from: number, hashes: readonly Hash[]) =>
    hashes.map((hash, index) => ({ number: from + index, hash }));
  const hashes = (count: number) => Array.from({ length: count }, () => uniqueHash());
  const stored = (chainId: number) => context.store.confirmations(chainId, -1, 1_000);
  const store = async (
    fence: Awaited<ReturnType<typeof onNewChain>>,
    list: ReturnType<typeof blocks>,
    pruneBelow = 0,
  ) => {
    const outcome = await commitOne(context.store, { kind: "confirmations", fence, blocks: list, pruneBelow });
    return outcome.status === "confirmations" ? outcome.newFork : outcome.status;
  };

  it("confirmation blocks are stored once per chain, and later blocks extend the stored list", async () => {
    const fence = await onNewChain();
    const chain = hashes(6);
    expect(await store(fence, blocks(10, chain.slice(0, 3)))).toBe(false);
    expect(await store(fence, blocks(10, chain.slice(0, 3)))).toBe(false);
    expect(await store(fence, blocks(11, chain.slice(1)))).toBe(false);
    expect(await stored(fence.lane.chainId)).toEqual(blocks(10, chain));
    expect(await context.store.confirmations(fence.lane.chainId, 12, 2)).toEqual(blocks(10, chain).slice(3, 5));
  });

  it("confirmation blocks are replaced from the first height that differs, even by a shorter fork", async () => {
    const fence = await onNewChain();
    const chain = hashes(6);
    await store(fence, blocks(10, chain));
    const fork = hashes(2);
    expect(await store(fence, blocks(11, [chain[1] as Hash, ...fork]))).toBe(true);
    expect(await stored(fence.lane.chainId)).toEqual(blocks(10, [...chain.slice(0, 2), ...fork]));
    expect(await store(fence, blocks(13, [fork[1] as Hash]))).toBe(false);
  });

  it("confirmation blocks are pruned below a height, separately per chain", async () => {
    const [one, two] = [await onNewChain(), await onNewChain()];
    const chain = hashes(5);
    await store(one, blocks(1, chain));
    await store(two, blocks(1, chain));
    expect(await store(one, [], 4)).toBe(false);
    expect(await stored(one.lane.chainId)).toEqual(blocks(4, chain.slice(3)));
    expect(await stored(two.lane.chainId)).toEqual(blocks(1, chain));
    expect(await store(one, blocks(2, chain.slice(1)), 4)).toBe(false);
    expect(await stored(one.lane.chainId)).toEqual(blocks(4, chain.slice(3)));
  });

  it("several block lists of one chain in one commit are applied in order", async () => {
    const fence = await onNewChain();
    const other = await holdLane(context.store, aLane(fence.lane.chainId));
    const [a, b, c, x] = hashes(4) as [Hash, Hash, Hash, Hash];
    const outcomes = await outcomesOf(context.store, [
      { kind: "confirmations", fence, blocks: blocks(1, [a, b]), pruneBelow: 0 },
      { kind: "confirmations", fence: other, blocks: blocks(2, [b, c]), pruneBelow: 0 },
      { kind: "confirmations", fence, blocks: blocks(2, [x]), pruneBelow: 1 },
    ]);
    expect(outcomes).toMatchObject([{ newFork: false }, { newFork: false }, { newFork: true }]);
    expect(await stored(fence.lane.chainId)).toEqual(blocks(1, [a, x]));
  });

  it("ending the watch for reorgs affects only settled transactions that are deep enough", async () => {
    const fence = await holdLane(context.store);
    const [deep, shallow] = [uniqueHash(), uniqueHash()];
    const old = await confirm(context.store, fence, { blockNumber: 50, blockHash: deep });
    const young = await confirm(context.store, fence, { blockNumber: 60, blockHash: shallow });
    const open = await mine(context.store, fence, { blockNumber: 40, blockHash: deep });
    await allocate(context.store, fence, [anIntent(fence.lane)]);
    expect((await context.store.loadLane(fence))?.watched).toEqual([
      { number: 50, hash: deep },
      { number: 60, hash: shallow },
    ]);
    expect(await commitOne(context.store, { kind: "unwatch", fence, throughBlock: 50 })).toEqual({ status: "done" });
    const lane = await context.store.loadLane(fence);
    expect(lane?.watched).toEqual([{ number: 60, hash: shallow }]);
    expect(lane?.tracking.map(({ txId }) => txId)).toEqual([open.intent.txId]);
    expect(lane?.allocated).toBe(1);
    const watched = await context.store.loadWatched(fence.lane, [deep, shallow]);
    expect(watched.map(({ txId }) => txId)).toEqual([young.intent.txId]);
    expect(await context.store.transaction(old.intent.txId)).toMatchObject({
      state: "CONFIRMED",
      receipt: old.receipt,
    });
  });

  // protects [Reads] src/domain/ledger/apply.ts
  it("a transaction is still checked for reorgs if the commit that ends the checks reopens the transaction", async () => {
    const fence = await holdLane(context.store);
    const reorged = await confirm(context.store, fence, { blockNumber: 5 });
    const other = await confirm(context.store, fence, { blockNumber: 5 });
    const unwatch = { kind: "unwatch", fence, throughBlock: 5 } as const;
    const items = [step(reorged.intent.txId, AT.confirmed, "reorg", { receipt: null })];
    expect(await outcomesOf(context.store, [unwatch, { kind: "transition", fence, items }])).toEqual([
      { status: "done" },
      { status: "applied", items: ["applied"] },
    ]);
    expect((await context.store.loadLane(fence))?.tracking.map(({ txId }) => txId)).toEqual([reorged.intent.txId]);
    expect(await apply(context.store, fence, [step(other.intent.txId, AT.confirmed, "reorg")])).toEqual(["conflict"]);
  });

  it("a deep transaction is no longer checked for reorgs if the commit that settles it ends the checks", async () => {
    const fence = await holdLane(context.store);
    const [deep, shallow] = [
      await mine(context.store, fence, { blockNumber: 5 }),
      await mine(context.store, fence, { blockNumber: 6 }),
    ];
    const items = [deep, shallow].map(({ intent }) => step(intent.txId, AT.mined, "confirm"));
    const unwatch = { kind: "unwatch", fence, throughBlock: 5 } as const;
    await context.store.commit([{ kind: "transition", fence, items }, unwatch]);
    const lane = await context.store.loadLane(fence);
    expect(lane?.watched.map(({ number }) => number)).toEqual([6]);
    expect(await context.store.transaction(deep.intent.txId)).toMatchObject({ state: "CONFIRMED" });
  });

  it("a transaction whose watch for reorgs has ended cannot be reopened", async () => {
    const fence = await holdLane(context.store);
    const { intent } = await confirm(context.store, fence, { blockNumber: 5 });
    await commitOne(context.store, { kind: "unwatch", fence, throughBlock: 5 });
    expect(await apply(context.store, fence, [step(intent.txId, AT.confirmed, "reorg", { receipt: null })])).toEqual([
      "conflict",
    ]);
    expect(await context.store.transaction(intent.txId)).toMatchObject({ state: "CONFIRMED" });
  });
}
