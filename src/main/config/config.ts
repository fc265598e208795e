import type { ChainSettings } from "../../application/settings.ts";
import { REPRICING_STRATEGIES } from "../../domain/fees/repricing.ts";
import type { ResolvedChain } from "./chains.ts";
import { gwei, type Parsed } from "./parsers.ts";
import type { Resolution } from "./resolve.ts";
import { CHAIN_SETTING_KEYS, CHAIN_SETTINGS, type ChainSettingKey, type ChainValues, type Values } from "./schema.ts";
import { secretsOf } from "./secrets.ts";
import type { Timed } from "./setting.ts";
import type { Command } from "./sources.ts";

/** Configuration of a process: every setting has a value, in the units of the code. */
export type Config = ReturnType<typeof buildConfig>;
export type ChainConfig = Config["chains"][number];

export type { Command } from "./sources.ts";

/** Configuration of a process for one command. `start` and `migrate` require a database URL. */
export type ConfigFor<C extends Command> = C extends "start" | "migrate"
  ? Config & { readonly databaseUrl: string }
  : Config;

/** All mistakes of a configuration, one line each. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(mistakes.join("\n"));
    this.mistakes = mistakes;
  }
}

/**
 * Number of writer shards per configured worker. Lanes of one shard wait for each other's commits. With 256 shards and
 * 1,000 busy lanes, half of the shards have a commit in progress at any time, and a create would wait for unrelated
 * lanes.
 */
const SHARDS_PER_WORKER = 64;

export function buildConfig({ values, chains }: Resolution, nodeId: string) {
  const { rpcForeignRaw: foreignRaw, rpcKeyInPath: keyInPath, rpcMethods, rpcLogsRange: logsRange } = values;
  return {
    /** URL of the database; null: `dev` starts its own. */
    databaseUrl: values.databaseUrl,
    /** Database URL that bypasses the transaction pooler, for LISTEN; null: use `databaseUrl`. */
    directDatabaseUrl: values.directDatabaseUrl,
    databaseSchema: values.databaseSchema,
    notifications: values.notifications === "on",
    preparedStatements: values.preparedStatements,
    /** Configured chains. Empty: `dev` starts its own chain with `chainDefaults`. */
    chains: chains.map(chainConfig),
    chainDefaults: chainSettings(values),
    signers: signers(values),
    /** Where the signing keys are held and used; null: in a separate process with `start`, otherwise in a thread. */
    signing: values.signing,
    host: values.host,
    /** Port to listen on; 0: any free port. */
    port: values.port,
    /** Address of the admin port; null: the main port also serves operators and other nodes. */
    admin: values.adminPort === null ? null : { host: values.adminHost ?? values.host, port: values.adminPort },
    nodeId: values.nodeId ?? nodeId,
    /** URL at which other nodes reach this one; null: derived from host and port when the server listens. */
    advertiseUrl: values.advertiseUrl,
    apiKeys: values.apiKeys?.map((key) => ({ ...quotasOf(values), ...key })) ?? "none",
    /** Default quotas for API keys of the database that have no quotas themselves. */
    keyQuotas: quotasOf(values),
    clusterSecrets: values.clusterSecret ?? [],
    /** Patterns that the advertised URLs of other nodes must match; null: any URL is accepted. */
    peerUrlPatterns: values.peerUrlPattern,
    /** Host headers that the node accepts; null: its own names if no API key is required, otherwise any. */
    allowedHosts: values.allowedHosts,
    allowedOrigins: values.allowedOrigins ?? [],
    /** Settings of the JSON-RPC endpoint `/rpc`. */
    rpc: { foreignRaw, keyInPath, methods: rpcMethods ?? [], logsRange },
    policies: { file: values.policyFile, document: values.policies },
    pools: values.pools ?? new Map(),
    signerNames: values.signerNames ?? new Map(),
    abis: { file: values.abiFile, document: values.abis },
    mode: values.mode,
    lease: {
      durationMs: values.leaseDuration,
      renewIntervalMs: values.leaseRenewInterval,
      clockSkewMs: values.clockSkewAllowance,
    },
    writer: {
      batchSize: values.batchSize,
      batchTimeoutMs: values.batchTimeout,
      shards: values.writerWorkers * SHARDS_PER_WORKER,
    },
    queueLimit: values.queueLimit,
    drainTimeoutMs: values.drainTimeout,
    /** Ages at which old data is deleted; null: nothing is deleted. */
    retention:
      values.retention === null ? null : { ageMs: values.retention, requestIdAgeMs: values.requestIdRetention },
    logLevel: values.logLevel,
    /** Secret texts that must never leave the process. */
    secrets: secretsOf({ values, chains }),
    /** Hook that decides about stuck transactions: a module's path or a URL; null: only operators decide. */
    stuckHook: values.stuckHook === null ? null : { place: values.stuckHook, secret: values.stuckHookSecret },
    /** Module that decides the price of a replacement; null: the setting `reprice` decides. */
    repricingModule: values.repricingModule,
    /** Private networks that the stuck hook and the alert webhook may connect to. */
    hookNetworks: values.hookNetworks ?? [],
    /** Webhook for alerts. `format` null: chosen by the URL's host. */
    alertWebhook:
      values.alertWebhookUrl === null ? null : { url: values.alertWebhookUrl, format: values.alertWebhookFormat },
  } as const;
}

function quotasOf({ keyRate, keyReadRate, keyQueueShare }: Values) {
  return { createsPerSecond: keyRate, readsPerSecond: keyReadRate, queueShare: keyQueueShare } as const;
}

function chainConfig({ id, rpcUrls, values }: ResolvedChain) {
  return {
    /** Configured chain id; null: the id that the endpoints report. */
    chainId: id,
    rpcUrls,
    settings: chainSettings(values),
    oracle: gasOracle(values),
    wsUrl: values.wsUrl,
  } as const;
}

/** Settings of a chain under the names that the code uses: names of durations end with their unit. */
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

/** Gas oracle of a chain; null: the price is derived from the chain's own fees alone. */
function gasOracle({ gasOracle: place, gasOracleFields, gasOracleUnit: unit }: ChainValues) {
  if (place === null) return null;
  const [maxFeePerGas = "", maxPriorityFeePerGas = ""] = gasOracleFields.split("/");
  if (/^http/i.test(place))
    return { kind: "url", url: place, fields: { maxFeePerGas, maxPriorityFeePerGas }, unit } as const;
  const [cap, tip] = place.split("/").map((figure) => parsedValue(gwei(figure)));
  const offer = { maxFeePerGas: cap ?? 0n, ...(tip === undefined ? {} : { maxPriorityFeePerGas: tip }) };
  return { kind: "fixed", offer: { ...offer, isFixed: true } } as const;
}

function parsedValue<T>(parsed: Parsed<T>) {
  if ("value" in parsed) return parsed.value;
  throw new ConfigurationError([parsed.mistake]);
}

/**
 * Signer sources. Several may be set; a node signs for all of them. If none is set, `dev` uses its public test
 * accounts.
 */
function signers(values: Values) {
  const { mnemonic: phrase, mnemonicCount: count, mnemonicPath: path } = values;
  const { keystoreDir: directory, keystorePasswordFile: passwordFile } = values;
  const { remoteSignerUrl: url, remoteSignerAddresses: addresses } = values;
  const { remoteSignerCaFile: caFile, remoteSignerCertFile: certFile, remoteSignerKeyFile: keyFile } = values;
  return {
    privateKeys: values.privateKeys ?? [],
    privateKeyFiles: values.privateKeyFiles ?? [],
    mnemonic: phrase === null ? null : { phrase, count, path },
    keystore: directory === null || passwordFile === null ? null : { directory, passwordFile },
    /** Accounts whose keys the RPC node holds. */
    nodeSigners: values.nodeSigners ?? [],
    remote: url === null ? null : { url, addresses, caFile, certFile, keyFile },
    awsKmsKeyIds: values.awsKmsKeyIds ?? [],
    gcpKmsKeyVersions: values.gcpKmsKeyVersions ?? [],
    vaultKeyPaths: values.vaultKeyPaths ?? [],
  } as const;
}

/** Names of the signer sources that are set. */
export function keySourcesIn(sources: Config["signers"]): readonly (keyof Config["signers"])[] {
  const names = Object.keys(sources) as (keyof Config["signers"])[];
  return names.filter((name) => (Array.isArray(sources[name]) ? sources[name].length > 0 : sources[name] !== null));
}
