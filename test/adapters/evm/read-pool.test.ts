import { describe, expect, it } from "vitest";
import { fetchPooled } from "../../../src/adapters/evm/reads/read-sent.ts";
import { BadAnswer, RpcErrorAnswer, type RpcReply } from "../../../src/adapters/evm/rpc/rpc-errors.ts";
import type { RpcCall } from "../../../src/adapters/evm/rpc/wire.ts";

const ADDRESS = `0x${"a1".repeat(20)}` as const;
const HASH = `0x${"c3".repeat(32)}`;

function node(answers: Readonly<Record<string, (params: readonly unknown[]) => unknown>>) {
  const asked: string[] = [];
  const batch = async (calls: readonly RpcCall[]): Promise<readonly RpcReply[]> =>
    calls.map(({ method, params }) => {
      asked.push(method);
      const answer = answers[method];
      if (answer === undefined)
        return { ok: false, error: new RpcErrorAnswer(-32601, `the method ${method} does not exist`) };
      return { ok: true, result: answer(params as readonly unknown[]) };
    });
  return { asked, batch };
}

describe("a sender's transactions in a node's mempool", () => {
  it("are read from txpool_contentFrom, pending and queued", async () => {
    const rpc = node({
      txpool_contentFrom: () => ({
        pending: { "5": { hash: HASH.toUpperCase().replace("0X", "0x") } },
        queued: { "7": { hash: HASH } },
      }),
    });
    expect(await fetchPooled(rpc, ADDRESS, [5, 6, 7])).toEqual([HASH, null, HASH]);
    expect(rpc.asked).toEqual(["txpool_contentFrom"]);
  });

  it("are read nonce by nonce if the node has no txpool_contentFrom", async () => {
    const rpc = node({ eth_getTransactionBySenderAndNonce: ([, nonce]) => (nonce === "0x5" ? { hash: HASH } : null) });
    expect(await fetchPooled(rpc, ADDRESS, [5, 6])).toEqual([HASH, null]);
  });

  it("are null if the node cannot read its mempool", async () => {
    expect(await fetchPooled(node({}), ADDRESS, [5])).toBeNull();
  });

  it("are refused as a bad answer if the result is malformed", async () => {
    for (const lie of [[], "pool", 7, { pending: { "5": {} } }, { pending: { "5": { hash: "0x12" } } }]) {
      await expect(fetchPooled(node({ txpool_contentFrom: () => lie }), ADDRESS, [5])).rejects.toBeInstanceOf(
        BadAnswer,
      );
    }
  });

  it("are an error, not an empty list, if the node fails", async () => {
    const failing = {
      batch: async (): Promise<readonly RpcReply[]> => [{ ok: false, error: new RpcErrorAnswer(-32000, "busy") }],
    };
    await expect(fetchPooled(failing, ADDRESS, [5])).rejects.toThrow("busy");
  });
});
