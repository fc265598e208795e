import { describe, expect, it } from "vitest";
import { fetchBySenderAndNonce, fetchCountAt, fetchSentInBlock } from "../../../../src/adapters/evm/reads/read-sent.ts";
import { BadAnswer, RpcErrorAnswer, type RpcReply } from "../../../../src/adapters/evm/rpc/rpc-errors.ts";
import type { Address } from "../../../../src/domain/lane.ts";

const SENDER: Address = `0x${"5e".repeat(20)}`;
const HASH = `0x${"ab".repeat(32)}`;

function answering(reply: RpcReply) {
  return { batch: async () => [reply] };
}

function refusing(code: number, message: string) {
  return answering({ ok: false, error: new RpcErrorAnswer(code, message) });
}

const OURS = {
  hash: HASH,
  from: SENDER.toUpperCase().replace("0X", "0x"),
  nonce: "0x7",
  to: null,
  value: "0x0",
  input: "0x60",
  gas: "0x5208",
  gasPrice: "0x1",
  type: "0x0",
};

describe("a sender's transaction count at a past block", () => {
  it.each([
    ["geth", "missing trie node 7f1b… (path ) state 0x7f1b… is not available"],
    ["geth, path scheme", "historical state 0x7f1b… is not available"],
    ["Erigon", "old data not available due to pruning"],
    ["Reth", "state at block #12 is pruned"],
    ["Nethermind", "No state available for block 0x7f1b…"],
    ["Besu", "World state unavailable"],
    ["a gateway", "this request requires an archive node"],
  ])("is null if the node has pruned the state (%s)", async (_, message) => {
    expect(await fetchCountAt(refusing(-32000, message), SENDER, 12)).toBeNull();
  });

  it.each(["header not found", "internal error", "rate limit exceeded"])(
    "is an error if the node answers with the error: %s",
    async (message) => {
      await expect(fetchCountAt(refusing(-32000, message), SENDER, 12)).rejects.toThrow(RpcErrorAnswer);
    },
  );
});

describe("the transactions of one sender in a block", () => {
  const block = (transactions: unknown, number = "0xc") =>
    answering({ ok: true, result: { number, hash: HASH, transactions } });

  it("are read although other transactions of the block have unknown types", async () => {
    const deposit = { hash: HASH, from: `0x${"de".repeat(20)}`, type: "0x7e", sourceHash: HASH };
    const sent = await fetchSentInBlock(block([deposit, OURS]), SENDER, 12);
    expect(sent).toEqual([
      {
        txHash: HASH,
        from: SENDER,
        nonce: 7,
        to: null,
        value: 0n,
        data: "0x60",
        gas: 21_000n,
        fees: { type: "legacy", gasPrice: 1n },
        block: { number: 12, hash: HASH },
      },
    ]);
  });

  it("are refused if the endpoint returns another block", async () => {
    await expect(fetchSentInBlock(block([OURS], "0xd"), SENDER, 12)).rejects.toThrow(BadAnswer);
  });
});

describe("looking up a transaction by sender and nonce", () => {
  it("refuses a transaction of another sender or another nonce", async () => {
    const other = { ...OURS, from: `0x${"de".repeat(20)}` };
    await expect(fetchBySenderAndNonce(answering({ ok: true, result: other }), SENDER, 7)).rejects.toThrow(BadAnswer);
    await expect(fetchBySenderAndNonce(answering({ ok: true, result: OURS }), SENDER, 8)).rejects.toThrow(BadAnswer);
  });

  it("refuses a transaction with more gas than any chain allows", async () => {
    const result = { ...OURS, gas: "0x8000000000000000" };
    await expect(fetchBySenderAndNonce(answering({ ok: true, result }), SENDER, 7)).rejects.toThrow(BadAnswer);
  });

  it("returns unsupported if the node lacks the method", async () => {
    expect(await fetchBySenderAndNonce(refusing(-32601, "method not found"), SENDER, 7)).toBe("unsupported");
    await expect(fetchBySenderAndNonce(refusing(-32000, "internal error"), SENDER, 7)).rejects.toThrow();
  });
});
