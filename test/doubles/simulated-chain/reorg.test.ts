import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Hash, Hex } from "../../../src/domain/lane.ts";
import type { SimulatedBlock } from "./block.ts";
import { SimulatedChain } from "./core.ts";
import { ETHER, GWEI, SampleSender } from "./sample-transactions.ts";

const alice = new SampleSender(1);
const bob = new SampleSender(2);

async function send(chain: SimulatedChain, sender: SampleSender, nonce: number, value = 0n): Promise<Hash> {
  const submission = chain.submit(await sender.sign({ nonce, value }));
  if (!submission.accepted) throw new Error(submission.refusal.message);
  return submission.hash;
}

describe("a reorg of the simulated chain", () => {
  it("replaces blocks by a longer branch", () => {
    const chain = new SimulatedChain();
    const [, second, third] = chain.mine(3);
    const branch = chain.reorg(2);
    expect(branch.map(({ number }) => number)).toEqual([2, 3, 4]);
    expect(branch[0]?.parentHash).toBe(second?.parentHash);
    expect(branch[0]?.hash).not.toBe(second?.hash);
    expect(chain.blocks.byHash(third?.hash ?? "0x")).toBe(third);
    expect(chain.blocks.isCanonical(third as SimulatedBlock)).toBe(false);
  });

  it("mines all transactions again in other blocks by default", async () => {
    const chain = new SimulatedChain();
    const hashes = [await send(chain, alice, 0), await send(chain, alice, 1)];
    const [old] = chain.mine(2);
    chain.reorg(2);
    for (const hash of hashes) {
      expect(chain.receipt(hash)).toMatchObject({ blockNumber: 1, status: "success" });
      expect(chain.receipt(hash)?.blockHash).not.toBe(old?.hash);
    }
    expect(chain.account(alice.address).nonce).toBe(2);
  });

  it("returns dropped transactions to the mempool", async () => {
    const chain = new SimulatedChain();
    const before = chain.account(alice.address);
    const hash = await send(chain, alice, 0, ETHER);
    chain.mine();
    chain.reorg(1, { drop: "all" });
    expect(chain.receipt(hash)).toBeNull();
    expect(chain.account(alice.address)).toEqual(before);
    expect(chain.pendingNonce(alice.address)).toBe(1);
    chain.mine();
    expect(chain.receipt(hash)?.blockNumber).toBe(3);
  });

  it("loses dropped transactions if the node does not re-inject them", async () => {
    const chain = new SimulatedChain();
    const hash = await send(chain, alice, 0);
    chain.mine();
    chain.reorg(1, { drop: "all", keepInPool: false });
    chain.mine();
    expect(chain.transaction(hash)).toBeNull();
    expect(chain.account(alice.address).nonce).toBe(0);
  });

  it("leaves a transaction unmined in the queue if the preceding nonce was dropped", async () => {
    const chain = new SimulatedChain();
    const first = await send(chain, alice, 0);
    const second = await send(chain, alice, 1);
    const other = await send(chain, bob, 0);
    chain.mine();
    chain.reorg(1, { drop: ({ hash }) => hash === first, keepInPool: false });
    expect(chain.receipt(other)).not.toBeNull();
    expect(chain.receipt(second)).toBeNull();
    expect(chain.pool.get(second)).not.toBeNull();
    expect(chain.pendingNonce(alice.address)).toBe(0);
  });

  it("can include a competing attempt on the new branch", async () => {
    const chain = new SimulatedChain();
    const loser = await send(chain, alice, 0);
    chain.mine();
    const competitor = await alice.sign({ nonce: 0, value: 1n, maxFeePerGas: 20n * GWEI });
    const [block] = chain.reorg(1, { include: [competitor] });
    expect(block?.transactions.map(({ transaction }) => transaction.raw)).toEqual([competitor]);
    expect(chain.receipt(loser)).toBeNull();
    expect(chain.pool.get(loser)).toBeNull();
  });

  it("can roll back without a new branch, so that the chain is shorter", async () => {
    const chain = new SimulatedChain();
    const hash = await send(chain, alice, 0);
    chain.mine(2);
    chain.rollback(2, { keepInPool: true });
    expect(chain.head.number).toBe(0);
    expect(chain.pool.get(hash)).not.toBeNull();
    expect(() => chain.rollback(1)).toThrow(RangeError);
  });

  it("keeps the account state of older blocks readable", async () => {
    const chain = new SimulatedChain();
    for (const nonce of [0, 1, 2]) {
      await send(chain, alice, nonce);
      chain.mine();
    }
    expect([0, 1, 2, 3].map((block) => chain.account(alice.address, block).nonce)).toEqual([0, 1, 2, 3]);
  });
});

describe("another program with the same key on the simulated chain", () => {
  it("displaces our transaction from the mempool", async () => {
    const chain = new SimulatedChain();
    const ours = await send(chain, alice, 0);
    const next = await send(chain, alice, 1);
    chain.mineForeign(alice.address);
    expect(chain.account(alice.address).nonce).toBe(1);
    expect(chain.transaction(ours)).toBeNull();
    expect(chain.pool.get(next)).not.toBeNull();
    expect(chain.pendingNonce(alice.address)).toBe(2);
  });

  it("changes only the pending count before mining", () => {
    const chain = new SimulatedChain();
    chain.injectForeign(alice.address);
    expect(chain.pendingNonce(alice.address)).toBe(1);
    expect(chain.account(alice.address).nonce).toBe(0);
    chain.mine();
    expect(chain.account(alice.address).nonce).toBe(1);
  });
});

type Step =
  | "send"
  | "gap"
  | "mine"
  | "foreign"
  | "drop"
  | { readonly depth: number; readonly how: "keep" | "pool" | "lose" };

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom<Step>("send", "mine") },
    { weight: 1, arbitrary: fc.constantFrom<Step>("gap", "foreign", "drop") },
    {
      weight: 1,
      arbitrary: fc.record({ depth: fc.integer({ min: 1, max: 5 }), how: fc.constantFrom("keep", "pool", "lose") }),
    },
  ),
  { maxLength: 40 },
) as fc.Arbitrary<readonly Step[]>;

const prepared = await Promise.all(Array.from({ length: 80 }, (_, nonce) => alice.sign({ nonce, value: 3n })));

function take(chain: SimulatedChain, step: Step): void {
  const pending = chain.pendingNonce(alice.address);
  if (step === "send") chain.submit(prepared[pending] as Hex);
  else if (step === "gap") chain.submit(prepared[pending + 2] as Hex);
  else if (step === "mine") chain.mine();
  else if (step === "foreign") chain.mineForeign(alice.address);
  else if (step === "drop")
    chain.dropTransaction(chain.pool.entry(alice.address, pending - 1)?.transaction.hash ?? "0x");
  else if (step.depth <= chain.head.number) {
    chain.reorg(step.depth, step.how === "keep" ? {} : { drop: "all", keepInPool: step.how === "pool" });
  }
}

function canonical(chain: SimulatedChain): readonly SimulatedBlock[] {
  return Array.from({ length: chain.head.number + 1 }, (_, n) => chain.blocks.byNumber(n) as SimulatedBlock);
}

describe("the simulated chain, after any sequence of events,", () => {
  it("has the state that its canonical blocks produced", () => {
    fc.assert(
      fc.property(steps, (plan) => {
        const chain = new SimulatedChain();
        const start = chain.account(alice.address).balance;
        for (const step of plan) take(chain, step);
        const blocks = canonical(chain);
        expect(blocks.slice(1).map(({ parentHash }) => parentHash)).toEqual(
          blocks.slice(0, -1).map(({ hash }) => hash),
        );
        const mined = blocks.flatMap(({ transactions }) => transactions);
        expect(mined.map(({ transaction }) => transaction.nonce)).toEqual(mined.map((_, nonce) => nonce));
        const spent = mined
          .filter(({ transaction }) => transaction.raw !== null)
          .reduce((sum, each) => sum + each.gasUsed * each.effectiveGasPrice + each.transaction.value, 0n);
        expect(chain.account(alice.address)).toEqual({ nonce: mined.length, balance: start - spent });
        checkPool(chain, mined.length);
      }),
      { numRuns: 300 },
    );
  });
});

function checkPool(chain: SimulatedChain, minedCount: number): void {
  const held = Array.from({ length: 100 }, (_, nonce) => chain.pool.entry(alice.address, nonce));
  expect(held.slice(0, minedCount).filter((entry) => entry !== null)).toEqual([]);
  expect(held.filter((entry) => entry !== null)).toHaveLength(chain.pool.size);
  const firstGap = held.findIndex((entry, nonce) => nonce >= minedCount && entry === null);
  expect(chain.pendingNonce(alice.address)).toBe(firstGap);
  expect(chain.pool.executableSize).toBe(firstGap - minedCount);
}
