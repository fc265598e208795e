/**
 * Resolves each setting. Order of precedence: flag, environment variable, the chain's entry in the file, top level of
 * the file, default. Every given value is checked, even if it is overridden.
 */
import { type ForAllChains, resolveChains } from "./chains.ts";
import { SETTING_KEYS, SETTINGS, type SettingKey, type Values } from "./schema.ts";
import type { Setting } from "./setting.ts";
import {
  type Entry,
  type Given,
  Mistakes,
  type Origin,
  quote,
  refuseUnknownKeys,
  refuseUnknownVariables,
  type Sources,
} from "./sources.ts";

export type Resolution = ReturnType<typeof resolve>;

export function resolve(sources: Sources) {
  const mistakes = new Mistakes();
  const content = contentOf(sources, mistakes);
  refuseUnknownVariables(sources.variables, mistakes);
  const common = resolveSettings(SETTING_KEYS, sources, content, mistakes) as unknown as ForAllChains;
  return { ...common, chains: resolveChains(common, { name: sources.file?.name ?? "", content: content.chains }) };
}

/** Settings that determine a node's URL and the API key for it. */
const REACH_SETTINGS = ["host", "port", "adminHost", "adminPort", "advertiseUrl", "apiKeys", "auth"] as const;

/** The settings by which a command reaches a node. */
export interface Reach {
  readonly values: Pick<Values, (typeof REACH_SETTINGS)[number]>;
  /** True if a configuration file or a variable names a node. */
  readonly isConfigured: boolean;
  /** Mistakes in these settings, and names that are no setting: one of these settings may be misspelt. */
  readonly mistakes: readonly string[];
}

/** Resolves only the settings by which a command reaches a node: mistakes in others do not concern it. */
export function resolveReach(sources: Sources): Reach {
  const mistakes = new Mistakes();
  const content = contentOf(sources, mistakes);
  refuseUnknownVariables(sources.variables, mistakes);
  const { values, origins } = resolveSettings(REACH_SETTINGS, sources, content, mistakes);
  const isConfigured = Object.keys(content).length > 0 || Object.values(origins).some((origin) => origin !== "default");
  return { values: values as Reach["values"], isConfigured, mistakes: mistakes.lines };
}

function resolveSettings(keys: readonly SettingKey[], sources: Sources, content: Entry, mistakes: Mistakes) {
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const key of keys) {
    const setting: Setting<unknown> = SETTINGS[key];
    values[key] = sources.command === "dev" ? (setting.devFallback ?? setting.fallback) : setting.fallback;
    origins[key] = "default";
    for (const given of givenFor(key, sources, content)) {
      const parsed = mistakes.judge(setting, given);
      if (parsed !== null) values[key] = parsed.value;
      origins[key] = given.origin;
    }
  }
  return { values, origins, mistakes };
}

function contentOf({ file }: Sources, mistakes: Mistakes) {
  if (file === null) return {};
  const { name, content } = file;
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    mistakes.add(name, `must give an object (export default defineConfig({ … })), not ${quote(content)}`);
    return {};
  }
  refuseUnknownKeys({ name, entry: content as Entry, known: [...SETTING_KEYS, "chains"] }, mistakes);
  return content as Entry;
}

/** All given values of a setting, weakest first. An empty variable counts as unset, as in shells and compose files. */
function givenFor(key: SettingKey, sources: Sources, content: Entry): readonly Given[] {
  const { variable } = SETTINGS[key];
  const fromFile = Object.hasOwn(content, key) ? content[key] : undefined;
  const all: readonly Given[] = [
    { origin: "file", name: `${sources.file?.name}: ${key}`, raw: fromFile },
    { origin: "environment", name: variable, raw: sources.variables[variable]?.trim() || undefined },
    { origin: "flag", name: `--${key}`, raw: sources.flags[key] },
  ];
  return all.filter((given) => given.raw !== undefined);
}
