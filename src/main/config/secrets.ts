import { isMasked } from "../../domain/mask.ts";
import type { Resolution } from "./resolve.ts";
import { SETTING_KEYS, SETTINGS, type SettingKey } from "./schema.ts";
import type { Setting } from "./setting.ts";

type Said = Pick<Resolution, "values" | "chains">;

/** Every text of a configuration that must never leave the process: each setting names its own. */
export function secretsOf({ values, chains }: Said): readonly string[] {
  const own = SETTING_KEYS.flatMap((key) => secretsIn(SETTINGS[key], values[key]));
  const ofChains = chains.flatMap(({ rpcUrls, values: { gasOracle, wsUrl } }) => [
    ...secretsIn(SETTINGS.rpcUrl, rpcUrls),
    ...secretsIn(SETTINGS.gasOracle, gasOracle),
    ...secretsIn(SETTINGS.wsUrl, wsUrl),
  ]);
  return [...new Set([...own, ...ofChains])];
}

/** The same of an environment that is not judged yet: what cannot be read is a secret as it stands. */
export function secretsOfVariables(variables: Readonly<Record<string, string | undefined>>): readonly string[] {
  return SETTING_KEYS.flatMap((key) => {
    const setting: Setting<unknown> = SETTINGS[key];
    const said = variables[setting.variable]?.trim();
    if (said === undefined || said === "" || setting.secrets === undefined) return [];
    const parsed = setting.parse(said);
    return "value" in parsed ? secretsIn(setting, parsed.value) : [said, ...said.split(",")];
  });
}

/**
 * One line for each setting whose secret shows wherever it is quoted, because it is a word of ours or too short to be told from
 * one. It names the setting, not the secret. Of endpoints and hooks nobody chose every part of the URL as a secret.
 */
export function unmaskedSecrets({ values }: Pick<Resolution, "values">): readonly string[] {
  return CHOSEN_SECRETS.flatMap((key) => {
    const setting: Setting<unknown> = SETTINGS[key];
    if (secretsIn(setting, values[key]).every(isMasked)) return [];
    const why =
      "is an ordinary word of ours, or shorter than six characters, and is not masked where somebody quotes it";
    return [`${setting.variable}: a secret in it ${why}: choose another`];
  });
}

const CHOSEN_SECRETS = [
  "databaseUrl",
  "directDatabaseUrl",
  "mnemonic",
  "clusterSecret",
  "apiKeys",
] as const satisfies readonly SettingKey[];

function secretsIn({ secrets }: Setting<unknown>, value: unknown): readonly string[] {
  return value === null || value === undefined ? [] : (secrets?.(value) ?? []);
}
