/** Unmodified viem and ethers with a WebSocket to `/rpc` as their only provider: `npm run test:clients`. */

import { WebSocketProvider } from "ethers";
import { createPublicClient, createWalletClient, webSocket } from "viem";
import { hardhat } from "viem/chains";
import { describe, expect } from "vitest";
import { asHex } from "../../../src/client/index.ts";
import { audit, untilSettled } from "../../support/audit.ts";
import { BLOCK_TIME_MS, it, RECIPIENT, SIGNER } from "../../support/integration.ts";
import { waitUntil } from "../../support/wait-until.ts";

const TIMEOUT_MS = 300_000;
const AT_ONCE = 200;
const DEARER = { reason: "test", maxFeePerGas: "90000000000", maxPriorityFeePerGas: "50000000000" } as const;
/** A contract whose every call writes an empty log: PUSH1 0, PUSH1 0, LOG0, STOP. */
const LOGGING = "0x6006600c60003960066000f360006000a000";
const socketOf = (url: string) => `${url.replace(/^http/, "ws")}/rpc`;

describe("a node's /rpc over a WebSocket", { timeout: TIMEOUT_MS }, () => {
  // protects [JSON-RPC] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("serves sends, blocks, logs and replacements to viem", async ({ edr, nodes, database }) => {
    const { url, client } = await nodes.start(edr.url);
    const transport = webSocket(socketOf(url));
    const wallet = createWalletClient({ chain: hardhat, transport, account: SIGNER });
    const reader = createPublicClient({ chain: hardhat, transport });
    const seen: bigint[] = [];
    const unwatch = reader.watchBlockNumber({ onBlockNumber: (number) => void seen.push(number) });
    const send = (value: bigint) => wallet.sendTransaction({ to: RECIPIENT, value });
    const hashes = await Promise.all(Array.from({ length: AT_ONCE }, () => send(1n)));
    const receipts = await Promise.all(hashes.map((hash) => reader.waitForTransactionReceipt({ hash })));
    expect(new Set(receipts.map(({ transactionHash }) => transactionHash)).size).toBe(AT_ONCE);
    expect(receipts.every(({ status }) => status === "success")).toBe(true);
    await waitUntil(() => seen.length > 5, "blocks are told");
    unwatch();
    expect(seen).toEqual(seen.map((_, at) => (seen[0] as bigint) + BigInt(at)));

    const deployed = await wallet.deployContract({ abi: [], bytecode: LOGGING });
    const { contractAddress: address } = await reader.waitForTransactionReceipt({ hash: deployed });
    if (!address) throw new Error("nothing was deployed");
    const logs: unknown[] = [];
    const unwatchLogs = reader.watchEvent({ address, onLogs: (some) => void logs.push(...some) });
    const logged = await wallet.sendTransaction({ to: address });
    await waitUntil(() => logs.length > 0, "the log is told");
    unwatchLogs();
    expect(logs).toMatchObject([{ transactionHash: logged }]);

    await edr.rpc("evm_setIntervalMining", [0]);
    const slow = await send(2n);
    const { items } = await client.list({ txHash: slow });
    const replacing = reader.waitForTransactionReceipt({ hash: slow });
    await client.reprice(items[0]?.txId ?? "", DEARER);
    await edr.rpc("evm_setIntervalMining", [BLOCK_TIME_MS]);
    const replaced = await replacing;
    expect([replaced.status, replaced.transactionHash === slow]).toEqual(["success", false]);
    (await transport({ chain: hardhat }).value?.getRpcClient())?.close();
    await untilSettled(database, AT_ONCE + 3);
    await audit({ database, rpcUrl: edr.url });
  });

  // protects [JSON-RPC] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("serves sends, blocks, logs and replacements to ethers", async ({ edr, nodes, database }) => {
    const { url, client } = await nodes.start(edr.url);
    const provider = new WebSocketProvider(socketOf(url), undefined, { cacheTimeout: -1 });
    const signer = await provider.getSigner(SIGNER);
    const seen: number[] = [];
    await provider.on("block", (number: number) => void seen.push(number));
    const send = (value: bigint) => signer.sendTransaction({ to: RECIPIENT, value });
    const sent = await Promise.all(Array.from({ length: AT_ONCE }, () => send(1n)));
    const receipts = await Promise.all(sent.map((each) => each.wait()));
    expect(new Set(receipts.map((receipt) => receipt?.hash)).size).toBe(AT_ONCE);
    expect(receipts.every((receipt) => receipt?.status === 1)).toBe(true);
    await waitUntil(() => seen.length > 5, "blocks are told");

    const deployed = await (await signer.sendTransaction({ data: LOGGING })).wait();
    const logs: { readonly transactionHash: string }[] = [];
    const filter = { address: deployed?.contractAddress ?? "" };
    await provider.on(filter, (log: { readonly transactionHash: string }) => void logs.push(log));
    const logged = await signer.sendTransaction({ to: filter.address });
    await waitUntil(() => logs.length > 0, "the log is told");
    expect(logs).toMatchObject([{ transactionHash: logged.hash }]);

    await edr.rpc("evm_setIntervalMining", [0]);
    const slow = await send(2n);
    const { items } = await client.list({ txHash: asHex(slow.hash) });
    const waiting = slow.wait().catch((error: unknown) => error);
    await client.reprice(items[0]?.txId ?? "", DEARER);
    await edr.rpc("evm_setIntervalMining", [BLOCK_TIME_MS]);
    expect(await waiting).toMatchObject({ code: "TRANSACTION_REPLACED", receipt: { status: 1 } });
    await provider.removeAllListeners();
    // The provider ends its subscriptions in the background, and reports an error if that is interrupted. So wait for
    // one more response before destroying it.
    await provider.send("eth_chainId", []);
    await provider.destroy();
    await untilSettled(database, AT_ONCE + 3);
    await audit({ database, rpcUrl: edr.url });
  });
});
