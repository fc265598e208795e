/**
 * What a configuration file may say. Imported by the files of users (`import { defineConfig } from "fencepost/config"`),
 * so it loads nothing. Every key has an environment variable that overrides it; docs/configuration.md lists both.
 */
import type { EndpointEntry } from "./credentials.ts";
import type { CHAIN_SETTINGS, SETTINGS } from "./schema.ts";

export type { Duration } from "./setting.ts";

type Options<S extends Readonly<Record<string, { readonly parse: { readonly said?: unknown } }>>> = {
  readonly [K in keyof S]?: NonNullable<S[K]["parse"]["said"]>;
};

/** May be said for all chains at the top, and again for one chain in its entry. */
export interface ChainEntry extends Options<typeof CHAIN_SETTINGS> {
  /** Checked against what the endpoints say; without it, theirs is taken. */
  readonly id?: number;
  /** One URL, or several to fail over between; `{ url, send }` for one that is private (`only`) or only read (`never`). */
  readonly rpc: string | readonly (string | EndpointEntry)[];
}

export interface FencepostConfig extends Options<typeof SETTINGS> {
  readonly chains?: readonly ChainEntry[];
}

/** Gives a configuration file its types; returns what it is given. */
export function defineConfig(config: FencepostConfig): FencepostConfig {
  return config;
}
