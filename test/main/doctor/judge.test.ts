import { describe, expect, it } from "vitest";
import type { AnsweringEndpoint } from "../../../src/adapters/evm/reads/examine-endpoint.ts";
import type { OpenDatabase } from "../../../src/adapters/postgres/schema/examine.ts";
import type { ChainFacts } from "../../../src/main/doctor/gather.ts";
import { judge } from "../../../src/main/doctor/judge.ts";

type Facts = Required<Parameters<typeof judge>[0]>;

const SIGNER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

const database: OpenDatabase = {
  kind: "open",
  version: 180_004,
  standby: false,
  synchronousCommit: "on",
  fsync: true,
  encoding: "UTF8",
  pooled: false,
  maxConnections: 100,
  freeConnections: 80,
  clockAheadMs: 3,
  schema: { applied: 21, pending: [], problem: null },
  mayCreate: true,
  forbiddenTables: [],
  nodes: [],
  servedChains: [],
  oldestOutcomeAt: null,
};

const endpoint: AnsweringEndpoint = {
  kind: "answers",
  label: "https://one.example",
  chainId: 1,
  head: 1_000,
  headAheadMs: -4_000,
  syncing: false,
  lacks: [],
  balances: new Map([[SIGNER, 5n]]),
};
const other: AnsweringEndpoint = { ...endpoint, label: "https://other.example" };
const chain: ChainFacts = { chainId: 1, finality: "finalized", usesPendingCount: false, endpoints: [endpoint, other] };

const WELL: Facts = {
  nodeVersion: "20.19.0",
  version: "1.2.3",
  mistakes: [],
  database,
  hasDirectUrl: false,
  clockSkewAllowanceMs: 1_000,
  retention: { ageMs: 90 * 86_400_000, requestIdAgeMs: null },
  chains: [chain],
  keys: [{ source: "keystore", addresses: [SIGNER], problem: null, warnings: [] }],
  face: { host: "0.0.0.0", port: 3_000, listening: "free", advertisedUrl: "http://10.0.0.1:3000", asksForKeys: true },
};

const withDatabase = (changed: Partial<OpenDatabase>): Partial<Facts> => ({ database: { ...database, ...changed } });
const refused = (code: string, message: string): Partial<Facts> => ({ database: { kind: "refused", code, message } });
const withChain = (changed: Partial<ChainFacts>): Partial<Facts> => ({ chains: [{ ...chain, ...changed }] });
const withEndpoint = (changed: Partial<AnsweringEndpoint>) =>
  withChain({ endpoints: [{ ...endpoint, ...changed }, other] });
const withKeys = (problem: string): Partial<Facts> => ({
  keys: [{ source: "keystore", addresses: [], problem, warnings: [] }],
});
const withFace = (changed: Partial<Facts["face"]>): Partial<Facts> => ({ face: { ...WELL.face, ...changed } });
const silent = {
  kind: "silent",
  label: "https://one.example",
  reason: "https://one.example is not reachable",
} as const;
const far = { nodeId: "n-9", url: "http://10.0.0.9:3000", version: "1.2.3" };

/** Sets of facts with exactly one fault each, and the message expected for it. */
const MISTAKES: readonly (readonly [string, Partial<Facts>, RegExp])[] = [
  ["NODE_VERSION", { nodeVersion: "20.18.3" }, /Node 20.18.3 is too old/],
  ["NODE_VERSION", { nodeVersion: "18.20.0" }, /too old/],
  ["CONFIGURATION", { mistakes: ["FENCEPOST_API_KEYS: the secret has at least 22 characters"] }, /at least 22/],
  ["DATABASE_UNREACHABLE", refused("ECONNREFUSED", "connect ECONNREFUSED"), /does not answer/],
  ["DATABASE_UNREACHABLE", refused("ENOTFOUND", "getaddrinfo ENOTFOUND db"), /ENOTFOUND/],
  ["DATABASE_UNREACHABLE", refused("", "timeout expired"), /timeout expired/],
  ["DATABASE_LOGIN", refused("28P01", "password authentication failed"), /password/],
  ["DATABASE_LOGIN", refused("", "SASL: client password must be a string"), /password/],
  ["DATABASE_MISSING", refused("3D000", 'database "x" does not exist'), /does not exist/],
  ["DATABASE_FULL", refused("53300", "too many clients already"), /too many/],
  ["DATABASE_RIGHTS", refused("42501", "permission denied"), /denied/],
  ["DATABASE", refused("XX000", "internal"), /internal/],
  ["DATABASE_STANDBY", withDatabase({ standby: true }), /standby/],
  ["DATABASE_VERSION", withDatabase({ version: 140_010 }), /PostgreSQL 14 is too old/],
  ["SYNCHRONOUS_COMMIT", withDatabase({ synchronousCommit: "off" }), /lose what was acknowledged/],
  ["FSYNC", withDatabase({ fsync: false }), /fsync is off/],
  ["DATABASE_ENCODING", withDatabase({ encoding: "SQL_ASCII" }), /SQL_ASCII/],
  ["SCHEMA", withDatabase({ schema: { applied: 30, pending: [], problem: "too new for this version" } }), /too new/],
  ["SCHEMA_RIGHTS", withDatabase({ forbiddenTables: ["lane", "transaction"] }), /lane and 1 other tables/],
  [
    "SCHEMA_RIGHTS",
    withDatabase({ mayCreate: false, schema: { applied: 0, pending: [], problem: null } }),
    /may not create/,
  ],
  [
    "ADVERTISED_URL",
    { ...withDatabase({ nodes: [far] }), ...withFace({ advertisedUrl: "http://127.0.0.1:3000" }) },
    /its own machine/,
  ],
  ["RPC_UNREACHABLE", withChain({ endpoints: [silent] }), /not reachable/],
  ["CHAIN_ID", withChain({ chainId: 5 }), /chain 5 is configured, and its endpoints are of chain 1/],
  ["CHAIN_ID", withEndpoint({ chainId: 5 }), /different chains/],
  [
    "CHAIN_ID",
    { ...withChain({ chainId: null }), database: { ...database, servedChains: [31_337] } },
    /says that it serves chain 1, and this database has served 31337 alone: start refuses it/,
  ],
  ["FINALITY_TAG", withEndpoint({ lacks: ["finalized"] }), /"finalized"/],
  ["ENDPOINT_METHODS", withEndpoint({ lacks: ["blockWithTransactions"] }), /no blocks with their transactions/],
  [
    "PENDING_COUNT",
    withChain({ usesPendingCount: true, endpoints: [{ ...endpoint, lacks: ["pendingCount"] }, other] }),
    /pending/,
  ],
  ["KEY_FILE_OPEN", withKeys("k.json: the keystore file is open to other users of this machine"), /open to other/],
  ["KEYSTORE_PASSWORD", withKeys("k.json: wrong password, or the file is damaged"), /wrong password/],
  ["KEYS", withKeys("0xabc: is configured in two signer sources"), /two signer sources/],
  ["PORT_TAKEN", withFace({ listening: "taken" }), /something else listens/],
  ["PORT_FORBIDDEN", withFace({ listening: "forbidden", port: 80 }), /may not listen/],
  ["HOST", withFace({ listening: "noSuchAddress" }), /no address of this machine/],
];

const WARNINGS: readonly (readonly [string, Partial<Facts>, RegExp])[] = [
  ["CONNECTIONS", withDatabase({ freeConnections: 12 }), /12 of 100/],
  ["POOLER", withDatabase({ pooled: true }), /behind a pooler/],
  ["SCHEMA", withDatabase({ schema: { applied: 20, pending: ["0021_x.sql"], problem: null } }), /1 migration pending/],
  [
    "RETENTION",
    { retention: { ageMs: 90 * 86_400_000, requestIdAgeMs: 7 * 86_400_000 } },
    /7 days after that a repeat/,
  ],
  ["DATABASE_CLOCK", withDatabase({ clockAheadMs: 5_000 }), /5.0 s behind the database's/],
  ["DATABASE_CLOCK", withDatabase({ clockAheadMs: -3_600_000 }), /3600.0 s ahead of/],
  ["NODE_VERSIONS", withDatabase({ nodes: [{ ...far, version: "1.1.0" }] }), /n-9 runs version 1.1.0, this is 1.2.3/],
  ["RPC_UNREACHABLE", withChain({ endpoints: [silent, other] }), /not reachable/],
  ["SINGLE_ENDPOINT", withChain({ endpoints: [endpoint] }), /one endpoint decides alone .* if it lies, it is believed/],
  ["SINGLE_ENDPOINT", withChain({ endpoints: [{ ...endpoint, label: "http://127.0.0.1:8545" }] }), /decides alone/],
  ["ENDPOINT_SYNCING", withEndpoint({ syncing: true }), /still syncing/],
  ["ENDPOINT_BEHIND", withEndpoint({ head: 900 }), /100 blocks behind/],
  ["CHAIN_CLOCK", withEndpoint({ headAheadMs: 3_600_000 }), /3600 s ahead of this machine's clock/],
  ["CHAIN_CLOCK", withEndpoint({ headAheadMs: -3_600_000 }), /3600 s old/],
  ["ENDPOINT_METHODS", withEndpoint({ lacks: ["feeHistory"] }), /eth_feeHistory/],
  ["ENDPOINT_LOGS", withEndpoint({ lacks: ["logs"] }), /eth_getLogs/],
  [
    "KEY_FILE_OPEN",
    { keys: [{ source: "keystore", addresses: [], problem: null, warnings: ["k.json is open"] }] },
    /open/,
  ],
  [
    "DOUBLE_KEY",
    { keys: [...WELL.keys, { source: "mnemonic", addresses: [SIGNER], problem: null, warnings: [] }] },
    /keystore and mnemonic/,
  ],
  [
    "NO_BALANCE",
    withChain({
      endpoints: [
        { ...endpoint, balances: new Map([[SIGNER, 0n]]) },
        { ...other, balances: new Map() },
      ],
    }),
    /holds nothing on chain 1/,
  ],
  ["OPEN_TO_ALL", withFace({ asksForKeys: false }), /nothing asks for a key/],
];

const off = (facts: Partial<Facts>) => judge({ ...WELL, ...facts }).filter(({ sign }) => sign !== "ok");

describe("fencepost doctor", () => {
  // protects [The command line] src/main/doctor/judge.ts, src/main/doctor/judge-database.ts, src/main/doctor/judge-chains.ts, src/domain/troubles/setup.ts
  it("reports nothing if all is well", () => {
    expect(off({})).toEqual([]);
    expect(judge(WELL).length).toBeGreaterThan(7);
  });

  // protects [The command line] src/main/doctor/judge.ts, src/main/doctor/judge-database.ts, src/main/doctor/judge-chains.ts, src/domain/troubles/setup.ts
  it.each(MISTAKES)("reports the mistake %s", (code, facts, text) => {
    const [finding, ...others] = off(facts);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ sign: "mistake", code, text: expect.stringMatching(text) });
    expect(finding?.fix).toMatch(/^\S.{5,}/);
  });

  // protects [The command line] src/main/doctor/judge.ts, src/main/doctor/judge-database.ts, src/main/doctor/judge-chains.ts, src/domain/troubles/setup.ts
  it.each(WARNINGS)("warns of %s", (code, facts, text) => {
    const [finding, ...others] = off(facts);
    expect(others).toEqual([]);
    expect(finding).toMatchObject({ sign: "warning", code, text: expect.stringMatching(text) });
    expect(finding?.fix).toMatch(/^\S.{5,}/);
  });

  // protects [The command line] src/main/doctor/judge.ts, src/main/doctor/judge-database.ts, src/main/doctor/judge-chains.ts, src/domain/troubles/setup.ts
  it("does not report settings that only look wrong", () => {
    expect(off({ ...withDatabase({ pooled: true }), hasDirectUrl: true }), "a way past the pooler").toEqual([]);
    expect(off(withDatabase({ clockAheadMs: -900 })), "within the allowance").toEqual([]);
    expect(
      off(withDatabase({ schema: { applied: 0, pending: ["0001_x.sql"], problem: null } })),
      "a new database",
    ).toEqual([]);
    expect(off(withFace({ listening: "fencepost" })), "a node that runs here").toEqual([]);
    expect(off(withFace({ host: "::1", asksForKeys: false })), "open to this machine alone").toEqual([]);
    const near = { ...far, url: "http://127.0.0.1:3001" };
    const machine = { ...withDatabase({ nodes: [near] }), ...withFace({ advertisedUrl: "http://127.0.0.1:3000" }) };
    expect(off(machine), "several nodes on one machine").toEqual([]);
    const counting = {
      finality: "confirmations",
      endpoints: [{ ...endpoint, lacks: ["finalized", "safe", "pendingCount"] }, other],
    };
    expect(off(withChain(counting as Partial<ChainFacts>)), "tags that nothing asks for").toEqual([]);
    const poor = withChain({ endpoints: [{ ...endpoint, balances: new Map([[SIGNER, 0n]]) }, other] });
    expect(off(poor), "an endpoint that knows an older balance").toEqual([]);
    expect(off({ database: null, chains: [], keys: [] }), "what is not configured is told by its own line").toEqual([]);
  });

  it("names the signers, because somebody must fund them before the first start", () => {
    const addresses = Array.from({ length: 7 }, (_, at) => `0x${at}`);
    const keys = [{ source: "AWS KMS", addresses, problem: null, warnings: [] }];
    const finding = judge({ ...WELL, keys }).find(({ code }) => code === "SIGNERS");
    expect(finding?.text).toBe("7 signers can be used: 0x0, 0x1, 0x2, 0x3, 0x4 and 2 more");
  });
});
