/**
 * Every setting: its key in the file, its environment variable, how it is read, its default, and how people see it.
 * docs/configuration.md is tested against this table in both directions.
 */
import { LOG_LEVELS } from "../../adapters/system/log-level.ts";
import { ALERT_FORMATS } from "../../adapters/webhooks/alert-formats.ts";
import { LONGEST_TTL_MS } from "../../domain/reservations.ts";
import {
  type ApiKey,
  address,
  apiKey,
  databaseUrl,
  hookPlace,
  mnemonic,
  originUrl,
  privateKey,
  rpcUrl,
  webhookUrl,
} from "./credentials.ts";
import type { ChainOptions, FencepostConfig } from "./define.ts";
import { MASK, maskDatabaseUrl, maskHookPlace, maskRpcUrl } from "./masking.ts";
import { choice, flag, formatGwei, gwei, integer, list, matching, text, wei } from "./parsers.ts";
import { byChain, oneOf, optional, type Setting, setting, time, timeOrOff, whole } from "./setting.ts";

const MAX_COUNT = 1_000_000;

export const CHAIN_SETTINGS = {
  confirmations: { ...whole("FENCEPOST_CONFIRMATIONS", 20, [0, 100_000]), devFallback: 2 },
  finality: oneOf("FENCEPOST_FINALITY", "confirmations", "safe", "finalized"),
  pollInterval: time("FENCEPOST_POLL_INTERVAL", 1000, 10),
  nonceChainQuery: oneOf("FENCEPOST_NONCE_CHAIN_QUERY", "latest", "pending", "off"),
  nonceStateTimeout: time("FENCEPOST_NONCE_STATE_TIMEOUT", 30_000, 0),
  staleReceiptTimeout: time("FENCEPOST_STALE_RECEIPT_TIMEOUT", 60_000, 100),
  receiptWorkers: whole("FENCEPOST_RECEIPT_WORKERS", 10, [1, 1000]),
  fetchReceiptUponEntry: setting("FENCEPOST_FETCH_RECEIPT_UPON_ENTRY", { parse: flag, fallback: false, show: String }),
  broadcastToAll: setting("FENCEPOST_BROADCAST_TO_ALL", { parse: flag, fallback: false, show: String }),
  resubmitInterval: timeOrOff("FENCEPOST_RESUBMIT_INTERVAL", 60_000, 100),
  maxAttempts: whole("FENCEPOST_MAX_ATTEMPTS", 0, [0, MAX_COUNT]),
  stuckAfter: time("FENCEPOST_STUCK_AFTER", 30 * 60_000, 1_000),
  reprice: oneOf("FENCEPOST_REPRICE", "on", "off", "linear"),
  inFlightWindow: whole("FENCEPOST_IN_FLIGHT_WINDOW", 64, [1, 100_000]),
  blockQueueLength: whole("FENCEPOST_BLOCK_QUEUE_LENGTH", 1000, [1, MAX_COUNT]),
  maxFeeGwei: byChain("FENCEPOST_MAX_FEE_GWEI", { parse: gwei, show: formatGwei }),
  maxGasCostWei: byChain("FENCEPOST_MAX_GAS_COST_WEI", { parse: wei, show: String }),
  maxCostWei: optional("FENCEPOST_MAX_COST_WEI", { parse: wei, show: String }),
  maxTransactionGas: byChain("FENCEPOST_MAX_TRANSACTION_GAS", {
    parse: integer(21_000, Number.MAX_SAFE_INTEGER),
    show: String,
  }),
  reconciliationInterval: timeOrOff("FENCEPOST_RECONCILIATION_INTERVAL", 5 * 60_000, 100),
  grayZoneTimeout: time("FENCEPOST_GRAY_ZONE_TIMEOUT", 5 * 60_000, 1_000),
  grayZoneInterval: timeOrOff("FENCEPOST_GRAY_ZONE_INTERVAL", 60_000, 100),
  grayZoneLookback: whole("FENCEPOST_GRAY_ZONE_LOOKBACK", 100, [1, 100_000]),
  externalUsePolicy: oneOf("FENCEPOST_EXTERNAL_USE_POLICY", "fail", "requeue"),
  holePolicy: oneOf("FENCEPOST_HOLE_POLICY", "move", "heal"),
  reservationTtl: time("FENCEPOST_RESERVATION_TTL", 60_000, [1_000, LONGEST_TTL_MS]),
  alertPendingDepth: whole("FENCEPOST_ALERT_PENDING_DEPTH", 1_000, [1, MAX_COUNT]),
  alertOldestAge: time("FENCEPOST_ALERT_OLDEST_AGE", 10 * 60_000, 1_000),
  alertHeadAge: time("FENCEPOST_ALERT_HEAD_AGE", 5 * 60_000, 1_000),
  alertReserved: whole("FENCEPOST_ALERT_RESERVED", 100, [1, MAX_COUNT]),
  alertLowBalanceWei: optional("FENCEPOST_ALERT_LOW_BALANCE_WEI", { parse: wei, show: String }),
} satisfies Record<keyof ChainOptions, Setting<unknown>>;

export const SETTINGS = {
  databaseUrl: optional("FENCEPOST_DATABASE_URL", { parse: databaseUrl, secret: true, show: maskDatabaseUrl }),
  directDatabaseUrl: optional("FENCEPOST_DIRECT_DATABASE_URL", {
    parse: databaseUrl,
    secret: true,
    show: maskDatabaseUrl,
  }),
  notifications: oneOf("FENCEPOST_NOTIFICATIONS", "on", "off"),
  preparedStatements: oneOf("FENCEPOST_PREPARED_STATEMENTS", "auto", "on", "off"),
  rpcUrl: optional("FENCEPOST_RPC_URL", {
    parse: list(rpcUrl),
    secret: true,
    show: (urls: readonly string[]) => urls.map(maskRpcUrl).join(", "),
  }),
  privateKeys: optional("FENCEPOST_PRIVATE_KEYS", {
    parse: list(privateKey),
    secret: true,
    show: (keys: readonly string[]) => `${MASK} (${keys.length})`,
  }),
  mnemonic: optional("FENCEPOST_MNEMONIC", { parse: mnemonic, secret: true, show: () => MASK }),
  keystoreDir: optional("FENCEPOST_KEYSTORE_DIR", { parse: text, show: String }),
  keystorePasswordFile: optional("FENCEPOST_KEYSTORE_PASSWORD_FILE", { parse: text, show: String }),
  nodeSigners: optional("FENCEPOST_NODE_SIGNERS", {
    parse: list(address),
    show: (addresses: readonly string[]) => addresses.join(", "),
  }),
  host: setting("FENCEPOST_HOST", { parse: text, fallback: "127.0.0.1", show: String }),
  port: whole("FENCEPOST_PORT", 3000, [0, 65_535]),
  nodeId: optional("FENCEPOST_NODE_ID", {
    parse: matching(/^[\w.:-]{1,128}$/, "is not a node id (1 to 128 letters, digits or . _ : -)"),
    show: String,
  }),
  advertiseUrl: optional("FENCEPOST_ADVERTISE_URL", { parse: originUrl, secret: true, show: String }),
  apiKeys: optional("FENCEPOST_API_KEYS", {
    parse: list(apiKey, (key) => key.secret),
    secret: true,
    show: (keys: readonly ApiKey[]) => keys.map((key) => `${key.name}:${MASK}`).join(", "),
  }),
  auth: optional("FENCEPOST_AUTH", { parse: choice("keys", "none"), show: String }),
  mode: oneOf("FENCEPOST_MODE", "worker-queue", "basic"),
  leaseDuration: time("FENCEPOST_LEASE_DURATION", 10_000, 500),
  leaseRenewInterval: time("FENCEPOST_LEASE_RENEW_INTERVAL", 3000, 50),
  clockSkewAllowance: time("FENCEPOST_CLOCK_SKEW_ALLOWANCE", 1000, 0),
  batchSize: whole("FENCEPOST_BATCH_SIZE", 200, [1, 10_000]),
  batchTimeout: time("FENCEPOST_BATCH_TIMEOUT", 2, 0),
  writerWorkers: whole("FENCEPOST_WRITER_WORKERS", 256, [1, 65_536]),
  queueLimit: whole("FENCEPOST_QUEUE_LIMIT", 10_000, [1, MAX_COUNT]),
  drainTimeout: time("FENCEPOST_DRAIN_TIMEOUT", 5000, 0),
  stuckHook: optional("FENCEPOST_STUCK_HOOK", { parse: hookPlace, secret: true, show: maskHookPlace }),
  stuckHookSecret: optional("FENCEPOST_STUCK_HOOK_SECRET", { parse: text, secret: true, show: () => MASK }),
  alertWebhookUrl: optional("FENCEPOST_ALERT_WEBHOOK_URL", { parse: webhookUrl, secret: true, show: maskRpcUrl }),
  alertWebhookFormat: optional("FENCEPOST_ALERT_WEBHOOK_FORMAT", { parse: choice(...ALERT_FORMATS), show: String }),
  logLevel: setting("FENCEPOST_LOG_LEVEL", { parse: choice(...LOG_LEVELS), fallback: "info", show: String }),
  ...CHAIN_SETTINGS,
} satisfies Record<Exclude<keyof FencepostConfig, "chains">, Setting<unknown>>;

export type SettingKey = keyof typeof SETTINGS;
export type ChainSettingKey = keyof typeof CHAIN_SETTINGS;
type ValueOf<S> = S extends Setting<infer T> ? T : never;
export type Values = { readonly [K in SettingKey]: ValueOf<(typeof SETTINGS)[K]> };
export type ChainValues = Pick<Values, ChainSettingKey>;

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];
export const CHAIN_SETTING_KEYS = Object.keys(CHAIN_SETTINGS) as readonly ChainSettingKey[];

/** Named in the documentation of what is to come. Taking them and doing nothing would be a lie, so they are refused. */
export const NOT_YET_SUPPORTED: ReadonlyMap<string, string> = new Map([
  ["remoteSignerUrl", "FENCEPOST_REMOTE_SIGNER_URL"],
  ["awsKmsKeyIds", "FENCEPOST_AWS_KMS_KEY_IDS"],
]);
