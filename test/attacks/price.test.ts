/** One of two endpoints reports false gas prices: in its blocks, its fee history, its tips and its gas price. */
import { describe, expect } from "vitest";
import { startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import { it as base } from "../support/integration.ts";
import { lieAboutPrices, proxyAt } from "../support/lying-endpoints.ts";
import type { NodeProcess } from "../support/node-process.ts";
import { type RpcProxy, startRpcProxy } from "../support/rpc-proxy.ts";
import { transfer } from "../support/transfers.ts";
import { DrivenChain } from "../support/troubles/driven-chain.ts";
import { waitUntil } from "../support/wait-until.ts";

const GWEI = 1_000_000_000n;
const BASE_FEE = 30n * GWEI;
/** The base fee plus a tip of one gwei, the usual tip on a chain with empty blocks. */
const HONEST_PRICE = BASE_FEE + GWEI;
const HIGH = { baseFee: 900n * GWEI, tip: 900n * GWEI };
const LOW = { baseFee: 7n, tip: 0n };

interface Scene {
  readonly chain: DrivenChain;
  readonly proxies: readonly RpcProxy[];
  start(): Promise<NodeProcess>;
}

const it = base.extend<{ readonly scene: Scene }>({
  scene: async ({ nodes }, use) => {
    const chain = new DrivenChain(await startEmbeddedChain());
    await chain.holdBaseFee(BASE_FEE);
    await chain.mine(5);
    const proxies = await Promise.all([1, 2].map(() => startRpcProxy(chain.node.url)));
    const start = () => nodes.start(proxies.map(({ url }) => url).join(","));
    await use({ chain, proxies, start });
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await chain.stop();
  },
});

/** Wei per unit of gas that the transaction paid on the chain. */
async function paid({ client }: NodeProcess, index: number): Promise<bigint> {
  const { txId } = await client.send(transfer(index));
  const { receipt } = await client.waitFor(txId, { timeoutMs: 30_000 });
  return BigInt(receipt?.effectiveGasPrice ?? 0n);
}

async function isReported({ client, stderr }: NodeProcess): Promise<void> {
  await waitUntil(() => stderr().includes("RPC_DISAGREES"), "the lie is alerted");
  const codes = async () => (await client.attention()).items.map(({ code }) => code);
  await waitUntil(async () => (await codes()).includes("RPC_DISAGREES"), "the lie needs a person");
}

describe("a false gas price of 900 gwei", () => {
  // protects [Sent again, priced again, stuck] src/adapters/evm/reads/agree-on-market.ts
  it.for([0, 1])("is never paid if endpoint %i of two reports that price from the start", async (liar, { scene }) => {
    lieAboutPrices(proxyAt(scene.proxies, liar), HIGH);
    const node = await scene.start();
    expect(await paid(node, 0)).toBeLessThanOrEqual(2n * HONEST_PRICE);
    await isReported(node);
  });

  // protects [Sent again, priced again, stuck] src/adapters/evm/reads/agree-on-market.ts
  it.for([0, 1])(
    "is never paid if endpoint %i of two reports that price after an honest start",
    async (liar, { scene }) => {
      const node = await scene.start();
      expect(await paid(node, 0)).toBeLessThanOrEqual(2n * HONEST_PRICE);
      expect(node.stderr()).not.toContain("RPC_DISAGREES");
      lieAboutPrices(proxyAt(scene.proxies, liar), HIGH);
      await scene.chain.mine(110);
      expect(await paid(node, 1)).toBeLessThanOrEqual(2n * HONEST_PRICE);
      await isReported(node);
    },
  );
});

describe("a false gas price near zero", () => {
  // protects [Sent again, priced again, stuck] src/domain/fees/climbing.ts, src/application/loops/tend.ts
  it.for([0, 1])(
    "delays a transaction by at most ten blocks if endpoint %i of two reports that price",
    async (liar, { scene: { chain, proxies, start } }) => {
      lieAboutPrices(proxyAt(proxies, liar), LOW);
      const node = await start();
      await chain.pause();
      const { txId } = await node.client.send(transfer(0));
      await waitUntil(async () => (await node.client.get(txId)).subState === "BROADCAST", "a node has it");
      await chain.mine(10);
      await waitUntil(async () => (await node.client.get(txId)).receipt !== null, "it is mined", { giveUpMs: 5_000 });
      await isReported(node);
    },
  );
});
