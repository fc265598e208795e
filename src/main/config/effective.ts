import type { ConfigRow } from "../../adapters/cli/present.ts";
import { askChainIds } from "../../adapters/evm/reads/examine-endpoint.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { ceilingsOf } from "../../domain/fees/ceilings.ts";
import { listedCeilings } from "../../domain/fees/default-ceilings.ts";
import { knownGasCap } from "../../domain/fees/gas.ts";
import type { ResolvedChain } from "./chains.ts";
import { maskRpcUrl } from "./masking.ts";
import { formatGwei } from "./parsers.ts";
import type { Resolution } from "./resolve.ts";
import { CHAIN_SETTING_KEYS, CHAIN_SETTINGS, type ChainSettingKey, SETTING_KEYS, SETTINGS } from "./schema.ts";
import { BY_CHAIN_ID, type Setting } from "./setting.ts";
import type { Origin } from "./sources.ts";

/** Chain ids as reported by the endpoints, for chains without a configured id. */
type ReportedIds = ReadonlyMap<ResolvedChain, number | undefined>;

/** Timeout of requests for chain ids: `fencepost config` must also finish if all endpoints are down. */
const TIMEOUT_MS = 2_000;

/** Requests the chain id from the endpoints of every chain without a configured id. */
export async function reportedIds(chains: readonly ResolvedChain[]): Promise<ReportedIds> {
  const open = chains.filter(({ id }) => id === null);
  const asked = open.map(async (chain) => {
    const [reported] = await askChainIds({ urls: chain.rpcUrls, clock: systemClock, timeoutMs: TIMEOUT_MS });
    return [chain, reported?.chainId] as const;
  });
  return new Map(await Promise.all(asked));
}

/** Effective values of the settings and where each comes from, in the order of the settings table, without secrets. */
export function effectiveValues(resolution: Resolution, reportedIds: ReportedIds = new Map()): readonly ConfigRow[] {
  const { values, origins, chains } = resolution;
  const ofVariable = chains.find(({ entry }) => entry === null);
  const common = SETTING_KEYS.map((key): ConfigRow => {
    const setting: Setting<unknown> = SETTINGS[key];
    const isOpen = isByChain(key) && origins[key] === "default" && ofVariable !== undefined;
    const value = isOpen ? defaultOf(key, ofVariable, reportedIds) : setting.show(values[key]);
    return { key, variable: setting.variable, value, origin: origins[key] };
  });
  return [...common, ...chains.flatMap((chain) => chainValues(chain, origins.rpcUrl, reportedIds))];
}

const NOTHING_SET = { maxFeeWei: null, maxGasCostWei: null, maxCostWei: null };

/** Settings whose default depends on the chain id. */
const DEFAULTS_BY_CHAIN = {
  maxFeeGwei: (id: number) => ceilingOn(id, formatGwei(ceilingsOf(id, NOTHING_SET).feePerGas)),
  maxGasCostWei: (id: number) => ceilingOn(id, String(ceilingsOf(id, NOTHING_SET).gasCost)),
  maxTransactionGas: (id: number) => {
    const cap = knownGasCap(id);
    return cap === null ? `not known for chain ${id}; learned from a refusal` : `${cap} (chain ${id})`;
  },
};
type KeyByChain = keyof typeof DEFAULTS_BY_CHAIN;

function ceilingOn(id: number, value: string) {
  return listedCeilings(id) === null ? `${value} (chain ${id} is not a known one)` : `${value} (chain ${id})`;
}

function isByChain(key: string): key is KeyByChain {
  return key in DEFAULTS_BY_CHAIN;
}

function defaultOf(key: KeyByChain, chain: ResolvedChain, reportedIds: ReportedIds) {
  const id = chain.id ?? reportedIds.get(chain);
  if (id === undefined) return `${BY_CHAIN_ID}, which no endpoint reports now`;
  return DEFAULTS_BY_CHAIN[key](id);
}

/**
 * Rows for one entry of `chains`. A chain from `rpcUrl` adds none: it uses the settings that are common to all chains.
 */
function chainValues(chain: ResolvedChain, rpcOrigin: Origin, reportedIds: ReportedIds): readonly ConfigRow[] {
  const { entry, id, rpcUrls, origins, values } = chain;
  if (entry === null) return [];
  const row = (key: string, value: string, origin: Origin): ConfigRow => {
    return { key: `${entry}.${key}`, variable: null, value, origin };
  };
  const show = (key: ChainSettingKey) => (CHAIN_SETTINGS[key] as Setting<unknown>).show(values[key]);
  const from = (origin: Origin) => CHAIN_SETTING_KEYS.filter((key) => origins[key] === origin);
  const byChain = from("default").filter(isByChain);
  return [
    row("id", id === null ? "from the endpoint" : String(id), "chain"),
    row("rpc", rpcUrls.map(maskRpcUrl).join(", "), rpcOrigin === "default" ? "chain" : rpcOrigin),
    ...from("chain").map((key) => row(key, show(key), "chain")),
    ...byChain.map((key) => row(key, defaultOf(key, chain, reportedIds), "default")),
  ];
}
