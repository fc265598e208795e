import type { ChainSettings } from "../../application/settings.ts";
import { REPRICING_STRATEGIES } from "../../domain/repricing.ts";
import type { ResolvedChain } from "./chains.ts";
import { gwei, type Parsed } from "./parsers.ts";
import type { Resolution } from "./resolve.ts";
import { CHAIN_SETTING_KEYS, CHAIN_SETTINGS, type ChainSettingKey, type ChainValues, type Values } from "./schema.ts";
import { secretsOf } from "./secrets.ts";
import type { Timed } from "./setting.ts";
import type { Command } from "./sources.ts";

/** What a process runs with: every value present, in the units of the code. */
export type Config = ReturnType<typeof buildConfig>;
export type ChainConfig = Config["chains"][number];

export type { Command } from "./sources.ts";

/** The commands that need a database of one's own never see a configuration without. */
export type ConfigFor<C extends Command> = C extends "start" | "migrate"
  ? Config & { readonly databaseUrl: string }
  : Config;

/** Everything that is wrong, one line each. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(mistakes.join("\n"));
    this.mistakes = mistakes;
  }
}

/**
 * Lanes of one shard wait for each other's commits, and at a thousand busy lanes 256 shards are half in flight at any time: a
 * create then waits for lanes that it has nothing to do with.
 */
const SHARDS_OF_A_WORKER = 64;

export function buildConfig({ values, chains }: Resolution, nodeId: string) {
  return {
    /** Null: `dev` brings its own. */
    databaseUrl: values.databaseUrl,
    /** Past a transaction pooler, for LISTEN; null: the same. */
    directDatabaseUrl: values.directDatabaseUrl,
    databaseSchema: values.databaseSchema,
    notifications: values.notifications === "on",
    preparedStatements: values.preparedStatements,
    /** Empty: `dev` brings its own, under `chainDefaults`. */
    chains: chains.map(chainConfig),
    chainDefaults: chainSettings(values),
    signers: signers(values),
    /** Null: a process of its own with `start`, else a thread. */
    signing: values.signing,
    host: values.host,
    /** 0: any free one. */
    port: values.port,
    /** Null: operators and other nodes are answered where callers are. */
    admin: values.adminPort === null ? null : { host: values.adminHost ?? values.host, port: values.adminPort },
    nodeId: values.nodeId ?? nodeId,
    /** Null: from host and port, once it listens. */
    advertiseUrl: values.advertiseUrl,
    apiKeys: values.apiKeys?.map((key) => ({ ...quotasOf(values), ...key })) ?? "none",
    /** Of keys in the database that name none. */
    keyQuotas: quotasOf(values),
    clusterSecrets: values.clusterSecret ?? [],
    /** Null: wherever they advertise. */
    peerUrlPatterns: values.peerUrlPattern,
    /** Null: where no key is asked for, its own names; else any. */
    allowedHosts: values.allowedHosts,
    allowedOrigins: values.allowedOrigins ?? [],
    /** Ethereum's JSON-RPC. */
    rpc: rpcOf(values),
    policies: { file: values.policyFile, document: values.policies },
    pools: values.pools ?? new Map(),
    mode: values.mode,
    lease: {
      durationMs: values.leaseDuration,
      renewIntervalMs: values.leaseRenewInterval,
      clockSkewMs: values.clockSkewAllowance,
    },
    writer: {
      batchSize: values.batchSize,
      batchTimeoutMs: values.batchTimeout,
      shards: values.writerWorkers * SHARDS_OF_A_WORKER,
    },
    queueLimit: values.queueLimit,
    drainTimeoutMs: values.drainTimeout,
    /** Null: everything is kept. */
    retention:
      values.retention === null ? null : { ageMs: values.retention, requestIdAgeMs: values.requestIdRetention },
    logLevel: values.logLevel,
    /** Every text of it that must never leave the process. */
    secrets: secretsOf({ values, chains }),
    /** A module's path or a URL; null: only operators decide. */
    stuckHook: values.stuckHook === null ? null : { place: values.stuckHook, secret: values.stuckHookSecret },
    /** Null: as `reprice` says. */
    repricingModule: values.repricingModule,
    /** Private networks that hook and alerts may lead to. */
    hookNetworks: values.hookNetworks ?? [],
    /** `format` null: by the URL's host. */
    alertWebhook:
      values.alertWebhookUrl === null ? null : { url: values.alertWebhookUrl, format: values.alertWebhookFormat },
  } as const;
}

function rpcOf({ rpcForeignRaw, rpcKeyInPath, rpcMethods, rpcLogsRange }: Values) {
  const methods = rpcMethods ?? [];
  return { foreignRaw: rpcForeignRaw, keyInPath: rpcKeyInPath, methods, logsRange: rpcLogsRange } as const;
}

function quotasOf({ keyRate, keyReadRate, keyQueueShare }: Values) {
  return { createsPerSecond: keyRate, readsPerSecond: keyReadRate, queueShare: keyQueueShare } as const;
}

function chainConfig({ id, rpcUrls, values }: ResolvedChain) {
  return {
    /** Null: what the endpoints say. */
    chainId: id,
    rpcUrls,
    settings: chainSettings(values),
    oracle: gasOracle(values),
    wsUrl: values.wsUrl,
  } as const;
}

/** The settings of a chain as the code calls them: durations bear their unit. */
type InCode = {
  readonly [K in ChainSettingKey as (typeof CHAIN_SETTINGS)[K] extends Timed ? `${K}Ms` : K]: ChainValues[K];
};

function chainSettings(values: ChainValues): ChainSettings {
  const named = CHAIN_SETTING_KEYS.map((key) => ["unit" in CHAIN_SETTINGS[key] ? `${key}Ms` : key, values[key]]);
  const { gasOracle, gasOracleFields, gasOracleUnit, wsUrl, externalUsePolicy, ...used } = Object.fromEntries(
    named,
  ) as InCode;
  const { reprice, maxFeeGwei, maxTransactionGas, ...same } = used;
  return {
    ...same,
    repricing: reprice === "off" ? null : REPRICING_STRATEGIES[reprice],
    maxFeeWei: maxFeeGwei,
    maxTransactionGas: maxTransactionGas === null ? null : BigInt(maxTransactionGas),
  };
}

/** Null: the market alone decides what is offered. */
function gasOracle({ gasOracle: place, gasOracleFields, gasOracleUnit: unit }: ChainValues) {
  if (place === null) return null;
  const [maxFeePerGas = "", maxPriorityFeePerGas = ""] = gasOracleFields.split("/");
  if (/^http/i.test(place))
    return { kind: "url", url: place, fields: { maxFeePerGas, maxPriorityFeePerGas }, unit } as const;
  const [cap, tip] = place.split("/").map((figure) => parsedValue(gwei(figure)));
  const offer = { maxFeePerGas: cap ?? 0n, ...(tip === undefined ? {} : { maxPriorityFeePerGas: tip }) };
  return { kind: "fixed", offer: { ...offer, isFixed: true } } as const;
}

function parsedValue<T>(parsed: Parsed<T>): T {
  if ("value" in parsed) return parsed.value;
  throw new ConfigurationError([parsed.mistake]);
}

/** Several may be set at once; a node signs for all of them. None: `dev` uses its public test accounts. */
function signers(values: Values) {
  const { privateKeys, privateKeyFiles, keystoreDir, keystorePasswordFile, nodeSigners } = values;
  const { mnemonic: phrase, mnemonicCount: count, mnemonicPath: path } = values;
  const keystore =
    keystoreDir === null || keystorePasswordFile === null
      ? null
      : { directory: keystoreDir, passwordFile: keystorePasswordFile };
  return {
    privateKeys: privateKeys ?? [],
    privateKeyFiles: privateKeyFiles ?? [],
    mnemonic: phrase === null ? null : { phrase, count, path },
    keystore,
    /** Accounts whose keys the chain node holds. */
    nodeSigners: nodeSigners ?? [],
    remote: remoteSigner(values),
    awsKmsKeyIds: values.awsKmsKeyIds ?? [],
    gcpKmsKeyVersions: values.gcpKmsKeyVersions ?? [],
    vaultKeyPaths: values.vaultKeyPaths ?? [],
  } as const;
}

function remoteSigner(values: Values) {
  const { remoteSignerUrl: url, remoteSignerAddresses: addresses } = values;
  const { remoteSignerCaFile: caFile, remoteSignerCertFile: certFile, remoteSignerKeyFile: keyFile } = values;
  return url === null ? null : { url, addresses, caFile, certFile, keyFile };
}
