import { privateKeyToAccount } from "viem/accounts";
import type { Hash, Hex } from "../../src/domain/lane.ts";
import type { DevChain } from "../../src/main/dev/embedded/start-chain.ts";

const GWEI = 1_000_000_000n;
const PRICE = { maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: GWEI };

/** Init code that emits a log with one topic and 32 bytes of data, and deploys nothing. */
export const LOGGING_INIT_CODE: Hex = `0x${"6001600052" + "602a60206000a1" + "60006000f3"}`;
/** Init code that reverts during deployment. */
const REVERTING_INIT_CODE: Hex = "0x60006000fd";

type Json = Record<string, unknown>;

/** A block and its receipts as a node returns them, with all fields needed to recompute the block's hash and roots. */
export interface ShownBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly block: Json & { readonly transactions: readonly (Json & { readonly hash: Hash })[] };
  readonly receipts: readonly Json[];
}

/**
 * Mines one block with a transaction of every type that the chain accepts, a deployment, a log, a revert, and
 * `transfers` more.
 */
export async function mineVariedBlock(node: DevChain, transfers = 0): Promise<ShownBlock> {
  const { privateKey } = node.accounts[0] as DevChain["accounts"][number];
  const account = privateKeyToAccount(privateKey);
  const first = Number(await node.rpc("eth_getTransactionCount", [account.address, "latest"]));
  const storageKeys = [`0x${"01".repeat(32)}`, `0x${"00".repeat(32)}`] as const;
  const accessList = [
    { address: account.address, storageKeys },
    { address: account.address, storageKeys: [] },
  ];
  const authorization = await account.signAuthorization({
    contractAddress: account.address,
    chainId: node.chainId,
    nonce: 900,
  });
  const to = account.address;
  const wanted = [
    { type: "legacy", to, gasPrice: 10n * GWEI },
    { type: "eip2930", to, gasPrice: 10n * GWEI, accessList },
    { type: "eip1559", to, value: 7n, ...PRICE },
    { type: "eip1559", data: LOGGING_INIT_CODE, ...PRICE },
    { type: "eip1559", data: REVERTING_INIT_CODE, ...PRICE },
    { type: "eip7702", to, authorizationList: [authorization], ...PRICE },
    ...Array.from({ length: transfers }, () => ({ type: "eip1559", to, ...PRICE })),
  ];
  for (const [index, each] of wanted.entries()) {
    const request = { chainId: node.chainId, nonce: first + index, gas: 100_000n, ...each };
    const raw = await account.signTransaction(request as Parameters<typeof account.signTransaction>[0]);
    await node.rpc("eth_sendRawTransaction", [raw]);
  }
  await node.mine();
  return showLatest(node);
}

export async function showLatest(node: DevChain): Promise<ShownBlock> {
  const block = (await node.rpc("eth_getBlockByNumber", ["latest", true])) as ShownBlock["block"];
  const receipts = (await node.rpc("eth_getBlockReceipts", [block.hash])) as readonly Json[];
  return { number: Number(block.number), hash: block.hash as Hash, block, receipts };
}
