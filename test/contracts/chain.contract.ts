import { afterEach, describe, expect, it } from "vitest";
import type { Address, Hash, Hex } from "../../src/domain/lane.ts";
import type { Block, Chain } from "../../src/ports/chain.ts";
import { account, transfer } from "../support/signed-transfer.ts";
import { submitFreely } from "../support/submit-freely.ts";
import { nodeSigningTests, sentTests } from "./chain/sent.ts";

/**
 * Controls that a chain must offer to the contract suite. The base fee is at most 5 gwei. Each test gets a new harness.
 */
export interface ChainHarness {
  readonly chain: Chain;
  /** At least two accounts with lower-case addresses, each with 100 ether or more and no transaction yet. */
  readonly accounts: readonly { readonly address: Address; readonly privateKey: Hex }[];
  /** Mines one block with every executable transaction of the mempool. Blocks are mined only by this method. */
  mine(): Promise<void>;
  /**
   * Replaces the newest `depth` blocks by `depth + 1` blocks without their transactions. Whether these transactions
   * return to the mempool depends on the node.
   */
  reorg(depth: number): Promise<void>;
  /** A lower-case address whose key the node itself holds, with a balance and no transaction yet. */
  readonly nodeAccount: Address;
  /** Contracts that revert on every call; null if the chain runs no EVM. */
  readonly reverting: Reverting | null;
  close(): Promise<void>;
}

export interface Reverting {
  /** Reverts with `Error("no lunch")` */
  readonly withReason: Address;
  /** Reverts with `Panic(0x11)` */
  readonly withPanic: Address;
  /** Reverts with a custom error: raw data `0xdeadbeef` followed by one word holding 42. */
  readonly withCustomError: Address;
  /** Reverts with no data, by `revert()`. */
  readonly silently: Address;
}

const GWEI = 1_000_000_000n;
const ETHER = GWEI * GWEI;
const NOWHERE: Hash = `0x${"ab".repeat(32)}`;
const LOWER_CASE_HASH = /^0x[0-9a-f]{64}$/;

export interface ChainAbilities {
  /** False for a test double that executes no code: it is exempt from the tests of reverts. */
  readonly evm: boolean;
}

export function describeChainContract(name: string, abilities: ChainAbilities, start: Start): void {
  describe(`Chain contract: ${name}`, () => {
    const open: ChainHarness[] = [];
    const harness = async (): Promise<ChainHarness> => {
      const started = await start();
      open.push(started);
      return started;
    };
    afterEach(async () => {
      await Promise.all(open.splice(0).map((each) => each.close()));
    });

    blockTests(harness);
    accountTests(harness);
    sentTests(harness);
    nodeSigningTests(harness);
    submitTests(harness);
    permissionTests(harness);
    refusalTests(harness);
    receiptTests(harness);
    feeTests(harness);
    simulateTests(harness);
    if (abilities.evm) revertTests(harness);
    reorgTests(harness);
  });
}

export type Start = () => Promise<ChainHarness>;

function blockTests(start: Start): void {
  it("mining gives the chain a new latest block, which links to its parent by hash", async () => {
    const { chain, mine } = await start();
    const before = await latest(chain);
    await mine();
    const after = await latest(chain);
    expect(after.number).toBe(before.number + 1);
    expect(after.parentHash).toBe(before.hash);
    expect(after.hash).toMatch(LOWER_CASE_HASH);
    expect(after.hash).not.toBe(before.hash);
    expect(after.gasLimit).toBeGreaterThan(21_000n);
  });

  it("a chain returns for a block tag a block at or below the latest one, or null", async () => {
    const { chain, mine } = await start();
    await mine();
    const head = await latest(chain);
    for (const tag of ["safe", "finalized"] as const) {
      const block = await chain.head(tag);
      if (block !== null) expect(block.number).toBeLessThanOrEqual(head.number);
    }
  });

  it("a chain returns canonical blocks in the requested order, and null above the newest block", async () => {
    const { chain, mine } = await start();
    await mine();
    await mine();
    const head = await latest(chain);
    const [newest, missing, older] = await chain.blocksByNumber([head.number, head.number + 50, head.number - 1]);
    expect(newest).toEqual(head);
    expect(missing).toBeNull();
    expect(older?.hash).toBe(head.parentHash);
    expect(await chain.blocksByNumber([])).toEqual([]);
  });

  it("a chain finds a block by hash, and returns null for an unknown hash", async () => {
    const { chain, mine } = await start();
    await mine();
    const head = await latest(chain);
    expect(await chain.blockByHash(head.hash)).toEqual(head);
    expect(await chain.blockByHash(NOWHERE)).toBeNull();
  });

  it("a chain passes a caller's RPC request on, and returns the result or the error", async () => {
    const { chain } = await start();
    const { number } = await latest(chain);
    expect(await chain.passOn("eth_blockNumber", undefined)).toEqual({
      kind: "result",
      result: `0x${number.toString(16)}`,
    });
    expect(await chain.passOn("eth_chainId", [])).toMatchObject({ result: `0x${chain.chainId.toString(16)}` });
    expect(await chain.passOn("eth_nonsense", [])).toMatchObject({ kind: "error", code: expect.any(Number) });
  });

  it("a chain returns null for the outcome of a transaction that is in no block", async () => {
    const { chain } = await start();
    expect(await chain.outcome({ txHash: NOWHERE, replay: null })).toBeNull();
  });

  it("a chain with a single endpoint has no second endpoint to compare results with", async () => {
    const { chain, accounts } = await start();
    expect(chain.endpoints).toBe(1);
    expect(await chain.secondOpinion(0)).toEqual({ kind: "none" });
    const { address } = account(accounts, 0);
    expect(await chain.transactionCountEverywhere(address, 0)).toEqual([{ kind: "says", count: 0 }]);
    const { number } = await latest(chain);
    expect(await chain.transactionCountEverywhere(address, number + 1)).toEqual([{ kind: "behind", count: 0 }]);
  });
}

function accountTests(start: Start): void {
  it("a chain counts mined and pending transactions separately", async () => {
    const h = await start();
    const { address } = account(h.accounts, 0);
    expect((await h.chain.transactionCount(address, "latest")).count).toBe(0);
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 }), await transfer(h, { nonce: 1 })]);
    expect((await h.chain.transactionCount(address, "latest")).count).toBe(0);
    expect((await h.chain.transactionCount(address, "pending")).count).toBe(2);
    await h.mine();
    expect((await h.chain.transactionCount(address, "latest")).count).toBe(2);
  });

  it("a chain returns mempool transactions by nonce, or null if it cannot read the mempool", async () => {
    const h = await start();
    const { address: from } = account(h.accounts, 0);
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 }), await transfer(h, { nonce: 1 })]);
    const pooled = await h.chain.pooled(from, [0, 1, 2]);
    if (pooled !== null)
      expect(pooled).toEqual([expect.stringMatching(LOWER_CASE_HASH), expect.stringMatching(LOWER_CASE_HASH), null]);
    expect(await h.chain.pooled(from, [])).toEqual([]);
  });

  it("a chain changes balances when a transfer is mined, not before", async () => {
    const h = await start();
    const to = account(h.accounts, 1).address;
    const before = await h.chain.balance(to);
    await submitFreely(h.chain, [await transfer(h, { nonce: 0, value: ETHER })]);
    expect(await h.chain.balance(to)).toBe(before);
    await h.mine();
    expect(await h.chain.balance(to)).toBe(before + ETHER);
    expect(await h.chain.balance(`0x${"77".repeat(20)}`)).toBe(0n);
  });
}

function submitTests(start: Start): void {
  it("a chain accepts a batch in nonce order and mines it in that order", async () => {
    const h = await start();
    const raws = await Promise.all([0, 1, 2, 3, 4].map((nonce) => transfer(h, { nonce })));
    const results = await submitFreely(h.chain, raws);
    expect(results.map((each) => each.answer)).toEqual(Array(5).fill("accepted"));
    await h.mine();
    const head = await latest(h.chain);
    expect(head.transactionHashes).toHaveLength(5);
    expect((await h.chain.transactionCount(account(h.accounts, 0).address, "latest")).count).toBe(5);
  });

  it("a chain returns an empty list for an empty batch of submissions", async () => {
    const { chain } = await start();
    expect(await submitFreely(chain, [])).toEqual([]);
  });

  it("a chain distinguishes a repeated submission (already known) from a used nonce (consumed)", async () => {
    const h = await start();
    const raw = await transfer(h, { nonce: 0 });
    expect(await answers(h.chain, [raw])).toEqual(["accepted"]);
    expect(await answers(h.chain, [raw])).toEqual(["alreadyKnown"]);
    await h.mine();
    expect(["nonceConsumed", "alreadyKnown"]).toContain((await answers(h.chain, [raw]))[0]);
    const other = await transfer(h, { nonce: 0, value: 7n });
    expect(await answers(h.chain, [other])).toEqual(["nonceConsumed"]);
  });

  it("a chain queues a future nonce, or answers nonceTooHigh", async () => {
    const h = await start();
    const [answer] = await answers(h.chain, [await transfer(h, { nonce: 3 })]);
    expect(["accepted", "nonceTooHigh"]).toContain(answer);
    await h.mine();
    expect((await h.chain.transactionCount(account(h.accounts, 0).address, "latest")).count).toBe(0);
  });

  it("a chain refuses a replacement at the same price, and accepts one at a higher price", async () => {
    const h = await start();
    const price = { maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: GWEI };
    const better = { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, ...price })])).toEqual(["accepted"]);
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, value: 9n, ...price })])).toEqual(["underpriced"]);
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, value: 9n, ...better })])).toEqual(["accepted"]);
    await h.mine();
    expect((await latest(h.chain)).transactionHashes).toHaveLength(1);
  });
}

function permissionTests(start: Start): void {
  it("a chain submits no transaction whose mayLeave is false", async () => {
    const h = await start();
    const sends = [
      { raw: await transfer(h, { nonce: 0 }), mayLeave: () => true },
      { raw: await transfer(h, { nonce: 1 }), mayLeave: () => false },
      { raw: await transfer(h, { from: 1, nonce: 0 }), mayLeave: () => true },
    ];
    const results = await h.chain.submit(sends);
    expect(results.map((each) => each.answer)).toEqual(["accepted", "notStarted", "accepted"]);
    await h.mine();
    expect((await latest(h.chain)).transactionHashes).toHaveLength(2);
  });

  it("a chain checks mayLeave when a transaction is sent, not when submit is called", async () => {
    const h = await start();
    let stopped = false;
    const mayLeave = () => !stopped;
    const results = h.chain.submit([{ raw: await transfer(h, { nonce: 0 }), mayLeave }]);
    stopped = true;
    expect(await results).toEqual([{ answer: "notStarted" }]);
    await h.mine();
    expect((await latest(h.chain)).transactionHashes).toEqual([]);
  });
}

function refusalTests(start: Start): void {
  it("a chain answers insufficientFunds if the balance does not cover value and gas", async () => {
    const h = await start();
    const balance = await h.chain.balance(account(h.accounts, 0).address);
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, value: balance })])).toEqual(["insufficientFunds"]);
  });

  it("a chain rejects a transaction that can never be mined", async () => {
    const h = await start();
    const limit = (await latest(h.chain)).gasLimit;
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, gas: 20_999n })])).toEqual(["rejected"]);
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, gas: limit + 1n })])).toEqual(["rejected"]);
    expect(await answers(h.chain, [await transfer(h, { nonce: 0, chainId: 987_654 })])).toEqual(["rejected"]);
  });

  it("a chain never answers accepted or consumed for bytes that are not a transaction", async () => {
    const h = await start();
    const [answer] = await answers(h.chain, ["0x1234"]);
    expect(["rejected", "unknown"]).toContain(answer);
  });

  it("a chain answers each submission separately: an invalid one in the middle fails alone", async () => {
    const h = await start();
    const raws = [
      await transfer(h, { nonce: 0 }),
      await transfer(h, { from: 1, nonce: 0, gas: 20_999n }),
      await transfer(h, { nonce: 1 }),
    ];
    const results = await submitFreely(h.chain, raws);
    expect(results.map((each) => each.answer)).toEqual(["accepted", "rejected", "accepted"]);
    expect(results[1]?.detail).toEqual(expect.any(String));
  });
}

function receiptTests(start: Start): void {
  it("a chain has no receipt before mining, and a complete one after", async () => {
    const h = await start();
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 })]);
    expect(await h.chain.receipts([NOWHERE])).toEqual([null]);
    await h.mine();
    const block = await latest(h.chain);
    const hash = only(block.transactionHashes);
    const [missing, receipt] = await h.chain.receipts([NOWHERE, hash]);
    expect(missing).toBeNull();
    expect(receipt).toMatchObject({
      txHash: hash,
      blockNumber: block.number,
      blockHash: block.hash,
      transactionIndex: 0,
      status: "success",
      gasUsed: 21_000n,
      contractAddress: null,
    });
    expect(await h.chain.receipts([])).toEqual([]);
    const shown = await h.chain.outcome({ txHash: hash, replay: null });
    expect(shown).toEqual({ blockHash: block.hash, logs: [], more: 0, revert: null });
  });

  it("a chain returns the receipts of one block, only for the requested hashes", async () => {
    const h = await start();
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 }), await transfer(h, { nonce: 1 })]);
    await h.mine();
    const block = await latest(h.chain);
    const wanted = block.transactionHashes.slice(1);
    const found = await h.chain.receiptsInBlock(block, [...wanted, NOWHERE]);
    expect(found.map((each) => each.txHash)).toEqual(wanted);
    expect(found[0]?.blockHash).toBe(block.hash);
    expect(await h.chain.receiptsInBlock(block, [])).toEqual([]);
  });
}

function feeTests(start: Start): void {
  it("a chain describes the fee market in wei", async () => {
    const h = await start();
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 })]);
    await h.mine();
    const market = await h.chain.feeMarket();
    expect(market.gasPrice).toBeGreaterThanOrEqual(0n);
    for (const fee of [...market.baseFees, ...market.priorityFees]) expect(fee).toBeGreaterThanOrEqual(0n);
    const { baseFeePerGas } = await latest(h.chain);
    if (baseFeePerGas !== null) expect(market.baseFees.length).toBeGreaterThan(0);
  });
}

function simulateTests(start: Start): void {
  it("a chain estimates a plain transfer at 21,000 gas", async () => {
    const h = await start();
    const [from, to] = [account(h.accounts, 0).address, account(h.accounts, 1).address];
    const estimated = await h.chain.simulate({ from, to, data: "0x", value: 1n });
    expect(estimated.outcome).toBe("ok");
    if (estimated.outcome === "ok") {
      // Nodes may round an estimate up (EDR: 21,001). An estimate more than one percent too high would make the check
      // of the caller's balance too strict.
      expect(estimated.gas).toBeGreaterThanOrEqual(21_000n);
      expect(estimated.gas).toBeLessThan(21_210n);
    }
    expect(await h.chain.simulate({ from, to, data: "0x", value: 1n, gas: 30_000n })).toEqual({
      outcome: "ok",
      gas: 30_000n,
      balance: await h.chain.balance(from),
    });
  });

  it("a chain reports in a simulation why a call would fail", async () => {
    const h = await start();
    const [from, to] = [account(h.accounts, 0).address, account(h.accounts, 1).address];
    const call = { from, to, data: "0x", value: 0n } as const;
    const value = (await h.chain.balance(from)) + 1n;
    expect((await h.chain.simulate({ ...call, value })).outcome).toBe("insufficientFunds");
    expect((await h.chain.simulate({ ...call, value, gas: 21_000n })).outcome).toBe("insufficientFunds");
    expect((await h.chain.simulate({ ...call, gas: 20_999n })).outcome).toBe("gasTooLow");
  });

  it("a chain's simulation returns the given gas for a receiver without code", async () => {
    const h = await start();
    const [from, to] = [account(h.accounts, 0).address, account(h.accounts, 1).address];
    const call = { from, to, data: "0x", value: 1n, gasWithoutCode: 20_123n } as const;
    expect(await h.chain.simulate(call)).toMatchObject({ outcome: "ok", gas: 20_123n });
    const value = (await h.chain.balance(from)) + 1n;
    expect((await h.chain.simulate({ ...call, value })).outcome, "funds come first").toBe("insufficientFunds");
    if (h.reverting === null) return;
    expect((await h.chain.simulate({ ...call, to: h.reverting.silently, value: 0n })).outcome).toBe("revert");
  });

  it("a chain with a single endpoint simulates on that endpoint alone", async () => {
    const h = await start();
    const [from, to] = [account(h.accounts, 0).address, account(h.accounts, 1).address];
    expect(await h.chain.simulateEverywhere({ from, to, data: "0x", value: 1n })).toMatchObject([{ kind: "says" }]);
  });

  it("a chain returns the simulation, gas prices and block on which the refusal of a transaction may be based", async () => {
    const h = await start();
    const [from, to] = [account(h.accounts, 0).address, account(h.accounts, 1).address];
    const head = await h.chain.head("latest");
    const value = (await h.chain.balance(from)) + 1n;
    const [prospect] = await h.chain.prospects({ from, to, data: "0x", value });
    expect(prospect).toMatchObject({ kind: "says", answer: { simulation: { outcome: "insufficientFunds" } } });
    if (prospect?.kind !== "says") throw new Error("the only endpoint is silent");
    expect(prospect.answer.head.number).toBeGreaterThanOrEqual(head?.number ?? 0);
    expect(prospect.answer.market.gasPrice).toBeGreaterThan(0n);
  });
}

function revertTests(start: Start): void {
  it.each([undefined, 100_000n])("a chain decodes why a call reverts (gas: %s)", async (gas) => {
    const h = await start();
    if (h.reverting === null) throw new Error("a chain with an EVM must bring its reverting contracts");
    const { reverting } = h;
    const from = account(h.accounts, 0).address;
    const revertOf = async (to: Address) => {
      const result = await h.chain.simulate({ from, to, data: "0x", value: 0n, ...(gas === undefined ? {} : { gas }) });
      return result.outcome === "revert" ? result.revert : result.outcome;
    };
    expect(await revertOf(reverting.withReason)).toMatchObject({ name: "Error", message: "no lunch" });
    const panic = await revertOf(reverting.withPanic);
    expect(panic).toMatchObject({ name: "Panic", message: expect.stringMatching(/overflow/) });
    const custom: Hex = `0xdeadbeef${"0".repeat(62)}2a`;
    expect(await revertOf(reverting.withCustomError)).toEqual({ name: null, message: null, data: custom });
    expect(await revertOf(reverting.silently)).toEqual({ name: null, message: null, data: "0x" });
  });
}

function reorgTests(start: Start): void {
  it("a chain withdraws blocks, receipts and nonce counts in a reorg", async () => {
    const h = await start();
    await h.mine();
    await submitFreely(h.chain, [await transfer(h, { nonce: 0 })]);
    await h.mine();
    const old = await latest(h.chain);
    const hash = only(old.transactionHashes);
    await h.mine();
    await h.reorg(2);
    const head = await latest(h.chain);
    expect(head.number).toBe(old.number + 2);
    const [replaced] = await h.chain.blocksByNumber([old.number]);
    expect(replaced?.hash).not.toBe(old.hash);
    expect(replaced?.parentHash).toBe(old.parentHash);
    expect(await h.chain.receipts([hash])).toEqual([null]);
    // A node may keep receipts of an orphaned block, but they must name that block.
    for (const kept of await h.chain.receiptsInBlock(old, [hash])) expect(kept.blockHash).toBe(old.hash);
    expect((await h.chain.transactionCount(account(h.accounts, 0).address, "latest")).count).toBe(0);
  });

  it("a chain mines the same transaction again after a reorg dropped it", async () => {
    const h = await start();
    const raw = await transfer(h, { nonce: 0 });
    await submitFreely(h.chain, [raw]);
    await h.mine();
    const hash = only((await latest(h.chain)).transactionHashes);
    await h.reorg(1);
    expect(["accepted", "alreadyKnown"]).toContain((await answers(h.chain, [raw]))[0]);
    await h.mine();
    const [receipt] = await h.chain.receipts([hash]);
    expect(receipt?.blockHash).toBe((await latest(h.chain)).hash);
  });
}

async function latest(chain: Chain): Promise<Block> {
  const block = await chain.head("latest");
  if (block === null) throw new Error("a chain without a latest block");
  return block;
}

async function answers(chain: Chain, raws: readonly Hex[]): Promise<readonly string[]> {
  return (await submitFreely(chain, raws)).map((each) => each.answer);
}

function only<T>(items: readonly T[]): T {
  const [first] = items;
  if (first === undefined || items.length !== 1) throw new Error(`expected one item, got ${items.length}`);
  return first;
}
