import { describe, expect, it } from "vitest";
import { linearRepricing, marketRepricing } from "../../../src/domain/fees/repricing.ts";
import type { Command } from "../../../src/main/config/config.ts";
import { ConfigurationError } from "../../../src/main/config/config.ts";
import { effectiveValues } from "../../../src/main/config/effective.ts";
import { configFrom } from "../../../src/main/config/load.ts";
import { SETTING_KEYS, SETTINGS, SIGNER_KEYS } from "../../../src/main/config/schema.ts";
import { BY_CHAIN_ID, NOT_SET } from "../../../src/main/config/setting.ts";
import type { Flags } from "../../../src/main/config/sources.ts";

const KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const START = {
  FENCEPOST_DATABASE_URL: "postgres://app:hunter2@db/app",
  FENCEPOST_RPC_URL: "http://localhost:8545",
  FENCEPOST_PRIVATE_KEYS: KEY,
  FENCEPOST_API_KEYS: "ci:s3cret-of-the-ci-machine",
};

interface Given {
  readonly command?: Command;
  readonly env?: Record<string, string>;
  readonly file?: unknown;
  readonly flags?: Flags;
}

function load({ command = "config", env = {}, file, flags = {} }: Given) {
  const content = file === undefined ? null : { name: "fencepost.config.ts", content: file };
  return configFrom({ command, variables: { PATH: "/bin", ...env }, file: content, flags }, "host-1-abc");
}

function mistakes(given: Given): readonly string[] {
  try {
    load(given);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as ConfigurationError).mistakes;
  }
  return [];
}

describe("default settings", () => {
  it("are those in the documentation", () => {
    const { config } = load({});
    expect(config).toEqual({
      databaseUrl: null,
      directDatabaseUrl: null,
      databaseSchema: "fencepost",
      notifications: true,
      preparedStatements: "auto",
      chains: [],
      chainDefaults: {
        confirmations: 20,
        finality: "confirmations",
        pollIntervalMs: 1000,
        nonceChainQuery: "latest",
        nonceStateTimeoutMs: 30_000,
        publicAfterMs: null,
        staleReceiptTimeoutMs: 60_000,
        receiptWorkers: 10,
        fetchReceiptUponEntry: false,
        broadcastToAll: false,
        resubmitIntervalMs: 60_000,
        repricing: marketRepricing,
        maxAttempts: 0,
        stuckAfterMs: 1_800_000,
        stuckAfterResubmits: 30,
        inFlightWindow: 64,
        blockQueueLength: 1000,
        maxFeeWei: null,
        maxGasCostWei: null,
        maxCostWei: null,
        maxTransactionGas: null,
        alertHeadAgeMs: 300_000,
        alertOldestAgeMs: 600_000,
        alertPendingDepth: 1000,
        alertReserved: 100,
        holePolicy: "move",
        expiredReservations: "placeholder",
        maxReservationRepairs: 16,
        maxReservations: 16,
        reservationTtlMs: 60_000,
        explorerUrl: null,
        reconciliationIntervalMs: 300_000,
        grayZoneTimeoutMs: 300_000,
        grayZoneIntervalMs: 60_000,
        grayZoneLookback: 100,
        alertLowBalanceWei: null,
      },
      signers: {
        privateKeys: [],
        privateKeyFiles: [],
        mnemonic: null,
        keystore: null,
        nodeSigners: [],
        remote: null,
        awsKmsKeyIds: [],
        gcpKmsKeyVersions: [],
        vaultKeyPaths: [],
      },
      signing: null,
      host: "127.0.0.1",
      port: 3000,
      nodeId: "host-1-abc",
      admin: null,
      advertiseUrl: null,
      allowedHosts: null,
      allowedOrigins: [],
      rpc: { foreignRaw: "refuse", keyInPath: false, methods: [], logsRange: 10_000 },
      clusterSecrets: [],
      peerUrlPatterns: null,
      apiKeys: "none",
      keyQuotas: { createsPerSecond: null, readsPerSecond: null, queueShare: null },
      policies: { file: null, document: null },
      pools: new Map(),
      signerNames: new Map(),
      abis: { file: null, document: null },
      mode: "worker-queue",
      lease: { durationMs: 10_000, renewIntervalMs: 3000, clockSkewMs: 1000 },
      writer: { batchSize: 200, batchTimeoutMs: 2, shards: 256 * 64 },
      queueLimit: 10_000,
      drainTimeoutMs: 5000,
      retention: null,
      logLevel: "info",
      stuckHook: null,
      repricingModule: null,
      hookNetworks: [],
      secrets: [],
      alertWebhook: null,
    });
  });

  it("require two confirmations in dev mode", () => {
    expect(load({ command: "dev" }).config.chainDefaults.confirmations).toBe(2);
    const env = { FENCEPOST_CONFIRMATIONS: "5" };
    expect(load({ command: "dev", env }).config.chainDefaults.confirmations).toBe(5);
  });

  it("for repricing can be changed to off or linear", () => {
    const repricing = (env: Record<string, string>) => load({ env }).config.chainDefaults.repricing;
    expect(repricing({ FENCEPOST_REPRICE: "on" })).toBe(marketRepricing);
    expect(repricing({ FENCEPOST_REPRICE: "off" })).toBeNull();
    expect(repricing({ FENCEPOST_REPRICE: "linear" })?.name).toBe(linearRepricing().name);
  });
});

describe("the resolution of configuration values", () => {
  it("uses the flag first, then the environment, then the file", () => {
    const file = { port: 1, batchSize: 7 };
    const env = { FENCEPOST_PORT: "2" };
    expect(load({ file }).config).toMatchObject({ port: 1, writer: { batchSize: 7 } });
    expect(load({ file, env }).config.port).toBe(2);
    expect(load({ file, env, flags: { port: "3" } }).config.port).toBe(3);
  });

  it("treats an empty variable as unset", () => {
    expect(load({ file: { port: 1 }, env: { FENCEPOST_PORT: " " } }).config.port).toBe(1);
  });

  it("also checks values that are overridden", () => {
    expect(mistakes({ file: { port: "x" }, env: { FENCEPOST_PORT: "2" } })).toHaveLength(1);
  });

  it("reports the origin of each value", () => {
    const { resolution } = load({ file: { port: 1, host: "::1" }, env: { FENCEPOST_PORT: "2" } });
    expect(resolution.origins).toMatchObject({ port: "environment", host: "file", mode: "default" });
  });
});

describe("chains in the configuration", () => {
  it("are one chain with the endpoint's chain id if only an RPC URL is given", () => {
    const { config } = load({ env: { FENCEPOST_RPC_URL: "http://a, http://b" } });
    expect(config.chains).toMatchObject([{ chainId: null, rpcUrls: ["http://a", "http://b"] }]);
  });

  it("may each override the common settings", () => {
    const chains = [
      { id: 1, rpc: "https://one", finality: "finalized" },
      { id: 10, rpc: ["https://ten", "https://ten-too"], confirmations: 3, resubmitInterval: "off", maxFeeGwei: 2 },
    ];
    const { config } = load({ file: { confirmations: 8, chains } });
    expect(config.chains).toMatchObject([
      { chainId: 1, rpcUrls: ["https://one"], settings: { finality: "finalized", resubmitIntervalMs: 60_000 } },
      { chainId: 10, settings: { confirmations: 3, resubmitIntervalMs: null, maxFeeWei: 2_000_000_000n } },
    ]);
  });

  it("can be overridden by environment variables, including their own settings", () => {
    const file = { chains: [{ id: 1, rpc: "https://one", confirmations: 3 }] };
    const env = { FENCEPOST_CONFIRMATIONS: "9", FENCEPOST_RPC_URL: "http://localhost:1" };
    expect(load({ file, env }).config.chains).toMatchObject([
      { chainId: 1, rpcUrls: ["http://localhost:1"], settings: { confirmations: 9 } },
    ]);
  });

  it.each<[string, unknown, Record<string, string>, string[]]>([
    ["not a list", "x", {}, ['fencepost.config.ts: chains: must be a list of at least one { id, rpc }, not "x"']],
    ["empty", [], {}, ["fencepost.config.ts: chains: must be a list of at least one { id, rpc }, not an empty list"]],
    ["not objects", [5], {}, ["fencepost.config.ts: chains[0]: must be an object with rpc, not 5"]],
    [
      "without rpc",
      [{ id: 1 }],
      {},
      ["fencepost.config.ts: chains[0].rpc: is required (an http(s) URL, or a list of them)"],
    ],
    [
      "with a bad id",
      [{ id: 0, rpc: "http://a" }],
      {},
      ["fencepost.config.ts: chains[0].id: 0 is not a whole number from 1 to 9007199254740991"],
    ],
    [
      "with a slip",
      [{ id: 1, rpc: "http://a", confirmation: 3 }],
      {},
      ["fencepost.config.ts: chains[0]: confirmation: is not a setting (did you mean confirmations?)"],
    ],
    [
      "twice",
      [
        { id: 1, rpc: "http://a" },
        { id: 1, rpc: "http://b" },
      ],
      {},
      ["fencepost.config.ts: chains[1]: chain 1 is in chains[0] already"],
    ],
    [
      "behind one endpoint",
      [
        { id: 1, rpc: "http://a" },
        { id: 2, rpc: "http://a" },
      ],
      {},
      ["fencepost.config.ts: chains[1]: one of its endpoints is in chains[0] already"],
    ],
    [
      "several and overridden",
      [
        { id: 1, rpc: "http://a" },
        { id: 2, rpc: "http://b" },
      ],
      { FENCEPOST_RPC_URL: "http://c" },
      ["FENCEPOST_RPC_URL: cannot override the 2 chains of fencepost.config.ts; change their rpc there"],
    ],
    [
      "an id for several chains",
      [
        { id: 1, rpc: "http://a" },
        { id: 2, rpc: "http://b" },
      ],
      { FENCEPOST_CHAIN_ID: "3" },
      ["FENCEPOST_CHAIN_ID: cannot override the 2 chains of fencepost.config.ts; change their id there"],
    ],
  ])("are refused if invalid: %s", (_, chains, env, expected) => {
    expect(mistakes({ file: { chains }, env })).toEqual(expected);
  });

  // protects [Chains that differ] src/adapters/postgres/schema/served-chains.ts, src/main/node/serve-chains.ts, src/main/config/chains.ts
  it("have the id of FENCEPOST_CHAIN_ID if only one endpoint is given", () => {
    const ids = (given: Given) => load(given).config.chains.map(({ chainId }) => chainId);
    const env = { FENCEPOST_CHAIN_ID: "5" };
    expect(ids({ env: { ...env, FENCEPOST_RPC_URL: "http://a" } })).toEqual([5]);
    expect(ids({ file: { rpcUrl: "http://a", chainId: 7 } })).toEqual([7]);
    expect(ids({ file: { rpcUrl: "http://a" } })).toEqual([null]);
    expect(ids({ file: { chains: [{ rpc: "http://a" }] }, env })).toEqual([5]);
    expect(ids({ file: { chains: [{ id: 3, rpc: "http://a" }] }, env })).toEqual([5]);
    expect(mistakes({ file: { chainId: 7, chains: [{ rpc: "http://b" }] } })).toEqual([
      "fencepost.config.ts: chainId: cannot be combined with chains; move it into the chain's id",
    ]);
  });

  it("are refused if endpoints are given both in rpcUrl and in chains", () => {
    const file = { rpcUrl: "http://a", chains: [{ rpc: "http://b" }] };
    expect(mistakes({ file })).toEqual([
      "fencepost.config.ts: rpcUrl: cannot be combined with chains; move it into the chain's rpc",
    ]);
  });
});

describe("the configuration is refused in one clear line for", () => {
  it.each<[string, Given, string]>([
    [
      "a number for a duration",
      { env: { FENCEPOST_LEASE_DURATION: "10" } },
      'FENCEPOST_LEASE_DURATION: "10" is not a duration (use 10s, 250ms, 5m)',
    ],
    [
      "more time than a reservation may have",
      { env: { FENCEPOST_RESERVATION_TTL: "601s" } },
      'FENCEPOST_RESERVATION_TTL: "601s" is too long (at most 10m)',
    ],
    [
      "the same in the file",
      { file: { leaseDuration: 10 } },
      "fencepost.config.ts: leaseDuration: 10 is not a duration (use 10s, 250ms, 5m)",
    ],
    [
      "a policy that gave a transaction a second nonce",
      { env: { FENCEPOST_EXTERNAL_USE_POLICY: "requeue" } },
      'FENCEPOST_EXTERNAL_USE_POLICY: "requeue" was removed: a transaction that loses its nonce ends as FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY, and its caller decides whether to send it again (docs/external-use.md)',
    ],
    [
      "the same of one chain",
      { file: { chains: [{ rpc: "http://a", externalUsePolicy: "requeue" }] } },
      'fencepost.config.ts: chains[0].externalUsePolicy: "requeue" was removed: a transaction that loses its nonce ends as FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY, and its caller decides whether to send it again (docs/external-use.md)',
    ],
    [
      "a value that is no choice",
      { env: { FENCEPOST_MODE: "fast" } },
      'FENCEPOST_MODE: "fast" is not one of worker-queue, basic',
    ],
    [
      "a hook without TLS, which any machine on the way could answer",
      { env: { FENCEPOST_STUCK_HOOK: "http://hooks.example.com/secret-token-of-ours" } },
      "FENCEPOST_STUCK_HOOK: the value is neither a module's path nor an https:// URL (http:// only on this machine)",
    ],
    [
      "a hook whose scheme has a slip, so that it could be a module, without a word of it",
      { env: { FENCEPOST_STUCK_HOOK: "https:/hooks.example.com/secret-token-of-ours" } },
      "FENCEPOST_STUCK_HOOK: the value is neither a module's path nor an https:// URL (http:// only on this machine)",
    ],
    [
      "a hook at a private address that is not named",
      { env: { FENCEPOST_STUCK_HOOK: "http://127.0.0.1:9000/secret-token-of-ours" } },
      "FENCEPOST_STUCK_HOOK: is a private address: to allow it, add 127.0.0.1 to FENCEPOST_HOOK_NETWORKS",
    ],
    [
      "a webhook for alerts at one",
      { env: { FENCEPOST_ALERT_WEBHOOK_URL: "https://[fd00::1]/x", FENCEPOST_HOOK_NETWORKS: "10.0.0.0/8" } },
      "FENCEPOST_ALERT_WEBHOOK_URL: is a private address: to allow it, add fd00::1 to FENCEPOST_HOOK_NETWORKS",
    ],
    [
      "a network that is none",
      { env: { FENCEPOST_HOOK_NETWORKS: "10/8" } },
      "FENCEPOST_HOOK_NETWORKS: the value is wrong at place 1: is not an address or a network (use 127.0.0.1 or 10.0.0.0/8)",
    ],
    [
      "a webhook that is none",
      { env: { FENCEPOST_ALERT_WEBHOOK_URL: "ftp://x/secret-token-of-ours" } },
      "FENCEPOST_ALERT_WEBHOOK_URL: the value is not an http:// or https:// URL",
    ],
    [
      "a cluster secret that can be guessed, without a part of it",
      { env: { FENCEPOST_CLUSTER_SECRET: `${"long-enough-".repeat(2)},short-one` } },
      "FENCEPOST_CLUSTER_SECRET: the value is wrong at place 2: a cluster secret has at least 22 characters and no spaces",
    ],
    [
      "a pattern that allows every URL",
      { env: { FENCEPOST_PEER_URL_PATTERN: ".*" } },
      "FENCEPOST_PEER_URL_PATTERN: the value is wrong at place 1: is not the pattern of a node's URL (use https://node-*.relay.internal:3000)",
    ],
    ["a port out of range", { flags: { port: "70000" } }, '--port: "70000" is not a whole number from 0 to 65535'],
    [
      "a misspelt variable",
      { env: { FENCEPOST_LEASE_DURATON: "10s" } },
      "FENCEPOST_LEASE_DURATON: is not a setting (did you mean FENCEPOST_LEASE_DURATION?)",
    ],
    [
      "a variable in lower case",
      { env: { fencepost_port: "1" } },
      "fencepost_port: is not a setting (did you mean FENCEPOST_PORT?)",
    ],
    ["a variable like nothing", { env: { FENCEPOST_ZZZZZZZZZZZZ: "1" } }, "FENCEPOST_ZZZZZZZZZZZZ: is not a setting"],
    [
      "a misspelt key",
      { file: { databseUrl: "x" } },
      "fencepost.config.ts: databseUrl: is not a setting (did you mean databaseUrl?)",
    ],
    [
      "a key spelt as elsewhere",
      { file: { DATABASE_URL: "x" } },
      "fencepost.config.ts: DATABASE_URL: is not a setting (did you mean databaseUrl?)",
    ],
    [
      "a file of another shape",
      { file: [] },
      "fencepost.config.ts: must give an object (export default defineConfig({ … })), not an empty list",
    ],
    [
      "a retention that takes what is still looked at",
      { env: { FENCEPOST_RETENTION: "30m" } },
      'FENCEPOST_RETENTION: "30m" is too short (at least 1h, or off)',
    ],
    [
      "a time for request ids alone",
      { env: { FENCEPOST_REQUEST_ID_RETENTION: "365d" } },
      "FENCEPOST_REQUEST_ID_RETENTION: does nothing while FENCEPOST_RETENTION is off; set both, or neither",
    ],
    [
      "a renewal too rare",
      { env: { FENCEPOST_LEASE_RENEW_INTERVAL: "5s" } },
      "FENCEPOST_LEASE_RENEW_INTERVAL: 5s is too long for a lease of 10s (must be under half of it)",
    ],
    [
      "a skew that eats the lease",
      { env: { FENCEPOST_CLOCK_SKEW_ALLOWANCE: "10s" } },
      "FENCEPOST_CLOCK_SKEW_ALLOWANCE: 10s leaves no time to renew a lease of 10s (skew and renew interval together must be shorter)",
    ],
    [
      "a skew that leaves less than a renewal",
      { env: { FENCEPOST_CLOCK_SKEW_ALLOWANCE: "7s" } },
      "FENCEPOST_CLOCK_SKEW_ALLOWANCE: 7s leaves no time to renew a lease of 10s (skew and renew interval together must be shorter)",
    ],
    [
      "half a keystore",
      { env: { FENCEPOST_KEYSTORE_DIR: "keys" } },
      "FENCEPOST_KEYSTORE_PASSWORD_FILE: is required with FENCEPOST_KEYSTORE_DIR",
    ],
    [
      "the other half",
      { file: { keystorePasswordFile: "p" } },
      "FENCEPOST_KEYSTORE_DIR: is required with FENCEPOST_KEYSTORE_PASSWORD_FILE",
    ],
    [
      "accounts of no remote signer",
      { env: { FENCEPOST_REMOTE_SIGNER_ADDRESSES: `0x${"ab".repeat(20)}` } },
      "FENCEPOST_REMOTE_SIGNER_URL: is required with FENCEPOST_REMOTE_SIGNER_ADDRESSES",
    ],
    [
      "a certificate without its key",
      { env: { FENCEPOST_REMOTE_SIGNER_URL: "https://s", FENCEPOST_REMOTE_SIGNER_CERT_FILE: "c.pem" } },
      "FENCEPOST_REMOTE_SIGNER_KEY_FILE: is required with FENCEPOST_REMOTE_SIGNER_CERT_FILE",
    ],
    [
      "keys and no keys",
      { env: { FENCEPOST_AUTH: "none", FENCEPOST_API_KEYS: "a:b2c3d4e5f6g7h8i9j0k1l2m3" } },
      'FENCEPOST_AUTH: "none" contradicts FENCEPOST_API_KEYS; set one of them',
    ],
    [
      "keys demanded and none given",
      { env: { FENCEPOST_AUTH: "keys" } },
      "FENCEPOST_API_KEYS: is required with FENCEPOST_AUTH=keys",
    ],
    [
      "a host that is a URL",
      { env: { FENCEPOST_ALLOWED_HOSTS: "relay.example,https://relay.example" } },
      "FENCEPOST_ALLOWED_HOSTS: the value is wrong at place 2: is not a host (use relay.example or relay.example:3000)",
    ],
    [
      "an origin with a path",
      { env: { FENCEPOST_ALLOWED_ORIGINS: "https://wallet.example/app" } },
      "FENCEPOST_ALLOWED_ORIGINS: the value is wrong at place 1: is not the origin of a web page (use https://wallet.example)",
    ],
    [
      "a share that is a percentage",
      { env: { FENCEPOST_KEY_QUEUE_SHARE: "10" } },
      'FENCEPOST_KEY_QUEUE_SHARE: "10" is not a part of one (use 0.1, or 1; four decimals at most)',
    ],
    [
      "a rate of nothing",
      { file: { apiKeys: [{ name: "ci", secret: "s3cret-of-the-ci-machine", createsPerSecond: 0 }] } },
      "fencepost.config.ts: apiKeys: the value is wrong at place 1: the createsPerSecond of an API key: is not a whole number from 1 to 1000000",
    ],
    [
      "the same port twice",
      { env: { FENCEPOST_PORT: "3000", FENCEPOST_ADMIN_PORT: "3000" } },
      "FENCEPOST_ADMIN_PORT: is the same port as FENCEPOST_PORT; it must be another one",
    ],
    [
      "other nodes sent to the callers' port",
      { env: { FENCEPOST_ADMIN_PORT: "3001", FENCEPOST_ADVERTISE_URL: "http://node-1:3000" } },
      "FENCEPOST_ADVERTISE_URL: has the port of FENCEPOST_PORT, but other nodes connect to FENCEPOST_ADMIN_PORT",
    ],
    [
      "callers sent to the operators' port",
      { env: { FENCEPOST_ADMIN_PORT: "3001", FENCEPOST_MODE: "basic" } },
      "FENCEPOST_ADMIN_PORT: cannot be combined with FENCEPOST_MODE=basic, which redirects callers to the advertised URL, and that URL has this port",
    ],
    [
      "an address for operators and no port",
      { env: { FENCEPOST_ADMIN_HOST: "10.0.0.7" } },
      "FENCEPOST_ADMIN_HOST: has no effect without FENCEPOST_ADMIN_PORT",
    ],
    [
      "a count beside a tag",
      { env: { FENCEPOST_RPC_URL: "http://a", FENCEPOST_FINALITY: "safe", FENCEPOST_CONFIRMATIONS: "3" } },
      'FENCEPOST_CONFIRMATIONS: has no effect with finality "safe"; remove one of them',
    ],
    [
      "a count beside a tag in one chain",
      { file: { chains: [{ rpc: "http://a", finality: "finalized", confirmations: 3 }] } },
      'fencepost.config.ts: chains[0].confirmations: has no effect with finality "finalized"; remove one of them',
    ],
    [
      "a method that acts among those that /rpc passes on",
      { env: { FENCEPOST_RPC_METHODS: "zks_getL1BatchDetails,klay_sendTransaction" } },
      "FENCEPOST_RPC_METHODS: the value is wrong at place 2: is a method that can send: /rpc forwards only reads",
    ],
    [
      "a subscription among them",
      { env: { FENCEPOST_RPC_METHODS: "eth_subscribe" } },
      'FENCEPOST_RPC_METHODS: "eth_subscribe" is wrong at place 1: is answered over WebSockets, and never forwarded',
    ],
    [
      "scopes",
      { env: { FENCEPOST_API_KEYS: "ci:s3cret" } },
      "FENCEPOST_API_KEYS: the value is wrong at place 1: the secret of an API key has at least 22 characters (openssl rand -base64 24)",
    ],
    // protects [Attacks] src/domain/chain/rpc-methods.ts, src/main/config/parsers.ts
  ])("%s", (_, given, line) => {
    expect(mistakes(given)).toEqual([line]);
  });

  // protects [Attacks] src/adapters/http/app.ts, src/main/config/combinations.ts
  it("`start` without API keys on a non-loopback admin address", () => {
    const { FENCEPOST_API_KEYS: _, ...open } = { ...START, FENCEPOST_AUTH: "none", FENCEPOST_ADMIN_PORT: "3001" };
    expect(mistakes({ command: "start", env: { ...open, FENCEPOST_ADMIN_HOST: "10.0.0.7" } })).toEqual([
      'FENCEPOST_AUTH: "none" is for loopback addresses only, but FENCEPOST_ADMIN_HOST lets others reach it: use 127.0.0.1, or set API keys',
    ]);
    expect(mistakes({ command: "start", env: open })).toEqual([]);
  });

  // protects [Attacks] src/main/config/combinations.ts
  it.each(["0.0.0.0", "::", "10.0.0.7", "relay.example"])(
    "`start` without API keys on the non-loopback address %s",
    (host) => {
      const { FENCEPOST_API_KEYS: _, ...open } = { ...START, FENCEPOST_AUTH: "none", FENCEPOST_HOST: host };
      expect(mistakes({ command: "start", env: open })).toEqual([
        'FENCEPOST_AUTH: "none" is for loopback addresses only, but FENCEPOST_HOST lets others reach it: use 127.0.0.1, or set API keys',
      ]);
      for (const own of ["127.0.0.1", "127.8.8.8", "localhost", "::1"]) {
        expect(mistakes({ command: "start", env: { ...open, FENCEPOST_HOST: own } })).toEqual([]);
      }
    },
  );

  it.each([
    ["a database's URL", "postgres://app:hunter2@db/app", ["hunter2"]],
    ["a password", "hunter2", ["hunter2"]],
    ["an API key", "ci:s3cret-of-ci", ["s3cret"]],
    ["a private key", KEY, [KEY.slice(0, 8), KEY.slice(-8)]],
    ["half of one", KEY.slice(0, 16), [KEY.slice(0, 8)]],
    ["a mnemonic", "test test test test test test test test test test test junk", ["test test"]],
    // protects [Signers] src/main/config/credentials.ts
    // protects [Attacks] src/main/config/sources.ts
  ])("a misplaced secret (%s), without showing the value", (_, secret, parts) => {
    for (const key of SETTING_KEYS) {
      const lines = mistakes({ env: { [SETTINGS[key].variable]: secret } }).join("\n");
      for (const part of parts) expect(lines).not.toContain(part);
      const inFile = mistakes({ file: { [key]: secret } }).join("\n");
      for (const part of parts) expect(inFile).not.toContain(part);
    }
  });

  it("each of several mistakes, all at once", () => {
    const env = { FENCEPOST_PORT: "x", FENCEPOST_MODE: "y", FENCEPOST_NOPE_NOPE_NOPE: "1" };
    expect(mistakes({ env, file: { host: {} } })).toHaveLength(4);
  });

  it("an invalid value of any length, printed without line breaks", () => {
    const [line = ""] = mistakes({ env: { FENCEPOST_MODE: `evil\n\u001b[2J${"x".repeat(10_000)}` } });
    expect(line).toMatch(/^\P{Cc}{1,200}$/u);
  });

  it("setting names such as __proto__", () => {
    const file = JSON.parse('{ "__proto__": { "port": 1 }, "constructor": 1, "toString": 2 }');
    expect(mistakes({ file })).toHaveLength(3);
    expect(load({ file: Object.create({ port: 1 }) }).config.port).toBe(3000);
  });
});

describe("a confirmation count inherited from the common settings", () => {
  it("is allowed for a chain with its own finality tag", () => {
    const file = { confirmations: 5, chains: [{ rpc: "http://a", finality: "finalized" }, { rpc: "http://b" }] };
    expect(load({ file }).config.chains.map((chain) => chain.settings.finality)).toEqual([
      "finalized",
      "confirmations",
    ]);
  });
});

describe("the configuration of a command", () => {
  it("for start requires a database, a chain, a signer and authentication", () => {
    expect(mistakes({ command: "start" }).map((line) => line.split(":")[0])).toEqual([
      "FENCEPOST_DATABASE_URL",
      "FENCEPOST_RPC_URL",
      "FENCEPOST_PRIVATE_KEYS",
      "FENCEPOST_API_KEYS",
    ]);
    expect(mistakes({ command: "start", env: START })).toEqual([]);
  });

  it("must include, for start, API keys unless auth is none", () => {
    const { FENCEPOST_API_KEYS: _, ...rest } = START;
    const { config } = load({ command: "start", env: { ...rest, FENCEPOST_AUTH: "none" } });
    expect(config.apiKeys).toBe("none");
    expect(load({ command: "start", env: START }).config.apiKeys).toMatchObject([
      { name: "ci", secret: "s3cret-of-the-ci-machine" },
    ]);
  });

  it("gives each API key the node's rate and queue share, unless the key has its own", () => {
    const env = { FENCEPOST_KEY_RATE: "50", FENCEPOST_KEY_READ_RATE: "500", FENCEPOST_KEY_QUEUE_SHARE: "0.25" };
    const secrets = ["a", "b"].map((letter) => letter.repeat(22));
    const own = { createsPerSecond: 5, readsPerSecond: 50, queueShare: 0.1 };
    const apiKeys = [
      { name: "own", secret: secrets[0], ...own },
      { name: "usual", secret: secrets[1] },
    ];
    const { config } = load({ env, file: { apiKeys } });
    const usual = { createsPerSecond: 50, readsPerSecond: 500, queueShare: 0.25 };
    expect(config.apiKeys).toMatchObject([own, usual]);
    expect(config.keyQuotas).toEqual(usual);
  });

  it("for start accepts any kind of signer", () => {
    const { FENCEPOST_PRIVATE_KEYS: _, FENCEPOST_RPC_URL: __, ...rest } = START;
    const file = { chains: [{ rpc: "http://a" }] };
    const mnemonic = "test test test test test test test test test test test junk";
    expect(mistakes({ command: "start", file, env: { ...rest, FENCEPOST_MNEMONIC: mnemonic } })).toEqual([]);
    const keystore = { FENCEPOST_KEYSTORE_DIR: "keys", FENCEPOST_KEYSTORE_PASSWORD_FILE: "pw" };
    expect(load({ command: "start", file, env: { ...rest, ...keystore } }).config.signers).toMatchObject({
      keystore: { directory: "keys", passwordFile: "pw" },
    });
    const atNode = { FENCEPOST_NODE_SIGNERS: `0x${"AB".repeat(20)}` };
    expect(load({ command: "start", file, env: { ...rest, ...atNode } }).config.signers).toMatchObject({
      nodeSigners: [`0x${"ab".repeat(20)}`],
    });
    expect(mistakes({ command: "start", file, env: { ...rest, FENCEPOST_NODE_SIGNERS: "0xab" } })).toHaveLength(1);
    const remote = { FENCEPOST_REMOTE_SIGNER_URL: "https://user:hunter2@signer:9000" };
    const loaded = load({ command: "start", file, env: { ...rest, ...remote } });
    expect(loaded.config.signers.remote).toMatchObject({ url: remote.FENCEPOST_REMOTE_SIGNER_URL, addresses: null });
    expect(loaded.config.secrets).toContain("hunter2");
    expect(JSON.stringify(effectiveValues(loaded.resolution))).not.toContain("hunter2");
    const version = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
    for (const [variable, value] of [
      ["FENCEPOST_PRIVATE_KEY_FILES", "/run/secrets/one,/run/secrets/two"],
      ["FENCEPOST_AWS_KMS_KEY_IDS", "alias/hot,arn:aws:kms:eu-west-1:111122223333:key/mrk-0123"],
      ["FENCEPOST_GCP_KMS_KEY_VERSIONS", version],
      ["FENCEPOST_VAULT_KEY_PATHS", "secret/data/fencepost/hot"],
    ] as const) {
      expect(mistakes({ command: "start", file, env: { ...rest, [variable]: value } })).toEqual([]);
      expect(mistakes({ command: "start", file, env: { ...rest, [variable]: KEY } })).toHaveLength(1);
    }
  });

  it("for start is refused with a list of all kinds of signers if no signer is set", () => {
    const { FENCEPOST_PRIVATE_KEYS: _, ...rest } = START;
    const [line = ""] = mistakes({ command: "start", env: rest });
    for (const key of SIGNER_KEYS.slice(1)) expect(line).toContain(SETTINGS[key].variable);
  });

  it("has each invalid setting reported only once", () => {
    const env = { ...START, FENCEPOST_DATABASE_URL: "mysql://x", FENCEPOST_PRIVATE_KEYS: "0x12" };
    expect(mistakes({ command: "start", env })).toHaveLength(2);
  });

  it("needs, for migrate, no setting but the database", () => {
    expect(mistakes({ command: "migrate" })).toHaveLength(1);
    expect(mistakes({ command: "migrate", env: { FENCEPOST_DATABASE_URL: "postgres://h/d" } })).toEqual([]);
  });

  it("needs, for dev, no setting at all", () => {
    expect(mistakes({ command: "dev" })).toEqual([]);
    expect(mistakes({ command: "dev", env: { FENCEPOST_DATABASE_URL: "postgres://h/d" } })).toEqual([]);
  });

  describe("must include, for dev, API keys", () => {
    const OWN = "is required by dev on a chain or with keys of your own (name:secret, comma-separated; or";
    it.each<[string, Given]>([
      ["a private key", { env: { FENCEPOST_PRIVATE_KEYS: KEY } }],
      ["accounts held by a chain's node", { env: { FENCEPOST_NODE_SIGNERS: `0x${"ab".repeat(20)}` } }],
      ["an endpoint", { env: { FENCEPOST_RPC_URL: "http://localhost:8545" } }],
      ["chains in the file", { file: { chains: [{ rpc: "http://a" }] } }],
      // protects [Attacks] src/main/config/combinations.ts
    ])("if %s is the user's own", (_, own) => {
      expect(mistakes({ command: "dev", ...own })).toEqual([
        `FENCEPOST_API_KEYS: ${OWN} FENCEPOST_AUTH=none to run open on this machine)`,
      ]);
      const withKey = { ...own.env, FENCEPOST_API_KEYS: START.FENCEPOST_API_KEYS };
      expect(mistakes({ command: "dev", ...own, env: withKey })).toEqual([]);
      expect(mistakes({ command: "dev", ...own, env: { ...own.env, FENCEPOST_AUTH: "none" } })).toEqual([]);
    });

    // protects [Attacks] src/main/config/combinations.ts
    it.each(["0.0.0.0", "::", "10.0.0.7", "relay.example"])("on the non-loopback address %s", (host) => {
      const env = { FENCEPOST_HOST: host };
      expect(mistakes({ command: "dev", env })).toEqual([
        "FENCEPOST_API_KEYS: is required by dev, because FENCEPOST_HOST lets others reach it (name:secret, comma-separated; or FENCEPOST_HOST=127.0.0.1)",
      ]);
      expect(mistakes({ command: "dev", env: { ...env, FENCEPOST_AUTH: "none" } })).toEqual([
        'FENCEPOST_AUTH: "none" is for loopback addresses only, but FENCEPOST_HOST lets others reach it: use 127.0.0.1, or set API keys',
      ]);
      expect(mistakes({ command: "dev", env: { ...env, FENCEPOST_API_KEYS: START.FENCEPOST_API_KEYS } })).toEqual([]);
    });
  });
});

describe("the table of settings", () => {
  it("derives each environment variable from its key", () => {
    const variable = (key: string) => `FENCEPOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
    for (const key of SETTING_KEYS) expect(SETTINGS[key].variable).toBe(variable(key));
  });

  it("can parse every default that it shows", () => {
    const { resolution } = load({});
    for (const { key, variable, value } of effectiveValues(resolution)) {
      if (value === NOT_SET || value === BY_CHAIN_ID || variable === null) continue;
      const again = load({ env: { [variable]: value } }).resolution.values;
      expect(again[key as keyof typeof again]).toEqual(resolution.values[key as keyof typeof again]);
    }
  });
});
