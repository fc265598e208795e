/**
 * Every setting, declared once: its key in the file, its parser, its default, and how its value is shown. The
 * environment variable is derived from the key. A test compares docs/configuration.md with this table in both
 * directions.
 */
import { URL_PATTERN } from "../../adapters/peers/url-patterns.ts";
import { DEFAULT_SCHEMA } from "../../adapters/postgres/rows/schema-name.ts";
import { LOG_LEVELS } from "../../adapters/system/log-level.ts";
import { ALERT_FORMATS } from "../../adapters/webhooks/alert-formats.ts";
import { USUAL_LOGS_RANGE } from "../../domain/chain/rpc-methods.ts";
import { SHORTEST_RETENTION_MS } from "../../domain/cluster/retention.ts";
import { MASK } from "../../domain/text/mask.ts";
import { LONGEST_TTL_MS } from "../../domain/transaction/reservations.ts";
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
  chainId,
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
  type Parser,
  rate,
  rpcMethod,
  share,
  text,
  wei,
} from "./parsers.ts";
import {
  ageOr,
  BY_CHAIN_ID,
  type Duration,
  oneOf,
  optional,
  settings,
  time,
  timeOrOff,
  whole,
  withDefault,
} from "./setting.ts";

const MAX_COUNT = 1_000_000;

/** For each kind of secret setting: how its value is shown, and which parts of it are secret. */
const HIDDEN = { secrets: (secret: string) => [secret], show: () => MASK };
const ENDPOINT = { secrets: secretsOfHookPlace, show: maskRpcUrl };
const HOOK = { secrets: secretsOfHookPlace, show: maskHookPlace };

export const CHAIN_SETTINGS = settings({
  /** Blocks on top of the transaction's block before its outcome is final; 0: as soon as it is mined. */
  confirmations: { ...whole(20, [0, 100_000]), devFallback: 2 },
  /** Finality rule: a count of confirmations, or the chain's own `safe` or `finalized` tag. */
  finality: oneOf("confirmations", "safe", "finalized"),
  /** Interval between two requests for the chain's newest block. */
  pollInterval: time(1000, 10),
  /** Block tag for the eth_getTransactionCount request before nonces are allocated. */
  nonceChainQuery: oneOf("latest", "pending", "off"),
  /**
   * Age up to which a lane trusts its cached transaction count; 0: the count is read from the chain before every batch
   * of creates.
   */
  nonceStateTimeout: { ...time(30_000, 0), parse: duration<Duration | 0>(0) },
  /** Time without a receipt after which the receipt is requested directly. */
  staleReceiptTimeout: time(60_000, 100),
  /** Maximum number of parallel receipt requests. */
  receiptWorkers: whole(10, [1, 1000]),
  /** True: check for a transaction's receipt as soon as it is signed and stored. */
  fetchReceiptUponEntry: withDefault(false, flag),
  /** True: send every transaction to all endpoints, instead of to the first that accepts it. */
  broadcastToAll: withDefault(false, flag),
  /** Time without a receipt after which a transaction's stored bytes are sent again. */
  resubmitInterval: timeOrOff(60_000, 100),
  /** Time after which a transaction sent to private endpoints only is sent to the public ones too. */
  publicAfter: timeOrOff(null, 1_000),
  /**
   * Maximum number of payloads that may be signed for one transaction without an operator's action; 0: no limit. After
   * that, the last payload is still resent and checked for a receipt.
   */
  maxAttempts: whole(0, [0, MAX_COUNT]),
  /** Time for which a transaction may block its lane before it is reported as STUCK. */
  stuckAfter: time(30 * 60_000, 1_000),
  /** Number of resends accepted by a node before a transaction counts as STUCK; 0: only its age decides. */
  stuckAfterResubmits: whole(30, [0, MAX_COUNT]),
  /**
   * Whether unmined transactions are replaced at a higher price: following the chain's fees (`on`), by equal steps
   * (`linear`), or never (`off`).
   */
  reprice: oneOf("on", "off", "linear"),
  /** WebSocket endpoint for eth_subscribe("newHeads"). A notification only triggers the next poll earlier. */
  wsUrl: optional(credentials.socketUrl, ENDPOINT),
  /**
   * Where offered fees come from: an https URL of a gas oracle, or a fixed fee cap in gwei, optionally followed by a
   * slash and a tip.
   */
  gasOracle: optional(credentials.gasOracle, HOOK),
  /** Paths of fee cap and tip in the JSON response of a gas oracle's URL, separated by a slash. */
  gasOracleFields: withDefault(
    "maxFeePerGas/maxPriorityFeePerGas",
    matching(/^[\w.-]{1,200}\/[\w.-]{1,200}$/, "is not two paths such as standard.maxFee/standard.maxPriorityFee"),
  ),
  /** Unit of the amounts in the gas oracle's response. */
  gasOracleUnit: oneOf("wei", "gwei"),
  /** How far a lane may send ahead: maximum number of nonces, counted from the lowest one that is not mined. */
  inFlightWindow: whole(64, [1, 100_000]),
  /** Maximum number of blocks in the queue of a slow consumer of new blocks. */
  blockQueueLength: whole(1000, [1, MAX_COUNT]),
  /** Ceiling of the fee per gas, also for prices set by callers. If not set, a default by chain id. */
  maxFeeGwei: optional(gwei, { show: formatGwei, unset: BY_CHAIN_ID }),
  /** Ceiling of gas × fee cap of one transaction, in wei. If not set, a default by chain id. */
  maxGasCostWei: optional(wei, { unset: BY_CHAIN_ID }),
  /** Ceiling of value + gas × fee cap of one transaction, in wei. If not set, value is unlimited. */
  maxCostWei: optional(wei),
  /** Ceiling of the gas limit of one transaction, on chains that allow less than a whole block (EIP-7825). */
  maxTransactionGas: optional(integer(21_000, Number.MAX_SAFE_INTEGER), { unset: BY_CHAIN_ID }),
  /** Interval between two comparisons of a lane with the chain. */
  reconciliationInterval: timeOrOff(5 * 60_000, 100),
  /** Time after which a transaction that the RPC node signed, and that cannot be found, is sent once more. */
  grayZoneTimeout: time(5 * 60_000, 1_000),
  /** Interval between two searches for a transaction that the RPC node signed and whose hash is unknown. */
  grayZoneInterval: timeOrOff(60_000, 100),
  /**
   * Number of blocks that are searched one by one for a transaction with an unknown hash, if the node has pruned older
   * state.
   */
  grayZoneLookback: whole(100, [1, 100_000]),
  /**
   * Accepted for old configurations. Its only value is `fail`: a transaction whose nonce another program used ends as
   * failed.
   */
  externalUsePolicy: withDefault("fail", onlyFail),
  /**
   * Repair of a nonce gap. `move` gives the nonce to a later transaction, or raises an alert if that is impossible;
   * `heal` sends a placeholder or a cancel.
   */
  holePolicy: oneOf("move", "heal"),
  /** Lifetime of a nonce reservation if the caller sets none; at most ten minutes. */
  reservationTtl: time(60_000, 1_000, LONGEST_TTL_MS),
  /**
   * Maximum number of a lane's nonces that one API key may block by reservations: open ones, and expired ones whose
   * nonce no transaction uses.
   */
  maxReservations: whole(16, [1, MAX_COUNT]),
  /**
   * The nonce of an expired reservation is filled by a placeholder transaction, or by the general repair of nonce gaps
   * (`hole`).
   */
  expiredReservations: oneOf("placeholder", "hole"),
  /**
   * Maximum number of placeholders for expired reservations per lane and hour. Beyond it, the lane's lowest open
   * transaction becomes STUCK.
   */
  maxReservationRepairs: whole(16, [0, MAX_COUNT]),
  /**
   * Alert threshold: number of a lane's transactions that are not final. Above it, an alert is raised and the stuck
   * hook is called.
   */
  alertPendingDepth: whole(1_000, [1, MAX_COUNT]),
  /**
   * Alert threshold: age of a lane's oldest transaction that is not final. Above it, an alert is raised and the stuck
   * hook is called.
   */
  alertOldestAge: time(10 * 60_000, 1_000),
  /**
   * Alert threshold: age of a lane's lowest unmined transaction, which blocks all later ones. Above it, an alert is
   * raised and the stuck hook is called.
   */
  alertHeadAge: time(5 * 60_000, 1_000),
  /** Number of reserved nonces of a lane above which an alert is raised. */
  alertReserved: whole(100, [1, MAX_COUNT]),
  /** Balance of a signer, in wei, below which an alert is raised. */
  alertLowBalanceWei: optional(wei),
  /** Base URL of the block explorer that pages link to. If not set, a default by chain id. */
  explorerUrl: optional(credentials.endpointUrl, { unset: BY_CHAIN_ID }),
});

const DATABASE = optional(credentials.databaseUrl, { secrets: secretsOfDatabaseUrl, show: maskDatabaseUrl });

export const SETTINGS = {
  ...settings({
    /** PostgreSQL of all nodes: `postgres://user:password@host:5432/database`. */
    databaseUrl: DATABASE,
    /** URL of the same database that bypasses the transaction pooler, for LISTEN. */
    directDatabaseUrl: DATABASE,
    /** PostgreSQL schema that holds all tables. */
    databaseSchema: withDefault(
      DEFAULT_SCHEMA,
      matching(/^[a-z_][a-z0-9_]{0,62}$/, "is not a schema name (1 to 63 of a to z, 0 to 9 and _)"),
    ),
    /** Whether nodes wake each other by LISTEN and NOTIFY; `off` behind a pooler without sessions. */
    notifications: oneOf("on", "off"),
    /** Whether statements are prepared by name; `auto` finds out whether a pooler allows it. */
    preparedStatements: oneOf("auto", "on", "off"),
    /** Endpoints of one chain. For several chains, use `chains`. */
    rpcUrl: optional(credentials.rpcUrls, {
      secrets: secretsOfRpcUrls,
      show: (urls: readonly string[]) => urls.map(maskRpcUrl).join(", "),
    }),
    /**
     * Id of the chain behind `rpcUrl`. If not set, the endpoints' chain id is used, provided that the database is new
     * or has served that chain before.
     */
    chainId: optional(chainId),
    /** Private keys in hex, which this process holds. Prefer a key service, or files. */
    privateKeys: optional(list(credentials.privateKey), {
      secrets: (keys: readonly string[]) => keys.map((key) => key.slice(2)),
      show: (keys: readonly string[]) => `${MASK} (${keys.length})`,
    }),
    /** Files of private keys in hex, one per line. */
    privateKeyFiles: optional(list(credentials.keyFile), { secrets: () => [] }),
    /** Mnemonic phrase (BIP-39, English words) to derive keys from. */
    mnemonic: optional(credentials.mnemonic, HIDDEN),
    /** Number of accounts derived from the mnemonic, starting with the first. */
    mnemonicCount: whole(1, [1, 1_000]),
    /** BIP-32 path of derived accounts. The account's index replaces `{index}`, or is appended. */
    mnemonicPath: withDefault("m/44'/60'/0'/0", credentials.derivationPath),
    /** Directory of encrypted keys (V3 JSON). */
    keystoreDir: optional(text),
    /** File with the password of the keystore. */
    keystorePasswordFile: optional(text),
    /** Addresses whose keys the RPC node holds: it signs their transactions itself (`eth_sendTransaction`). */
    nodeSigners: optional(list(credentials.address)),
    /** URL of a JSON-RPC signer such as Web3Signer (`eth_accounts`, `eth_signTransaction`). */
    remoteSignerUrl: optional(credentials.endpointUrl, ENDPOINT),
    /** Accounts of the remote signer that this node uses. If not set, all of them. */
    remoteSignerAddresses: optional(list(credentials.address)),
    /** PEM file of the CA that the remote signer's certificate comes from. */
    remoteSignerCaFile: optional(text),
    /** PEM file of this node's certificate, for mutual TLS with the remote signer. */
    remoteSignerCertFile: optional(text),
    /** PEM file of that certificate's key. */
    remoteSignerKeyFile: optional(text),
    /** AWS KMS keys of the spec ECC_SECG_P256K1: ids, ARNs or aliases. */
    awsKmsKeyIds: optional(list(credentials.awsKeyId)),
    /** Google Cloud KMS key versions with the algorithm EC_SIGN_SECP256K1_SHA256, by their full names. */
    gcpKmsKeyVersions: optional(list(credentials.gcpKeyVersion)),
    /** Paths of HashiCorp Vault secrets, each with a field `privateKey`. */
    vaultKeyPaths: optional(list(credentials.vaultPath)),
    /** Where the keys are held: in a process of their own, or in a thread of the node. */
    signing: optional(choice("process", "thread")),
    /** Listen address of the HTTP server. */
    host: withDefault("127.0.0.1", text),
    /** Port of the HTTP server; 0: any free port. */
    port: whole(3000, [0, 65_535]),
    /**
     * Port for metrics, other nodes and operators. The main port then refuses their requests. If not set, one port
     * serves all.
     */
    adminPort: optional(integer(0, 65_535)),
    /** Listen address of the admin port. If not set, that of `host`. */
    adminHost: optional(text),
    /** Name of the node, kept over restarts. If not set, a new one at each start. */
    nodeId: optional(matching(/^[\w.:-]{1,128}$/, "is not a node id (1 to 128 letters, digits or . _ : -)")),
    /** URL at which other nodes reach this one. If not set, derived from host and port. */
    advertiseUrl: optional(credentials.originUrl, { secrets: () => [] }),
    /**
     * Secrets shared by all nodes, which authenticate the nodes' keys independently of the database. The first one
     * signs; each of them verifies.
     */
    clusterSecret: optional(list(credentials.clusterSecret), {
      secrets: (all: readonly string[]) => all,
      show: (secrets: readonly string[]) => `${MASK} (${secrets.length})`,
    }),
    /** Patterns that the URLs of other nodes must match. If not set, any advertised URL is accepted. */
    peerUrlPattern: optional(
      list(matching(URL_PATTERN, "is not the pattern of a node's URL (use https://node-*.relay.internal:3000)")),
    ),
    /** Host headers that this node accepts. If not set, its own names if no API key is required, otherwise any. */
    allowedHosts: optional(list(credentials.hostName)),
    /** Origins of web pages that may call this node. */
    allowedOrigins: optional(list(credentials.webOrigin)),
    /** What happens to raw transactions of unknown senders at `/rpc`: they are forwarded to the chain, or refused. */
    rpcForeignRaw: oneOf("refuse", "pass"),
    /** True: `/rpc` accepts an API key in its path. */
    rpcKeyInPath: withDefault(false, flag),
    /** Additional read methods that `/rpc` forwards to the chain's endpoints. */
    rpcMethods: optional(list(rpcMethod)),
    /** Maximum number of blocks in one eth_getLogs filter at `/rpc`. */
    rpcLogsRange: whole(USUAL_LOGS_RANGE, [1, 1_000_000_000]),
    /** API keys, each as `name:secret:scope+scope`, or as an object in a file. */
    apiKeys: optional(
      list(credentials.apiKey, (key) => key.secret),
      {
        secrets: (keys: readonly credentials.ApiKey[]) => keys.map((key) => key.secret),
        show: (keys: readonly credentials.ApiKey[]) => keys.map((key) => `${key.name}:${MASK}`).join(", "),
      },
    ),
    /** Default quota of an API key: creates per second on each node. */
    keyRate: optional(rate),
    /** Default quota of an API key: chain reads per second on each node. */
    keyReadRate: optional(rate),
    /** Default quota of an API key: share of a lane's queue, up to 1. */
    keyQueueShare: optional(share),
    /** Whether API keys are required (`keys`), or none (`none`, on loopback addresses only). */
    auth: optional(choice("keys", "none")),
    /** JSON file of policies: permissions and spending limits of signers and API keys. */
    policyFile: optional(text),
    /** The policy document inside the configuration, instead of in a file. */
    policies: optional(document, { show: () => "set" }),
    /** Named groups of signers. Each transaction for a pool gets one of its signers. */
    pools: optional(credentials.pools, { show: credentials.showPools }),
    /** Names of signers, shown to people beside the address. */
    signerNames: optional(credentials.signerNames, { show: credentials.showSignerNames }),
    /** JSON file of ABIs by which calls, logs and errors of contracts are shown. */
    abiFile: optional(text),
    /** The ABIs inside the configuration, instead of in a file. */
    abis: optional(document, { show: () => "set" }),
    /** Whether any node accepts a request (`worker-queue`), or redirects it to the lane's owner (`basic`). */
    mode: oneOf("worker-queue", "basic"),
    /**
     * Duration of a lane's lease. Longer in `dev`, so that a busy laptop keeps its lease; shorter in production, for a
     * faster takeover.
     */
    leaseDuration: { ...time(10_000, 500), devFallback: 60_000 },
    /** Interval between two renewals of the lease; under half of its duration. */
    leaseRenewInterval: time(3000, 50),
    /** How much earlier than the lease ends a node stops by itself. */
    clockSkewAllowance: time(1000, 0),
    /** Maximum number of writes in one group commit. */
    batchSize: whole(200, [1, 10_000]),
    /** Longest wait for other writes before a group commit. */
    batchTimeout: time(2, 0),
    /** Number of shards of the write queue, in units of 64. */
    writerWorkers: whole(256, [1, 65_536]),
    /** Maximum number of requests that wait for one lane; beyond it, QUEUE_FULL. */
    queueLimit: whole(10_000, [1, MAX_COUNT]),
    /** Longest time that a node that is stopped finishes its work. */
    drainTimeout: time(5000, 0),
    /** Age after which final transactions and completions are deleted. */
    retention: ageOr("off", SHORTEST_RETENTION_MS),
    /** Age up to which request ids of deleted transactions are still recognised and refused, by their stored hashes. */
    requestIdRetention: ageOr("forever", SHORTEST_RETENTION_MS),
    /** Hook that decides about stuck transactions: a module with a default export, or an https URL. */
    stuckHook: optional(credentials.hookPlace, HOOK),
    /** HMAC secret of the requests to the stuck hook's URL. */
    stuckHookSecret: optional(text, HIDDEN),
    /** Module whose default export decides the price of a replacement. */
    repricingModule: optional(text),
    /** Private addresses or networks (10.0.0.0/8) that the stuck hook and the alert webhook may connect to. */
    hookNetworks: optional(list(credentials.network)),
    /** URL that receives alerts by POST. */
    alertWebhookUrl: optional(credentials.webhookUrl, ENDPOINT),
    /** Format of alerts. If not set, chosen by the URL's host (Slack, DingTalk, Feishu), otherwise plain JSON. */
    alertWebhookFormat: optional(choice(...ALERT_FORMATS)),
    /** Least severity of the lines that are logged. */
    logLevel: withDefault("info", choice(...LOG_LEVELS)),
  }),
  ...CHAIN_SETTINGS,
};

export type SettingKey = keyof typeof SETTINGS;
export type ChainSettingKey = keyof typeof CHAIN_SETTINGS;
export type Values = {
  readonly [K in SettingKey]: (typeof SETTINGS)[K]["parse"] extends Parser<infer T> ? T : never;
};
export type ChainValues = Pick<Values, ChainSettingKey>;

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];
export const CHAIN_SETTING_KEYS = Object.keys(CHAIN_SETTINGS) as readonly ChainSettingKey[];

/** Settings that configure a signer; `start` requires at least one of them. */
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
