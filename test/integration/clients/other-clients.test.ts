/**
 * Unmodified web3.js, web3.py and cast with `/rpc` as their only provider: `npm run test:clients`. They are installed
 * outside this package. A client that cannot be installed is skipped, with a note on standard error.
 */
import { fileURLToPath } from "node:url";
import { encodeAbiParameters } from "viem";
import { describe, expect } from "vitest";
import { audit, untilSettled } from "../../support/audit.ts";
import { cast, installed, type Output, program, web3js, web3py } from "../../support/clients/install.ts";
import { it, RECIPIENT, SIGNER } from "../../support/integration.ts";
import { rpcCall } from "../../support/rpc-call.ts";
import { SAMPLE_BYTECODE } from "../../support/sample-contract.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";

const TIMEOUT_MS = 600_000;
const fileOf = (name: string) => fileURLToPath(new URL(`../../support/clients/${name}`, import.meta.url));

/** Fixed fees: the chain's base fee falls twenty times a second, so an estimate is stale before it is sent. */
const FEES = ["--gas-price", "30gwei", "--priority-gas-price", "1gwei"];

const EXPECTED = {
  ...{ accounts: 2, status: 1, current: 9, hashes: 200, succeeded: 200, own: true },
  reverted: expect.stringMatching(/revert/i),
  replaced: { ordered: 202, pending: true, another: true, status: 1 },
};

/**
 * Delay of every response of the chain in ms. With this delay, the connections available for callers' reads allow 160
 * reads a second.
 */
const SLOW_MS = 100;

/** Concurrent processes of `cast`: as many as a machine with two cores can run. */
const AT_ONCE = 25;

describe("a node's /rpc as the only provider", () => {
  // protects [JSON-RPC] src/adapters/http/rpc/chain-reads.ts
  it("serves web3.js even on a slow chain", {
    timeout: TIMEOUT_MS,
  }, async ({ edr, nodes, database, onTestFinished }) => {
    const directory = await installed("web3.js", web3js);
    if (directory === null) return;
    const slow = await TcpProxy.start(Number(new URL(edr.url).port));
    onTestFinished(() => slow.close());
    slow.slowDown(SLOW_MS);
    const { url } = await nodes.start(slow.through(edr.url));
    const argv = [fileOf("with-web3js.cjs"), url, edr.url, directory, SIGNER, RECIPIENT, SAMPLE_BYTECODE];
    expect(said(await program(process.execPath, argv))).toEqual(EXPECTED);
    await untilSettled(database, 204);
    await audit({ database, rpcUrl: edr.url });
  });

  it("serves web3.py", { timeout: TIMEOUT_MS }, async ({ edr, nodes, database }) => {
    const python = await installed("web3.py", web3py);
    if (python === null) return;
    const { url } = await nodes.start(edr.url);
    const argv = [fileOf("with_web3py.py"), url, edr.url, SIGNER, RECIPIENT, SAMPLE_BYTECODE];
    expect(said(await program(python, argv))).toEqual(EXPECTED);
    await untilSettled(database, 204);
    await audit({ database, rpcUrl: edr.url });
  });

  it("serves cast, including sends with explicit nonces", {
    timeout: TIMEOUT_MS,
  }, async ({ edr, nodes, database }) => {
    const binary = await installed("cast", cast);
    if (binary === null) return;
    const { url } = await nodes.start(edr.url);
    const send = (rpcUrl: string, ...argv: readonly string[]) =>
      program(binary, ["send", "--json", "--unlocked", "--from", SIGNER, "--rpc-url", rpcUrl, ...argv]);
    const rpc = `${url}/rpc`;
    expect(said(await send(rpc, RECIPIENT, "--value", "5"))).toMatchObject({ status: "0x1" });
    const code = `${SAMPLE_BYTECODE}${encodeAbiParameters([{ type: "uint256" }], [7n]).slice(2)}`;
    const { contractAddress } = said(await send(rpc, "--create", code)) as { contractAddress: string };
    await send(rpc, contractAddress, "raise(uint256)", "9");
    expect(
      (await program(binary, ["call", "--rpc-url", rpc, contractAddress, "current()(uint256)"])).stdout.trim(),
    ).toBe("9");
    await expect(send(rpc, contractAddress, "raise(uint256)", "1")).rejects.toThrow(/revert/i);
    const low = await send(rpc, RECIPIENT, "--value", "77", "--nonce", "0").catch((error: Error) => error.message);
    expect(low).toMatch(/nonce too low/);
    const hashes = new Set<string>();
    const some = async () => {
      for (let n = 0; n < 200 / AT_ONCE; n++) {
        const each = said(await send(`${rpc}?nonce=ignore`, RECIPIENT, "--value", "1", ...FEES));
        hashes.add((each as { transactionHash: string }).transactionHash);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, some));
    expect(hashes.size).toBe(200);
    expect(await rpcCall(rpc, "eth_getTransactionCount", [SIGNER, "pending"])).toBe("0xcb");
    await untilSettled(database, 203);
    await audit({ database, rpcUrl: edr.url });
  });
});

function said({ stdout }: Output): unknown {
  return JSON.parse(stdout);
}
