import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { headerHash } from "../../../../src/adapters/evm/proof/worker/header.js";
import { orderedTrieRoot } from "../../../../src/adapters/evm/proof/worker/ordered-trie.js";
import { proveBlock } from "../../../../src/adapters/evm/proof/worker/prove-block.js";
import { encodeTransaction } from "../../../../src/adapters/evm/proof/worker/transactions.js";
import { keccakLoaded } from "../../../../src/adapters/evm/threads/keccak.js";
import { type DevChain, startEmbeddedChain } from "../../../../src/main/dev/embedded/start-chain.ts";
import { mineVariedBlock, type ShownBlock, showLatest } from "../../../support/varied-block.ts";

await keccakLoaded;

const ZERO_HASH = `0x${"0".repeat(64)}`;
const NO_BLOOM = `0x${"0".repeat(512)}`;
const EMPTY_ROOT = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
const NO_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347";

/** Ethereum's first block, as every mainnet node shows it. */
const GENESIS = {
  parentHash: ZERO_HASH,
  sha3Uncles: NO_UNCLES,
  miner: `0x${"0".repeat(40)}`,
  stateRoot: "0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544",
  transactionsRoot: EMPTY_ROOT,
  receiptsRoot: EMPTY_ROOT,
  logsBloom: NO_BLOOM,
  difficulty: "0x400000000",
  number: "0x0",
  gasLimit: "0x1388",
  gasUsed: "0x0",
  timestamp: "0x0",
  extraData: "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
  mixHash: ZERO_HASH,
  nonce: "0x0000000000000042",
};

/** Block 46,147 of Ethereum, the first that held a transaction. */
const FIRST_TRANSACTION = {
  hash: "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060",
  nonce: "0x0",
  gasPrice: "0x2d79883d2000",
  gas: "0x5208",
  to: "0x5df9b87991262f6ba471f09758cde1c0fc1de734",
  value: "0x7a69",
  input: "0x",
  v: "0x1c",
  r: "0x88ff6cf0fefd94db46111149ae4bfc179e9b94721fffd821d38d16464b3f71d0",
  s: "0x45e0aff800961cfce805daef7016b9b675c137a6a41a548f7b60a3484c06a33a",
};
const BLOCK_46147 = {
  ...GENESIS,
  parentHash: "0x5a41d0e66b4120775176c09fcf39e7c0520517a13d2b57b18d33d342df038bfc",
  miner: "0xe6a7a1d47ff21b6321162aea7c6cb457d5476bca",
  stateRoot: "0x0e0df2706b0a4fb8bd08c9246d472abbe850af446405d9eba1db41db18b4a169",
  transactionsRoot: "0x4513310fcb9f6f616972a3b948dc5d547f280849a87ebb5af0191f98b87be598",
  receiptsRoot: "0xfe2bf2a941abf41d72637e5b91750332a30283efd40c424dc522b77e6f0ed8c4",
  difficulty: "0x153886c1bbd",
  number: "0xb443",
  gasLimit: "0x520b",
  gasUsed: "0x5208",
  timestamp: "0x55c42659",
  extraData: "0x657468706f6f6c2e6f7267",
  mixHash: "0xb48c515a9dde8d346c3337ea520aa995a4738bb595495506125449c1149d6cf4",
  nonce: "0xba4f8ecd18aab215",
};

describe("well-known blocks of Ethereum", () => {
  it("hash to their published block hashes", () => {
    expect(headerHash(GENESIS)).toBe("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
    expect(headerHash(BLOCK_46147)).toBe("0x4e3a3754410177e6937ef1f84bba68ea139e8d1a2258c5f85db9f1cd715a1bdd");
  });

  it("have the transactions root that is computed from their transactions", () => {
    expect(`0x${orderedTrieRoot([])}`).toBe(EMPTY_ROOT);
    expect(`0x${orderedTrieRoot([encodeTransaction(FIRST_TRANSACTION)])}`).toBe(BLOCK_46147.transactionsRoot);
  });

  it("prove no receipts if they are from before Byzantium", () => {
    const block = { ...BLOCK_46147, transactions: [FIRST_TRANSACTION] };
    const receipts = [
      { transactionHash: FIRST_TRANSACTION.hash, cumulativeGasUsed: "0x5208", logsBloom: NO_BLOOM, logs: [] },
    ];
    const hash = headerHash(BLOCK_46147);
    expect(proveBlock({ number: 46_147, hash, block, receipts, wanted: [FIRST_TRANSACTION.hash] })).toMatchObject({
      kind: "unprovable",
    });
  });
});

describe("a block of a real EVM", () => {
  let node: DevChain;
  let shown: ShownBlock;
  beforeAll(async () => {
    node = await startEmbeddedChain();
    shown = await mineVariedBlock(node);
  });
  afterAll(() => node.stop());

  const hashesOf = ({ block }: ShownBlock) => block.transactions.map(({ hash }) => hash);
  const prove = (changed: Partial<ShownBlock>, wanted: readonly string[] = hashesOf(shown)) =>
    proveBlock({ ...shown, ...changed, wanted });
  const withReceipt = (index: number, change: object) =>
    prove({ receipts: shown.receipts.map((receipt, at) => (at === index ? { ...receipt, ...change } : receipt)) });
  const withTransaction = (index: number, change: object, wanted?: readonly string[]) => {
    const transactions = shown.block.transactions.map((each, at) => (at === index ? { ...each, ...change } : each));
    return prove({ block: { ...shown.block, transactions } }, wanted);
  };

  it("is proved with transactions of the types legacy, 2930, 1559 and 7702", () => {
    expect(new Set(shown.block.transactions.map(({ type }) => type))).toEqual(new Set(["0x0", "0x1", "0x2", "0x4"]));
    const verdict = prove({});
    expect(verdict.kind).toBe("proved");
    if (verdict.kind !== "proved") return;
    expect(verdict.transactions.map(({ txHash }) => txHash)).toEqual(hashesOf(shown));
    expect(verdict.transactions.map(({ receipt }) => receipt)).toEqual(shown.receipts);
    expect(verdict.transactions.map(({ pricePaid }) => `0x${pricePaid.toString(16)}`)).toEqual(
      shown.receipts.map(({ effectiveGasPrice }) => effectiveGasPrice),
    );
    const statuses = shown.receipts.map(({ status }) => status);
    expect([statuses.includes("0x0"), statuses.includes("0x1")]).toEqual([true, true]);
  });

  it("is proved if it has more than 255 transactions", async () => {
    await node.rpc("evm_setBlockGasLimit", ["0x1dcd6500"]);
    const large = await mineVariedBlock(node, 300);
    expect(large.receipts).toHaveLength(306);
    const [wanted] = hashesOf(large).slice(-1);
    expect(proveBlock({ ...large, wanted: [wanted as string] })).toMatchObject({
      kind: "proved",
      transactions: [{ txHash: wanted }],
    });
    await node.mine();
    expect(proveBlock({ ...(await showLatest(node)), wanted: [] })).toEqual({ kind: "proved", transactions: [] });
  });

  it("proves nothing about a transaction that it does not contain", () => {
    expect(prove({}, [ZERO_HASH])).toEqual({ kind: "proved", transactions: [] });
  });

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  it("is contradicted by a changed receipt, in any field", () => {
    const logging = shown.receipts.findIndex(({ logs }) => (logs as readonly unknown[]).length > 0);
    const [log] = (shown.receipts[logging]?.logs ?? []) as readonly object[];
    expect(withReceipt(2, { status: "0x0" }).kind).toBe("contradicts");
    expect(withReceipt(2, { gasUsed: "0x5209" }).kind).toBe("contradicts");
    expect(withReceipt(2, { cumulativeGasUsed: "0x1" }).kind).toBe("contradicts");
    expect(withReceipt(2, { contractAddress: `0x${"ab".repeat(20)}` }).kind).toBe("contradicts");
    expect(withReceipt(logging, { contractAddress: null }).kind).toBe("contradicts");
    expect(withReceipt(logging, { logs: [] }).kind).toBe("contradicts");
    expect(withReceipt(logging, { logs: [{ ...log, data: "0x00" }] }).kind).toBe("contradicts");
  });

  it("is contradicted by a missing receipt, or by a receipt under another transaction's hash", () => {
    const [first, second, ...rest] = shown.receipts;
    expect(prove({ receipts: [second, ...rest] as ShownBlock["receipts"] }).kind).toBe("contradicts");
    const swapped = [
      { ...first, transactionHash: second?.transactionHash },
      { ...second, transactionHash: first?.transactionHash },
      ...rest,
    ];
    expect(prove({ receipts: swapped }).kind).toBe("contradicts");
  });

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  it("is contradicted by reordered or missing transactions", () => {
    const { transactions } = shown.block;
    const [first, second, ...rest] = transactions as [never, never, ...never[]];
    expect(prove({ block: { ...shown.block, transactions: [second, first, ...rest] } }).kind).toBe("contradicts");
    expect(prove({ block: { ...shown.block, transactions: transactions.slice(1) } }).kind).toBe("contradicts");
  });

  it("is contradicted by a block number other than the one in its header", () => {
    expect(prove({ number: shown.number + 1 }).kind).toBe("contradicts");
  });

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js
  it("is contradicted by other contents under the hash of a requested transaction", () => {
    const hash = shown.block.transactions[2]?.hash as string;
    expect(withTransaction(2, { nonce: "0x63" }, [hash])).toMatchObject({
      kind: "contradicts",
      detail: expect.stringContaining(hash),
    });
  });

  it("proves nothing if the header has unknown fields or does not hash to the block hash", () => {
    const unprovable = { kind: "unprovable", of: "chain" };
    expect(prove({ block: { ...shown.block, stateRoot: ZERO_HASH } })).toMatchObject(unprovable);
    expect(prove({ block: { ...shown.block, blockAccessListHash: ZERO_HASH, requestsHash: undefined } })).toMatchObject(
      unprovable,
    );
    expect(prove({ block: { ...shown.block, difficulty: null } })).toMatchObject(unprovable);
  });

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  it("proves nothing if a transaction has a chain-specific type", () => {
    for (const type of ["0x5", "0x64", "0x7e"]) {
      expect(withTransaction(2, { type })).toMatchObject({ kind: "unprovable", of: "chain" });
    }
  });

  // protects [False receipts] src/adapters/evm/proof/worker/prove-block.js, src/adapters/evm/proof/block-prover.ts
  it("proves nothing if another sender's transaction does not match its hash, as on Polygon's Bor", () => {
    expect(withTransaction(0, { hash: ZERO_HASH }, hashesOf(shown).slice(1))).toMatchObject({
      kind: "unprovable",
      of: "block",
    });
  });
});
