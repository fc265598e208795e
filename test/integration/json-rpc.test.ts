/** Unmodified viem and ethers with `/rpc` as their only provider, on a real database and a real EVM. */

import { ContractFactory, JsonRpcProvider } from "ethers";
import { createPublicClient, createWalletClient, http } from "viem";
import { hardhat } from "viem/chains";
import { describe, expect } from "vitest";
import { asHex } from "../../src/client/index.ts";
import { audit, untilSettled } from "../support/audit.ts";
import { BLOCK_TIME_MS, it, OTHER_SIGNER, RECIPIENT, SIGNER } from "../support/integration.ts";
import { rpcCall } from "../support/rpc-call.ts";
import { hangAfterwards, startRpcProxy, swallow, type Treatment } from "../support/rpc-proxy.ts";
import { SAMPLE_ABI, SAMPLE_BYTECODE } from "../support/sample-contract.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitUntil } from "../support/wait-until.ts";

const POLLING = { pollingInterval: 50 };
const AT_ONCE = 200;
const countRows = "SELECT tx_id FROM fencepost.transaction";

type HttpOptions = NonNullable<Parameters<typeof http>[1]>;

function viemOn(url: string, options: HttpOptions = {}) {
  const shared = { chain: hardhat, transport: http(url, options), ...POLLING };
  return { wallet: createWalletClient({ ...shared, account: SIGNER }), reader: createPublicClient(shared) };
}

function ethersOn(url: string): JsonRpcProvider {
  return new JsonRpcProvider(url, undefined, { ...POLLING, cacheTimeout: -1 });
}

describe("viem on /rpc", () => {
  it("can transfer, deploy, write and find a replacement", async ({ edr, nodes, database }) => {
    const { url, client } = await nodes.start(edr.url);
    const { wallet, reader } = viemOn(`${url}/rpc`);
    expect((await wallet.getAddresses()).map(String).sort()).toEqual([SIGNER, OTHER_SIGNER].sort());

    const hash = await wallet.sendTransaction({ to: RECIPIENT, value: 5n });
    expect(await reader.waitForTransactionReceipt({ hash })).toMatchObject({
      status: "success",
      transactionHash: hash,
    });

    const deployed = await wallet.deployContract({ abi: SAMPLE_ABI, bytecode: SAMPLE_BYTECODE, args: [7n] });
    const { contractAddress } = await reader.waitForTransactionReceipt({ hash: deployed });
    const contract = { address: contractAddress as `0x${string}`, abi: SAMPLE_ABI } as const;
    const written = await wallet.writeContract({ ...contract, functionName: "raise", args: [9n] });
    await reader.waitForTransactionReceipt({ hash: written });
    expect(await reader.readContract({ ...contract, functionName: "current" })).toBe(9n);
    const reverts = wallet.writeContract({ ...contract, functionName: "raise", args: [1n] });
    await expect(reverts).rejects.toThrow(/reverted/);

    const many = Array.from({ length: AT_ONCE }, () => wallet.sendTransaction({ to: RECIPIENT, value: 1n }));
    const hashes = await Promise.all(many);
    expect(new Set(hashes).size).toBe(AT_ONCE);
    const receipts = await Promise.all(hashes.map((each) => reader.waitForTransactionReceipt({ hash: each })));
    expect(receipts.every(({ status }) => status === "success")).toBe(true);
    expect(await reader.getTransactionCount({ address: SIGNER, blockTag: "pending" })).toBe(AT_ONCE + 3);

    await edr.rpc("evm_setIntervalMining", [0]);
    const slow = await wallet.sendTransaction({ to: RECIPIENT, value: 2n });
    expect(await reader.getTransaction({ hash: slow })).toMatchObject({
      hash: slow,
      blockNumber: null,
      nonce: AT_ONCE + 3,
    });
    const { items } = await client.list({ txHash: slow });
    const replacing = reader.waitForTransactionReceipt({ hash: slow });
    await client.reprice(items[0]?.txId ?? "", {
      reason: "test",
      maxFeePerGas: "90000000000",
      maxPriorityFeePerGas: "50000000000",
    });
    await edr.rpc("evm_setIntervalMining", [BLOCK_TIME_MS]);
    const replaced = await replacing;
    expect(replaced).toMatchObject({ status: "success" });
    expect(replaced.transactionHash).not.toBe(slow);
    const own = await rpcCall(`${url}/rpc`, "fencepost_getTransaction", [slow]);
    expect(own).toMatchObject({ txHash: replaced.transactionHash, attempts: [{ txHash: slow }, {}] });
    await untilSettled(database, AT_ONCE + 4);
    await audit({ database, rpcUrl: edr.url });
  });
});

describe("ethers on /rpc", () => {
  it("can transfer, deploy, write and find a replacement", async ({ edr, nodes, database }) => {
    const { url, client } = await nodes.start(edr.url);
    const provider = ethersOn(`${url}/rpc`);
    const signer = await provider.getSigner(SIGNER);
    const sent = await signer.sendTransaction({ to: RECIPIENT, value: 5n });
    expect(await sent.wait()).toMatchObject({ status: 1, hash: sent.hash });

    const factory = new ContractFactory([...SAMPLE_LINES], SAMPLE_BYTECODE, signer);
    const contract = await (await factory.deploy(7n)).waitForDeployment();
    await (await contract.getFunction("raise").send(9n)).wait();
    expect(await contract.getFunction("current").staticCall()).toBe(9n);
    await expect(contract.getFunction("raise").send(1n)).rejects.toMatchObject({ code: "CALL_EXCEPTION" });

    const many = Array.from({ length: AT_ONCE }, () => signer.sendTransaction({ to: RECIPIENT, value: 1n }));
    const all = await Promise.all(many);
    expect(new Set(all.map(({ hash }) => hash)).size).toBe(AT_ONCE);
    expect((await Promise.all(all.map((each) => each.wait()))).every((receipt) => receipt?.status === 1)).toBe(true);

    await edr.rpc("evm_setIntervalMining", [0]);
    const slow = await signer.sendTransaction({ to: RECIPIENT, value: 2n });
    const { items } = await client.list({ txHash: asHex(slow.hash) });
    const waiting = slow.wait().catch((error: unknown) => error);
    await client.reprice(items[0]?.txId ?? "", {
      reason: "test",
      maxFeePerGas: "90000000000",
      maxPriorityFeePerGas: "50000000000",
    });
    // The replacement is in the mempool once the chain no longer has the first attempt.
    await expect.poll(() => edr.rpc("eth_getTransactionByHash", [slow.hash])).toBeNull();
    await edr.rpc("evm_setIntervalMining", [BLOCK_TIME_MS]);
    expect(await waiting).toMatchObject({ code: "TRANSACTION_REPLACED", reason: "repriced", receipt: { status: 1 } });
    await provider.removeAllListeners();
    await untilSettled(database, AT_ONCE + 4);
    await audit({ database, rpcUrl: edr.url });
    provider.destroy();
  });
});

const SAMPLE_LINES = [
  "constructor(uint256 initial)",
  "function raise(uint256 value)",
  "function current() view returns (uint256)",
];

interface Sent {
  readonly hash?: string;
  readonly error?: unknown;
}

const sending = (work: Promise<string>): Promise<Sent> =>
  work.then(
    (hash) => ({ hash }),
    (error: unknown) => ({ error }),
  );

describe("a /rpc response lost after the commit", () => {
  // protects [JSON-RPC] src/adapters/http/rpc/sends.ts, src/adapters/http/rpc/error-codes.ts
  it("between database and node leaves at most one transaction", async ({ edr, nodes, database }) => {
    const wire = await TcpProxy.start(Number(new URL(database.url).port));
    const { url } = await nodes.start(edr.url, { FENCEPOST_DATABASE_URL: wire.through(database.url) });
    const { wallet } = viemOn(`${url}/rpc`);
    const provider = ethersOn(`${url}/rpc`);
    const signer = await provider.getSigner(OTHER_SIGNER);
    // In each case, the response to the commit that allocates the nonce (the second or third COMMIT from now) is lost
    // or arrives too late.
    const tries = [
      { client: "viem", fault: "cut-after", send: () => wallet.sendTransaction({ to: RECIPIENT, value: 1n }) },
      {
        client: "ethers",
        fault: "cut-after",
        send: async () => (await signer.sendTransaction({ to: RECIPIENT, value: 1n })).hash,
      },
      { client: "viem", fault: "hold-answer", send: () => wallet.sendTransaction({ to: RECIPIENT, value: 2n }) },
      {
        client: "ethers",
        fault: "hold-answer",
        send: async () => (await signer.sendTransaction({ to: RECIPIENT, value: 2n })).hash,
      },
    ] as const;
    let before = 0;
    for (const { client, fault, send } of tries) {
      const struck = wire.atNextCommit(fault);
      const { hash, error } = await sending(send());
      await struck;
      const rows = await database.query<{ tx_id: string }>(countRows);
      const what = `${client}, ${fault}: ${String(error)}`;
      if (hash === undefined) expect(JSON.stringify(error, seen()), what).toMatch(/nothing was|[0-9a-f-]{36}/);
      expect(rows.length - before, what).toBeLessThanOrEqual(1);
      if (hash !== undefined) expect(rows.length - before, what).toBe(1);
      before = rows.length;
    }
    provider.destroy();
    await untilSettled(database, before);
    await audit({ database, rpcUrl: edr.url });
    await wire.close();
  });

  // protects [JSON-RPC] src/adapters/http/rpc/sends.ts
  it("between node and client leaves one transaction", async ({ edr, nodes, database }) => {
    const { url } = await nodes.start(edr.url);
    const lossy = async (path: string, treatment: Treatment) => {
      const proxy = await startRpcProxy(`${url}${path}`);
      proxy.rule({ methods: ["eth_sendTransaction"], times: 1 }, treatment);
      return proxy;
    };
    const rowsOf = async (value: number) => database.query("SELECT 1 FROM fencepost.payload WHERE value = $1", [value]);
    let value = 100;
    for (const treatment of [swallow, hangAfterwards]) {
      const plain = await lossy("/rpc", treatment);
      const { wallet } = viemOn(plain.url, { timeout: 1_000 });
      expect((await sending(wallet.sendTransaction({ to: RECIPIENT, value: BigInt(++value) }))).error).toBeDefined();
      await waitUntil(async () => (await rowsOf(value)).length > 0, "it is stored");
      expect(await rowsOf(value)).toHaveLength(1);

      // viem's actions do not retry a send without a response, but its bare requests and its fallback transport do.
      // Test a bare request.
      const merging = await lossy("/rpc?repeat=merge", treatment);
      const bare = { from: SIGNER, to: RECIPIENT, value: `0x${(++value).toString(16)}` } as const;
      const repeated = viemOn(merging.url, { timeout: 1_000 }).wallet;
      const asked = sending(repeated.request({ method: "eth_sendTransaction", params: [bare] }));
      expect((await asked).hash).toMatch(/^0x/);
      expect(merging.calls).toHaveLength(2);
      expect(await rowsOf(value)).toHaveLength(1);
      for (const proxy of [plain, merging]) await proxy.close();
    }
    const cut = await lossy("/rpc", swallow);
    const provider = ethersOn(cut.url);
    const signer = await provider.getSigner(SIGNER);
    expect(
      (await sending(signer.sendTransaction({ to: RECIPIENT, value: BigInt(++value) }).then((sent) => sent.hash)))
        .error,
    ).toBeDefined();
    expect(await rowsOf(value)).toHaveLength(1);
    provider.destroy();
    await cut.close();
    await untilSettled(database, 5);
    await audit({ database, rpcUrl: edr.url });
  });
});

/** A JSON replacer that skips values already seen, because errors of clients contain cycles. */
function seen() {
  const known = new WeakSet<object>();
  return (_: string, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (known.has(value)) return undefined;
    known.add(value);
    return value instanceof Error ? { ...value, message: value.message, cause: value.cause } : value;
  };
}
