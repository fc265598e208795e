import { afterEach, describe, expect, it } from "vitest";
import { createEvmChain, WrongChain } from "../../../src/adapters/evm/chain.ts";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { block, blockJson, hashOf, receiptJson, useEvmBench } from "../../support/evm-bench.ts";
import { Refusal, startFaultyRpc } from "../../support/faulty-rpc.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const bench = useEvmBench();

const refuse = (code: number, message: string) => () => {
  throw new Refusal(code, message);
};
const ADDRESS = `0x${"11".repeat(20)}` as const;
const DOWN = { kind: "status", status: 502 } as const;

describe("opening a chain", () => {
  const ports = () => ({ telemetry: recordTelemetry(), clock: createManualClock(), entropy: createSeededEntropy(1) });

  async function servers(...chainIds: readonly number[]) {
    const started = await Promise.all(chainIds.map((chainId) => startFaultyRpc(chainId)));
    closers.push(...started.map((server) => () => server.close()));
    return started;
  }

  async function open(urls: readonly string[], chainId?: number) {
    const chain = await createEvmChain({ urls, ...ports(), ...(chainId === undefined ? {} : { chainId }) });
    closers.push(() => chain.close());
    return chain;
  }

  it("reads the chain id from any endpoint that is up, if no chain id is configured", async () => {
    const [dead, alive] = await servers(10, 10);
    dead?.failAlways(DOWN);
    const chain = await open([dead?.url ?? "", alive?.url ?? ""]);
    expect([chain.chainId, chain.endpoints]).toEqual([10, 2]);
  });

  it("refuses endpoints that serve different chains, and names these chains", async () => {
    const urls = (await servers(1, 10)).map((server) => server.url);
    await expect(open(urls)).rejects.toThrow(WrongChain);
    await expect(open(urls)).rejects.toThrow(/serves chain 1, .* serves chain 10/);
    await expect(open(urls, 10)).rejects.toThrow(/^chain 10 is configured, but .* serves chain 1, /);
  });

  it("refuses a single endpoint of another chain", async () => {
    const urls = (await servers(31337)).map((server) => server.url);
    await expect(open(urls, 1)).rejects.toThrow(/^chain 1 is configured, but \S+ serves chain 31337$/);
  });

  it("succeeds while no endpoint is up, but only if the chain id is configured", async () => {
    const [dead] = await servers(10);
    dead?.failAlways(DOWN);
    const urls = [dead?.url ?? ""];
    await expect(open(urls)).rejects.toThrow(ChainUnavailable);
    const chain = await open(urls, 10);
    await expect(chain.head("latest")).rejects.toThrow(ChainUnavailable);
    dead?.failAlways(null);
    dead?.on("eth_getBlockByNumber", () => blockJson(7));
    expect((await chain.head("latest"))?.number).toBe(7);
  });

  it("needs at least one endpoint URL", async () => {
    await expect(open([])).rejects.toThrow(TypeError);
  });
});

describe("blocks from an endpoint", () => {
  it("are read with every field, in lower case", async () => {
    const { server, chain } = await bench();
    const shouting = `0x${hashOf(0xabc).slice(2).toUpperCase()}`;
    server.on("eth_getBlockByNumber", () => blockJson(7, { transactions: [shouting] }));
    expect(await chain.head("latest")).toEqual({ ...block(7), transactionHashes: [hashOf(0xabc)] });
  });

  it.each([
    ["number", "7"],
    ["number", "0x"],
    ["number", "0x20000000000000"],
    ["number", null],
    ["number", -1],
    ["hash", "0x12"],
    ["hash", null],
    ["parentHash", `0x${"g".repeat(64)}`],
    ["transactions", null],
    ["transactions", {}],
    ["transactions", [{ hash: hashOf(1) }]],
    ["transactions", ["0x1"]],
    ["baseFeePerGas", "nan"],
    ["baseFeePerGas", 7],
    ["gasLimit", undefined],
    ["gasLimit", `0x1${"0".repeat(64)}`],
  ])("are refused as a bad answer if they have %s = %j", async (field, value) => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", () => blockJson(7, { [field]: value }));
    await expect(chain.head("latest")).rejects.toThrow(ChainUnavailable);
  });

  it.each([[], "text", 7, true])("are refused as a bad answer if the result is %j", async (value) => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", () => value);
    await expect(chain.head("latest")).rejects.toThrow(ChainUnavailable);
  });

  it("are refused as a bad answer if there is no latest block", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", () => null);
    await expect(chain.head("latest")).rejects.toThrow(ChainUnavailable);
  });

  it.each([
    ["geth", -32000, "finalized block not found"],
    ["Besu and others", -39001, "Unknown block"],
    ["Reth", -32001, "block not found: finalized"],
    ["an old node", -32602, "invalid argument 0: hex string without 0x prefix"],
    ["a chain without tags", -32601, "the method is not available for this tag"],
  ])("are null for a block tag that %s does not support", async (_, code, message) => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", refuse(code, message));
    expect(await chain.head("finalized")).toBeNull();
    await expect(chain.head("latest")).rejects.toThrow(ChainUnavailable);
  });

  it("are an error, not null, if the node cannot answer", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", refuse(-32603, "database is closed"));
    await expect(chain.head("finalized")).rejects.toThrow(ChainUnavailable);
    server.failAlways(DOWN);
    await expect(chain.head("safe")).rejects.toThrow(ChainUnavailable);
  });

  it("are read by number in one request", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByNumber", ([tag]) => (tag === "0x9" ? null : blockJson(Number(tag))));
    const before = server.requests.length;
    expect(await chain.blocksByNumber([8, 9, 7])).toEqual([block(8), null, block(7)]);
    expect(server.requests.length - before).toBeLessThanOrEqual(2);
    server.on("eth_getBlockByNumber", () => blockJson(8));
    await expect(chain.blocksByNumber([7])).rejects.toThrow(/another block/);
  });

  it("are an error, not null, if one reply of a batch is missing", async () => {
    const { server, chain } = await bench();
    await chain.head("latest");
    server.on("eth_getBlockByNumber", ([tag]) => blockJson(Number(tag)));
    server.failNext({ kind: "omit", at: 1 });
    await expect(chain.blocksByNumber([7, 8, 9])).rejects.toThrow(ChainUnavailable);
  });

  it("must have the requested hash if they are read by hash", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByHash", () => blockJson(7));
    expect(await chain.blockByHash(hashOf(1_007))).toEqual(block(7));
    await expect(chain.blockByHash(hashOf(1_008))).rejects.toThrow(/another block/);
    server.on("eth_getBlockByHash", refuse(-32000, "unknown block"));
    expect(await chain.blockByHash(hashOf(1_008))).toBeNull();
  });
});

describe("receipts from an endpoint", () => {
  it("are read for a whole block in one call", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockReceipts", () => [
      receiptJson(1),
      receiptJson(2, { status: "0x0", contractAddress: `0x${"AB".repeat(20)}`, effectiveGasPrice: undefined }),
    ]);
    const found = await chain.receiptsInBlock(block(7), [hashOf(1), hashOf(2), hashOf(3)]);
    expect(found).toEqual([
      expect.objectContaining({ txHash: hashOf(1), status: "success" }),
      {
        txHash: hashOf(2),
        blockNumber: 7,
        blockHash: hashOf(1_007),
        transactionIndex: 1,
        status: "reverted",
        gasUsed: 21_000n,
        effectiveGasPrice: null,
        contractAddress: `0x${"ab".repeat(20)}`,
      },
    ]);
    expect(server.calls("eth_getBlockReceipts").map((call) => call.params)).toEqual([[hashOf(1_007)]]);
    expect(server.calls("eth_getTransactionReceipt")).toEqual([]);
  });

  it.each([
    ["blobs", { blobGasUsed: "0x20000", blobGasPrice: "0x3" }, { besideGas: 393_216n }],
    ["blobs at an unknown price", { blobGasUsed: "0x20000" }, { besideGas: 0n, besideGasUnsure: true }],
    ["a rollup's data fee", { l1Fee: "0x7" }, { besideGas: 7n }],
    ["both", { blobGasUsed: "0x1", blobGasPrice: "0x3", l1Fee: "0x7" }, { besideGas: 10n }],
    ["more wei than can exist", { l1Fee: `0x${"f".repeat(64)}` }, { besideGas: 0n, besideGasUnsure: true }],
    ["nothing", { blobGasUsed: "0x0", blobGasPrice: "0x3", l1Fee: null }, {}],
  ])("include costs other than gas: %s", async (_, said, beside) => {
    const { server, chain } = await bench();
    server.on("eth_getBlockReceipts", () => [receiptJson(1, said), receiptJson(2)]);
    const [found] = await chain.receiptsInBlock(block(7), [hashOf(1), hashOf(2), hashOf(3)]);
    const { besideGas, besideGasUnsure } = found ?? {};
    expect({ besideGas, besideGasUnsure }).toEqual({ besideGas: undefined, besideGasUnsure: undefined, ...beside });
  });

  describe("of a few transactions in a block", () => {
    const large = { ...block(7), transactionHashes: Array.from({ length: 9 }, (_, index) => hashOf(index + 1)) };
    const few = [hashOf(2), hashOf(5)];

    it("are fetched by transaction hash, in one batch", async () => {
      const { server, chain } = await bench();
      server.on("eth_getTransactionReceipt", ([hash]) => receiptJson(hash === hashOf(2) ? 2 : 5));
      const found = await chain.receiptsInBlock(large, few);
      expect(found.map(({ txHash }) => txHash)).toEqual(few);
      expect(server.calls("eth_getTransactionReceipt").map((call) => call.params)).toEqual(few.map((hash) => [hash]));
      expect(server.calls("eth_getBlockReceipts")).toEqual([]);
    });

    it.each([
      ["lags", () => null],
      ["names another block", () => receiptJson(2, { blockHash: hashOf(5) })],
      ["fails", refuse(-32000, "transaction indexing is in progress")],
    ])("are read from the whole block if the index by hash %s", async (_, answer) => {
      const { server, chain } = await bench();
      server.on("eth_getTransactionReceipt", ([hash]) => (hash === hashOf(5) ? receiptJson(5) : answer()));
      server.on("eth_getBlockReceipts", () => large.transactionHashes.map((_, index) => receiptJson(index + 1)));
      const found = await chain.receiptsInBlock(large, few);
      expect(found.map(({ txHash }) => txHash)).toEqual(few);
    });

    it("are requested by hash only once per read", async () => {
      const { server, chain } = await bench();
      server.on("eth_getTransactionReceipt", ([hash]) => (hash === hashOf(5) ? receiptJson(5) : null));
      await chain.receiptsInBlock(large, few);
      const before = server.calls("eth_getTransactionReceipt").length;
      const found = await chain.receiptsInBlock(large, few);
      expect(found.map(({ txHash }) => txHash)).toEqual([hashOf(5)]);
      expect(server.calls("eth_getTransactionReceipt")).toHaveLength(before + few.length);
    });

    it("are not requested for the whole block if the endpoint is unreachable", async () => {
      const { server, chain } = await bench();
      await chain.head("latest");
      server.on("eth_getTransactionReceipt", () => receiptJson(2));
      server.failNext({ kind: "omit", at: 1 });
      await expect(chain.receiptsInBlock(large, few)).rejects.toThrow(ChainUnavailable);
      expect(server.calls("eth_getBlockReceipts")).toEqual([]);
    });
  });

  it.each([
    ["accepts no batches", { code: -32600, message: "batch requests are not supported" }],
    ["limits calls per second", { code: -32005, message: "too many requests" }],
  ])("are read in one call for many transactions if the endpoint %s", async (_, error) => {
    const { server, chain } = await bench();
    const hashes = Array.from({ length: 200 }, (_, index) => hashOf(index + 1));
    server.refuseBatches({ jsonrpc: "2.0", id: null, error });
    server.on("eth_getTransactionReceipt", ([hash]) => receiptJson(Number(hash)));
    server.on("eth_getBlockReceipts", () => hashes.map((_, index) => receiptJson(index + 1)));
    const found = await chain.receiptsInBlock({ ...block(7), transactionHashes: hashes }, hashes.slice(0, 100));
    expect(found).toHaveLength(100);
    expect(server.calls("eth_getTransactionReceipt")).toEqual([]);
    expect(server.calls("eth_getBlockReceipts")).toHaveLength(1);
  });

  it("are not fetched if the block contains none of the requested transactions", async () => {
    const { server, chain } = await bench();
    expect(await chain.receiptsInBlock(block(7), [hashOf(99)])).toEqual([]);
    expect(server.calls("eth_getBlockReceipts")).toEqual([]);
  });

  it.each([
    [-32601, "the method eth_getBlockReceipts does not exist/is not available"],
    [-32004, "Method eth_getBlockReceipts is not supported"],
    [-32604, "Method not enabled"],
    [-32000, "Method not found"],
  ])(
    // protects [Chains that differ] src/adapters/evm/reads/read-receipts.ts
    "are fetched by hash if the node lacks eth_getBlockReceipts (%i %s)",
    async (code, message) => {
      const { server, chain } = await bench();
      server.on("eth_getBlockReceipts", refuse(code, message));
      server.on("eth_getTransactionReceipt", ([hash]) => (hash === hashOf(1) ? receiptJson(1) : null));
      for (let times = 0; times < 2; times++) {
        const found = await chain.receiptsInBlock(block(7), [hashOf(1), hashOf(2)]);
        expect(found.map((each) => each.txHash)).toEqual([hashOf(1)]);
      }
      expect(server.calls("eth_getBlockReceipts")).toHaveLength(1);
      expect(server.calls("eth_getTransactionReceipt")).toHaveLength(4);
    },
  );

  it("are requested with an EIP-1898 block object if the node requires that form", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockReceipts", ([parameter]) => {
      if (typeof parameter === "string") throw new Refusal(-32602, "invalid argument 0");
      return [receiptJson(1), receiptJson(2)];
    });
    expect(await chain.receiptsInBlock(block(7), [hashOf(1)])).toHaveLength(1);
    expect(await chain.receiptsInBlock(block(7), [hashOf(1)])).toHaveLength(1);
    expect(server.calls("eth_getBlockReceipts").map((call) => call.params[0])).toEqual([
      hashOf(1_007),
      { blockHash: hashOf(1_007) },
      { blockHash: hashOf(1_007) },
    ]);
  });

  it("are empty for a block that the node no longer has", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockReceipts", () => null);
    expect(await chain.receiptsInBlock(block(7), [hashOf(1)])).toEqual([]);
    server.on("eth_getBlockReceipts", refuse(-32001, `block not found: hash ${hashOf(1_007)}`));
    expect(await chain.receiptsInBlock(block(7), [hashOf(1)])).toEqual([]);
  });

  it("are an error, not an empty list, if the node fails", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockReceipts", refuse(-32000, "transaction indexing is in progress"));
    await expect(chain.receiptsInBlock(block(7), [hashOf(1)])).rejects.toThrow(ChainUnavailable);
    server.on("eth_getTransactionReceipt", refuse(-32000, "transaction indexing is in progress"));
    await expect(chain.receipts([hashOf(1)])).rejects.toThrow(ChainUnavailable);
    server.on("eth_getBlockReceipts", () => [receiptJson(1), receiptJson(2)]);
    expect(await chain.receiptsInBlock(block(7), [hashOf(1)])).toHaveLength(1);
  });

  it("are null for a pending transaction", async () => {
    const { server, chain } = await bench();
    server.on("eth_getTransactionReceipt", () => receiptJson(1, { blockHash: null, blockNumber: null }));
    expect(await chain.receipts([hashOf(1)])).toEqual([null]);
  });

  it("are refused as a bad answer if they belong to another transaction", async () => {
    const { server, chain } = await bench();
    server.on("eth_getTransactionReceipt", () => receiptJson(2));
    await expect(chain.receipts([hashOf(1)])).rejects.toThrow(/another receipt/);
  });

  it.each([
    ["status", "0x2"],
    ["status", undefined],
    ["status", true],
    ["gasUsed", "many"],
    ["transactionIndex", null],
    ["blockNumber", "0xffffffffffffffff"],
    ["blockHash", "0x1"],
    ["contractAddress", "0x12"],
    ["effectiveGasPrice", "cheap"],
  ])("are refused as a bad answer if they have %s = %j", async (field, value) => {
    const { server, chain } = await bench();
    server.on("eth_getTransactionReceipt", () => receiptJson(1, { [field]: value }));
    await expect(chain.receipts([hashOf(1)])).rejects.toThrow(ChainUnavailable);
  });
});

describe("account and block data from endpoints", () => {
  it.each(["0x", "5", 5, null, "0x20000000000000", "-0x1"])(
    "is refused as a bad answer if a transaction count is %j",
    async (value) => {
      const { server, chain } = await bench();
      server.on("eth_getTransactionCount", () => value);
      await expect(chain.transactionCount(ADDRESS, "latest")).rejects.toThrow(ChainUnavailable);
    },
  );

  it("is requested with the given block tag", async () => {
    const { server, chain } = await bench();
    server.on("eth_getTransactionCount", ([, tag]) => (tag === "pending" ? "0x7" : "0x5"));
    expect(await chain.transactionCount(ADDRESS, "latest")).toEqual({ count: 5, endpoint: server.url });
    expect((await chain.transactionCount(ADDRESS, "pending")).count).toBe(7);
    expect(await chain.balance(ADDRESS)).toBe(10n ** 18n);
  });

  it("includes the transaction count of every endpoint", async () => {
    const { server, other, chain } = await bench({ endpoints: 2 });
    server.on("eth_getTransactionCount", () => "0x2d");
    other.on("eth_getTransactionCount", () => "0x5");
    server.on("eth_blockNumber", () => "0x64");
    other.on("eth_blockNumber", () => "0x63");
    const [liar, says] = [
      { kind: "says", count: 45 },
      { kind: "says", count: 5 },
    ];
    expect(await chain.transactionCountEverywhere(ADDRESS, 99)).toEqual([liar, says]);
    expect(await chain.transactionCountEverywhere(ADDRESS, 100)).toEqual([liar, { kind: "behind", count: 5 }]);
    other.failAlways(DOWN);
    expect(await chain.transactionCountEverywhere(ADDRESS, 99)).toEqual([liar, { kind: "silent" }]);
    server.failAlways(DOWN);
    await expect(chain.transactionCountEverywhere(ADDRESS, 99)).rejects.toThrow(ChainUnavailable);
  });

  it("cannot be read if every endpoint serves another chain", async () => {
    const { server, chain } = await bench({ chainId: 31_337 });
    server.on("eth_getBlockByNumber", ([number]) => blockJson(Number(number)));
    await chain.blocksByNumber([0]);
    expect(await chain.identityEverywhere()).toMatchObject([{ kind: "says", answer: { chainId: 31_337 } }]);
    server.on("eth_chainId", () => "0x1");
    expect((await chain.identity(null)).chainId).toBe(1);
    expect(await chain.identityEverywhere()).toEqual([]);
    await expect(chain.transactionCountEverywhere(ADDRESS, 0)).rejects.toThrow(ChainUnavailable);
  });

  it("includes whether a second endpoint confirms or contradicts a block hash", async () => {
    const { other, chain } = await bench({ endpoints: 2 });
    expect(await chain.secondOpinion(7)).toEqual({ kind: "agreed", hash: hashOf(1_007) });
    other.on("eth_getBlockByNumber", ([tag]) => (tag === "0x8" ? null : blockJson(7, { hash: hashOf(0xbad) })));
    const both = [expect.stringContaining(hashOf(1_007)), expect.stringContaining(hashOf(0xbad))];
    expect(await chain.secondOpinion(7)).toEqual({ kind: "disagree", answers: both });
    other.on("eth_getBlockByNumber", () => null);
    expect(await chain.secondOpinion(7)).toEqual({ kind: "behind" });
    other.failAlways(DOWN);
    for (let times = 0; times < 3; times++) await expect(chain.secondOpinion(7)).rejects.toThrow(ChainUnavailable);
    expect(await chain.secondOpinion(7)).toEqual({ kind: "none" });
  });

  // protects [Chains that differ] src/adapters/evm/rpc/endpoints.ts
  it("includes a contradicting block hash of the second endpoint", async () => {
    const { server, other, chain } = await bench({ endpoints: 2 });
    other.on("eth_getBlockByNumber", () => blockJson(7, { hash: hashOf(0xbad) }));
    server.failAlways(DOWN);
    expect((await chain.head("latest"))?.hash).toBe(hashOf(0xbad));
    await expect(chain.secondOpinion(7)).rejects.toThrow(ChainUnavailable);
    server.failAlways(null);
    expect(await chain.secondOpinion(7)).toMatchObject({ kind: "disagree" });
  });
});
