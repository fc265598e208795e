import { describe, expect, it } from "vitest";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { block, blockJson, hashOf, receiptJson, useEvmBench } from "../../support/evm-bench.ts";
import { Refusal } from "../../support/faulty-rpc.ts";

const bench = useEvmBench();

const BOTH = [hashOf(1), hashOf(2)];
const hashesOf = (receipts: readonly ({ readonly txHash: string } | null)[]) => receipts.map((each) => each?.txHash);

/**
 * False block numbers and indexes for a receipt whose block hash is correct. The block with that hash contradicts them.
 */
const CONTRADICTIONS: readonly (readonly [string, Record<string, unknown>])[] = [
  ["the number of an older block", { blockNumber: "0x1" }],
  ["the number of a future block", { blockNumber: "0x63" }],
  ["an index that no block has", { transactionIndex: "0x7fffffffffff" }],
];

const LISTS: readonly (readonly [string, readonly unknown[]])[] = [
  ["one twice and another not at all", [receiptJson(1), receiptJson(1)]],
  ["one from another transaction, not in the block", [receiptJson(1), receiptJson(3, { transactionIndex: "0x1" })]],
  ["one more than the block has", [receiptJson(1), receiptJson(2), receiptJson(2)]],
  ["fewer than the block has", [receiptJson(1)]],
  ["none", []],
  ["one that is null", [receiptJson(1), null]],
  ["one of another block", [receiptJson(1), receiptJson(2, { blockHash: hashOf(5) })]],
  ...CONTRADICTIONS.map(([what, lie]) => [`one with ${what}`, [receiptJson(1), receiptJson(2, lie)]] as const),
];

describe("the receipts of a block", () => {
  // protects [Chains that differ] src/adapters/evm/reads/read-receipts.ts
  it.each(LISTS)("are fetched by transaction hash if the block's receipt list has %s", async (_, list) => {
    const { server, chain } = await bench();
    server.on("eth_getBlockReceipts", () => list);
    server.on("eth_getTransactionReceipt", ([hash]) => receiptJson(Number(hash)));
    expect(hashesOf(await chain.receiptsInBlock(block(7), BOTH))).toEqual(BOTH);
  });

  it.each([
    ["is larger than the size limit", { kind: "raw", body: " ".repeat(33 * 1024 * 1024) } as const],
    ["is refused as too big", new Refusal(-32008, "Response is too big")],
    ["is refused as too large", new Refusal(-32003, "response too large")],
    ["times out on the node", new Refusal(-32002, "request timed out")],
    // protects [Chains that differ] src/adapters/evm/reads/read-receipts.ts
  ])("are fetched by transaction hash if the block's receipt list %s", async (_, trouble) => {
    const { server, chain } = await bench();
    await chain.head("latest");
    server.on("eth_getTransactionReceipt", ([hash]) => receiptJson(Number(hash)));
    server.on("eth_getBlockReceipts", () => {
      throw trouble;
    });
    if (!(trouble instanceof Refusal)) server.failNext(trouble);
    expect(hashesOf(await chain.receiptsInBlock(block(7), BOTH))).toEqual(BOTH);
  });

  it.each(CONTRADICTIONS)(
    // protects [Chains that differ] src/adapters/evm/reads/read-receipts.ts
    "are read from another endpoint if the first returns a receipt with %s",
    async (_, lie) => {
      const { server, other, chain } = await bench({ endpoints: 2 });
      server.on("eth_getBlockReceipts", () => [receiptJson(1), receiptJson(2, lie)]);
      server.on("eth_getTransactionReceipt", ([hash]) => receiptJson(Number(hash), hash === hashOf(2) ? lie : {}));
      other.on("eth_getBlockReceipts", () => [receiptJson(1), receiptJson(2)]);
      const found = await chain.receiptsInBlock(block(7), BOTH);
      expect(found.map(({ blockNumber, transactionIndex }) => [blockNumber, transactionIndex])).toEqual([
        [7, 0],
        [7, 1],
      ]);
      other.failAlways({ kind: "status", status: 502 });
      await expect(chain.receiptsInBlock(block(7), BOTH)).rejects.toThrow(ChainUnavailable);
    },
  );
});

describe("a receipt read by transaction hash", () => {
  // protects [Chains that differ] src/adapters/evm/reads/read-receipts.ts
  it.each(CONTRADICTIONS)("is refused as a bad answer if it has %s", async (_, lie) => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByHash", () => blockJson(7));
    server.on("eth_getTransactionReceipt", () => receiptJson(2, lie));
    await expect(chain.receipts([hashOf(2)])).rejects.toThrow(/contradicts its block/);
    server.on("eth_getTransactionReceipt", () => receiptJson(2));
    expect(hashesOf(await chain.receipts([hashOf(2)]))).toEqual([hashOf(2)]);
  });

  it("may have any transaction index, as on chains with system transactions", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByHash", () => blockJson(7));
    server.on("eth_getTransactionReceipt", () => receiptJson(2, { transactionIndex: "0x5" }));
    expect(await chain.receipts([hashOf(2)])).toMatchObject([{ txHash: hashOf(2), transactionIndex: 5 }]);
  });

  // protects [Chains that differ] src/adapters/evm/reads/read-receipts.ts
  it("is refused if its block does not contain the transaction, or does not exist", async () => {
    const { server, chain } = await bench();
    server.on("eth_getTransactionReceipt", () => receiptJson(2));
    server.on("eth_getBlockByHash", () => blockJson(7, { transactions: [hashOf(1), hashOf(3)] }));
    await expect(chain.receipts([hashOf(2)])).rejects.toThrow(/contradicts its block/);
    server.on("eth_getBlockByHash", () => null);
    await expect(chain.receipts([hashOf(2)])).rejects.toThrow(/a block that it does not have/);
    server.on("eth_getBlockByHash", () => {
      throw new Refusal(-32001, "block not found");
    });
    await expect(chain.receipts([hashOf(2)])).rejects.toThrow(/a block that it does not have/);
  });

  it("needs only one read of the block for many receipts", async () => {
    const { server, chain } = await bench();
    server.on("eth_getBlockByHash", () => blockJson(7));
    server.on("eth_getTransactionReceipt", ([hash]) => (hash === hashOf(9) ? null : receiptJson(Number(hash))));
    expect(hashesOf(await chain.receipts([hashOf(9), ...BOTH]))).toEqual([undefined, ...BOTH]);
    expect(server.calls("eth_getBlockByHash").map(({ params }) => params)).toEqual([[hashOf(1_007), false]]);
    await chain.receipts([hashOf(9)]);
    expect(server.calls("eth_getBlockByHash")).toHaveLength(1);
  });

  it.each(["0x7fffffffffffffff1", `0x${"f".repeat(64)}`])(
    "is refused as a bad answer if its gas is %s",
    async (gasUsed) => {
      const { server, chain } = await bench();
      server.on("eth_getBlockByHash", () => blockJson(7));
      server.on("eth_getTransactionReceipt", () => receiptJson(2, { gasUsed }));
      await expect(chain.receipts([hashOf(2)])).rejects.toThrow(ChainUnavailable);
    },
  );
});
