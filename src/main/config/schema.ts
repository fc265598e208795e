/**
 * Every setting: its key in the file, how it is read, its default, and how people see it. The environment variable follows
 * from the key. docs/configuration.md is tested against this table in both directions.
 */
import { URL_PATTERN } from "../../adapters/peers/url-patterns.ts";
import { DEFAULT_SCHEMA } from "../../adapters/postgres/schema-name.ts";
import { LOG_LEVELS } from "../../adapters/system/log-level.ts";
import { ALERT_FORMATS } from "../../adapters/webhooks/alert-formats.ts";
import { MASK } from "../../domain/mask.ts";
import { LONGEST_TTL_MS } from "../../domain/reservations.ts";
import { SHORTEST_RETENTION_MS } from "../../domain/retention.ts";
import { USUAL_LOGS_RANGE } from "../../domain/rpc-methods.ts";
import { ageOr } from "./ages.ts";
import * as credentials from "./credentials.ts";
import {
  maskDatabaseUrl,
  maskHookPlace,
  maskRpcUrl,
  secretsOfDatabaseUrl,
  secretsOfHookPlace,
  secretsOfRpcUrls,
} from "./masking.ts";
import {
  choice,
  document,
  duration,
  flag,
  formatGwei,
  gwei,
  integer,
  list,
  matching,
  onlyFail,
  rate,
  rpcMethod,
  share,
  text,
  wei,
} from "./parsers.ts";
import { pools, showPools } from "./pool-setting.ts";
import {
  BY_CHAIN_ID,
  type Duration,
  oneOf,
  optional,
  type Setting,
  settings,
  time,
  timeOrOff,
  whole,
} from "./setting.ts";

const MAX_COUNT = 1_000_000;

export const CHAIN_SETTINGS = settings({
  /** Blocks on top before an outcome is final; 0 is as soon as it is mined. */
  confirmations: { ...whole(20, [0, 100_000]), devFallback: 2 },
  /** Count confirmations, or trust the chain's own tag. */
  finality: oneOf("confirmations", "safe", "finalized"),
  /** How often the head is asked for. */
  pollInterval: time(1000, 10),
  /** Which count of the chain takes part in nonce allocation. */
  nonceChainQuery: oneOf("latest", "pending", "off"),
  /** How long a lane trusts its cached nonce; 0 asks the chain before every batch. */
  nonceStateTimeout: { ...time(30_000, 0), parse: duration<Duration | 0>(0) },
  /** After how long without a receipt the chain is asked directly. */
  staleReceiptTimeout: time(60_000, 100),
  /** Receipt look-ups at the same time. */
  receiptWorkers: whole(10, [1, 1000]),
  /** Look for a receipt as soon as a transaction is tracked. */
  fetchReceiptUponEntry: { parse: flag, fallback: false, show: String },
  broadcastToAll: { parse: flag, fallback: false, show: String },
  /** After how long without a receipt stored bytes are sent again. */
  resubmitInterval: timeOrOff(60_000, 100),
  /** After how long a transaction that private endpoints alone were given is sent to the others too. */
  publicAfter: timeOrOff(null, 1_000),
  /** Payloads signed for one transaction without an operator; 0 is no limit. It is tracked and sent all the same. */
  maxAttempts: whole(0, [0, MAX_COUNT]),
  /** How long a transaction may hold up its lane before it is reported as STUCK. */
  stuckAfter: time(30 * 60_000, 1_000),
  /** How often it is sent again to a node that took it, before that; 0: age alone decides. */
  stuckAfterResubmits: whole(30, [0, MAX_COUNT]),
  /** Sign again at a higher price: following the market (`on`), by equal steps (`linear`), or never. */
  reprice: oneOf("on", "off", "linear"),
  /** Where new heads are told of, as a hint to look sooner. */
  wsUrl: optional({ parse: credentials.socketUrl, secrets: secretsOfHookPlace, show: maskRpcUrl }),
  /** What to offer for gas: an https URL that says it, or a fixed fee cap in gwei, with a tip behind a slash. */
  gasOracle: optional({ parse: credentials.gasOracle, secrets: secretsOfHookPlace, show: maskHookPlace }),
  /** Where the fees stand in the answer of a URL: fee cap, and tip behind a slash. */
  gasOracleFields: {
    parse: matching(
      /^[\w.-]{1,200}\/[\w.-]{1,200}$/,
      "is not two paths such as standard.maxFee/standard.maxPriorityFee",
    ),
    fallback: "maxFeePerGas/maxPriorityFeePerGas",
    show: String,
  },
  gasOracleUnit: oneOf("wei", "gwei"),
  /** Transactions of a lane at the node beyond the mined nonce. */
  inFlightWindow: whole(64, [1, 100_000]),
  /** Blocks that may wait for a slow consumer. */
  blockQueueLength: whole(1000, [1, MAX_COUNT]),
  /** Ceiling of the fee per gas, also for prices that callers name; without it, one by chain id. */
  maxFeeGwei: optional({ parse: gwei, show: formatGwei, unset: BY_CHAIN_ID }),
  /** Ceiling of gas × fee cap of one transaction, in wei; without it, one by chain id. */
  maxGasCostWei: optional({ parse: wei, unset: BY_CHAIN_ID }),
  /** Ceiling of value + gas × fee cap of one transaction, in wei; without it, value is not bounded. */
  maxCostWei: optional({ parse: wei }),
  /** The most gas that the chain takes in one transaction, where it takes less than a block holds (EIP-7825). */
  maxTransactionGas: optional({ parse: integer(21_000, Number.MAX_SAFE_INTEGER), unset: BY_CHAIN_ID }),
  /** How often each lane is compared with the chain. */
  reconciliationInterval: timeOrOff(5 * 60_000, 100),
  /** After how long a payload that a node signed, and that is found nowhere, is sent anew. */
  grayZoneTimeout: time(5 * 60_000, 1_000),
  /** How often such a payload is looked for. */
  grayZoneInterval: timeOrOff(60_000, 100),
  /** Blocks that are read one by one where the node has pruned older state. */
  grayZoneLookback: whole(100, [1, 100_000]),
  /** Kept for configurations that name it: a transaction whose nonce another program used always ends. */
  externalUsePolicy: { parse: onlyFail, fallback: "fail", show: String },
  /** A nonce that nothing can use: closed by what may move down, else said aloud; or taken by a placeholder or a cancel. */
  holePolicy: oneOf("move", "heal"),
  /** How long a reserved nonce is kept where its caller does not say; at most ten minutes. */
  reservationTtl: time(60_000, 1_000, LONGEST_TTL_MS),
  /** Nonces of a lane that one key may keep from others at a time: reserved, or expired and without a transaction. */
  maxReservations: whole(16, [1, MAX_COUNT]),
  /** The nonce of an expired reservation: taken by a placeholder, or left to the hole policy. */
  expiredReservations: oneOf("placeholder", "hole"),
  /** Such placeholders that a lane pays for in one hour; past that its head is STUCK. */
  maxReservationRepairs: whole(16, [0, MAX_COUNT]),
  /** An alert, and a question to the hook, where more transactions of a lane are not final. */
  alertPendingDepth: whole(1_000, [1, MAX_COUNT]),
  /** The same where the oldest of them is older. */
  alertOldestAge: time(10 * 60_000, 1_000),
  /** The same where the one that all others wait for is older. */
  alertHeadAge: time(5 * 60_000, 1_000),
  /** An alert where more nonces of a lane are reserved. */
  alertReserved: whole(100, [1, MAX_COUNT]),
  /** An alert where a signer holds less; in wei. */
  alertLowBalanceWei: optional({ parse: wei }),
  /** Where people look the chain up; without it, one by chain id. */
  explorerUrl: optional({ parse: credentials.endpointUrl, unset: BY_CHAIN_ID }),
});

const DATABASE = optional({ parse: credentials.databaseUrl, secrets: secretsOfDatabaseUrl, show: maskDatabaseUrl });

export const SETTINGS = {
  ...settings({
    databaseUrl: DATABASE,
    /** The same database past a transaction pooler: where nodes listen for each other's hints. */
    directDatabaseUrl: DATABASE,
    /** Where everything is kept in it. */
    databaseSchema: {
      parse: matching(/^[a-z_][a-z0-9_]{0,62}$/, "is not a schema name (1 to 63 of a to z, 0 to 9 and _)"),
      fallback: DEFAULT_SCHEMA,
      show: String,
    },
    notifications: oneOf("on", "off"),
    preparedStatements: oneOf("auto", "on", "off"),
    /** One chain. For several, use `chains`. */
    rpcUrl: optional({
      parse: credentials.rpcUrls,
      secrets: secretsOfRpcUrls,
      show: (urls: readonly string[]) => urls.map(maskRpcUrl).join(", "),
    }),
    /** Of the chain behind `rpcUrl`. Not set: what its endpoints say, where the database has served that before. */
    chainId: optional({ parse: integer(1, Number.MAX_SAFE_INTEGER) }),
    privateKeys: optional({
      parse: list(credentials.privateKey),
      secrets: (keys: readonly string[]) => keys.map((key) => key.slice(2)),
      show: (keys: readonly string[]) => `${MASK} (${keys.length})`,
    }),
    /** Each holds private keys as hex, one a line. */
    privateKeyFiles: optional({
      parse: list(credentials.keyFile),
      secrets: () => [],
      show: (files: readonly string[]) => files.join(", "),
    }),
    mnemonic: optional({ parse: credentials.mnemonic, secrets: (phrase: string) => [phrase], show: () => MASK }),
    /** Accounts of the mnemonic, from the first on. */
    mnemonicCount: whole(1, [1, 1_000]),
    /** Where they are derived; the account's number is put in for `{index}`, or behind it. */
    mnemonicPath: { parse: credentials.derivationPath, fallback: "m/44'/60'/0'/0", show: String },
    keystoreDir: optional({ parse: text }),
    keystorePasswordFile: optional({ parse: text }),
    /** Addresses whose keys the chain node holds: it signs them itself (`eth_sendTransaction`). */
    nodeSigners: optional({
      parse: list(credentials.address),
      show: (addresses: readonly string[]) => addresses.join(", "),
    }),
    /** A signer that is asked over JSON-RPC, as Web3Signer is (`eth_accounts`, `eth_signTransaction`). */
    remoteSignerUrl: optional({ parse: credentials.endpointUrl, secrets: secretsOfHookPlace, show: maskRpcUrl }),
    /** Of its accounts, those that this node signs for; without it, all. */
    remoteSignerAddresses: optional({
      parse: list(credentials.address),
      show: (addresses: readonly string[]) => addresses.join(", "),
    }),
    /** PEM: who vouches for the remote signer, and what this node shows it. */
    remoteSignerCaFile: optional({ parse: text }),
    remoteSignerCertFile: optional({ parse: text }),
    remoteSignerKeyFile: optional({ parse: text }),
    /** Keys of the spec ECC_SECG_P256K1: ids, ARNs or aliases. */
    awsKmsKeyIds: optional({ parse: list(credentials.awsKeyId), show: (ids: readonly string[]) => ids.join(", ") }),
    /** Versions of keys with the algorithm EC_SIGN_SECP256K1_SHA256, by their whole names. */
    gcpKmsKeyVersions: optional({
      parse: list(credentials.gcpKeyVersion),
      show: (names: readonly string[]) => names.join(", "),
    }),
    /** Secrets of HashiCorp Vault, each with a field `privateKey`. */
    vaultKeyPaths: optional({
      parse: list(credentials.vaultPath),
      show: (paths: readonly string[]) => paths.join(", "),
    }),
    /** Where keys are held: in a process of their own, or in a thread of the node's. */
    signing: optional({ parse: choice("process", "thread") }),
    host: { parse: text, fallback: "127.0.0.1", show: String },
    port: whole(3000, [0, 65_535]),
    /** Where metrics, other nodes and operators are answered, and nowhere else; without it, on the one port. */
    adminPort: optional({ parse: integer(0, 65_535) }),
    /** Address to listen on there; without it, as the other. */
    adminHost: optional({ parse: text }),
    nodeId: optional({ parse: matching(/^[\w.:-]{1,128}$/, "is not a node id (1 to 128 letters, digits or . _ : -)") }),
    advertiseUrl: optional({ parse: credentials.originUrl, secrets: () => [] }),
    /** Vouches for the keys of the nodes, outside the database. The first signs, each of them is believed. */
    clusterSecret: optional({
      parse: list(credentials.clusterSecret),
      secrets: (all: readonly string[]) => all,
      show: (secrets: readonly string[]) => `${MASK} (${secrets.length})`,
    }),
    /** Where other nodes may be; without it, wherever they advertise. */
    peerUrlPattern: optional({
      parse: list(matching(URL_PATTERN, "is not the pattern of a node's URL (use https://node-*.relay.internal:3000)")),
      show: (patterns: readonly string[]) => patterns.join(", "),
    }),
    /** Names that this node answers to; without it, where no key is asked for, its own. */
    allowedHosts: optional({ parse: list(credentials.hostName), show: (names: readonly string[]) => names.join(", ") }),
    /** Of sites whose pages may speak to this node. */
    allowedOrigins: optional({
      parse: list(credentials.webOrigin),
      show: (origins: readonly string[]) => origins.join(", "),
    }),
    /** At `/rpc`: what strangers signed is passed on to the chain, or refused. */
    rpcForeignRaw: oneOf("refuse", "pass"),
    /** Whether an API key may stand in the path of `/rpc`. */
    rpcKeyInPath: { parse: flag, fallback: false, show: String },
    /** Reads that `/rpc` passes on to the chain's endpoints beside the usual ones. */
    rpcMethods: optional({ parse: list(rpcMethod), show: (names: readonly string[]) => names.join(", ") }),
    /** Blocks that one filter of logs may reach over there. */
    rpcLogsRange: whole(USUAL_LOGS_RANGE, [1, 1_000_000_000]),
    /** Each as `name:secret:scope+scope`, or as an object in a file. */
    apiKeys: optional({
      parse: list(credentials.apiKey, (key) => key.secret),
      secrets: (keys: readonly credentials.ApiKey[]) => keys.map((key) => key.secret),
      show: (keys: readonly credentials.ApiKey[]) => keys.map((key) => `${key.name}:${MASK}`).join(", "),
    }),
    /** Of keys that name none of their own: creates and reads of a chain a second on each node, and the part of a lane's queue that one may fill. */
    keyRate: optional({ parse: rate }),
    keyReadRate: optional({ parse: rate }),
    keyQueueShare: optional({ parse: share }),
    auth: optional({ parse: choice("keys", "none") }),
    /** What signers and API keys may do, and up to how much: a file of JSON. */
    policyFile: optional({ parse: text }),
    /** The same, in the configuration itself. */
    policies: optional({ parse: document, show: () => "set" }),
    /** Signers under one name, of which each transaction gets one. */
    pools: optional({ parse: pools, show: showPools }),
    mode: oneOf("worker-queue", "basic"),
    /** A busy laptop does not lose it; production takes over sooner. */
    leaseDuration: { ...time(10_000, 500), devFallback: 60_000 },
    leaseRenewInterval: time(3000, 50),
    clockSkewAllowance: time(1000, 0),
    batchSize: whole(200, [1, 10_000]),
    batchTimeout: time(2, 0),
    writerWorkers: whole(256, [1, 65_536]),
    queueLimit: whole(10_000, [1, MAX_COUNT]),
    drainTimeout: time(5000, 0),
    /** Final transactions, and completions, older than this are kept no more. */
    retention: ageOr("off", SHORTEST_RETENTION_MS),
    /** How long request ids of what is kept no more are refused, by their hashes. */
    requestIdRetention: ageOr("forever", SHORTEST_RETENTION_MS),
    /** Decides what becomes of stuck transactions: a module with a default export, or an https URL. */
    stuckHook: optional({ parse: credentials.hookPlace, secrets: secretsOfHookPlace, show: maskHookPlace }),
    /** Signs what is asked of a URL. */
    stuckHookSecret: optional({ parse: text, secrets: (secret: string) => [secret], show: () => MASK }),
    /** Decides what is offered instead where an offer is not taken: a module with a default export. */
    repricingModule: optional({ parse: text }),
    /** Private networks that the hook and the alerts' webhook may lead to: addresses, or as 10.0.0.0/8. */
    hookNetworks: optional({
      parse: list(credentials.network),
      show: (networks: readonly string[]) => networks.join(", "),
    }),
    /** Alerts are posted there. */
    alertWebhookUrl: optional({ parse: credentials.webhookUrl, secrets: secretsOfHookPlace, show: maskRpcUrl }),
    /** Without it, by the URL's host: Slack, DingTalk and Feishu are known, all else gets plain JSON. */
    alertWebhookFormat: optional({ parse: choice(...ALERT_FORMATS) }),
    logLevel: { parse: choice(...LOG_LEVELS), fallback: "info", show: String },
  }),
  ...CHAIN_SETTINGS,
};

export type SettingKey = keyof typeof SETTINGS;
export type ChainSettingKey = keyof typeof CHAIN_SETTINGS;
export type Values = {
  readonly [K in SettingKey]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never;
};
export type ChainValues = Pick<Values, ChainSettingKey>;

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];
export const CHAIN_SETTING_KEYS = Object.keys(CHAIN_SETTINGS) as readonly ChainSettingKey[];

/** Each names signers of one kind; `start` needs one of them. */
export const SIGNER_KEYS = [
  "privateKeys",
  "privateKeyFiles",
  "mnemonic",
  "keystoreDir",
  "nodeSigners",
  "remoteSignerUrl",
  "awsKmsKeyIds",
  "gcpKmsKeyVersions",
  "vaultKeyPaths",
] as const satisfies readonly SettingKey[];
