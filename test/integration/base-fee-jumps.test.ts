/** A real EVM chain on which gas costs almost nothing, until the base fee jumps. */

import { describe, expect } from "vitest";
import { createFencepost, type Fencepost } from "../../src/index.ts";
import { startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import { it as base, KEYS } from "../support/integration.ts";
import { transfer } from "../support/transfers.ts";
import { DrivenChain } from "../support/troubles/driven-chain.ts";
import { waitUntil } from "../support/wait-until.ts";

const GWEI = 1_000_000_000n;
const ALMOST_NOTHING = 7n;

interface Scene {
  readonly fencepost: Fencepost;
  readonly chain: DrivenChain;
  /** Sends a transaction at the old price, then raises the base fee. */
  jumped(index: number, to: bigint, type: "eip1559" | "legacy"): Promise<string>;
}

const it = base.extend<{ readonly scene: Scene }>({
  scene: async ({ database }, use) => {
    const chain = new DrivenChain(await startEmbeddedChain());
    await chain.holdBaseFee(ALMOST_NOTHING);
    await chain.mine(30);
    const fencepost = await createFencepost({
      databaseUrl: database.url,
      chains: [{ rpc: chain.node.url, confirmations: 0, pollInterval: "50ms", resubmitInterval: "1s" }],
      signers: KEYS,
    });
    const seen = (baseFee: bigint) => async () => {
      const { chains } = await fencepost.overview();
      return chains[0]?.baseFee === String(baseFee);
    };
    const jumped: Scene["jumped"] = async (index, to, type) => {
      await chain.holdBaseFee(ALMOST_NOTHING);
      await waitUntil(seen(ALMOST_NOTHING), "gas costs nothing");
      await chain.pause();
      const { payload, ...rest } = transfer(index);
      const { txId } = await fencepost.send({ ...rest, payload: { ...payload, type } });
      await waitUntil(async () => (await fencepost.get(txId)).subState === "BROADCAST", "a node has it");
      await chain.holdBaseFee(to);
      chain.resume();
      await waitUntil(seen(to), "gas costs more");
      return txId;
    };
    await use({ fencepost, chain, jumped });
    await fencepost.close();
    await chain.stop();
  },
});

describe("after a jump of the base fee", () => {
  // protects [Sent again, priced again, stuck] src/domain/transaction/fees.ts
  it("a reprice or cancel without a price is mined at the current gas price", async ({
    scene: { fencepost, jumped },
  }) => {
    const repriced = await jumped(0, 300n * GWEI, "eip1559");
    await fencepost.reprice(repriced, { reason: "a jump" });
    expect((await fencepost.waitFor(repriced, { timeoutMs: 20_000 })).state).toBe("CONFIRMED");
    const cancelled = await jumped(1, 30n * GWEI, "legacy");
    await fencepost.cancel(cancelled, { reason: "a jump" });
    expect((await fencepost.waitFor(cancelled, { timeoutMs: 20_000 })).subState).toBe("CANCELLED");
  });
});
