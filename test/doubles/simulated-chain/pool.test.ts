import { describe, expect, it } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import { SimulatedChain } from "./core.ts";
import type { SimulatedChainOptions } from "./options.ts";
import { ETHER, GWEI, SampleSender } from "./sample-transactions.ts";

const alice = new SampleSender(1);
const bob = new SampleSender(2);

function said(chain: SimulatedChain, raw: Hex): string {
  const submission = chain.submit(raw);
  return submission.accepted ? "accepted" : submission.refusal.message;
}

function chainWith(options: Partial<SimulatedChainOptions> = {}): SimulatedChain {
  return new SimulatedChain(options);
}

describe("the simulated mempool (nonces):", () => {
  it("it refuses a mined nonce as too low", async () => {
    const chain = chainWith();
    const raw = await alice.sign({ nonce: 0 });
    expect(said(chain, raw)).toBe("accepted");
    chain.mine();
    expect(said(chain, raw)).toBe("nonce too low: next nonce 1, tx nonce 0");
  });

  it("it answers `already known` if it already has the transaction", async () => {
    const chain = chainWith();
    for (const nonce of [0, 5]) {
      const raw = await alice.sign({ nonce });
      expect(said(chain, raw)).toBe("accepted");
      expect(said(chain, raw)).toBe("already known");
    }
  });

  it("it queues nonces above a gap until the gap is filled", async () => {
    const chain = chainWith();
    for (const nonce of [3, 1, 2]) expect(said(chain, await alice.sign({ nonce }))).toBe("accepted");
    expect(chain.pendingNonce(alice.address)).toBe(0);
    chain.mine();
    expect(chain.head.transactions).toHaveLength(0);
    chain.submit(await alice.sign({ nonce: 0 }));
    expect(chain.pendingNonce(alice.address)).toBe(4);
    chain.mine();
    expect(chain.head.transactions.map(({ transaction }) => transaction.nonce)).toEqual([0, 1, 2, 3]);
  });

  it("it accepts more than 64 future nonces and silently drops the highest", async () => {
    const chain = chainWith();
    const raws = await Promise.all(Array.from({ length: 66 }, (_, i) => alice.sign({ nonce: i + 1 })));
    for (const raw of raws) expect(said(chain, raw)).toBe("accepted");
    expect(chain.pool.size).toBe(64);
    chain.submit(await alice.sign({ nonce: 0 }));
    expect(chain.pendingNonce(alice.address)).toBe(65);
  });

  it("it does not count executable transactions as queued", async () => {
    const chain = chainWith();
    for (let nonce = 0; nonce < 100; nonce++) chain.submit(await alice.sign({ nonce }));
    expect(chain.pendingNonce(alice.address)).toBe(100);
  });

  it("it refuses nonces above a gap if configured without a queue", async () => {
    const chain = chainWith({ pool: { futureNonces: "refuseGaps" } });
    expect(said(chain, await alice.sign({ nonce: 1 }))).toBe(
      `nonce too high: address ${alice.address}, tx: 1 state: 0`,
    );
    expect(said(chain, await alice.sign({ nonce: 0 }))).toBe("accepted");
    expect(said(chain, await alice.sign({ nonce: 1 }))).toBe("accepted");
  });

  it("it can be configured to accept only one transaction at a time", async () => {
    const chain = chainWith({ pool: { futureNonces: "refuseUnmined" } });
    expect(said(chain, await alice.sign({ nonce: 0 }))).toBe("accepted");
    expect(said(chain, await alice.sign({ nonce: 1 }))).toMatch(/^nonce too high/);
    chain.mine();
    expect(said(chain, await alice.sign({ nonce: 1 }))).toBe("accepted");
  });
});

describe("replacement in the simulated mempool", () => {
  const first = { nonce: 0, maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: 2n * GWEI };

  it.each([
    ["both fields by ten percent", 11n * GWEI, (22n * GWEI) / 10n, "accepted"],
    ["one wei short on the cap", 11n * GWEI - 1n, 3n * GWEI, "replacement transaction underpriced"],
    ["one wei short on the tip", 20n * GWEI, (22n * GWEI) / 10n - 1n, "replacement transaction underpriced"],
    ["the cap alone", 20n * GWEI, 2n * GWEI, "replacement transaction underpriced"],
  ])("has the expected result for a price raise of %s", async (_, maxFeePerGas, maxPriorityFeePerGas, expected) => {
    const chain = chainWith();
    chain.submit(await alice.sign(first));
    expect(said(chain, await alice.sign({ nonce: 0, maxFeePerGas, maxPriorityFeePerGas }))).toBe(expected);
    expect(chain.pool.size).toBe(1);
  });

  it("removes the old transaction, which is then neither known nor mined", async () => {
    const chain = chainWith();
    const old = await alice.sign(first);
    const { hash } = accepted(chain, old);
    chain.submit(await alice.sign({ nonce: 0, maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: 4n * GWEI }));
    expect(chain.transaction(hash)).toBeNull();
    expect(said(chain, old)).toBe("replacement transaction underpriced");
    chain.mine();
    expect(chain.receipt(hash)).toBeNull();
  });

  it("follows the same rules for queued transactions as for executable ones", async () => {
    const chain = chainWith();
    chain.submit(await alice.sign({ ...first, nonce: 7 }));
    expect(said(chain, await alice.sign({ ...first, nonce: 7, value: 1n }))).toBe(
      "replacement transaction underpriced",
    );
  });
});

describe("the simulated mempool (balances and fees):", () => {
  it("it requires a balance that covers value and gas at the fee cap", async () => {
    const chain = chainWith();
    const cost = 21_000n * 10n * GWEI + ETHER;
    chain.setBalance(alice.address, cost - 1n);
    const raw = await alice.sign({ nonce: 0, value: ETHER });
    expect(said(chain, raw)).toBe(
      `insufficient funds for gas * price + value: balance ${cost - 1n}, tx cost ${cost}, overshot 1`,
    );
    chain.setBalance(alice.address, cost);
    expect(said(chain, raw)).toBe("accepted");
  });

  it("it requires a balance for all executable transactions together", async () => {
    const chain = chainWith();
    const gasCost = 21_000n * 10n * GWEI;
    chain.setBalance(alice.address, ETHER + 3n * gasCost);
    expect(said(chain, await alice.sign({ nonce: 0, value: ETHER }))).toBe("accepted");
    expect(said(chain, await alice.sign({ nonce: 1, value: 0n }))).toBe("accepted");
    expect(said(chain, await alice.sign({ nonce: 2, value: gasCost }))).toMatch(
      /^insufficient funds for gas \* price \+ value: balance \d+, queued cost \d+, tx cost \d+, overshot \d+$/,
    );
  });

  it("it drops a transaction during mining if its sender can no longer pay", async () => {
    const chain = chainWith();
    const { hash } = accepted(chain, await alice.sign({ nonce: 0, value: ETHER }));
    chain.submit(await alice.sign({ nonce: 1 }));
    chain.setBalance(alice.address, ETHER);
    chain.mine();
    expect(chain.head.transactions).toHaveLength(0);
    expect(chain.transaction(hash)).toBeNull();
    expect(chain.pool.size).toBe(1);
  });

  it("it keeps a transaction below the base fee until the base fee falls", async () => {
    const chain = chainWith();
    chain.submit(await alice.sign({ nonce: 0, maxFeePerGas: 2n * GWEI }));
    chain.setBaseFee(3n * GWEI);
    chain.mine(3);
    expect(chain.pool.size).toBe(1);
    chain.setBaseFee(2n * GWEI);
    chain.mine();
    expect(chain.head.transactions[0]?.effectiveGasPrice).toBe(2n * GWEI);
  });

  it("it refuses a transaction below the base fee if configured so", async () => {
    const chain = chainWith({ refuseUnderBaseFee: true, baseFee: 20n * GWEI });
    expect(said(chain, await alice.sign({ nonce: 0 }))).toMatch(/^max fee per gas less than block base fee/);
  });

  it("it refuses a tip below the node's minimum", async () => {
    const chain = chainWith({ minimumTip: 2n * GWEI });
    expect(said(chain, await alice.sign({ nonce: 0 }))).toMatch(/^transaction underpriced: tip needed/);
    const raw = await rawWithTipAboveCap();
    expect(said(chain, raw)).toBe("max priority fee per gas higher than max fee per gas");
  });
});

describe("the simulated mempool (gas and size limits):", () => {
  it("it requires intrinsic gas for calldata and deployment", async () => {
    const chain = chainWith();
    const data: Hex = "0x00ff";
    const [short, enough] = [21_019n, 21_020n];
    expect(said(chain, await alice.sign({ nonce: 0, data, gas: short }))).toBe(
      "intrinsic gas too low: gas 21019, minimum needed 21020",
    );
    expect(said(chain, await alice.sign({ nonce: 0, data, gas: enough }))).toBe("accepted");
    expect(said(chain, await alice.sign({ nonce: 1, to: null, data, gas: 53_021n }))).toMatch(/^intrinsic gas too low/);
    expect(said(chain, await alice.sign({ nonce: 1, to: null, data, gas: 53_022n }))).toBe("accepted");
  });

  it("it refuses a transaction with more gas than the block limit", async () => {
    const chain = chainWith();
    expect(said(chain, await alice.sign({ nonce: 0, gas: 30_000_001n }))).toBe("exceeds block gas limit");
    const data: Hex = `0x${"00".repeat(131_072)}`;
    expect(said(chain, await alice.sign({ nonce: 0, data, gas: 10_000_000n }))).toMatch(/^oversized data/);
  });

  it("it fills a block with the transactions that pay the best price", async () => {
    const chain = chainWith({ blockGasLimit: 42_000n });
    chain.submit(await alice.sign({ nonce: 0 }));
    chain.submit(await alice.sign({ nonce: 1 }));
    chain.submit(await bob.sign({ nonce: 0, maxPriorityFeePerGas: 5n * GWEI }));
    const [first, second] = chain.mine(2);
    expect(first?.transactions.map(({ transaction }) => transaction.from)).toEqual([bob.address, alice.address]);
    expect(second?.transactions.map(({ transaction }) => transaction.nonce)).toEqual([1]);
  });

  it("it drops the highest nonces of the largest sender when full", async () => {
    const chain = chainWith({ pool: { globalSlots: 4, accountSlots: 2 } });
    chain.submit(await bob.sign({ nonce: 0 }));
    for (let nonce = 0; nonce < 5; nonce++) expect(said(chain, await alice.sign({ nonce }))).toBe("accepted");
    expect(chain.pendingNonce(bob.address)).toBe(1);
    expect(chain.pendingNonce(alice.address)).toBe(3);
  });

  it("it answers `txpool is full` if it is full", async () => {
    const chain = chainWith({ pool: { globalSlots: 1, globalQueue: 1 } });
    chain.submit(await alice.sign({ nonce: 0 }));
    chain.submit(await bob.sign({ nonce: 0 }));
    expect(said(chain, await bob.sign({ nonce: 1 }))).toBe("txpool is full");
  });
});

describe("the simulated mempool (raw bytes):", () => {
  it("it refuses a transaction of another chain", async () => {
    const chain = chainWith();
    expect(said(chain, await alice.sign({ nonce: 0, chainId: 1 }))).toBe("invalid sender");
    const unprotected = await alice.account.signTransaction({ type: "legacy", nonce: 0, gas: 21_000n, gasPrice: GWEI });
    expect(said(chain, unprotected)).toBe("only replay-protected (EIP-155) transactions allowed over RPC");
  });

  it("it refuses a signature with the higher s value (EIP-2)", async () => {
    const chain = chainWith();
    expect(said(chain, flipSignature(await alice.sign({ nonce: 0 })))).toBe("invalid sender");
  });

  it.each(["0x", "0x1234", "0x02", "0x02c0", "0xc0", "0x05c0", "0x02ff", "0xf8ff", "0x02c3010203"] as Hex[])(
    "it rejects %s as no valid transaction",
    (raw) => {
      const chain = chainWith();
      const submission = chain.submit(raw);
      expect(submission).toMatchObject({ accepted: false, refusal: { answer: "rejected" } });
      expect(chain.pool.size).toBe(0);
    },
  );

  it("it records all received bytes in order, accepted or refused", async () => {
    const chain = chainWith();
    const raws: readonly Hex[] = [await alice.sign({ nonce: 0 }), "0x1234", await bob.sign({ nonce: 0 })];
    for (const raw of raws) chain.submit(raw);
    expect(chain.witness.map(({ raw }) => raw)).toEqual(raws);
    expect(chain.witness.map(({ from }) => from)).toEqual([alice.address, null, bob.address]);
  });
});

function accepted(chain: SimulatedChain, raw: Hex) {
  const submission = chain.submit(raw);
  if (!submission.accepted) throw new Error(submission.refusal.message);
  return submission;
}

/**
 * Makes a transaction whose tip exceeds its fee cap. viem refuses to sign one, so the fee cap in the bytes of a signed
 * transaction is overwritten. The signature still recovers to some address, as any signature does.
 */
async function rawWithTipAboveCap(): Promise<Hex> {
  const raw = await alice.sign({ nonce: 0, maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: 10n * GWEI });
  const gwei10 = (10n * GWEI).toString(16).padStart(10, "0");
  const at = raw.lastIndexOf(gwei10);
  return `${raw.slice(0, at)}01${raw.slice(at + 2)}` as Hex;
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

function flipSignature(raw: Hex): Hex {
  const s = BigInt(`0x${raw.slice(-64)}`);
  const parityAt = raw.length - 64 - 2 - 64 - 2 - 2;
  const parity = raw.slice(parityAt, parityAt + 2) === "01" ? "80" : "01";
  const flipped = (ORDER - s).toString(16).padStart(64, "0");
  return `${raw.slice(0, parityAt)}${parity}${raw.slice(parityAt + 2, -64)}${flipped}` as Hex;
}
