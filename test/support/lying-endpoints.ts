import { privateKeyToAccount } from "viem/accounts";
import { createEvmChain, type EvmChainOptions } from "../../src/adapters/evm/chain.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { Address, Hash, Hex } from "../../src/domain/lane.ts";
import { type DevChain, startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import type { Chain } from "../../src/ports/chain.ts";
import type { ReceiptLieKind, SettlingHarness } from "../contracts/chain/settling.ts";
import { createSeededEntropy } from "../doubles/seeded-entropy.ts";
import { recordTelemetry } from "./recorded-telemetry.ts";
import {
  type ProxiedCall,
  pretend,
  type RpcProxy,
  type Rule,
  rewrite,
  startRpcProxy,
  type Treatment,
} from "./rpc-proxy.ts";

const GWEI = 1_000_000_000n;

export type Json = Record<string, unknown>;

/** Changes a receipt as a lying endpoint would; returns null to deny that the receipt exists. */
export type ReceiptChange = (receipt: Json) => Json | null;

const LIES: Readonly<Record<ReceiptLieKind, ReceiptChange>> = {
  reverted: (receipt) => ({ ...receipt, status: "0x0" }),
  "other gas": (receipt) => ({ ...receipt, gasUsed: "0x5209" }),
  "a contract": (receipt) => ({ ...receipt, contractAddress: `0x${"ee".repeat(20)}` }),
  "no receipt": () => null,
};

/** A real EVM, with a proxy in front of it for each endpoint of the adapter. */
export interface LyingEndpoints extends SettlingHarness {
  readonly node: DevChain;
  readonly proxies: readonly RpcProxy[];
  readonly chain: Chain;
}

export async function startLyingEndpoints(
  endpoints: number,
  overrides: Partial<EvmChainOptions> = {},
): Promise<LyingEndpoints> {
  const node = await startEmbeddedChain();
  const proxies = await Promise.all(Array.from({ length: endpoints }, () => startRpcProxy(node.url)));
  const chain = await createEvmChain({
    urls: proxies.map(({ url }) => url),
    telemetry: recordTelemetry(),
    clock: systemClock,
    entropy: createSeededEntropy(1),
    timeoutMs: 50_000,
    ...overrides,
  });
  const account = node.accounts[0] as DevChain["accounts"][number];
  const lies = new Map<number, Rule>();
  const pins = new Map<number, Rule>();
  const untagged = new Map<number, Rule>();
  return {
    node,
    proxies,
    chain,
    transfers: await Promise.all([0, 1, 2].map((nonce) => transfer(account.privateKey, node.chainId, nonce))),
    sender: account.address.toLowerCase() as Address,
    mine: () => node.mine(),
    lie(endpoint, txHash, kind) {
      lies.get(endpoint)?.lift();
      if (kind !== null) lies.set(endpoint, lieAboutReceipts(proxyAt(proxies, endpoint), txHash, LIES[kind]));
    },
    pin(endpoint, blockNumber) {
      pins.get(endpoint)?.lift();
      if (blockNumber !== null) pins.set(endpoint, pinHead(proxyAt(proxies, endpoint), blockNumber));
    },
    knowsTags(endpoint, knows) {
      untagged.get(endpoint)?.lift();
      if (!knows)
        untagged.set(
          endpoint,
          lieAboutTags(
            proxyAt(proxies, endpoint),
            pretend(() => null),
          ),
        );
    },
    async close() {
      await chain.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await node.stop();
    },
  };
}

export function proxyAt(proxies: readonly RpcProxy[], endpoint: number): RpcProxy {
  const proxy = proxies[endpoint];
  if (proxy === undefined) throw new Error(`there is no endpoint ${endpoint}`);
  return proxy;
}

/** Applies the same lie to every method that returns the receipt. */
export function lieAboutReceipts(proxy: RpcProxy, txHash: Hash | null, change: ReceiptChange): Rule {
  const altered = (receipt: Json | null): Json | null =>
    receipt === null || (txHash !== null && receipt.transactionHash !== txHash) ? receipt : change(receipt);
  return proxy.rule(
    { methods: ["eth_getTransactionReceipt", "eth_getBlockReceipts"] },
    rewrite((result) => {
      if (!Array.isArray(result)) return altered(result as Json | null);
      return result.map((each) => altered(each as Json)).filter((each) => each !== null);
    }),
  );
}

const hex = (wei: bigint) => `0x${wei.toString(16)}`;

/**
 * Reports the same false price everywhere: base fees of blocks (whose hashes stay unchanged), fee history, tips and gas
 * price.
 */
export function lieAboutPrices(proxy: RpcProxy, { baseFee, tip }: { baseFee: bigint; tip: bigint }): { lift(): void } {
  const priced = (block: unknown) => block && { ...(block as Json), baseFeePerGas: hex(baseFee) };
  const history = (shown: unknown) => {
    const { baseFeePerGas = [], gasUsedRatio = [], ...rest } = shown as Record<string, readonly unknown[]>;
    return {
      ...rest,
      baseFeePerGas: baseFeePerGas.map(() => hex(baseFee)),
      gasUsedRatio: gasUsedRatio.map(() => 0.5),
      reward: gasUsedRatio.map(() => [hex(tip)]),
    };
  };
  const rules = [
    proxy.rule({ methods: ["eth_getBlockByNumber", "eth_getBlockByHash"] }, rewrite(priced)),
    proxy.rule({ methods: ["eth_feeHistory"] }, rewrite(history)),
    proxy.rule(
      { methods: ["eth_gasPrice"] },
      pretend(() => hex(baseFee + tip)),
    ),
    proxy.rule(
      { methods: ["eth_maxPriorityFeePerGas"] },
      pretend(() => hex(tip)),
    ),
  ];
  return { lift: () => void rules.map((rule) => rule.lift()) };
}

/**
 * Hides all blocks above `blockNumber`. The endpoint reports that block as its newest one, and returns it for every
 * block tag.
 */
function pinHead(proxy: RpcProxy, blockNumber: number): Rule {
  const pinned = `0x${blockNumber.toString(16)}`;
  return proxy.rule({ methods: ["eth_getBlockByNumber", "eth_blockNumber"] }, async (call, next) => {
    const [tag, full] = call.params;
    if (call.method === "eth_blockNumber") return { result: pinned };
    if (Number.isNaN(Number(tag))) return next({ ...call, params: [pinned, full] });
    return Number(tag) > blockNumber ? { result: null } : next();
  });
}

/** Changes the responses for `safe` and `finalized`. */
export function lieAboutTags(proxy: RpcProxy, lie: Treatment): Rule {
  const asksForTag = ({ params: [tag] }: ProxiedCall) => tag === "safe" || tag === "finalized";
  return proxy.rule({ methods: ["eth_getBlockByNumber"], when: asksForTag }, lie);
}

function transfer(privateKey: Hex, chainId: number, nonce: number): Promise<Hex> {
  return privateKeyToAccount(privateKey).signTransaction({
    type: "eip1559",
    chainId,
    nonce,
    to: `0x${"11".repeat(20)}`,
    value: 1n,
    gas: 21_000n,
    maxFeePerGas: 10n * GWEI,
    maxPriorityFeePerGas: GWEI,
  });
}
