import { privateKeyToAccount } from "viem/accounts";
import { createEvmChain, type EvmChainOptions } from "../../src/adapters/evm/chain.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { Address } from "../../src/domain/lane.ts";
import { type DevChain, startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import type { ChainHarness, Reverting } from "../contracts/chain.contract.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { recordTelemetry } from "./recorded-telemetry.ts";
import { REVERT_DATA, revertingInitCode } from "./reverting-contracts.ts";

const GWEI = 1_000_000_000n;

/** The real chain adapter on a real EVM, which EDR runs in this process behind a JSON-RPC server. */
export async function startEdrHarness(overrides: Partial<EvmChainOptions> = {}): Promise<ChainHarness> {
  const node = await startEmbeddedChain();
  const reverting = await deployReverting(node);
  const chain = await createEvmChain({
    urls: [node.url],
    telemetry: recordTelemetry(),
    clock: systemClock,
    entropy: createSeededEntropy(1),
    // A call with an endless loop uses a whole block of gas, which on a busy machine takes longer than a caller would
    // wait.
    timeoutMs: 50_000,
    ...overrides,
  });
  const beforeBlock: unknown[] = [];
  const mine = async () => {
    beforeBlock.push(await node.rpc("evm_snapshot"));
    await node.mine();
  };
  return {
    chain,
    accounts: node.accounts.slice(0, 3).map((each) => ({ ...each, address: each.address.toLowerCase() as Address })),
    nodeAccount: (node.accounts[3]?.address ?? "").toLowerCase() as Address,
    reverting,
    mine,
    async reorg(depth) {
      const [snapshot] = beforeBlock.splice(-depth);
      await node.rpc("evm_revert", [snapshot]);
      await dropPool(node);
      // Use another coinbase, so that an empty block on the new branch has another hash than the one it replaces.
      await node.rpc("hardhat_setCoinbase", [`0x${"c0".repeat(20)}`]);
      for (let block = 0; block <= depth; block++) await mine();
    },
    async close() {
      await chain.close();
      await node.stop();
    },
  };
}

/** Empties the mempool, because evm_revert also restores the mempool of the snapshot. */
async function dropPool(node: DevChain): Promise<void> {
  const pending = (await node.rpc("eth_pendingTransactions")) as { hash: string }[];
  for (const { hash } of pending) await node.rpc("hardhat_dropTransaction", [hash]);
}

async function deployReverting(node: DevChain): Promise<Reverting> {
  const deployer = node.accounts.at(-1);
  if (deployer === undefined) throw new Error("the chain has no accounts");
  const signer = privateKeyToAccount(deployer.privateKey);
  const addresses: Address[] = [];
  for (const [nonce, data] of Object.values(REVERT_DATA).entries()) {
    const raw = await signer.signTransaction({
      type: "eip1559",
      chainId: node.chainId,
      nonce,
      data: revertingInitCode(data),
      gas: 500_000n,
      maxFeePerGas: 10n * GWEI,
      maxPriorityFeePerGas: GWEI,
    });
    const hash = await node.rpc("eth_sendRawTransaction", [raw]);
    await node.mine();
    const receipt = (await node.rpc("eth_getTransactionReceipt", [hash])) as { contractAddress: Address };
    addresses.push(receipt.contractAddress);
  }
  const [withReason, withPanic, withCustomError, silently] = addresses as [Address, Address, Address, Address];
  return { withReason, withPanic, withCustomError, silently };
}
