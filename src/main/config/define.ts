/**
 * Types of a configuration file. Users' files import this module (`import { defineConfig } from "fencepost/config"`),
 * so it loads nothing at run time. Every setting can be overridden by an environment variable; docs/configuration.md
 * lists both names.
 */
import type { EndpointEntry } from "./credentials.ts";
import type { CHAIN_SETTINGS, SETTINGS } from "./schema.ts";

export type { Duration } from "./setting.ts";

type Options<S extends Readonly<Record<string, { readonly parse: { readonly written?: unknown } }>>> = {
  readonly [K in keyof S]?: NonNullable<S[K]["parse"]["written"]>;
};

/** One chain. Each of its settings may also be written at the top level of the file, for all chains. */
export interface ChainEntry extends Options<typeof CHAIN_SETTINGS> {
  /** Expected chain id, compared with the one that the endpoints report. If absent, the reported id is used. */
  readonly id?: number;
  /**
   * URL of the endpoint, or several for failover. `{ url, send }` marks an endpoint as private (`only`) or read-only
   * (`never`).
   */
  readonly rpc: string | readonly (string | EndpointEntry)[];
}

export interface FencepostConfig extends Options<typeof SETTINGS> {
  /** Chains with their endpoints and settings; instead of `rpcUrl` and `chainId`. */
  readonly chains?: readonly ChainEntry[];
}

/**
 * Gives a configuration file its type; returns the argument unchanged.
 *
 * @example
 * export default defineConfig({ chains: [{ rpc: "https://rpc.example" }], keystoreDir: "keys" });
 */
export function defineConfig(config: FencepostConfig): FencepostConfig {
  return config;
}
