/** Tests `fencepost/testing`, used as in the test suites of its users. */
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { FencepostError, type Stack, type StackOptions, startFencepost } from "fencepost/testing";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { findProcess } from "../../src/main/dev/embedded/processes.ts";
import { spawnScript } from "../support/node-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const RECIPIENT = "0x00000000000000000000000000000000000000AA";

async function transfer(stack: Stack, signer = 0) {
  const request = { signer: stack.signers[signer] as `0x${string}`, payload: { to: RECIPIENT, value: 1n } } as const;
  return (await stack.client.send(request)).txId;
}

const head = async (stack: Stack) => Number(await stack.chain.rpc("eth_blockNumber"));

describe("a test stack of startFencepost", () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startFencepost();
  });
  afterAll(() => stack?.stop());

  it("sends and confirms a transaction", async () => {
    expect(stack.signers).toHaveLength(3);
    const sent = await stack.client.waitFor(await transfer(stack), { timeoutMs: 30_000 });
    expect(sent).toMatchObject({ state: "CONFIRMED", chainId: stack.chainId });
    const stranger = stack.strangers[0]?.address as `0x${string}`;
    expect(BigInt((await stack.chain.rpc("eth_getBalance", [stranger, "latest"])) as string)).toBe(
      10_000n * 10n ** 18n,
    );
    await expect(stack.client.send({ signer: stranger, payload: { to: RECIPIENT } })).rejects.toMatchObject({
      code: "UNKNOWN_SIGNER",
    });
  });

  it("has the configured signer pools", async () => {
    const pooled = await startFencepost({ signers: 3, pools: { payouts: [1, 2] } });
    try {
      const send = () => pooled.client.send({ signer: { pool: "payouts" }, payload: { to: RECIPIENT, value: "1" } });
      const signers = (await Promise.all([send(), send()])).map(({ signer }) => signer);
      expect(signers.sort()).toEqual(pooled.signers.slice(1).sort());
    } finally {
      await pooled.stop();
    }
  });

  it("can pause mining and mine on request", async () => {
    await stack.chain.pauseMining();
    const before = await head(stack);
    await stack.chain.setBaseFee(7_000_000_000n);
    await stack.chain.mine(3);
    expect(await head(stack)).toBe(before + 3);
    const block = (await stack.chain.rpc("eth_getBlockByNumber", ["latest", false])) as { baseFeePerGas: string };
    expect(BigInt(block.baseFeePerGas)).toBe(7_000_000_000n);
    await stack.chain.setBaseFee(null);
    await stack.chain.resumeMining();
    await waitUntil(async () => (await head(stack)) > before + 3, "there is another block");
  });

  it("can reorganise its last blocks", async () => {
    await stack.chain.pauseMining();
    // Lower the base fee below what the node last saw, so that the next block includes the transaction.
    await stack.chain.setBaseFee(1n);
    const txId = await transfer(stack, 1);
    const sent = await waitUntil(async () => {
      const hash = (await stack.client.get(txId)).attempts[0]?.txHash;
      return hash && (await stack.chain.rpc("eth_getTransactionByHash", [hash])) ? hash : null;
    }, "the chain's pool has it");
    const receipt = () => stack.chain.rpc("eth_getTransactionReceipt", [sent]);
    await stack.chain.mine();
    const first = (await receipt()) as { blockHash: string };
    await stack.chain.reorg(1);
    expect(await receipt()).toBeNull();
    await stack.chain.resumeMining();
    const outcome = await stack.client.waitFor(txId, { timeoutMs: 30_000 });
    expect(outcome.state).toBe("CONFIRMED");
    expect(outcome.receipt?.blockHash).not.toBe(first.blockHash);
    expect(await stack.chain.rpc("eth_getTransactionCount", [stack.signers[1], "latest"])).toBe("0x1");
    await expect(stack.chain.reorg(1_000)).rejects.toThrow(/the depth must be from 1 to \d+ blocks/);
  });

  it("continues at the same address after its node was killed", async () => {
    const txId = await transfer(stack, 2);
    await stack.restartNode("kill");
    expect(await stack.client.waitFor(txId, { timeoutMs: 60_000 })).toMatchObject({ state: "CONFIRMED" });
    await stack.restartNode();
    expect(await stack.client.get(txId)).toMatchObject({ state: "CONFIRMED" });
  });

  it("shares nothing with other stacks that run at the same time", async () => {
    const [one, other] = await Promise.all([
      startFencepost({ signers: 1, blockTimeMs: null }),
      startFencepost({ signers: 1 }),
    ]);
    try {
      expect(new Set([stack, one, other].map(({ url }) => url))).toHaveProperty("size", 3);
      await other.client.waitFor(await transfer(other), { timeoutMs: 30_000 });
      await transfer(one);
      expect((await one.client.list()).items).toMatchObject([{ nonce: 0, receipt: null }]);
      expect(await head(one)).toBe(0);
    } finally {
      await Promise.all([one.stop(), other.stop()]);
    }
  });
});

describe("a test stack on the user's own PostgreSQL server", () => {
  it("drops its database when stopped", async () => {
    const { adminUrl: databaseUrl } = inject("postgres");
    const stack = await startFencepost({ databaseUrl, settings: { FENCEPOST_CONFIRMATIONS: "0" } });
    await stack.client.waitFor(await transfer(stack), { timeoutMs: 30_000 });
    const name = new URL(stack.databaseUrl).pathname.slice(1);
    await stack.stop();
    await stack[Symbol.asyncDispose]();
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    expect((await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [name])).rows).toEqual([]);
    await client.end();
  });
});

describe("startFencepost", () => {
  it.each<[StackOptions, RegExp]>([
    [{ signers: 0 }, /signers: must be a whole number from 1 to 500, not 0/],
    [{ signers: 2, pools: { payouts: [0, 2] } }, /pools.payouts: there are signers 0 to 1, and no 2$/],
    [{ blockTimeMs: 0 }, /blockTimeMs: must be at least 1, or null/],
    [
      { settings: { FENCEPOST_CONFIRMATIONS: "many" } },
      /the node of the test did not start: .*FENCEPOST_CONFIRMATIONS/,
    ],
  ])("reports what is wrong with the options %j, and leaves nothing behind", async (options, message) => {
    const starting = startFencepost(options);
    await expect(starting).rejects.toThrow(message);
    await expect(starting).rejects.toBeInstanceOf(FencepostError);
    await expect(starting).rejects.toMatchObject({ code: "CONFIGURATION", retry: "never", docs: expect.any(String) });
  });
});

/** A script that starts a stack, prints its processes, and then obeys commands. */
const SCRIPT = (end: string) => `
  import { startFencepost } from "fencepost/testing";
  import { execFileSync } from "node:child_process";
  const stack = await startFencepost({ signers: 1 });
  const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(process.pid)]).toString().trim().split(/\\s+/).map(Number);
  console.log(JSON.stringify({ ready: true, children }));
  ${end}
`;

describe("the processes and files of a test stack", () => {
  // protects [Wallet libraries, and tests of callers] src/main/dev/embedded/chain/child.ts, src/main/testing/start-fencepost.ts, src/main/testing/test-databases.ts
  it("are removed when the process that started the stack ends or is killed", async () => {
    const start = async (end: string) => {
      const child = spawnScript(["--input-type=module", "-e", SCRIPT(end)]);
      const { children } = (await child.ready) as unknown as { readonly children: readonly number[] };
      expect(children.length).toBeGreaterThanOrEqual(3);
      const alive = async () => (await Promise.all(children.map(findProcess))).filter((found) => found !== null);
      const directories = () => readdirSync(tmpdir()).filter((name) => name.includes(`-${child.pid}-`));
      return { child, directories, gone: () => waitUntil(async () => (await alive()).length === 0, "all have ended") };
    };
    const killed = await start("setInterval(() => undefined, 1_000);");
    killed.child.signal("SIGKILL");
    await killed.gone();
    // This script never stops its stack.
    const forgetful = await start("");
    expect(await forgetful.child.exited).toMatchObject({ code: 0 });
    await forgetful.gone();
    const left = () => [...killed.directories(), ...forgetful.directories()];
    await waitUntil(() => left().length === 0, "their directories are removed");
  });
});
