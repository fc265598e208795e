import type { Config } from "./config.ts";
import { secretsOfDatabaseUrl, secretsOfRpcUrl } from "./masking.ts";

/** Every text of a configuration that must never reach a log. */
export function secretsOf(config: Config): readonly string[] {
  const { databaseUrl, directDatabaseUrl, chains, signers, apiKeys, stuckHook, alertWebhook } = config;
  return [
    ...given(databaseUrl, directDatabaseUrl).flatMap(secretsOfDatabaseUrl),
    ...given(
      ...[stuckHook?.place, alertWebhook?.url, signers.remote?.url],
      ...chains.flatMap(({ rpcUrls }) => rpcUrls),
    ).flatMap(secretsOfRpcUrl),
    ...signers.privateKeys.map((key) => key.slice(2)),
    ...(apiKeys === "none" ? [] : apiKeys.map((key) => key.secret)),
    ...given(signers.mnemonic?.phrase, stuckHook?.secret),
  ];
}

function given(...values: readonly (string | null | undefined)[]): readonly string[] {
  return values.flatMap((value) => value ?? []);
}
