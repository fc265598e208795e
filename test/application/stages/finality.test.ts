import { getContractAddress } from "viem/utils";
import { describe, expect, it } from "vitest";
import type { Tracked } from "../../../src/application/lane/owned-lane.ts";
import { quietly } from "../../../src/application/lane/term.ts";
import type { ChainSettings } from "../../../src/application/settings.ts";
import { decideFinal, openPass, withdrawOrphaned } from "../../../src/application/stages/6-finality/finality.ts";
import type { Hash } from "../../../src/domain/lane.ts";
import { AT_ONCE } from "../../../src/domain/pace/when.ts";
import type { Attempt, Receipt } from "../../../src/domain/transaction/transaction.ts";
import { type Chain, ChainUnavailable, type ReceiptVerdict, type Settling } from "../../../src/ports/chain.ts";
import type { LaneWrite } from "../../../src/ports/lane-store.ts";
import { createOwnedLane } from "../../support/chain-bench.ts";
import { deferred } from "../../support/deferred.ts";
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
  trackedRecord,
} from "../../support/stage-bench.ts";
import { SIGNER } from "../../support/world.ts";

const TAGS = { tagDepths: { safe: 4, finalized: 8 } };

async function at(height: number, settings: Partial<ChainSettings> = {}): Promise<StageBench> {
  const bench = createStageBench({}, { settings: { confirmations: 2, ...settings }, chain: TAGS });
  bench.simulated.mine(height);
  await bench.context.follower.advance();
  return bench;
}

/**
 * Makes one of our transactions, mined in block `number`; in the canonical block of that number if no hash is given.
 */
function mined(bench: StageBench, nonce: number, number: number, hash?: Hash): Tracked {
  const tx = due(nonce);
  bench.lane.track(tx);
  const canonical = () => bench.simulated.blocks.byNumber(number)?.hash as Hash;
  mineIn(bench.lane, tx, receiptOf(nonce, { number, hash: hash ?? canonical() }));
  return tx;
}

async function decide(bench: StageBench): Promise<readonly string[]> {
  const pass = await openPass(bench.context, [bench.lane]);
  await quietly(decideFinal(bench.ports, pass, bench.lane) ?? Promise.resolve());
  return eventsOf(bench.writes);
}

async function withdraw(bench: StageBench): Promise<void> {
  await quietly(withdrawOrphaned(bench.ports, bench.context, bench.lane));
}

describe("a finality pass", () => {
  it("reads the `safe` or `finalized` tag only if the policy needs that tag", async () => {
    const plain = await at(20);
    expect((await openPass(plain.context, [])).view).toEqual({ head: 20, tagged: null, finalized: null });
    const safe = await at(20, { finality: "safe" });
    expect((await openPass(safe.context, [])).view).toEqual({ head: 20, tagged: 16, finalized: null });
    const final = await at(20, { finality: "finalized" });
    expect((await openPass(final.context, [])).view).toEqual({ head: 20, tagged: 12, finalized: 12 });
  });

  it("makes no transaction final before any block was seen", async () => {
    const blind = createStageBench({}, { settings: { finality: "finalized" }, chain: TAGS });
    expect((await openPass(blind.context, [])).view).toEqual({ head: -1, tagged: null, finalized: null });
  });

  it("uses no tagged block if the chain node does not support tags", async () => {
    const bench = createStageBench({}, { settings: { finality: "safe" }, chain: { tagDepths: null } });
    bench.simulated.mine(9);
    await bench.context.follower.advance();
    expect((await openPass(bench.context, [bench.lane])).view.tagged).toBeNull();
  });

  it("uses no tagged block while the block window is on another branch", async () => {
    const bench = await at(20, { finality: "finalized" });
    bench.simulated.reorg(10, { newBlocks: 30 });
    expect((await openPass(bench.context, [bench.lane])).view).toMatchObject({
      head: 20,
      tagged: null,
      finalized: null,
    });
    await bench.context.follower.advance();
    expect((await openPass(bench.context, [bench.lane])).view).toMatchObject({ head: 40, tagged: 32, finalized: 32 });
  });

  it("accepts a tagged block below the block window, whose hash is read from the chain", async () => {
    const bench = createStageBench(
      {},
      { settings: { finality: "finalized" }, chain: { tagDepths: { safe: 1, finalized: 150 } } },
    );
    bench.simulated.mine(200);
    await bench.context.follower.advance();
    expect((await openPass(bench.context, [bench.lane])).view.tagged).toBe(50);
  });

  // protects [False receipts] src/application/stages/6-finality/finality.ts
  it("makes nothing final by tag if the tag cannot be read", async () => {
    const bench = await at(20, { finality: "safe" });
    mined(bench, 1, 10);
    bench.faults.inject({ kind: "unavailable" });
    const pass = async () => {
      const { view, verdicts } = await openPass(bench.context, [bench.lane]);
      expect([view.tagged, verdicts.size]).toEqual([null, 0]);
    };
    await pass();
    await bench.clock.advance(59_000);
    await pass();
    expect(bench.telemetry.of("alert")).toEqual([]);
    await bench.clock.advance(1_000);
    await pass();
    expect(bench.telemetry.of("alert")).toMatchObject([{ code: "FINALITY_TAG_MISSING" }]);
  });
});

describe("finality of a mined transaction", () => {
  it("needs exactly the configured number of confirmations", async () => {
    const bench = await at(20);
    mined(bench, 1, 18);
    mined(bench, 2, 19);
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
    expect([...bench.lane.mined.keys()]).toEqual([2]);
    expect([...bench.lane.watched.values()]).toEqual([18]);
    expect(bench.passed).toEqual(["finality.decided", "complete.committed"]);
    expect(bench.control.feedGrew).toBe(1);
  });

  it("needs a block at or below the tagged one, if the policy uses a tag", async () => {
    const bench = await at(20, { finality: "safe" });
    mined(bench, 1, 16);
    mined(bench, 2, 17);
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
  });

  it("is stored as REVERTED if the receipt shows a revert", async () => {
    const bench = await at(20);
    const reverted = mined(bench, 1, 10);
    stored(reverted, { receipt: { ...(reverted.receipt as Receipt), status: "reverted" } });
    expect(await decide(bench)).toEqual(["revert tx 1"]);
    expect(bench.writes).toMatchObject([
      { items: [{ to: "FAILED_FINAL", subState: "REVERTED", completion: { txHash: hashNumber(1), settled: true } }] },
    ]);
  });

  it("is denied if the transaction's block left the chain since the pass began", async () => {
    const bench = await at(20);
    mined(bench, 1, 10, hashNumber(10));
    expect(await decide(bench)).toEqual([]);
  });

  it("is not stored if the lane stopped meanwhile", async () => {
    const bench = await at(200);
    mined(bench, 1, 10); // The block is older than those that the node has in memory, so the node must request the block's hash.
    const blocksByNumber = bench.chain.blocksByNumber.bind(bench.chain);
    Object.assign(bench.chain, {
      blocksByNumber: (numbers: readonly number[]) => {
        bench.lane.stop("lost");
        return blocksByNumber(numbers);
      },
    });
    bench.lane.watched.set(hashNumber(5), 5);
    expect(await decide(bench)).toEqual([]);
    expect(bench.telemetry.of("lease.fenced"), "decided too late").toMatchObject([{ write: "finality" }]);
  });

  it("wakes no feed reader if the write was not committed", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    bench.control.answer = () => ({ status: "fenced" });
    await decide(bench);
    await bench.clock.advance(1);
    expect([bench.control.feedGrew, bench.passed]).toEqual([0, ["finality.decided"]]);
  });

  // protects [Short of time] src/application/stages/7-complete/complete.ts
  it("is reported to feed readers once it is durable", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    const { write } = bench.ports.writer;
    let commit = (): void => undefined;
    const durable = new Promise<void>((resolve) => {
      commit = resolve;
    });
    Object.assign(bench.ports.writer, { write: (each: LaneWrite) => durable.then(() => write(each)) });
    expect([await decide(bench), bench.control.feedGrew]).toEqual([[], 0]);
    commit();
    await bench.clock.advance(1);
    expect([eventsOf(bench.writes), bench.control.feedGrew]).toEqual([["confirm tx 1"], 1]);
  });
});

describe("a receipt that may make a transaction final", () => {
  /**
   * Replaces the check of receipts: each check returns the result of `verdict`. Returns the list of receipts that were
   * to be checked.
   */
  function answering(bench: StageBench, verdict: (asked: Settling) => ReceiptVerdict): (readonly Settling[])[] {
    const questions: (readonly Settling[])[] = [];
    const settleReceipts: Chain["settleReceipts"] = async (_, asked) => {
      questions.push(asked);
      return asked.map(verdict);
    };
    Object.assign(bench.chain, { settleReceipts });
    return questions;
  }

  it("is accepted without verification if there is no second endpoint", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    answering(bench, () => ({ kind: "unproven" }));
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
  });

  // protects [False receipts] src/application/stages/6-finality/finality.ts, src/adapters/evm/reads/agree.ts
  it("is verified in one query per block", async () => {
    const bench = await at(20);
    const another = createOwnedLane({}, bench.context);
    for (const nonce of [1, 2]) mined(bench, nonce, 10);
    mined({ ...bench, lane: another }, 3, 10);
    mined(bench, 4, 19);
    const questions = answering(bench, () => ({ kind: "behind", detail: "" }));
    await openPass(bench.context, [bench.lane, another]);
    expect(questions.map((asked) => asked.map(({ txHash }) => txHash))).toEqual([[1, 2, 3].map(hashNumber)]);
  });

  // protects [False receipts] src/application/stages/6-finality/finality.ts
  it("must have our signer and nonce if this node did not sign the transaction", async () => {
    const bench = await at(20);
    for (const [index, more] of [{ foreign: true }, { nodeSigned: true }, { kind: "external" }, {}].entries()) {
      const tx = mined(bench, index + 1, 10);
      stored(tx, { attempts: [{ ...tx.attempts[0], ...more } as Attempt] });
    }
    const questions = answering(bench, () => ({ kind: "behind", detail: "" }));
    await openPass(bench.context, [bench.lane]);
    const sentBy = (nonce: number) => ({ txHash: hashNumber(nonce), sentBy: { signer: SIGNER, nonce } });
    expect(questions).toEqual([[sentBy(1), sentBy(2), sentBy(3), { txHash: hashNumber(4) }]]);
  });

  it.each(["behind", "moved"] as const)("makes nothing final while one endpoint is %s", async (kind) => {
    const bench = await at(20);
    mined(bench, 1, 10);
    answering(bench, () => ({ kind, detail: "it stands at block 9" }));
    expect(await decide(bench)).toEqual([]);
    expect(bench.telemetry.of("alert")).toEqual([]);
  });

  it.each<[string, (asked: readonly Settling[]) => readonly ReceiptVerdict[]]>([
    ["behind", (asked) => asked.map(() => ({ kind: "behind", detail: "b stands still" }))],
    [
      "silent",
      () => {
        throw new ChainUnavailable("b stands still");
      },
    ],
  ])(
    // protects [False receipts] src/application/chain/disputes.ts, src/application/stages/6-finality/finality.ts
    "raises an alert if an endpoint is %s for a minute",
    async (_, answer) => {
      const bench = await at(20);
      const { receipt } = mined(bench, 1, 10);
      const settleReceipts: Chain["settleReceipts"] = async (_, asked) => answer(asked);
      Object.assign(bench.chain, { settleReceipts });
      const about = () => bench.context.disputes.about(receipt?.blockHash as Hash);
      for (let second = 0; second < 59; second++) {
        await decide(bench);
        await bench.clock.advance(1_000);
      }
      expect([bench.telemetry.of("alert"), about()]).toEqual([[], null]);
      for (let second = 0; second < 3; second++) {
        await decide(bench);
        await bench.clock.advance(1_000);
      }
      expect(bench.telemetry.of("alert")).toMatchObject([
        { code: "RPC_BEHIND", severity: "WARNING", message: expect.stringMatching(/block 10 .*b stands still/) },
      ]);
      expect(about()).toMatchObject({ code: "RPC_BEHIND", answers: ["b stands still"] });
      answering(bench, () => ({ kind: "unproven" }));
      expect(await decide(bench)).toEqual(["confirm tx 1"]);
      expect(about()).toBeNull();
    },
  );

  it("makes nothing final if no endpoint responds", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    mined(bench, 2, 11);
    const settleReceipts: Chain["settleReceipts"] = async ({ number }, asked) => {
      if (number === 10) throw new ChainUnavailable("away");
      return asked.map(() => ({ kind: "unproven" }));
    };
    Object.assign(bench.chain, { settleReceipts });
    expect(await decide(bench)).toEqual(["confirm tx 2"]);
  });

  // protects [False receipts] src/application/chain/disputes.ts, src/application/queries/explain.ts
  it("makes nothing final while endpoints disagree", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    mined(bench, 2, 10);
    const answers = ["a says success", "b says reverted"];
    const questions = answering(bench, ({ txHash }) =>
      txHash === hashNumber(1) ? { kind: "disagree", answers } : { kind: "unproven" },
    );
    expect(await decide(bench)).toEqual(["confirm tx 2"]);
    expect(bench.telemetry.of("alert")).toMatchObject([
      { code: "RPC_DISAGREES", severity: "ERROR", message: expect.stringContaining(answers.join("; ")) },
    ]);
    for (let second = 0; second < 50; second++) {
      await bench.clock.advance(1_000);
      await decide(bench);
    }
    expect(questions.length).toBeLessThan(12);
    expect(bench.telemetry.of("alert")).toHaveLength(1);
    answering(bench, () => ({ kind: "unproven" }));
    await bench.clock.advance(30_000);
    expect(await decide(bench)).toEqual(["confirm tx 2", "confirm tx 1"]);
  });

  // protects [False receipts] src/application/stages/6-finality/finality.ts, src/application/stages/7-complete/complete.ts
  it("is replaced if the endpoints agree on another receipt", async () => {
    const bench = await at(20);
    const tx = mined(bench, 1, 10);
    const agreed = { ...(tx.receipt as Receipt), gasUsed: 21_001n };
    stored(tx, { receipt: { ...(tx.receipt as Receipt), status: "reverted" } });
    answering(bench, () => ({ kind: "agreed", receipt: agreed }));
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
    expect(bench.writes).toMatchObject([{ items: [{ receipt: agreed, reason: expect.stringContaining("false") }] }]);
  });

  it.each([
    ["no endpoint reports it", { effectiveGasPrice: null }],
    ["both report another one", { effectiveGasPrice: 7n }],
  ])(
    // protects [False receipts] src/application/stages/6-finality/finality.ts
    "does not count as false because of its gas price if %s",
    async (_, price) => {
      const bench = await at(20);
      const { receipt } = mined(bench, 1, 10);
      answering(bench, () => ({ kind: "agreed", receipt: { ...(receipt as Receipt), ...price } }));
      expect(await decide(bench)).toEqual(["confirm tx 1"]);
      const items = bench.writes.flatMap((write) => (write.kind === "transition" ? write.items : []));
      expect(items).toMatchObject([{ receipt: price }]);
      expect(items[0]?.reason ?? "").not.toContain("false");
    },
  );

  it("is not written again if the endpoints agree on the stored receipt", async () => {
    const bench = await at(20);
    const { receipt } = mined(bench, 1, 10);
    answering(bench, () => ({ kind: "agreed", receipt: { ...(receipt as Receipt), transactionIndex: 7 } }));
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
    expect(bench.writes.flatMap((write) => (write.kind === "transition" ? write.items : []))).toEqual([
      expect.not.objectContaining({ receipt: expect.anything() }),
    ]);
  });

  // protects [False receipts] src/application/lane/lane-writer.ts
  it("gets the contract address that is derived from signer and nonce", async () => {
    const bench = await at(20);
    const [success, reverted] = [mined(bench, 1, 10), mined(bench, 2, 10)];
    const lie = { contractAddress: `0x${"ee".repeat(20)}` } as const;
    const said = new Map<Hash, Receipt>([
      [hashNumber(1), { ...(success.receipt as Receipt), ...lie }],
      [hashNumber(2), { ...(reverted.receipt as Receipt), ...lie, status: "reverted" }],
    ]);
    answering(bench, ({ txHash }) => ({ kind: "agreed", receipt: said.get(txHash) as Receipt }));
    await decide(bench);
    const contractAddress = getContractAddress({ from: SIGNER, nonce: 1n }).toLowerCase();
    expect(bench.writes).toMatchObject([{ items: [{ receipt: { contractAddress } }, { event: "revert" }] }]);
    expect(reverted.receipt).toMatchObject({ contractAddress: null, status: "reverted" });
  });

  // protects [False receipts] src/application/stages/6-finality/finality.ts
  it("is withdrawn if the block does not contain the transaction", async () => {
    const bench = await at(20);
    const tx = mined(bench, 1, 10);
    answering(bench, () => ({ kind: "absent", detail: "not there" }));
    expect(await decide(bench)).toEqual(["withdraw tx 1"]);
    expect(bench.writes).toMatchObject([
      { items: [{ receipt: null, reason: expect.stringContaining("does not hold") }] },
    ]);
    expect(tx).toMatchObject({ receipt: null, pace: { send: AT_ONCE } });
  });
});

describe("a transaction whose block left the chain", () => {
  it("loses its receipt and is resent at once", async () => {
    const bench = await at(20);
    const gone = mined(bench, 1, 19, hashNumber(77));
    mined(bench, 2, 19);
    await withdraw(bench);
    expect(eventsOf(bench.writes)).toEqual(["withdraw tx 1"]);
    expect(bench.writes).toMatchObject([{ items: [{ receipt: null, to: "TRACKING", subState: "PENDING" }] }]);
    expect(gone).toMatchObject({ receipt: null, pace: { claimed: false, send: AT_ONCE, rawTransaction: null } });
    expect([[...bench.lane.unmined.keys()], [...bench.lane.mined.keys()]]).toEqual([[1], [2]]);
    expect(bench.passed).toEqual(["withdraw.committed"]);
  });

  it("is resent with the attempt that had been mined", async () => {
    const bench = await at(20);
    const tx = mined(bench, 1, 19, hashNumber(77));
    const second = { ...(tx.attempts[0] as Attempt), ordinal: 2, txHash: hashNumber(500) };
    stored(tx, { attempts: [...tx.attempts, second] });
    paced(tx, { sendOrdinal: 2 });
    await withdraw(bench);
    expect(tx.pace.sendOrdinal).toBe(1);
  });

  it("is not changed if its lane stopped during the RPC request", async () => {
    const bench = await at(200);
    mined(bench, 1, 10, hashNumber(77));
    const blocksByNumber = bench.chain.blocksByNumber.bind(bench.chain);
    Object.assign(bench.chain, {
      blocksByNumber: (numbers: readonly number[]) => {
        bench.lane.stop();
        return blocksByNumber(numbers);
      },
    });
    await withdraw(bench);
    expect(bench.writes).toEqual([]);
  });

  // protects [Chains that differ] src/application/chain/head-follower.ts, src/application/stages/6-finality/finality.ts
  it("keeps its receipt if no endpoint has reached the number of its block", async () => {
    const bench = await at(20);
    mined(bench, 1, 25, hashNumber(25)); // Block 25 is above the newest block that the node knows now, because the endpoint went back to an older block.
    bench.lane.watched.set(hashNumber(26), 26);
    await withdraw(bench);
    expect(bench.writes).toEqual([]);
  });

  it.each([
    ["two endpoints show another block", { kind: "agreed", hash: hashNumber(5) }, ["reorg tx 1"]],
    ["there is no second endpoint", { kind: "none" }, ["reorg tx 1"]],
    ["two endpoints still show the block", { kind: "agreed", hash: hashNumber(77) }, []],
    ["one lags behind the block", { kind: "behind" }, []],
    ["the endpoints differ", { kind: "disagree", answers: ["a shows 0x5", "b shows 0x77"] }, []],
    // protects [False receipts] src/application/stages/6-finality/finality.ts
  ] as const)("is revoked unless a second endpoint contradicts or lags: %s (%j)", async (_, opinion, events) => {
    const bench = await at(200);
    Object.assign(bench.chain, { secondOpinion: async () => opinion });
    bench.lane.watched.set(hashNumber(77), 10);
    bench.rows.watched = [
      trackedRecord(1, {
        state: "CONFIRMED",
        subState: null,
        receipt: receiptOf(1, { number: 10, hash: hashNumber(77) }),
      }),
    ];
    await withdraw(bench);
    expect(eventsOf(bench.writes)).toEqual(events);
    const isDisputed = opinion.kind === "disagree";
    expect(bench.telemetry.of("alert").filter(({ code }) => code === "RPC_DISAGREES")).toHaveLength(isDisputed ? 1 : 0);
    if (!isDisputed) return;
    await decide(bench);
    expect([...bench.lane.watched.keys()], "its watch goes on").toEqual([hashNumber(77)]);
  });

  it("is revoked in the feed and tracked again, even after finality", async () => {
    const bench = await at(20);
    const stored = receiptOf(1, { number: 10, hash: hashNumber(77) });
    bench.lane.watched.set(hashNumber(77), 10);
    bench.lane.watched.set(bench.simulated.blocks.byNumber(11)?.hash as Hash, 11);
    bench.rows.watched = [trackedRecord(1, { state: "CONFIRMED", subState: null, receipt: stored })];
    await withdraw(bench);
    expect(bench.writes).toMatchObject([
      {
        items: [
          {
            event: "reorg",
            from: "CONFIRMED",
            to: "TRACKING",
            receipt: null,
            completion: { state: "REORGED", settled: false, txHash: hashNumber(1) },
            // The figures take back what the outcome had counted.
            paid: { ordinal: 1, gasCost: stored.gasUsed * (stored.effectiveGasPrice ?? 0n) },
          },
        ],
      },
    ]);
    expect([...bench.lane.watched.values()]).toEqual([11]);
    expect(bench.lane.unmined.get(1)).toMatchObject({ receipt: null, pace: { send: AT_ONCE, sendOrdinal: 1 } });
    expect(bench.context.hashes.has(hashNumber(1))).toBe(true);
    expect(bench.telemetry.of("alert")).toMatchObject([{ code: "DEEP_REORG", severity: "CRITICAL" }]);
    expect(bench.control.feedGrew).toBe(1);
  });

  // protects [Short of time] src/application/stages/6-finality/finality.ts, src/application/lane/activity.ts
  it("is revoked only after its completion has been written", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    const { write } = bench.ports.writer;
    const durable = deferred();
    Object.assign(bench.ports.writer, { write: (each: LaneWrite) => durable.promise.then(() => write(each)) });
    await decide(bench);
    const receipt = receiptOf(1, { number: 10, hash: hashNumber(77) });
    const row = trackedRecord(1, { state: "CONFIRMED", subState: null, receipt });
    const loadWatched = async () => (eventsOf(bench.writes).includes("confirm tx 1") ? [row] : []);
    Object.assign(bench.ports.store, { loadWatched });
    bench.lane.watched.clear();
    bench.lane.watched.set(hashNumber(77), 10);
    const withdrawing = withdraw(bench);
    await bench.clock.advance(1);
    durable.resolve();
    await withdrawing;
    expect(eventsOf(bench.writes)).toEqual(["confirm tx 1", "reorg tx 1"]);
    expect(bench.lane.unmined.has(1)).toBe(true);
  });

  it("is not tracked again if the revocation was not committed", async () => {
    const bench = await at(20);
    bench.lane.watched.set(hashNumber(77), 10);
    bench.rows.watched = [trackedRecord(1, { state: "CONFIRMED", subState: null })];
    bench.control.answer = () => ({ status: "fenced" });
    await withdraw(bench);
    expect([bench.lane.unmined.size, bench.control.feedGrew]).toEqual([0, 0]);
  });

  it("is not changed if its lane stopped while its rows were read", async () => {
    const bench = await at(20);
    bench.lane.watched.set(hashNumber(77), 10);
    Object.assign(bench.ports.store, {
      loadWatched: async () => {
        bench.lane.stop();
        return [trackedRecord(1, { state: "CONFIRMED", subState: null })];
      },
    });
    await withdraw(bench);
    expect([bench.writes, bench.telemetry.of("alert")]).toEqual([[], []]);
  });
});

describe("monitoring a final transaction for reorgs", () => {
  it("ends only once the block has the required depth", async () => {
    const bench = await at(100);
    bench.lane.watched.set(hashNumber(36), 36);
    bench.lane.watched.set(hashNumber(37), 37);
    await decide(bench);
    expect(bench.writes).toEqual([{ kind: "unwatch", fence: bench.lane.fence, throughBlock: 36 }]);
    expect([...bench.lane.watched.values()]).toEqual([37]);
  });

  // protects [False receipts] src/application/stages/6-finality/finality.ts
  it("ends at the depth that two endpoints have reached", async () => {
    const bench = createStageBench({}, { settings: { confirmations: 2 }, endpoints: 2 });
    bench.simulated.mine(100);
    await bench.context.follower.advance();
    for (const number of [34, 35, 36]) bench.lane.watched.set(hashNumber(number), number);
    const heal = bench.elsewhere.inject({ kind: "unavailable" });
    expect(await decide(bench)).toEqual([]);
    heal();
    bench.elsewhere.trail(1);
    await decide(bench);
    expect(bench.writes).toEqual([{ kind: "unwatch", fence: bench.lane.fence, throughBlock: 35 }]);
  });

  it("ends at the `finalized` tag, not at `safe`", async () => {
    const safe = await at(20, { finality: "safe" });
    safe.lane.watched.set(hashNumber(3), 3);
    expect(await decide(safe)).toEqual([]);
    const final = await at(20, { finality: "finalized" });
    final.lane.watched.set(hashNumber(3), 3);
    expect(await decide(final)).toEqual(["unwatch"]);
  });

  // protects [Reads] src/adapters/postgres/commit/commit.ts, src/application/writer/waiting-room.ts, src/application/stages/6-finality/finality.ts
  it("continues if its end could not be written", async () => {
    const bench = await at(100);
    bench.lane.watched.set(hashNumber(3), 3);
    const { answer: applied } = bench.control;
    bench.control.answer = () => new Error("away");
    await decide(bench);
    expect(bench.lane.watched.size).toBe(1);
    bench.control.answer = applied;
    bench.writes.length = 0;
    expect(await decide(bench)).toEqual(["unwatch"]);
    expect(bench.lane.watched.size).toBe(0);
  });
});
