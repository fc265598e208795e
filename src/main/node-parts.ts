import type { KeySources } from "../adapters/evm/signers/local-signer.ts";
import type { NodeSettings } from "../application/settings.ts";
import type { Config, SignerConfig } from "./config/config.ts";
import { version } from "./version.ts";

/** What a node is composed of, as the configuration names it. */
export function partsOf(config: Config & { readonly databaseUrl: string }) {
  return {
    databaseUrl: config.databaseUrl,
    preparedStatements: config.preparedStatements,
    directUrl: config.directDatabaseUrl ?? config.databaseUrl,
    notifications: config.notifications,
    chains: config.chains,
    signers: keySources(config.signers),
  };
}

/** Of a node that others reach at this URL. */
export function settingsOf(config: Config, url: string): NodeSettings {
  const { nodeId, mode, lease, writer, queueLimit, drainTimeoutMs } = config;
  return { nodeId, url, version, mode, lease, writer, queueLimit, drainTimeoutMs };
}

function keySources({ privateKeys, mnemonic, keystore, nodeSigners }: SignerConfig): KeySources {
  return {
    privateKeys,
    nodeSigners,
    ...(mnemonic === null ? {} : { mnemonic: { phrase: mnemonic } }),
    ...(keystore === null ? {} : { keystore }),
  };
}
