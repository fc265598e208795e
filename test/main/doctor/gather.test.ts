import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { configFrom } from "../../../src/main/config/load.ts";
import { gather } from "../../../src/main/doctor/gather.ts";
import { judge } from "../../../src/main/doctor/judge.ts";
import { type FaultyRpc, Refusal, startFaultyRpc } from "../../support/faulty-rpc.ts";

const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
let directory = "";
let rpc: FaultyRpc;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "fencepost-doctor-"));
  rpc = await startFaultyRpc();
  const timestamp = `0x${Math.floor(Date.now() / 1_000).toString(16)}`;
  rpc.on("eth_getBlockByNumber", ([tag]) => {
    if (tag === "finalized") throw new Refusal(-32_602, "no such tag");
    return tag === "safe" ? null : { number: "0x64", timestamp };
  });
  rpc.on("eth_syncing", () => false);
  rpc.on("eth_feeHistory", () => ({}));
  rpc.on("eth_getTransactionCount", () => "0x0");
  rpc.on("eth_getBalance", () => "0x0");
});
afterEach(async () => {
  await rpc.close();
  rmSync(directory, { recursive: true });
});

function factsOf(variables: Record<string, string>) {
  const given = { FENCEPOST_RPC_URL: rpc.url, FENCEPOST_PORT: "0", ...variables };
  const { config } = configFrom({ command: "config", variables: given, flags: {}, file: null }, "n-1");
  return gather(config);
}

const codesOf = (facts: Partial<Parameters<typeof judge>[0]>) =>
  judge({ nodeVersion: process.versions.node, mistakes: [], ...facts })
    .filter(({ sign }) => sign !== "ok")
    .map(({ code }) => code);

describe("facts of `fencepost doctor` about a chain", () => {
  it("include methods that an endpoint does not support", async () => {
    const facts = await factsOf({ FENCEPOST_PRIVATE_KEYS: KEY, FENCEPOST_FINALITY: "finalized" });
    expect(facts.chains[0]?.endpoints).toMatchObject([
      { kind: "answers", chainId: 31_337, head: 100, syncing: false, lacks: ["finalized", "safe", "logs"] },
    ]);
    expect(codesOf(facts)).toEqual(["SINGLE_ENDPOINT", "FINALITY_TAG", "ENDPOINT_LOGS", "NO_BALANCE"]);
  });

  // protects [The command line] src/adapters/evm/reads/examine-endpoint.ts
  it("include no method as missing if the call failed otherwise", async () => {
    rpc.on("eth_feeHistory", () => Promise.reject(new Error("the connection ends")));
    const [endpoint] = (await factsOf({})).chains[0]?.endpoints ?? [];
    expect(endpoint?.kind === "answers" && endpoint.lacks.includes("feeHistory")).toBe(false);
  });

  it("include an endpoint that does not answer", async () => {
    const facts = await factsOf({
      FENCEPOST_RPC_URL: "http://user:pass-word-1@127.0.0.1:1/v2/0123456789abcdef0123456789abcdef",
    });
    expect(facts.chains[0]?.endpoints).toMatchObject([{ kind: "silent" }]);
    expect(JSON.stringify(facts)).not.toMatch(/pass-word-1|0123456789abcdef/);
  });
});

describe("facts of `fencepost doctor` about keys", () => {
  it("include a key file that other users can read", async () => {
    const file = join(directory, "key.hex");
    writeFileSync(file, KEY, { mode: 0o644 });
    const open = await factsOf({ FENCEPOST_PRIVATE_KEY_FILES: file });
    expect(open.keys).toMatchObject([
      { source: "privateKeyFiles", problem: expect.stringContaining("open to other users") },
    ]);
    rmSync(file);
    writeFileSync(file, KEY, { mode: 0o600 });
    const twice = await factsOf({ FENCEPOST_PRIVATE_KEY_FILES: file, FENCEPOST_PRIVATE_KEYS: KEY });
    expect(codesOf(twice)).toContain("DOUBLE_KEY");
    expect(JSON.stringify(twice)).not.toContain(KEY.slice(2));
  });
});

describe("facts of `fencepost doctor` about the machine", () => {
  async function serving(body: string) {
    const server = createServer((_, response) => response.end(body));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const port = String((server.address() as AddressInfo).port);
    return { port, close: () => new Promise((resolve) => server.close(resolve)) };
  }

  it("distinguish a free port from a port in use", async () => {
    const node = await serving('{"status":"ok","version":"0.1.0"}');
    const stranger = await serving("hello");
    const listening = async (port: string) => (await factsOf({ FENCEPOST_PORT: port })).face.listening;
    expect(await listening("0")).toBe("free");
    expect(await listening(node.port)).toBe("fencepost");
    expect(await listening(stranger.port)).toBe("taken");
    expect((await factsOf({ FENCEPOST_HOST: "192.0.2.1" })).face.listening).toBe("noSuchAddress");
    await Promise.all([node.close(), stranger.close()]);
  });

  it("include only the mistakes of an invalid configuration", async () => {
    expect(codesOf({ mistakes: ["FENCEPOST_PORT: is not a port"] })).toEqual(["CONFIGURATION"]);
  });
});
