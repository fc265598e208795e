/** Endpoints of a real chain that report false gas prices from their first response on. */

import { privateKeyToAccount } from "viem/accounts";
import { describe, expect } from "vitest";
import { createFencepost, type Fencepost, type FencepostOptions, type TelemetryEvent } from "../../src/index.ts";
import { startEmbeddedChain } from "../../src/main/dev/embedded/start-chain.ts";
import type { StuckDecision, StuckResolutionHook } from "../../src/ports/stuck-hook.ts";
import { it as base, KEYS, RECIPIENT, SIGNER } from "../support/integration.ts";
import { rpcCall } from "../support/rpc-call.ts";
import { type RpcProxy, rewrite, startRpcProxy } from "../support/rpc-proxy.ts";
import { transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

const GWEI = 1_000_000_000n;
const ETHER = 10n ** 18n;
/** A false gas price: 0.004 ether per unit, so that a plain transfer would cost 84 ether. */
const LIE = `0x${(4n * 10n ** 15n).toString(16)}`;
/** The fee ceiling that docs/configuration.md gives for chain 31337. */
const MOST_PER_GAS = 1_000n * GWEI;

type Lie = "a base fee of zero" | "no base fee";

/**
 * Makes the endpoint report a false gas price that would empty an account. Its blocks report a base fee of zero, or no
 * base fee, so they do not contradict the false price.
 */
function lieAboutFees(proxy: RpcProxy, lie: Lie): void {
  const withoutBaseFee = (block: unknown): unknown => {
    if (typeof block !== "object" || block === null) return block;
    const { baseFeePerGas: _, ...rest } = block as Record<string, unknown>;
    return lie === "no base fee" ? rest : { ...rest, baseFeePerGas: "0x0" };
  };
  proxy.rule({ methods: ["eth_getBlockByNumber", "eth_getBlockByHash"] }, rewrite(withoutBaseFee));
  proxy.rule(
    { methods: ["eth_gasPrice", "eth_maxPriorityFeePerGas"] },
    rewrite(() => LIE),
  );
  proxy.rule(
    { methods: ["eth_feeHistory"] },
    lie === "no base fee"
      ? async () => ({ error: { code: -32_601, message: "the method eth_feeHistory does not exist" } })
      : rewrite((history) => {
          const { baseFeePerGas, gasUsedRatio, ...rest } = history as Record<string, readonly unknown[]>;
          const ratios = gasUsedRatio?.map(() => 0.5) ?? [];
          const reward = ratios.map(() => [LIE]);
          return { ...rest, baseFeePerGas: baseFeePerGas?.map(() => "0x0"), gasUsedRatio: ratios, reward };
        }),
  );
}

interface Scene {
  readonly fencepost: Fencepost;
  readonly events: readonly TelemetryEvent[];
  balance(): Promise<bigint>;
}

interface Setting {
  readonly endpoints?: 1 | 2;
  readonly options?: Partial<FencepostOptions["chains"][number]>;
  readonly stuckHook?: StuckResolutionHook;
  /** URL of an honest chain to use instead of the default chain, which mines all the time. */
  readonly honestUrl?: string;
}

const it = base.extend<{ readonly stage: (lie: Lie, setting?: Setting) => Promise<Scene> }>({
  stage: async ({ database, edr }, use) => {
    const closing: (() => Promise<unknown>)[] = [];
    await use(async (lie, { endpoints = 1, options = {}, stuckHook, honestUrl = edr.url } = {}) => {
      const liar = await startRpcProxy(honestUrl);
      closing.push(() => liar.close());
      lieAboutFees(liar, lie);
      const events: TelemetryEvent[] = [];
      const rpc = endpoints === 1 ? liar.url : [liar.url, honestUrl];
      const fencepost = await createFencepost({
        databaseUrl: database.url,
        chains: [{ rpc, confirmations: 1, pollInterval: "50ms", ...options }],
        signers: KEYS,
        ...(stuckHook === undefined ? {} : { stuckHook }),
        onEvent: (event) => void events.push(event),
      });
      closing.push(() => fencepost.close());
      const balance = async (): Promise<bigint> =>
        BigInt((await rpcCall(honestUrl, "eth_getBalance", [SIGNER, "latest"])) as string);
      return { fencepost, events, balance };
    });
    for (const close of closing.reverse()) await close();
  },
});

describe("a transfer of one wei", () => {
  it.for(["a base fee of zero", "no base fee"] as const)(
    // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts, src/application/chain/chain-context.ts
    "costs no more than the ceiling if the only endpoint reports %s and an extreme gas price",
    async (lie, { stage }) => {
      const { fencepost, events, balance } = await stage(lie);
      const before = await balance();
      const { txId } = await fencepost.send(transfer(0));
      const { receipt, attempts } = await fencepost.waitFor(txId, { timeoutMs: 30_000 });
      expect(receipt?.status).toBe("success");
      expect(before - (await balance())).toBeLessThanOrEqual(1n + 21_000n * MOST_PER_GAS);
      expect(attempts).toHaveLength(1);
      const alert = events.find((event) => event.type === "alert" && event.code === "FEE_CEILING_REACHED");
      expect(alert).toMatchObject({ txId, message: expect.stringContaining("FENCEPOST_MAX_FEE_GWEI") });
    },
  );

  it.for(["a base fee of zero", "no base fee"] as const)(
    "costs the usual price if the first of two endpoints reports %s",
    async (lie, { stage }) => {
      const { fencepost, events, balance } = await stage(lie, { endpoints: 2 });
      const before = await balance();
      const { txId } = await fencepost.send(transfer(0));
      await fencepost.waitFor(txId, { timeoutMs: 30_000 });
      expect(before - (await balance())).toBeLessThanOrEqual(1n + 21_000n * 4n * GWEI);
      const codes = events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
      expect(codes).toContain("RPC_DISAGREES");
      expect(codes).not.toContain("FEE_CEILING_REACHED");
    },
  );

  // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts
  it("costs no more than the ceiling on gas times fee, even if the ceiling per gas is higher", async ({ stage }) => {
    const most = ETHER / 1_000n;
    const { fencepost, events, balance } = await stage("a base fee of zero", {
      options: { maxGasCostWei: most },
    });
    const before = await balance();
    const { txId } = await fencepost.send(transfer(0));
    await fencepost.waitFor(txId, { timeoutMs: 30_000 });
    expect(before - (await balance())).toBeLessThanOrEqual(1n + most);
    const alert = events.find((event) => event.type === "alert" && event.code === "FEE_CEILING_REACHED");
    expect(alert).toMatchObject({ message: expect.stringContaining("FENCEPOST_MAX_GAS_COST_WEI") });
  });
});

describe("fees above the ceiling", () => {
  const OVER = { maxFeePerGas: `${MOST_PER_GAS + 1n}`, maxPriorityFeePerGas: `${2n * GWEI}` } as const;
  const REFUSED = { code: "SUBMISSION_REJECTED", reason: "FEE_OVER_CEILING" };

  async function signed(nonce: number): Promise<`0x${string}`> {
    const fees = { maxFeePerGas: MOST_PER_GAS + 1n, maxPriorityFeePerGas: 2n * GWEI };
    const content = { type: "eip1559", chainId: 31_337, nonce, to: RECIPIENT, value: 1n, gas: 21_000n } as const;
    return privateKeyToAccount(KEYS[0]).signTransaction({ ...content, ...fees });
  }

  it("are refused in every kind of request", async ({ stage }) => {
    const chain = await startEmbeddedChain();
    try {
      const decide = async (): Promise<StuckDecision> => ({ action: "REPLACE", reason: "dearer", fees: OVER });
      const scene = await stage("a base fee of zero", { endpoints: 2, stuckHook: { decide }, honestUrl: chain.url });
      const { fencepost } = scene;
      const { payload, ...rest } = transfer(0);
      await expect(fencepost.send({ ...rest, payload: { ...payload, ...OVER } })).rejects.toMatchObject(REFUSED);
      const cheap = { gas: "21000", maxFeePerGas: 5n * GWEI, maxPriorityFeePerGas: GWEI } as const;
      const { txId } = await fencepost.send({ ...rest, payload: { ...payload, ...cheap } });
      await waitUntil(async () => (await fencepost.get(txId)).subState === "BROADCAST", "a node has it");
      const raw = await signed(0);
      const actions = [
        () => fencepost.reprice(txId, { reason: "r", ...OVER }),
        () => fencepost.cancel(txId, { reason: "r", ...OVER }),
        () => fencepost.replace(txId, { reason: "r", payload: { ...payload, gas: "21000", ...OVER } }),
        () => fencepost.resolve(txId, { reason: "r", action: "REPLACE", rawTransaction: raw }),
        () => fencepost.resolve(txId, { reason: "the hook decides" }),
        () => fencepost.withNonce({ signer: SIGNER }, async ({ nonce }) => ({ rawTransaction: await signed(nonce) })),
      ];
      for (const act of actions) await expect(act()).rejects.toMatchObject(REFUSED);
      await waitUntil(async () => {
        await chain.mine();
        return (await fencepost.get(txId)).state === "CONFIRMED";
      }, "it is mined");
      expect((await fencepost.get(txId)).attempts).toHaveLength(1);
      expect(await rpcCall(chain.url, "eth_getTransactionCount", [SIGNER, "pending"])).toBe("0x1");
    } finally {
      await chain.stop();
    }
  });
});
