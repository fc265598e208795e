import { maskRpcUrl } from "./masking.ts";
import type { Resolution } from "./resolve.ts";
import { CHAIN_SETTING_KEYS, CHAIN_SETTINGS, SETTING_KEYS, SETTINGS } from "./schema.ts";
import type { Setting } from "./setting.ts";
import type { Origin } from "./sources.ts";

export interface EffectiveValue {
  /** The key in the file. */
  readonly key: string;
  readonly variable: string | null;
  /** For people: units written out, secrets masked. */
  readonly value: string;
  readonly origin: Origin;
}

/** What holds and who said so, in the order of the table; without a secret in it. */
export function effectiveValues({ values, origins, chains }: Resolution): readonly EffectiveValue[] {
  const common = SETTING_KEYS.map((key): EffectiveValue => {
    const setting: Setting<unknown> = SETTINGS[key];
    return { key, variable: setting.variable, value: setting.show(values[key]), origin: origins[key] };
  });
  return [...common, ...chains.flatMap((chain) => chainValues(chain, origins.rpcUrl))];
}

/** A chain from `rpcUrl` has nothing that is not said above. */
function chainValues(chain: Resolution["chains"][number], rpcOrigin: Origin): readonly EffectiveValue[] {
  const { entry, id, rpcUrls } = chain;
  if (entry === null) return [];
  const own = CHAIN_SETTING_KEYS.filter((key) => chain.origins[key] === "chain").map((key): EffectiveValue => {
    const setting: Setting<unknown> = CHAIN_SETTINGS[key];
    return { key: `${entry}.${key}`, variable: null, value: setting.show(chain.values[key]), origin: "chain" };
  });
  const rpc = rpcUrls.map(maskRpcUrl).join(", ");
  return [
    { key: `${entry}.id`, variable: null, value: id === null ? "from the endpoint" : String(id), origin: "chain" },
    { key: `${entry}.rpc`, variable: null, value: rpc, origin: rpcOrigin === "default" ? "chain" : rpcOrigin },
    ...own,
  ];
}
