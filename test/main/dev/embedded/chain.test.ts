import { createPublicClient, createWalletClient, type Hash, http, parseEther } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DevAccount, type DevChain, startEmbeddedChain } from "../../../../src/main/dev/embedded/start-chain.ts";
import { waitUntil } from "../../../support/wait-until.ts";

/** Init code that reverts with 0xdeadbeef or with Error("no funds"). */
const REVERTS_WITH_DATA = "0x63deadbeef5f526004601cfd";
const ERROR_NO_FUNDS = `08c379a0${"20".padStart(64, "0")}${"8".padStart(64, "0")}${"6e6f2066756e6473".padEnd(64, "0")}`;
const REVERTS_WITH_REASON = `0x6064600c5f3960645ffd${"00".repeat(2)}${ERROR_NO_FUNDS}`;

describe("the embedded chain with a block every 50 ms", () => {
  let chain: DevChain;

  beforeAll(async () => {
    chain = await startEmbeddedChain({ blockTimeMs: 50 });
  });

  afterAll(() => chain.stop());

  test("has ten accounts with 10,000 ether each", async () => {
    expect(chain.accounts).toHaveLength(10);
    expect(chain.accounts[0]).toEqual({
      address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
      privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    });
    expect(chain.accounts[9]?.address).toBe("0xa0Ee7A142d267C1f36714E4a8F75612F20a79720");
    for (const { address } of chain.accounts) {
      expect(await chain.rpc("eth_getBalance", [address, "latest"])).toBe("0x21e19e0c9bab2400000");
    }
    expect(await chain.rpc("eth_chainId")).toBe("0x7a69");
  });

  test("accepts `data` together with an equal `input`, as cast sends them", async () => {
    const [{ address: from }, { address: to }] = chain.accounts as [DevAccount, DevAccount];
    const call = { from, to, value: "0x1", input: "0x", data: "0x" };
    expect(await chain.rpc("eth_estimateGas", [call, "latest"])).toMatch(/^0x520/);
    expect(await chain.rpc("eth_call", [call, "latest"])).toBe("0x");
    await expect(chain.rpc("eth_call", [{ ...call, data: "0xab" }, "latest"])).rejects.toThrow();
  });

  test("mines empty blocks without a request", async () => {
    const before = Number(await chain.rpc("eth_blockNumber"));
    await waitUntil(async () => Number(await chain.rpc("eth_blockNumber")) >= before + 5, "five blocks were mined");
    const block = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
    expect(Number(block.timestamp)).toBeLessThanOrEqual(Date.now() / 1000 + 2);
  });

  test("mines transactions of one sender in order", async () => {
    const wallet = createWalletClient({ account: accountOf(0), chain: foundry, transport: http(chain.url) });
    const reader = createPublicClient({ chain: foundry, transport: http(chain.url), pollingInterval: 20 });
    const to = accountOf(1).address;
    const nonce = await reader.getTransactionCount({ address: accountOf(0).address });
    const hashes: Hash[] = [];
    for (let i = 0; i < 5; i++) {
      hashes.push(await wallet.sendTransaction({ to, value: parseEther("1"), nonce: nonce + i }));
    }
    const receipts = await Promise.all(hashes.map((hash) => reader.waitForTransactionReceipt({ hash })));
    expect(receipts.map((receipt) => receipt.status)).toEqual(Array(5).fill("success"));
    expect(await reader.getTransactionCount({ address: accountOf(0).address })).toBe(nonce + 5);
  });

  function accountOf(index: number) {
    return privateKeyToAccount((chain.accounts[index] as DevAccount).privateKey);
  }
});

describe("the embedded chain that mines on request", () => {
  let chain: DevChain;
  let from: string;

  beforeAll(async () => {
    chain = await startEmbeddedChain({ chainId: 4242, accounts: 2, balanceEther: 1 });
    from = (chain.accounts[0] as DevAccount).address;
  });

  afterAll(() => chain.stop());

  test("uses the given chain id, number of accounts and balance", async () => {
    expect(chain.chainId).toBe(4242);
    expect(await chain.rpc("eth_chainId")).toBe("0x1092");
    expect(await chain.rpc("eth_accounts")).toHaveLength(2);
    expect(await chain.rpc("eth_getBalance", [chain.accounts[1]?.address, "latest"])).toBe("0xde0b6b3a7640000");
  });

  test("keeps transactions until the next block", async () => {
    const before = Number(await chain.rpc("eth_blockNumber"));
    const hashes = [await send("0x0"), await send("0x1"), await send("0x2")];
    expect(await chain.rpc("eth_getTransactionReceipt", [hashes[0]])).toBeNull();
    await chain.mine();
    expect(Number(await chain.rpc("eth_blockNumber"))).toBe(before + 1);
    const block = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
      hash: string;
      transactions: string[];
    };
    expect(block.transactions).toEqual(hashes);
    for (const asked of ["latest", block.hash, { blockHash: block.hash }, { blockNumber: "latest" }]) {
      const receipts = (await chain.rpc("eth_getBlockReceipts", [asked])) as { transactionHash: string }[];
      expect(receipts.map((receipt) => receipt.transactionHash)).toEqual(hashes);
    }
    await chain.mine(3);
    expect(Number(await chain.rpc("eth_blockNumber"))).toBe(before + 4);
  });

  test("returns null for receipts of unknown blocks", async () => {
    expect(await chain.rpc("eth_getBlockReceipts", ["0xffffff"])).toBeNull();
    expect(await chain.rpc("eth_getBlockReceipts", [`0x${"ab".repeat(32)}`])).toBeNull();
    await expect(chain.rpc("eth_getBlockReceipts")).rejects.toMatchObject({ code: -32602 });
  });

  test("drops all changes since evm_snapshot when evm_revert is called", async () => {
    const snapshot = await chain.rpc("evm_snapshot");
    const before = await chain.rpc("eth_getBlockByNumber", ["latest", false]);
    const hash = await send("0x3");
    await chain.mine(2);
    expect(await chain.rpc("eth_getTransactionReceipt", [hash])).not.toBeNull();
    expect(await chain.rpc("evm_revert", [snapshot])).toBe(true);
    expect(await chain.rpc("eth_getBlockByNumber", ["latest", false])).toEqual(before);
    expect(await chain.rpc("eth_getTransactionReceipt", [hash])).toBeNull();
  });

  test("supports hardhat's own methods", async () => {
    const stranger = `0x${"42".repeat(20)}`;
    await chain.rpc("hardhat_setBalance", [stranger, "0x1234"]);
    await chain.rpc("hardhat_setNonce", [stranger, "0x7"]);
    expect(await chain.rpc("eth_getBalance", [stranger, "latest"])).toBe("0x1234");
    expect(await chain.rpc("eth_getTransactionCount", [stranger, "latest"])).toBe("0x7");
  });

  test("reports a revert with code 3 and the reason in the message", async () => {
    await expect(chain.rpc("eth_call", [{ from, data: REVERTS_WITH_DATA }, "latest"])).rejects.toMatchObject({
      code: 3,
      message: "eth_call: execution reverted",
      data: "0xdeadbeef",
    });
    await expect(chain.rpc("eth_estimateGas", [{ from, data: REVERTS_WITH_REASON }])).rejects.toMatchObject({
      code: 3,
      message: "eth_estimateGas: execution reverted: no funds",
      data: `0x${ERROR_NO_FUNDS}`,
    });
  });

  test("reports failures other than reverts with the engine's message", async () => {
    await expect(chain.rpc("eth_call", [{ from, data: "0xfe" }, "latest"])).rejects.toMatchObject({ code: -32000 });
    await expect(chain.rpc("no_suchMethod")).rejects.toMatchObject({
      code: -32004,
      message: "no_suchMethod: Method no_suchMethod is not supported",
    });
  });

  test("reports undecodable transactions like other nodes", async () => {
    const { privateKey } = chain.accounts[0] as DevAccount;
    const fee = 2n ** 128n;
    const tooDear = await privateKeyToAccount(privateKey).signTransaction({
      chainId: 4242,
      gas: 21_000n,
      gasPrice: fee,
    });
    for (const bytes of ["0x", tooDear]) {
      await expect(chain.rpc("eth_sendRawTransaction", [bytes])).rejects.toMatchObject({
        code: -32602,
        message: expect.stringMatching(/^eth_sendRawTransaction: failed to decode signed transaction: ./),
      });
    }
    await expect(chain.rpc("eth_sendRawTransaction", ["0x1234"])).rejects.toMatchObject({
      code: -32602,
      message: "eth_sendRawTransaction: Invalid transaction type 18.",
    });
  });

  test("deploys contracts under the rules of a recent fork", async () => {
    // Code that uses PUSH0 (Shanghai), MCOPY (Cancun) and CLZ (Osaka), and returns nothing.
    const hash = await chain.rpc("eth_sendTransaction", [{ from, data: "0x5f5f5f5e5f1e505f5ff3", gas: "0x186a0" }]);
    await chain.mine();
    expect(await chain.rpc("eth_getTransactionReceipt", [hash])).toMatchObject({ status: "0x1" });
  });

  async function send(nonce: string): Promise<unknown> {
    return chain.rpc("eth_sendTransaction", [{ from, to: from, value: "0x1", gas: "0x5208", nonce }]);
  }
});

test("the embedded chain with automine mines a block for every transaction", async () => {
  const chain = await startEmbeddedChain({ automine: true });
  const from = chain.accounts[0]?.address;
  const hash = await chain.rpc("eth_sendTransaction", [{ from, to: from, value: "0x1" }]);
  expect(await chain.rpc("eth_getTransactionReceipt", [hash])).toMatchObject({ blockNumber: "0x1" });
  await chain.stop();
});

test("the embedded chain refuses to start in one line if its port is in use", async () => {
  const chain = await startEmbeddedChain();
  await expect(startEmbeddedChain({ port: chain.port, blockTimeMs: 50 })).rejects.toMatchObject({
    code: "PORT_TAKEN",
    message: `port ${chain.port} is already in use: choose another one, or stop what listens there`,
  });
  await chain.stop();
  const second = await startEmbeddedChain({ port: chain.port });
  expect(second.url).toBe(chain.url);
  await second.stop();
});
