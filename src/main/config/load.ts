import type { ChainSettings } from "../../application/settings.ts";
import { REPRICING_STRATEGIES } from "../../domain/repricing.ts";
import { refuseImpossible, refuseMissing } from "./combinations.ts";
import { type Command, type Config, type ConfigFor, ConfigurationError } from "./config.ts";
import { readConfigFile } from "./file.ts";
import { type Resolution, resolve } from "./resolve.ts";
import type { ChainValues, Values } from "./schema.ts";
import type { Flags, Sources } from "./sources.ts";

export interface ConfigRequest<C extends Command> {
  readonly command: C;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** The default of the setting `nodeId`. */
  readonly nodeId: string;
  /** Instead of looking in the working directory. */
  readonly configPath?: string | undefined;
  readonly flags?: Flags;
}

export interface LoadedConfig<C extends Command> {
  readonly config: ConfigFor<C>;
  /** Where each value came from, for `fencepost config`. */
  readonly resolution: Resolution;
}

/** Reads file and environment; throws a ConfigurationError with every mistake there is. */
export async function loadConfig<C extends Command>(request: ConfigRequest<C>): Promise<LoadedConfig<C>> {
  const file = await readConfigFile(request.workingDirectory, request.configPath);
  const { command, variables, flags = {}, nodeId } = request;
  return configFrom({ command, variables, flags, file }, nodeId);
}

/** The same from a file's content at hand, as the library face has it. */
export function configFrom<C extends Command>(
  sources: Sources & { readonly command: C },
  nodeId: string,
): LoadedConfig<C> {
  const resolution = resolve(sources);
  refuseImpossible(resolution);
  refuseMissing(sources.command, resolution);
  if (resolution.mistakes.lines.length > 0) throw new ConfigurationError(resolution.mistakes.lines);
  // refuseMissing has seen to what ConfigFor promises beyond Config.
  return { config: buildConfig(resolution, nodeId) as ConfigFor<C>, resolution };
}

function buildConfig({ values, chains }: Resolution, nodeId: string): Config {
  return {
    databaseUrl: values.databaseUrl,
    directDatabaseUrl: values.directDatabaseUrl,
    notifications: values.notifications === "on",
    preparedStatements: values.preparedStatements,
    chains: chains.map((chain) => ({
      chainId: chain.id,
      rpcUrls: chain.rpcUrls,
      settings: chainSettings(chain.values),
    })),
    chainDefaults: chainSettings(values),
    signers: signers(values),
    host: values.host,
    port: values.port,
    nodeId: values.nodeId ?? nodeId,
    advertiseUrl: values.advertiseUrl,
    apiKeys: values.apiKeys ?? "none",
    mode: values.mode,
    lease: {
      durationMs: values.leaseDuration,
      renewIntervalMs: values.leaseRenewInterval,
      clockSkewMs: values.clockSkewAllowance,
    },
    writer: { batchSize: values.batchSize, batchTimeoutMs: values.batchTimeout, shards: values.writerWorkers },
    queueLimit: values.queueLimit,
    drainTimeoutMs: values.drainTimeout,
    logLevel: values.logLevel,
    stuckHook: values.stuckHook === null ? null : { place: values.stuckHook, secret: values.stuckHookSecret },
    alertWebhook:
      values.alertWebhookUrl === null ? null : { url: values.alertWebhookUrl, format: values.alertWebhookFormat },
  };
}

function chainSettings(values: ChainValues): ChainSettings {
  return {
    confirmations: values.confirmations,
    finality: values.finality,
    pollIntervalMs: values.pollInterval,
    nonceChainQuery: values.nonceChainQuery,
    nonceStateTimeoutMs: values.nonceStateTimeout,
    staleReceiptTimeoutMs: values.staleReceiptTimeout,
    receiptWorkers: values.receiptWorkers,
    fetchReceiptUponEntry: values.fetchReceiptUponEntry,
    broadcastToAll: values.broadcastToAll,
    resubmitIntervalMs: values.resubmitInterval,
    repricing: values.reprice === "off" ? null : REPRICING_STRATEGIES[values.reprice],
    maxAttempts: values.maxAttempts,
    stuckAfterMs: values.stuckAfter,
    inFlightWindow: values.inFlightWindow,
    blockQueueLength: values.blockQueueLength,
    maxFeeWei: values.maxFeeGwei,
    maxGasCostWei: values.maxGasCostWei,
    maxCostWei: values.maxCostWei,
    maxTransactionGas: values.maxTransactionGas === null ? null : BigInt(values.maxTransactionGas),
    reconciliationIntervalMs: values.reconciliationInterval,
    grayZoneTimeoutMs: values.grayZoneTimeout,
    grayZoneIntervalMs: values.grayZoneInterval,
    grayZoneLookback: values.grayZoneLookback,
    externalUsePolicy: values.externalUsePolicy,
    alertLowBalanceWei: values.alertLowBalanceWei,
    alertPendingDepth: values.alertPendingDepth,
    alertOldestAgeMs: values.alertOldestAge,
    alertHeadAgeMs: values.alertHeadAge,
    alertReserved: values.alertReserved,
    holePolicy: values.holePolicy,
    reservationTtlMs: values.reservationTtl,
  };
}

function signers(values: Values): Config["signers"] {
  const { privateKeys, mnemonic, keystoreDir, keystorePasswordFile, nodeSigners } = values;
  const keystore =
    keystoreDir === null || keystorePasswordFile === null
      ? null
      : { directory: keystoreDir, passwordFile: keystorePasswordFile };
  return { privateKeys: privateKeys ?? [], mnemonic, keystore, nodeSigners: nodeSigners ?? [] };
}
