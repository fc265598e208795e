import { rpcUrls } from "./credentials.ts";
import { secretsOfRpcUrls } from "./masking.ts";
import { chainId } from "./parsers.ts";
import type { ChainSettingKey, ChainValues, SettingKey, Values } from "./schema.ts";
import { CHAIN_SETTING_KEYS, CHAIN_SETTINGS, SETTINGS } from "./schema.ts";
import type { Setting } from "./setting.ts";
import { type ConfigFile, type Entry, type Mistakes, type Origin, quote, refuseUnknownKeys } from "./sources.ts";

export interface ResolvedChain {
  /** Name of the chain in messages. */
  readonly name: string;
  /** Path of the chain in the configuration file, such as `chains[0]`; null if it comes from `rpcUrl`. */
  readonly entry: string | null;
  readonly id: number | null;
  readonly rpcUrls: readonly string[];
  readonly values: ChainValues;
  readonly origins: Readonly<Record<ChainSettingKey, Origin>>;
}

/** Settings that all chains share, and the collector of configuration mistakes. */
export interface ForAllChains {
  readonly values: Values;
  readonly origins: Readonly<Record<SettingKey, Origin>>;
  readonly mistakes: Mistakes;
}

const CHAIN_ID = { parse: chainId };
const CHAIN_RPC = { parse: rpcUrls, secrets: secretsOfRpcUrls };
const CHAIN_KEYS = ["id", "rpc", ...CHAIN_SETTING_KEYS];

/** The chains of the configuration: the one of `rpcUrl`, those of `chains`, or none. */
export function resolveChains(common: ForAllChains, file: ConfigFile): readonly ResolvedChain[] {
  const { mistakes } = common;
  const { name, content: entries } = file;
  if (entries === undefined) return chainOfVariable(common);
  if (!Array.isArray(entries) || entries.length === 0) {
    mistakes.add(`${name}: chains`, `must be a list of at least one { id, rpc }, not ${quote(entries)}`);
    return [];
  }
  const rpcOverride = overriding("rpcUrl", common, { name, count: entries.length });
  const idOverride = overriding("chainId", common, { name, count: entries.length });
  const chains = entries.flatMap((content: unknown, index) => {
    const entry = `chains[${index}]`;
    const place = `${name}: ${entry}`;
    const own = entryOf(place, content, mistakes);
    if (own === null) return [];
    const rpcUrls = rpcOverride ?? endpointsOf(place, own.rpc, mistakes);
    const { id, ...settings } = settingsOf(common, place, own);
    return { name: place, entry, rpcUrls, id: idOverride ?? id, ...settings };
  });
  refuseDuplicates(chains, mistakes);
  return chains;
}

function chainOfVariable({ values, origins }: ForAllChains): readonly ResolvedChain[] {
  if (values.rpcUrl === null) return [];
  const { rpcUrl: rpcUrls, chainId: id } = values;
  return [{ name: SETTINGS.rpcUrl.variable, entry: null, id, rpcUrls, values, origins }];
}

const ENTRY_KEYS = { rpcUrl: "rpc", chainId: "id" } as const;

/**
 * An environment variable may override the entry of `chains` if there is only one. With several entries its target is
 * ambiguous, so the variable is refused.
 */
function overriding<K extends keyof typeof ENTRY_KEYS>(
  key: K,
  { values, origins, mistakes }: ForAllChains,
  { name, count }: { readonly name: string; readonly count: number },
) {
  const own = ENTRY_KEYS[key];
  if (origins[key] === "default") return null;
  if (origins[key] === "file") {
    mistakes.add(`${name}: ${key}`, `cannot be combined with chains; move it into the chain's ${own}`);
    return null;
  }
  if (count === 1) return values[key];
  mistakes.refuse(key, `cannot override the ${count} chains of ${name}; change their ${own} there`);
  return null;
}

function settingsOf(common: ForAllChains, place: string, own: Entry) {
  const { mistakes } = common;
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const key of CHAIN_SETTING_KEYS) {
    const setting: Setting<unknown> = CHAIN_SETTINGS[key];
    const parsed = own[key] === undefined ? null : mistakes.judge(setting, { name: `${place}.${key}`, raw: own[key] });
    const isOverridden = common.origins[key] === "environment" || common.origins[key] === "flag";
    const ownWins = parsed !== null && !isOverridden;
    values[key] = ownWins ? parsed.value : common.values[key];
    origins[key] = ownWins ? "chain" : common.origins[key];
  }
  const id = own.id === undefined ? null : mistakes.judge(CHAIN_ID, { name: `${place}.id`, raw: own.id });
  return { id: id?.value ?? null, values: values as ChainValues, origins: origins as ResolvedChain["origins"] };
}

function endpointsOf(name: string, rpc: unknown, mistakes: Mistakes) {
  if (rpc !== undefined) return mistakes.judge(CHAIN_RPC, { name: `${name}.rpc`, raw: rpc })?.value ?? [];
  mistakes.add(`${name}.rpc`, "is required (an http(s) URL, or a list of them)");
  return [];
}

function entryOf(name: string, entry: unknown, mistakes: Mistakes) {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) {
    mistakes.add(name, `must be an object with rpc, not ${quote(entry)}`);
    return null;
  }
  refuseUnknownKeys({ name, entry: entry as Entry, known: CHAIN_KEYS }, mistakes);
  return entry as Entry;
}

/** Refuses two entries for one chain: both would follow the chain and decide outcomes for the same lanes. */
function refuseDuplicates(chains: readonly ResolvedChain[], mistakes: Mistakes) {
  const owners = new Map<string | number, string | null>();
  for (const chain of chains) {
    for (const identity of [...(chain.id === null ? [] : [chain.id]), ...chain.rpcUrls]) {
      const owner = owners.get(identity);
      if (owner !== undefined && owner !== chain.entry) {
        const what = typeof identity === "number" ? `chain ${identity}` : "one of its endpoints";
        mistakes.add(chain.name, `${what} is in ${owner} already`);
      }
      owners.set(identity, chain.entry);
    }
  }
}
