import { createPublicClient, http } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import { SimulatedChain } from "./core.ts";
import type { Fault } from "./faults.ts";
import { ETHER, GWEI, SampleSender } from "./sample-transactions.ts";
import { type SimulatedServer, type SimulatedServerOptions, startSimulatedServer } from "./server.ts";

const alice = new SampleSender(1);
const open: SimulatedServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function start(options: Partial<SimulatedServerOptions> = {}): Promise<SimulatedServer> {
  const server = await startSimulatedServer({ chain: new SimulatedChain(), ...options });
  open.push(server);
  return server;
}

async function post(server: SimulatedServer, body: unknown, signal?: AbortSignal): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(server.url, { method: "POST", body: text, ...(signal === undefined ? {} : { signal }) });
}

async function rpc(server: SimulatedServer, method: string, ...params: unknown[]) {
  const response = await post(server, { jsonrpc: "2.0", id: 7, method, params });
  return (await response.json()) as { readonly id: number; readonly result?: unknown; readonly error?: unknown };
}

describe("the JSON-RPC server of the simulated chain", () => {
  it("serves a viem client from sending to the receipt", async () => {
    const server = await start();
    const client = createPublicClient({ transport: http(server.url), cacheTime: 0 });
    const hash = await client.sendRawTransaction({
      serializedTransaction: await alice.sign({ nonce: 0, value: ETHER }),
    });
    expect(await client.getTransactionCount({ address: alice.address, blockTag: "pending" })).toBe(1);
    expect((await client.getTransaction({ hash })).blockNumber).toBeNull();
    const [block] = server.chain.mine();
    const receipt = await client.getTransactionReceipt({ hash });
    expect(receipt).toMatchObject({ status: "success", blockHash: block?.hash, gasUsed: 21_000n, type: "eip1559" });
    expect((await client.getBlock()).transactions).toEqual([hash]);
    const full = await client.getBlock({ includeTransactions: true });
    expect(full.transactions[0]).toMatchObject({ hash, from: alice.address, value: ETHER });
    expect(await client.getBalance({ address: `0x${"99".repeat(20)}` })).toBe(10_001n * ETHER);
    expect(await client.getTransactionCount({ address: alice.address, blockNumber: 0n })).toBe(0);
    expect(await client.getChainId()).toBe(31_337);
  });

  it("returns fee history, gas estimates and reverts as viem expects", async () => {
    const server = await start();
    const client = createPublicClient({ transport: http(server.url), cacheTime: 0 });
    server.chain.submit(await alice.sign({ nonce: 0 }));
    server.chain.mine(2);
    const history = await client.getFeeHistory({ blockCount: 3, rewardPercentiles: [10, 50] });
    expect(history.baseFeePerGas).toEqual([GWEI, GWEI, GWEI, GWEI]);
    expect(history.reward).toEqual([
      [0n, 0n],
      [GWEI, GWEI],
      [0n, 0n],
    ]);
    expect(await client.getGasPrice()).toBe(2n * GWEI);
    const to: Hex = `0x${"ab".repeat(20)}`;
    expect(await client.estimateGas({ account: alice.address, to, data: "0xff" })).toBe(21_016n);
    server.chain.revertCallsTo(to, "0xdeadbeef");
    await expect(client.estimateGas({ account: alice.address, to })).rejects.toThrow(/execution reverted/i);
    expect(await rpc(server, "eth_call", { from: alice.address, to }, "latest")).toMatchObject({
      error: { code: 3, message: "execution reverted", data: "0xdeadbeef" },
    });
  });

  it("answers a batch in order, with a separate result for each item", async () => {
    const server = await start();
    const raw = await alice.sign({ nonce: 0 });
    const calls = [raw, raw, "0x1234"].map((param, id) => ({ id, method: "eth_sendRawTransaction", params: [param] }));
    const answers = await (await post(server, calls)).json();
    expect(answers).toMatchObject([
      { id: 0, result: server.chain.witness[0]?.hash },
      { id: 1, error: { code: -32000, message: "already known" } },
      { id: 2, error: { code: -32000 } },
    ]);
    expect([server.requests(), server.calls("eth_sendRawTransaction")]).toEqual([1, 3]);
  });

  it("returns all receipts of a block by number or hash, unless disabled", async () => {
    const server = await start();
    for (const nonce of [0, 1]) server.chain.submit(await alice.sign({ nonce }));
    const [block] = server.chain.mine();
    const byHash = await rpc(server, "eth_getBlockReceipts", block?.hash);
    expect(byHash.result).toHaveLength(2);
    expect((await rpc(server, "eth_getBlockReceipts", "0x1")).result).toEqual(byHash.result);
    const single = await rpc(server, "eth_getTransactionReceipt", block?.transactions[1]?.transaction.hash);
    expect(single.result).toEqual((byHash.result as readonly unknown[])[1]);
    const without = await start({ blockReceipts: false });
    expect(await rpc(without, "eth_getBlockReceipts", "0x0")).toMatchObject({ error: { code: -32601 } });
  });

  it("returns the safe and finalized blocks by depth", async () => {
    const chain = new SimulatedChain({ tagDepths: { safe: 2, finalized: 4 } });
    const server = await start({ chain });
    chain.mine(10);
    expect(await rpc(server, "eth_getBlockByNumber", "safe", false)).toMatchObject({ result: { number: "0x8" } });
    expect(await rpc(server, "eth_getBlockByNumber", "finalized", false)).toMatchObject({ result: { number: "0x6" } });
    const bare = await start({ chain: new SimulatedChain({ tagDepths: null }) });
    expect(await rpc(bare, "eth_getBlockByNumber", "finalized", false)).toMatchObject({
      error: { code: -32000, message: "finalized block not found" },
    });
  });

  it("answers invalid requests with JSON-RPC errors", async () => {
    const server = await start();
    expect(await (await post(server, "{")).json()).toMatchObject({ error: { code: -32700 } });
    expect(await (await post(server, "null")).json()).toMatchObject({ error: { code: -32601 } });
    expect(await rpc(server, "eth_getBalance", "nobody")).toMatchObject({ error: { code: -32602 } });
    expect(await rpc(server, "eth_getTransactionCount", alice.address, "0xffff")).toMatchObject({
      error: { message: "header not found" },
    });
  });

  it("mines periodically if configured", async () => {
    const chain = new SimulatedChain();
    const mined = new Promise<number>((resolve) => {
      chain.subscribe((event) => event.type === "block" && event.block.number === 3 && resolve(3));
    });
    await start({ chain, blockTimeMs: 5 });
    expect(await mined).toBe(3);
  });
});

describe("a fault injected into the simulated JSON-RPC server", () => {
  const sending = { method: "eth_sendRawTransaction", times: 1 };

  async function strike(fault: Fault) {
    const server = await start();
    server.faults.inject(fault, sending);
    const raw = await alice.sign({ nonce: 0 });
    const body = { id: 1, method: "eth_sendRawTransaction", params: [raw] };
    return { server, body };
  }

  it("can lose the response after the request was executed", async () => {
    const { server, body } = await strike({ kind: "loseReply" });
    await expect(post(server, body)).rejects.toThrow();
    expect(server.chain.pool.size).toBe(1);
    expect(await (await post(server, body)).json()).toMatchObject({ error: { message: "already known" } });
  });

  it("can break the connection before the request is executed", async () => {
    const { server, body } = await strike({ kind: "unavailable" });
    await expect(post(server, body)).rejects.toThrow();
    expect(server.chain.witness).toEqual([]);
  });

  it.each([true, false])("can hang (executed: %s) until the client gives up", async (executed) => {
    const server = await start();
    const struck = new Promise<void>((resolve) => {
      const when = () => {
        resolve();
        return true;
      };
      server.faults.inject({ kind: "hang", executed }, { ...sending, when });
    });
    const abort = new AbortController();
    const body = { id: 1, method: "eth_sendRawTransaction", params: [await alice.sign({ nonce: 0 })] };
    const pending = post(server, body, abort.signal);
    await struck;
    abort.abort();
    await expect(pending).rejects.toThrow();
    expect(server.chain.pool.size).toBe(executed ? 1 : 0);
  });

  it("can answer in HTML like a proxy", async () => {
    const { server, body } = await strike({ kind: "httpError", status: 502 });
    const response = await post(server, body);
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("<html>");
    expect(server.chain.witness).toEqual([]);
  });

  it("can wrap the node's error as an internal error", async () => {
    const { server, body } = await strike({ kind: "wrapErrors" });
    server.chain.submit(body.params[0] as Hex);
    expect(await (await post(server, body)).json()).toMatchObject({
      error: { code: -32603, data: { code: -32000, message: "already known" } },
    });
  });

  it("can replace one answer of a batch by an error", async () => {
    const { server, body } = await strike({ kind: "error", code: -32005, message: "limit exceeded" });
    const answers = await (await post(server, [{ id: 0, method: "eth_chainId" }, body])).json();
    expect(answers).toMatchObject([{ result: "0x7a69" }, { error: { code: -32005 } }]);
  });

  it("can limit an endpoint to the blocks up to an old block", async () => {
    const chain = new SimulatedChain();
    const [upToDate, lagging] = [await start({ chain }), await start({ chain })];
    chain.submit(await alice.sign({ nonce: 0 }));
    lagging.faults.pinHead(0);
    const [block] = chain.mine();
    const hash = block?.transactions[0]?.transaction.hash;
    expect((await rpc(upToDate, "eth_blockNumber")).result).toBe("0x1");
    expect((await rpc(lagging, "eth_blockNumber")).result).toBe("0x0");
    for (const [method, ...params] of [
      ["eth_getBlockByNumber", "0x1", false],
      ["eth_getBlockByHash", block?.hash, false],
      ["eth_getTransactionReceipt", hash],
      ["eth_getTransactionByHash", hash],
    ]) {
      expect((await rpc(lagging, String(method), ...params)).result).toBeNull();
    }
    expect((await rpc(lagging, "eth_getTransactionCount", alice.address, "latest")).result).toBe("0x0");
    lagging.faults.pinHead(null);
    expect((await rpc(lagging, "eth_getTransactionCount", alice.address, "latest")).result).toBe("0x1");
  });

  it("can report a false transaction count", async () => {
    const server = await start();
    server.faults.lieAboutNonce((honest, _, tag) => (tag === "latest" ? honest + 633 : honest));
    expect((await rpc(server, "eth_getTransactionCount", alice.address, "latest")).result).toBe("0x279");
    expect((await rpc(server, "eth_getTransactionCount", alice.address, "pending")).result).toBe("0x0");
    server.faults.heal();
    expect((await rpc(server, "eth_getTransactionCount", alice.address, "latest")).result).toBe("0x0");
  });
});
