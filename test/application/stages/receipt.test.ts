import { describe, expect, it } from "vitest";
import { canonicalHashes } from "../../../src/application/chain/chain-context.ts";
import type { Tracked } from "../../../src/application/lane/owned-lane.ts";
import { happened } from "../../../src/application/lane/tracked.ts";
import {
  noticeExternalUse,
  receiptsOfBlocks,
  staleReceipts,
} from "../../../src/application/stages/5-receipt/receipt.ts";
import { chainLookOwed } from "../../../src/domain/pace/lane-pace.ts";
import { LOOK_DUE, LOOK_OWED, lookedAt } from "../../../src/domain/pace/transaction-pace.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import type { Block } from "../../../src/ports/chain.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import {
  createStageBench,
  due,
  eventsOf,
  mineIn,
  paced,
  receiptOf,
  type StageBench,
  stored,
} from "../../support/stage-bench.ts";
import { SIGNER, TO } from "../../support/world.ts";

async function at(height: number, nonces: readonly number[] = [1]): Promise<StageBench> {
  const bench = createStageBench({}, { settings: { staleReceiptTimeoutMs: 1_000 } });
  bench.simulated.mine(height);
  await bench.context.follower.advance();
  for (const nonce of nonces) bench.lane.track(due(nonce));
  return bench;
}

/** Returns the newest block that the node knows, extended by the hashes of the transactions with these nonces. */
function holding(bench: StageBench, ...nonces: readonly number[]): Block {
  return { ...(bench.context.follower.head as Block), transactionHashes: [hashNumber(999), ...nonces.map(hashNumber)] };
}

function answering(bench: StageBench, receipts: () => readonly (Receipt | null)[]): { asked: number } {
  const counter = { asked: 0 };
  const answer = async (): Promise<readonly (Receipt | null)[]> => {
    counter.asked++;
    return receipts();
  };
  Object.assign(bench.chain, { receiptsInBlock: answer, receipts: answer });
  return counter;
}

function tx(bench: StageBench, nonce: number): Tracked {
  return (bench.lane.unmined.get(nonce) ?? bench.lane.mined.get(nonce)) as Tracked;
}

describe("a new block", () => {
  it("gives its receipts to the node's open transactions, in one write per lane", async () => {
    const bench = await at(5, [1, 2, 3]);
    const block = holding(bench, 1, 2);
    answering(bench, () => [receiptOf(1, block), receiptOf(2, block)]);
    expect(await receiptsOfBlocks(bench.ports, bench.context, [block])).toEqual([]);
    expect(bench.writes).toMatchObject([
      { items: [{ event: "mine", receipt: { blockHash: block.hash } }, { event: "mine" }] },
    ]);
    expect([[...bench.lane.mined.keys()], [...bench.lane.unmined.keys()]]).toEqual([[1, 2], [3]]);
    expect(bench.passed).toEqual(["receipt.found", "receipt.committed"]);
  });

  it("causes no receipt request if it contains none of our transactions", async () => {
    const bench = await at(5);
    const counter = answering(bench, () => []);
    expect(await receiptsOfBlocks(bench.ports, bench.context, [holding(bench)])).toEqual([]);
    expect(counter.asked).toBe(0);
  });

  it("is retried later if its receipts cannot be read completely, without delaying other blocks", async () => {
    const bench = await at(5, [1, 2]);
    const [good, bad] = [holding(bench, 1), holding(bench, 2)];
    Object.assign(bench.chain, {
      receiptsInBlock: async (block: Block) => {
        if (block === bad) throw new Error("away");
        return [receiptOf(1, block)];
      },
    });
    expect(await receiptsOfBlocks(bench.ports, bench.context, [bad, good])).toEqual([bad]);
    expect(eventsOf(bench.writes)).toEqual(["mine tx 1"]);
    Object.assign(bench.chain, { receiptsInBlock: async () => [] });
    expect(await receiptsOfBlocks(bench.ports, bench.context, [bad])).toEqual([bad]);
    expect(bench.telemetry.of("receipt.checked").map(({ result }) => result)).toEqual(["error", "found", "found"]);
  });

  it("gives no receipts if it left the chain during the receipt request", async () => {
    const bench = await at(5);
    const block = holding(bench, 1);
    Object.assign(bench.chain, {
      receiptsInBlock: async () => {
        bench.simulated.reorg(1);
        await bench.context.follower.advance();
        return [receiptOf(1, block)];
      },
    });
    await receiptsOfBlocks(bench.ports, bench.context, [block]);
    expect(bench.writes).toEqual([]);
    expect(tx(bench, 1).receipt).toBeNull();
  });

  it("gives no receipts if the endpoint returns those of another block", async () => {
    const bench = await at(5);
    const block = holding(bench, 1);
    answering(bench, () => [receiptOf(1, { number: block.number, hash: hashNumber(77) })]);
    await receiptsOfBlocks(bench.ports, bench.context, [block]);
    expect(bench.writes).toEqual([]);
  });

  it("gives no receipts while the chain's identity is unsure", async () => {
    const bench = await at(5);
    const block = holding(bench, 1);
    answering(bench, () => [receiptOf(1, block)]);
    happened(bench.lane, chainLookOwed);
    await receiptsOfBlocks(bench.ports, bench.context, [block]);
    expect(bench.writes).toEqual([]);
    expect(tx(bench, 1)).toMatchObject({ receipt: null, pace: { look: LOOK_OWED } });
  });

  it.each([
    ["our signer and nonce", { nonce: 1 }, ["mine tx 1"]],
    ["another nonce", { nonce: 2 }, []],
    ["another signer", { nonce: 1, from: TO }, []],
  ])("gives its receipt to a hash that was only reported if it has %s", async (_, sent, events) => {
    const bench = await at(5);
    const attempts = tx(bench, 1).attempts.map((attempt) => ({ ...attempt, kind: "external" as const }));
    stored(tx(bench, 1), { attempts });
    const block = holding(bench, 1);
    answering(bench, () => [receiptOf(1, block)]);
    const transaction = async () => ({ txHash: hashNumber(1), from: bench.lane.lane.signer, ...sent });
    Object.assign(bench.chain, { transaction });
    await receiptsOfBlocks(bench.ports, bench.context, [block]);
    expect(eventsOf(bench.writes)).toEqual(events);
  });

  it("does not replace a receipt that a transaction already has", async () => {
    const bench = await at(5);
    const block = holding(bench, 1);
    mineIn(bench.lane, tx(bench, 1), receiptOf(1, { number: 3, hash: hashNumber(3) }));
    answering(bench, () => [receiptOf(1, block)]);
    await receiptsOfBlocks(bench.ports, bench.context, [block]);
    expect(bench.writes).toEqual([]);
    expect(tx(bench, 1).receipt?.blockNumber).toBe(3);
  });

  it("gives no receipts to a lane that stopped during the request", async () => {
    const bench = await at(5);
    const block = holding(bench, 1);
    const indexed = [...bench.context.hashes];
    answering(bench, () => {
      bench.lane.stop();
      for (const [hash, entry] of indexed) bench.context.hashes.set(hash, entry);
      return [receiptOf(1, block)];
    });
    await receiptsOfBlocks(bench.ports, bench.context, [block]);
    expect(bench.writes).toEqual([]);
  });

  it("waits if the receipts of receiptWorkers other blocks are being read", async () => {
    const bench = createStageBench({}, { settings: { receiptWorkers: 3 } });
    bench.simulated.mine(20);
    await bench.context.follower.advance();
    for (let nonce = 0; nonce < 10; nonce++) bench.lane.track(due(nonce));
    let [open, most] = [0, 0];
    Object.assign(bench.chain, {
      receiptsInBlock: async () => {
        most = Math.max(most, ++open);
        await bench.clock.sleep(1);
        open--;
        return [];
      },
    });
    const blocks = Array.from({ length: 10 }, (_, nonce) => holding(bench, nonce));
    const work = receiptsOfBlocks(bench.ports, bench.context, blocks);
    await bench.clock.advance(100);
    expect((await work).length).toBe(10);
    expect(most).toBe(3);
  });
});

describe("a receipt lookup by hash", () => {
  it("covers transactions whose lookup is due, the longest waiting first", async () => {
    const bench = await at(5, [1, 2, 3, 4]);
    await bench.clock.advance(5_000);
    paced(tx(bench, 1), { look: lookedAt(4_500) });
    paced(tx(bench, 2), { look: lookedAt(4_000) });
    paced(tx(bench, 3), { look: LOOK_OWED });
    paced(tx(bench, 4), { look: LOOK_DUE });
    const asked: unknown[] = [];
    Object.assign(bench.chain, {
      receipts: async (hashes: readonly string[]) => {
        asked.push(...hashes);
        return hashes.map(() => null);
      },
    });
    await staleReceipts(bench.ports, bench.context, [bench.lane]);
    expect(asked).toEqual([3, 4, 2].map(hashNumber));
    expect([1, 2, 3, 4].map((nonce) => tx(bench, nonce).pace.look)).toEqual([4_500, 5_000, 5_000, 5_000].map(lookedAt));
    expect(bench.telemetry.of("receipt.checked")).toMatchObject([
      { result: "found", count: 0 },
      { result: "notFound", count: 3 },
    ]);
  });

  it("requests a hundred hashes at a time", async () => {
    const bench = await at(
      5,
      Array.from({ length: 250 }, (_, nonce) => nonce),
    );
    for (const each of bench.lane.unmined.values()) paced(each, { look: LOOK_OWED });
    const pieces: number[] = [];
    Object.assign(bench.chain, {
      receipts: async (hashes: readonly string[]) => {
        pieces.push(hashes.length);
        if (pieces.length === 2) throw new Error("away");
        return hashes.map(() => null);
      },
    });
    await staleReceipts(bench.ports, bench.context, [bench.lane]);
    expect(pieces).toEqual([100, 100]);
    const owed = [...bench.lane.unmined.values()].filter(({ pace }) => pace.look.kind === "owed");
    expect(owed.length).toBe(150);
    await staleReceipts(bench.ports, bench.context, [bench.lane]);
    expect(pieces).toEqual([100, 100, 50, 100]);
  });

  it("is not blocked by a hash that always fails", async () => {
    const bench = await at(
      5,
      Array.from({ length: 60 }, (_, nonce) => nonce),
    );
    for (const each of bench.lane.unmined.values()) paced(each, { look: LOOK_OWED });
    Object.assign(bench.chain, {
      receipts: async (hashes: readonly string[]) => {
        if (hashes.length > 20 || hashes.includes(hashNumber(0))) throw new Error("429");
        return hashes.map(() => null);
      },
    });
    for (let passes = 0; passes < 30; passes++) {
      await bench.clock.advance(10);
      await staleReceipts(bench.ports, bench.context, [bench.lane]);
    }
    const owed = [...bench.lane.unmined.values()].filter(({ pace }) => pace.look.kind === "owed");
    expect(owed.map(({ nonce }) => nonce)).toEqual([0]);
  });

  it("accepts no receipts of another branch", async () => {
    const bench = await at(5, [1, 2, 3]);
    const { window } = bench.context.follower;
    const canonical = { number: 4, hash: window.hashAt(4) ?? "0x" };
    for (const each of bench.lane.unmined.values()) paced(each, { look: LOOK_OWED });
    answering(bench, () => [
      receiptOf(1, canonical),
      receiptOf(2, { number: 4, hash: hashNumber(44) }),
      receiptOf(3, { number: 6, hash: hashNumber(66) }),
    ]);
    await staleReceipts(bench.ports, bench.context, [bench.lane]);
    expect(eventsOf(bench.writes)).toEqual(["mine tx 1"]);
  });

  it("checks receipts below the block window against the chain's block hash", async () => {
    const bench = await at(200, [1, 2]);
    const block = { number: 50, hash: bench.simulated.blocks.byNumber(50)?.hash ?? "0x" } as const;
    for (const each of bench.lane.unmined.values()) paced(each, { look: LOOK_OWED });
    answering(bench, () => [receiptOf(1, block), receiptOf(2, { number: 51, hash: hashNumber(51) })]);
    await staleReceipts(bench.ports, bench.context, [bench.lane]);
    expect(eventsOf(bench.writes)).toEqual(["mine tx 1"]);
  });

  it("stays due if the chain's block hash cannot be read", async () => {
    const bench = await at(200);
    paced(tx(bench, 1), { look: LOOK_OWED });
    answering(bench, () => [receiptOf(1, { number: 50, hash: hashNumber(50) })]);
    bench.faults.inject({ kind: "unavailable" });
    await staleReceipts(bench.ports, bench.context, [bench.lane]);
    expect(tx(bench, 1).pace.look).toEqual(LOOK_OWED);
    expect(bench.telemetry.of("receipt.checked")).toMatchObject([{ result: "error" }]);
  });
});

describe("canonical block hashes", () => {
  it("are read from the chain for blocks below the block window", async () => {
    const bench = await at(200);
    const hashes = await canonicalHashes(bench.context, [199, 10, 10, 205]);
    expect([...hashes.keys()].toSorted((a, b) => a - b)).toEqual([10, 199]);
    expect(hashes.get(10)).toBe(bench.simulated.blocks.byNumber(10)?.hash);
  });

  it("are unknown if the node does not have the block", async () => {
    const blind = createStageBench();
    expect((await canonicalHashes(blind.context, [5])).size).toBe(0);
    const bench = await at(200);
    Object.assign(bench.chain, { blocksByNumber: async (numbers: readonly number[]) => numbers.map(() => null) });
    expect((await canonicalHashes(bench.context, [5])).size).toBe(0);
  });
});

describe("a nonce that a node calls consumed", () => {
  async function consumed(look: Tracked["pace"]["look"], count: number): Promise<StageBench> {
    const bench = await at(5);
    paced(tx(bench, 1), { answer: "nonceConsumed", look });
    bench.simulated.setNonce(SIGNER, count);
    return bench;
  }

  it("is not searched for until our own hashes were looked up", async () => {
    const bench = await consumed(LOOK_OWED, 2);
    expect(noticeExternalUse(bench.ports, bench.context, bench.lane)).toBeNull();
  });

  it.each([
    ["not searched for while the chain's count has not passed it", 1, []],
    ["reported if the chain's count has passed it and no transaction is found", 2, ["NONCE_CONSUMED_UNSEEN"]],
  ])("is %s", async (_, count, codes) => {
    const bench = await consumed(lookedAt(0), count);
    await noticeExternalUse(bench.ports, bench.context, bench.lane);
    expect(bench.telemetry.of("alert").map(({ code }) => code)).toEqual(codes);
  });
});
