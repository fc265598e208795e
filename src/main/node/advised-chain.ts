import { systemClock } from "../../adapters/system/clock.ts";
import { createGasOracle } from "../../adapters/webhooks/gas-oracle.ts";
import { guardedFetch } from "../../adapters/webhooks/guarded-fetch.ts";
import { guardedRepricing, type RepricingStrategy } from "../../domain/fees/repricing.ts";
import type { Chain } from "../../ports/chain.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { ChainConfig, Config } from "../config/config.ts";
import { userAgent } from "./version.ts";

export interface AdvisedParts extends Pick<ChainConfig, "oracle">, Pick<Config, "hookNetworks"> {
  readonly telemetry: Telemetry;
}

/** Adds the gas oracle's price to the fees that the chain reports. Returns the chain unchanged if it has no oracle. */
export function advisedChain<C extends Chain>(chain: C, parts: AdvisedParts): C {
  const oracle = oracleOf(chain.chainId, parts);
  if (oracle === null) return chain;
  const feeMarket: Chain["feeMarket"] = async () => {
    const [market, offer] = await Promise.all([chain.feeMarket(), oracle.offer()]);
    return offer === null ? market : { ...market, offer };
  };
  return { ...chain, feeMarket };
}

function oracleOf(chainId: number, { oracle, hookNetworks, telemetry }: AdvisedParts) {
  if (oracle === null) return null;
  if (oracle.kind === "fixed") return { offer: async () => oracle.offer };
  const { url, fields, unit } = oracle;
  return createGasOracle({
    url,
    fields,
    unit,
    chainId,
    clock: systemClock,
    telemetry,
    fetch: guardedFetch(hookNetworks, userAgent),
  });
}

/** Wraps a custom repricing strategy: if it fails, an alert is raised and the price follows the chain's fees. */
export function reportingRepricing(own: RepricingStrategy, telemetry: Telemetry): RepricingStrategy {
  return guardedRepricing(own, (reason) => {
    const message = `the repricing strategy ${own.name} failed: ${reason}; the market decides instead`;
    telemetry.emit({ type: "alert", severity: "WARNING", code: "REPRICING_FAILED", message });
  });
}
