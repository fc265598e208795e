/**
 * Attacks on `/rpc` with a read-only key. They check which requests reach an endpoint, and how much of the node's
 * memory such a key can use.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { parseGwei } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterEach, describe, expect } from "vitest";
import { it, type Nodes, RECIPIENT } from "../support/integration.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";
import { TestSocket } from "../support/rpc-socket.ts";

const MIB = 1024 * 1024;
/**
 * Allowed growth of the node's memory in MiB. It covers the memory that one key may use, copies made while reading and
 * parsing, and the node's ordinary work.
 */
const MOST_GROWTH_MIB = 256;

const SECRETS = { weak: "weak-0123456789abcdefghijkl", ops: "ops-0123456789abcdefghijkl" };
const KEYED = {
  FENCEPOST_AUTH: "keys",
  FENCEPOST_API_KEYS: `weak:${SECRETS.weak}:read,ops:${SECRETS.ops}:read+submit+operate+admin`,
  FENCEPOST_RPC_FOREIGN_RAW: "pass",
};
const as = (name: keyof typeof SECRETS) => ({ authorization: `Bearer ${SECRETS[name]}` });

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function startBehind(url: string, nodes: Nodes): Promise<{ node: NodeProcess; proxy: RpcProxy }> {
  const proxy = await startRpcProxy(url);
  closers.push(() => proxy.close());
  return { node: await nodes.start(proxy.url, KEYED), proxy };
}

async function post(node: NodeProcess, name: keyof typeof SECRETS, path: string, body: unknown, method = "POST") {
  const headers = { ...as(name), "content-type": "application/json" };
  const response = await fetch(`${node.url}${path}`, { method, headers, body: JSON.stringify(body) });
  return (await response.json()) as { result?: unknown; error?: { code: number; message: string } };
}

const call = (method: string, params: readonly unknown[] = []) => ({ jsonrpc: "2.0", id: 1, method, params });

function memoryOf({ pid }: NodeProcess): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mib = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024;
  return { now: mib("VmRSS"), peak: mib("VmHWM") };
}

/** Resolves when the whole body was written, or the node sent a response. */
async function writeTo(
  node: NodeProcess,
  head: string,
  body: Buffer,
): Promise<{ socket: Socket; answer: () => string }> {
  const { hostname, port } = new URL(node.url);
  const socket = connect({ host: hostname, port: Number(port) });
  closers.push(() => socket.destroy());
  let answer = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    answer += chunk;
  });
  socket.on("error", () => undefined);
  socket.write(head);
  const written = new Promise((resolve) => socket.write(body, resolve));
  await Promise.race([written, once(socket, "data"), once(socket, "close")]);
  return { socket, answer: () => answer };
}

const UPGRADE = (path: string, more: readonly string[] = []) =>
  [
    ...[`GET ${path} HTTP/1.1`, "host: x", `authorization: ${as("weak").authorization}`, ...more],
    ...["connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13"],
    ...["sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "", ""],
  ].join("\r\n");

async function firstLine(node: NodeProcess, bytes: string): Promise<string> {
  const { socket, answer } = await writeTo(node, bytes, Buffer.alloc(0));
  while (!answer().includes("\r\n")) await once(socket, "data");
  return answer().split("\r\n")[0] as string;
}

describe("an API key with the scope `read` only", () => {
  // protects [Attacks] src/domain/chain/rpc-methods.ts, src/adapters/http/rpc/reads.ts, src/adapters/evm/reads/pass-on.ts, src/application/operations/json-rpc.ts
  it("can call only RPC methods that read", async ({ simulated, nodes }) => {
    const { node, proxy } = await startBehind(simulated.url, nodes);
    await post(node, "ops", "/api/v1/kill", { reason: "an attack" });
    const acting = [
      ...["klay_sendTransaction", "kaia_sendTransaction", "eea_sendRawTransaction", "istanbul_propose"],
      ...["zks_sendRawTransactionWithDetailedOutput", "perm_addAccountsToAllowlist", "plugins_reloadPluginConfig"],
      ...["eth_sendTransaction", "eth_sendRawTransaction", "eth_sign", "personal_unlockAccount", "evm_mine", "made_up"],
    ];
    const socket = await TestSocket.open(`${node.url}/rpc`, as("weak"));
    for (const method of acting) {
      expect((await post(node, "weak", "/rpc", call(method, [{}]))).error).toBeDefined();
      expect((await socket.call(method, [{}])).error).toBeDefined();
    }
    socket.close();
    expect((await post(node, "weak", "/rpc", call("eth_blockNumber"))).result).toMatch(/^0x/);
    const stranger = privateKeyToAccount(`0x${"5e".repeat(32)}`);
    const chainId = Number((await post(node, "weak", "/rpc", call("eth_chainId"))).result);
    const fees = { maxFeePerGas: parseGwei("50"), maxPriorityFeePerGas: parseGwei("1") };
    const transfer = { chainId, nonce: 0, to: RECIPIENT, value: 1n, gas: 21_000n, type: "eip1559", ...fees } as const;
    const raw = await stranger.signTransaction(transfer);
    expect((await post(node, "ops", "/rpc", call("eth_sendRawTransaction", [raw]))).error?.code).toBe(-32002);
    const reached = new Set(proxy.calls.map(({ method }) => method));
    expect(acting.filter((method) => reached.has(method))).toEqual([]);
    await post(node, "ops", "/api/v1/kill", { reason: "over" }, "DELETE");
    await post(node, "ops", "/rpc", call("eth_sendRawTransaction", [raw]));
    expect(proxy.calls.some(({ method }) => method === "eth_sendRawTransaction")).toBe(true);
  });

  // protects [Attacks] src/adapters/http/exchange/reserve-bodies.ts, src/adapters/http/admission/held-bytes.ts
  it("cannot exhaust memory with sixty incomplete request bodies", async ({ simulated, nodes }) => {
    const { node } = await startBehind(simulated.url, nodes);
    await post(node, "weak", "/rpc", call("eth_blockNumber"));
    const before = memoryOf(node).now;
    const head = [
      ...["POST /rpc HTTP/1.1", "host: x", `authorization: ${as("weak").authorization}`],
      ...["content-type: application/json", `content-length: ${8 * MIB}`, "", ""],
    ].join("\r\n");
    const body = Buffer.alloc(8 * MIB - 1, " ");
    const begun = await Promise.all(Array.from({ length: 60 }, () => writeTo(node, head, body)));
    expect((await post(node, "ops", "/rpc", call("eth_blockNumber"))).result).toMatch(/^0x/);
    expect(begun.filter(({ answer }) => answer().startsWith("HTTP/1.1 429 ")).length).toBeGreaterThanOrEqual(50);
    expect(memoryOf(node).peak - before).toBeLessThan(MOST_GROWTH_MIB);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/log-subscription.ts
  it("cannot exhaust memory with filters of 120,000 addresses or endless messages", async ({ simulated, nodes }) => {
    const { node, proxy } = await startBehind(simulated.url, nodes);
    proxy.rule({ methods: ["eth_getLogs"] }, async () => ({ result: [] }));
    const socket = await TestSocket.open(`${node.url}/rpc`, as("weak"));
    const before = memoryOf(node).now;
    const address = Array.from({ length: 120_000 }, () => RECIPIENT);
    for (let n = 0; n < 20; n++) {
      expect((await socket.call("eth_subscribe", ["logs", { address }])).error?.code).toBe(-32602);
    }
    expect((await socket.call("eth_subscribe", ["logs", { address: address.slice(0, 1_000) }])).result).toBeDefined();
    expect(proxy.calls.every(({ params }) => JSON.stringify(params).length < 100_000)).toBe(true);
    socket.close();
    // A masked text frame with an eight-byte length (RFC 6455, 5.2), whose last byte is never sent.
    const frame = Buffer.concat([Buffer.from([0x81, 0xff]), Buffer.alloc(12), Buffer.alloc(8 * MIB - 1, " ")]);
    frame.writeBigUInt64BE(BigInt(8 * MIB), 2);
    await Promise.all(Array.from({ length: 60 }, () => writeTo(node, UPGRADE("/rpc"), frame)));
    expect((await post(node, "ops", "/rpc", call("eth_blockNumber"))).result).toMatch(/^0x/);
    expect(memoryOf(node).peak - before).toBeLessThan(MOST_GROWTH_MIB);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-sockets.ts, src/adapters/http/admission/host-and-origin.ts
  it("opens at most 64 sockets", async ({ simulated, nodes }) => {
    const { node } = await startBehind(simulated.url, nodes);
    for (const path of ["/rpc/../api/v1/signers", "/rpc/%2e%2e/api/v1/signers"]) {
      expect(await firstLine(node, UPGRADE(path))).toBe("HTTP/1.1 404 Not Found");
    }
    expect(await firstLine(node, UPGRADE("/rpc", ["Host: y"]))).toBe("HTTP/1.1 400 Bad Request");
    expect(await firstLine(node, "GET /healthz HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n")).toBe(
      "HTTP/1.1 400 Bad Request",
    );
    const spellings = ["Bearer", "bearer", "BEARER", "bEARER"];
    const opened = await Promise.all(
      Array.from({ length: 80 }, (_, at) => {
        return firstLine(node, UPGRADE("/rpc").replace("Bearer", spellings[at % 4] as string));
      }),
    );
    expect(opened.filter((line) => line.startsWith("HTTP/1.1 101 "))).toHaveLength(64);
  });
});
