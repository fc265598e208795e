import { isMasked } from "../../domain/text/mask.ts";
import type { Resolution } from "./resolve.ts";
import { SETTING_KEYS, SETTINGS, type SettingKey } from "./schema.ts";
import type { Setting } from "./setting.ts";

type Resolved = Pick<Resolution, "values" | "chains">;

/** All secret texts of a configuration, which must never leave the process. */
export function secretsOf({ values, chains }: Resolved): readonly string[] {
  const own = SETTING_KEYS.flatMap((key) => secretsIn(SETTINGS[key], values[key]));
  const ofChains = chains.flatMap(({ rpcUrls, values: { gasOracle, wsUrl } }) => [
    ...secretsIn(SETTINGS.rpcUrl, rpcUrls),
    ...secretsIn(SETTINGS.gasOracle, gasOracle),
    ...secretsIn(SETTINGS.wsUrl, wsUrl),
  ]);
  return [...new Set([...own, ...ofChains])];
}

/**
 * All secret texts of environment variables, before these are validated. A value that cannot be parsed counts as secret
 * as a whole.
 */
export function secretsOfVariables(variables: Readonly<Record<string, string | undefined>>): readonly string[] {
  return SETTING_KEYS.flatMap((key) => {
    const setting: Setting<unknown> = SETTINGS[key];
    const text = variables[setting.variable]?.trim();
    if (text === undefined || text === "" || setting.secrets === undefined) return [];
    const parsed = setting.parse(text);
    return "value" in parsed ? secretsIn(setting, parsed.value) : [text, ...text.split(",")];
  });
}

/**
 * One warning line for each setting whose secret cannot be masked, because it is too short or an ordinary word of our
 * texts. The line names the setting, not the secret. URLs of endpoints and hooks are exempt: their parts were not
 * chosen as secrets.
 */
export function unmaskedSecrets({ values }: Pick<Resolution, "values">): readonly string[] {
  return CHOSEN_SECRETS.flatMap((key) => {
    const setting: Setting<unknown> = SETTINGS[key];
    if (secretsIn(setting, values[key]).every(isMasked)) return [];
    const why =
      "is an ordinary word of Fencepost's texts, or shorter than six characters, so it cannot be masked in logs";
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

function secretsIn({ secrets }: Setting<unknown>, value: unknown) {
  return value === null || value === undefined ? [] : (secrets?.(value) ?? []);
}
