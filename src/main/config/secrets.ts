import type { Config } from "./config.ts";
import { secretsOfDatabaseUrl, secretsOfRpcUrl } from "./masking.ts";

/** Every text of a configuration that must never reach a log. */
export function secretsOf(config: Config): readonly string[] {
  const { databaseUrl, directDatabaseUrl, chains, signers, apiKeys, stuckHook, alertWebhook } = config;
  return [
    ...(databaseUrl === null ? [] : secretsOfDatabaseUrl(databaseUrl)),
    ...(directDatabaseUrl === null ? [] : secretsOfDatabaseUrl(directDatabaseUrl)),
    ...chains.flatMap((chain) => chain.rpcUrls.flatMap(secretsOfRpcUrl)),
    ...signers.privateKeys.map((key) => key.slice(2)),
    ...(signers.mnemonic === null ? [] : [signers.mnemonic]),
    ...(apiKeys === "none" ? [] : apiKeys.map((key) => key.secret)),
    ...(stuckHook === null ? [] : secretsOfRpcUrl(stuckHook.place)),
    ...(stuckHook?.secret === null || stuckHook === null ? [] : [stuckHook.secret]),
    ...(alertWebhook === null ? [] : secretsOfRpcUrl(alertWebhook.url)),
  ];
}
