import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plan } from "../../../src/application/lane/lane-writer.ts";
import type { LaneIndex, OwnedLane, Tracked } from "../../../src/application/lane/owned-lane.ts";
import { resumed } from "../../../src/application/lane/owned-lane.ts";
import { happened } from "../../../src/application/lane/tracked.ts";
import { looked, lookedAt, scheduled, takenInHand } from "../../../src/domain/pace/transaction-pace.ts";
import { at, NEVER } from "../../../src/domain/pace/when.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import type { AllocatedRecord, LaneSnapshot, TrackedRecord } from "../../../src/ports/lane-store.ts";
import { createChainBench, createOwnedLane } from "../../support/chain-bench.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import { mineIn, paced } from "../../support/stage-bench.ts";
import { TO } from "../../support/world.ts";

const PAGE = 512;

function record(nonce: number): AllocatedRecord {
  const payload = { to: TO, data: "0x", value: 0n } as const;
  return { txId: `tx ${nonce}`, nonce, requestId: null, payload, gas: 21_000n, createdAt: new Date(nonce) };
}

function records(from: number, count: number): readonly AllocatedRecord[] {
  return Array.from({ length: count }, (_, index) => record(from + index));
}

function receipt(nonce: number, blockNumber: number, blockHash = hashNumber(blockNumber)): Receipt {
  const nothing = { gasUsed: 0n, effectiveGasPrice: null, contractAddress: null, transactionIndex: 0 } as const;
  return { txHash: hashNumber(nonce), blockNumber, blockHash, status: "success", ...nothing };
}

function tracked(nonce: number, mined: Receipt | null = null): TrackedRecord {
  const fees = { type: "legacy", gasPrice: 1n } as const;
  const attempt = { ordinal: 1, kind: "initial", txHash: hashNumber(nonce), gas: 21_000n, fees } as const;
  const status = { state: "TRACKING", subState: mined === null ? "BROADCAST" : "MINED" } as const;
  const past = { submitAttempts: 1, createdAt: new Date(nonce), requestId: null };
  const sent = { firstSentAt: null, lastSubmittedAt: null, acceptedOrdinal: null, lastError: null };
  return { txId: `tx ${nonce}`, nonce, attempts: [attempt], receipt: mined, ...status, ...past, ...sent };
}

function withIndex(snapshot: Partial<LaneSnapshot>): { readonly lane: OwnedLane; readonly index: LaneIndex["hashes"] } {
  const { context } = createChainBench();
  return { lane: createOwnedLane(snapshot, context), index: context.hashes };
}

function nonces(list: readonly { readonly nonce: number }[]): readonly number[] {
  return list.map(({ nonce }) => nonce);
}

/** Signs everything that may be signed, reading pages from `database` as the sign stage does. */
function signAll(lane: OwnedLane, database: readonly AllocatedRecord[], page = PAGE): readonly number[] {
  const signed: number[] = [];
  for (;;) {
    const from = lane.backlog.missingFrom();
    if (from !== null) lane.backlog.refill(database.filter(({ nonce }) => nonce >= from).slice(0, page), page);
    const batch = lane.toSign(1_000_000, 100);
    if (batch.length === 0) return signed;
    signed.push(...nonces(batch));
    lane.backlog.signed(batch);
  }
}

describe("moving down into a nonce gap", () => {
  // protects [Holes] src/domain/ledger/may-move.ts
  it("is permitted to unsigned transactions, unless their caller named the nonce", () => {
    const lane = createOwnedLane({ cursor: 5, tracking: [tracked(1)] });
    lane.backlog.enqueue([record(2), { ...record(3), pinned: true }, record(4)]);
    expect(lane.holders().map(({ nonce, movable }) => [nonce, movable])).toEqual([
      [1, false],
      [2, true],
      [3, false],
      [4, true],
    ]);
  });

  it("is refused for a transaction that may already be signed", () => {
    const lane = createOwnedLane({ cursor: 4, epochFloor: 3 });
    lane.backlog.enqueue([record(2), record(3)]);
    expect(lane.holders().map(({ nonce, movable }) => [nonce, movable])).toEqual([
      [2, false],
      [3, true],
    ]);
  });
});

describe("transactions that wait to be signed", () => {
  it("are signed in the order of their allocation", () => {
    const lane = createOwnedLane({ cursor: 0 });
    lane.backlog.enqueue(records(0, 3));
    lane.backlog.enqueue(records(3, 2));
    expect(signAll(lane, [])).toEqual([0, 1, 2, 3, 4]);
  });

  it("are read from the database later if they exceed the memory limit", () => {
    const lane = createOwnedLane({ cursor: 0 });
    const all = records(0, 3_000);
    lane.backlog.enqueue(all);
    expect(lane.backlog.missingFrom()).toBeNull();
    expect(signAll(lane, all)).toEqual(nonces(all));
    expect(lane.hasUnmined()).toBe(false);
  });

  it("are read from the database after the lane is loaded", () => {
    const lane = createOwnedLane({ cursor: 9, allocated: 4 });
    expect([lane.backlog.missingFrom(), lane.hasUnmined(), lane.idle]).toEqual([0, true, false]);
    expect(signAll(lane, records(5, 4))).toEqual([5, 6, 7, 8]);
  });

  it("are signed without a nonce gap even if some are allocated during a page read", () => {
    const lane = createOwnedLane({ cursor: 6, allocated: 1 });
    lane.backlog.missingFrom();
    const page = records(5, 1);
    lane.backlog.enqueue(records(6, 2)); // Transactions 6 and 7 were committed after the database read the page. The owner got the acknowledgement of that commit before it got the page.
    lane.backlog.refill(page, PAGE);
    expect(signAll(lane, records(5, 3))).toEqual([5, 6, 7]);
    expect(lane.hasUnmined()).toBe(false);
  });

  it("cause a second page read if they fill a nonce gap during the first", () => {
    const lane = createOwnedLane({ cursor: 8, allocated: 3 });
    lane.backlog.missingFrom();
    const page = records(5, 3);
    lane.slipIn(record(4)); // Transaction 4 was committed after the database read the page. Its nonce is below all nonces of the page.
    expect(lane.backlog.refill(page, PAGE)).toBe(false);
    expect(signAll(lane, records(4, 4))).toEqual([4, 5, 6, 7]);
    expect(lane.hasUnmined()).toBe(false);
  });

  it("are not signed twice if a page read returns them early", () => {
    const lane = createOwnedLane({ cursor: 6, allocated: 1 });
    lane.backlog.refill(records(5, 3), PAGE); // The database read the page after transactions 6 and 7 were committed, but before the owner got the acknowledgement of that commit.
    lane.backlog.enqueue(records(6, 2));
    expect(signAll(lane, [])).toEqual([5, 6, 7]);
    lane.backlog.enqueue(records(7, 1));
    expect(signAll(lane, [])).toEqual([]);
  });

  it("are signed in order, whatever the order of page reads and allocations", () => {
    const steps = fc.array(
      fc.record({ allocate: fc.integer({ min: 1, max: 4 }), isQueued: fc.boolean(), read: fc.boolean() }),
    );
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 3 }), (story, before) => {
        const lane = createOwnedLane({ cursor: before, allocated: before });
        const database: AllocatedRecord[] = [...records(0, before)];
        const unqueued: AllocatedRecord[] = [];
        const signed: number[] = [];
        for (const { allocate, isQueued, read } of story) {
          const from = lane.backlog.missingFrom();
          const page = from === null || !read ? null : database.filter(({ nonce }) => nonce >= from);
          const fresh = records(database.length, allocate);
          database.push(...fresh);
          unqueued.push(...fresh);
          if (isQueued) lane.backlog.enqueue(unqueued.splice(0));
          if (page !== null) lane.backlog.refill(page, PAGE);
          const batch = lane.toSign(1_000_000, 3);
          signed.push(...nonces(batch));
          lane.backlog.signed(batch);
        }
        lane.backlog.enqueue(unqueued);
        signed.push(...signAll(lane, database));
        expect(signed).toEqual(nonces(database));
      }),
    );
  });

  it("are signed only within the in-flight window", () => {
    const lane = createOwnedLane({ cursor: 20, tracking: [tracked(5), tracked(6), tracked(9)] });
    lane.backlog.enqueue(records(10, 10));
    expect(nonces(lane.toSign(8, 100))).toEqual([10, 11, 12]);
    expect(nonces(lane.toSign(8, 2))).toEqual([10, 11]);
    expect(lane.toSign(3, 100)).toEqual([]);
    expect(lane.headOfLine()).toBe(5);
  });
});

describe("transactions in flight", () => {
  it("are indexed by every attempt's hash, until they are final or the lane stops", () => {
    const { lane, index } = withIndex({ tracking: [tracked(1), tracked(2, receipt(2, 50))] });
    expect([...index.keys()]).toEqual([hashNumber(1), hashNumber(2)]);
    expect([lane.unmined.size, lane.mined.size]).toEqual([1, 1]);
    const mined = lane.mined.get(2);
    if (mined !== undefined) lane.settle(mined);
    expect([...index.keys()]).toEqual([hashNumber(1)]);
    lane.stop();
    expect(index.size).toBe(0);
    expect(lane.term.hasEnded).toBe(true);
  });

  // protects [The fence] src/application/lane/owned-lane.ts
  it("of a dropped lane copy leave the reloaded lane's hash index unchanged", () => {
    const { context } = createChainBench();
    const old = createOwnedLane({ tracking: [tracked(1)] }, context);
    const fresh = createOwnedLane({ tracking: [tracked(1)] }, context);
    old.stop();
    expect(context.hashes.get(hashNumber(1))?.lane).toBe(fresh);
    const remembered = old.unmined.get(1) as Tracked;
    old.follow(remembered);
    old.settle(remembered);
    expect(context.hashes.get(hashNumber(1))?.lane).toBe(fresh);
  });

  it("are checked for a receipt before a broadcast if they were loaded from the database", () => {
    const lane = createOwnedLane({ tracking: [tracked(1), tracked(2, receipt(2, 50))] });
    expect(lane.toSend(1_000_000, 10)).toEqual([]);
    const tx = lane.unmined.get(1);
    if (tx !== undefined) happened(tx, looked, 5);
    expect(nonces(lane.toSend(1_000_000, 10))).toEqual([1]);
    expect(resumed(tracked(2, receipt(2, 50))).pace.send).toEqual(NEVER);
  });

  it("become due in nonce order", () => {
    const lane = createOwnedLane({ tracking: [tracked(3), tracked(1), tracked(2), tracked(4)] });
    for (const tx of lane.unmined.values()) paced(tx, { look: lookedAt(0), send: at(100) });
    happened(lane.unmined.get(2) as Tracked, takenInHand);
    happened(lane.unmined.get(4) as Tracked, scheduled, NEVER);
    expect(lane.toSend(99, 10)).toEqual([]);
    expect(nonces(lane.toSend(100, 10))).toEqual([1, 3]);
    expect(nonces(lane.toSend(100, 1))).toEqual([1]);
  });

  it("count as in flight again if a reorg withdraws their receipt", () => {
    const lane = createOwnedLane({ tracking: [tracked(1)] });
    const tx = lane.unmined.get(1);
    if (tx === undefined) throw new Error("it is not there");
    mineIn(lane, tx, receipt(1, 50));
    expect([lane.unmined.size, lane.mined.size, tx.pace.send, tx.receipt?.blockNumber]).toEqual([0, 1, NEVER, 50]);
    plan(tx, "withdraw", { receipt: null });
    lane.unmine(tx);
    expect([lane.unmined.size, lane.mined.size, tx.receipt]).toEqual([1, 0, null]);
  });
});

describe("blocks watched for reorgs", () => {
  it("are stored by hash, so that several blocks of one height are kept", () => {
    const lane = createOwnedLane({
      watched: [
        { number: 50, hash: hashNumber(1) },
        { number: 50, hash: hashNumber(2) },
      ],
      tracking: [tracked(7, receipt(7, 50, hashNumber(3)))],
    });
    const tx = lane.mined.get(7);
    if (tx !== undefined) lane.settle(tx);
    expect([...lane.watched]).toEqual([
      [hashNumber(1), 50],
      [hashNumber(2), 50],
      [hashNumber(3), 50],
    ]);
    expect(lane.idle).toBe(false);
  });
});

describe("a lane's own status", () => {
  it("is idle only if no transaction needs further work", () => {
    const lane = createOwnedLane({ cursor: 3 });
    expect([lane.idle, lane.hasUnmined(), lane.pendingDepth(), lane.oldestPendingAt()]).toEqual([true, false, 0, null]);
    lane.count("creating", 1);
    expect([lane.idle, lane.hasUnmined(), lane.hasUnminedBefore(1), lane.hasUnminedBefore(0)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
  });

  it("reports the age of the oldest in-flight transaction", () => {
    const waiting = createOwnedLane({ cursor: 9 });
    waiting.backlog.enqueue(records(8, 1));
    expect(waiting.oldestPendingAt()).toEqual(new Date(8));
    const mined = createOwnedLane({ tracking: [tracked(7, receipt(7, 5))] });
    expect(mined.oldestPendingAt()).toEqual(new Date(7));
    const both = createOwnedLane({ tracking: [tracked(6), tracked(5), tracked(4, receipt(4, 5))] });
    expect(both.oldestPendingAt()).toEqual(new Date(5));
    expect(both.pendingDepth()).toBe(3);
  });
});
