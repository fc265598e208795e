import type { LogLevel } from "../../adapters/system/log-level.ts";
import type { AlertFormat } from "../../adapters/webhooks/alert-formats.ts";
import type { ChainSettings, LeaseSettings, WriterSettings } from "../../application/settings.ts";
import type { ApiKey, PrivateKey } from "./credentials.ts";

/** What a process runs with: every value present, in the units of the code. */
export interface Config {
  /** Null: `dev` brings its own. */
  readonly databaseUrl: string | null;
  /** Past a transaction pooler, for LISTEN; null: the same. */
  readonly directDatabaseUrl: string | null;
  readonly notifications: boolean;
  readonly preparedStatements: "auto" | "on" | "off";
  /** Empty: `dev` brings its own, under `chainDefaults`. */
  readonly chains: readonly ChainConfig[];
  readonly chainDefaults: ChainSettings;
  readonly signers: SignerConfig;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly nodeId: string;
  /** Null: from host and port, once it listens. */
  readonly advertiseUrl: string | null;
  readonly apiKeys: readonly ApiKey[] | "none";
  readonly mode: "basic" | "worker-queue";
  readonly lease: LeaseSettings;
  readonly writer: WriterSettings;
  readonly queueLimit: number;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
  /** A module's path or a URL; null: only operators decide. */
  readonly stuckHook: { readonly place: string; readonly secret: string | null } | null;
  /** `format` null: by the URL's host. */
  readonly alertWebhook: { readonly url: string; readonly format: AlertFormat | null } | null;
}

export interface ChainConfig {
  /** Null: what the endpoints say. */
  readonly chainId: number | null;
  readonly rpcUrls: readonly string[];
  readonly settings: ChainSettings;
}

/** Several may be set at once; a node signs for all of them. None: `dev` uses its public test accounts. */
export interface SignerConfig {
  readonly privateKeys: readonly PrivateKey[];
  readonly mnemonic: string | null;
  readonly keystore: { readonly directory: string; readonly passwordFile: string } | null;
  /** Accounts whose keys the chain node holds. */
  readonly nodeSigners: readonly `0x${string}`[];
}

/** `config` shows what is there and demands nothing. */
export type Command = "dev" | "start" | "migrate" | "config";

/** The commands that need a database of one's own never see a configuration without. */
export type ConfigFor<C extends Command> = C extends "start" | "migrate"
  ? Config & { readonly databaseUrl: string }
  : Config;

/** Everything that is wrong, one line each. */
export class ConfigurationError extends Error {
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(mistakes.join("\n"));
    this.name = "ConfigurationError";
    this.mistakes = mistakes;
  }
}
