import { expect, it } from "vitest";
import type { RepricingView } from "../../../src/domain/fees/repricing.ts";
import { NO_MARKET } from "../../../src/domain/transaction/fees.ts";
import { configFrom } from "../../../src/main/config/load.ts";
import { advisedChain, reportingRepricing } from "../../../src/main/node/advised-chain.ts";
import type { Chain } from "../../../src/ports/chain.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";

const GWEI = 1_000_000_000n;
const chain = { chainId: 1, feeMarket: async () => NO_MARKET } as Partial<Chain> as Chain;

function advised(oracle: string): Chain {
  const telemetry = recordTelemetry();
  const variables = { FENCEPOST_RPC_URL: "http://127.0.0.1:1", FENCEPOST_GAS_ORACLE: oracle };
  const { config } = configFrom({ command: "config", variables, flags: {}, file: null }, "node-a");
  return advisedChain(chain, { oracle: config.chains[0]?.oracle ?? null, hookNetworks: [], telemetry });
}

it("a chain without a gas oracle is returned unchanged", () => {
  expect(advisedChain(chain, { oracle: null, hookNetworks: [], telemetry: recordTelemetry() })).toBe(chain);
});

it.each([
  ["30", { maxFeePerGas: 30n * GWEI, isFixed: true }],
  ["30.5/1.5", { maxFeePerGas: 30_500_000_000n, maxPriorityFeePerGas: 1_500_000_000n, isFixed: true }],
])("a fixed gas oracle of %s gwei adds its price to the fee market", async (said, offer) => {
  expect(await advised(said).feeMarket()).toEqual({ ...NO_MARKET, offer });
});

it("a custom repricing strategy that fails raises an alert, and the market strategy is used", () => {
  const telemetry = recordTelemetry();
  const propose = (): never => {
    throw new Error("out of ideas");
  };
  const fees = { type: "legacy", gasPrice: 1n } as const;
  const view: RepricingView = { first: fees, standing: fees, refused: false, market: NO_MARKET, attempts: 1 };
  expect(reportingRepricing({ name: "mine", propose }, telemetry).propose(view)).toBeNull();
  expect(telemetry.events).toEqual([
    {
      type: "alert",
      severity: "WARNING",
      code: "REPRICING_FAILED",
      message: "the repricing strategy mine failed: out of ideas; the market decides instead",
    },
  ]);
});
