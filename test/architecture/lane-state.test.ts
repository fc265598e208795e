import { describe, expect, it } from "vitest";
import { laneMemories } from "./rules/lane-memories.ts";
import { assignmentsOf, mutableFields, nonAnswers, sentinelTimes } from "./rules/mutable-fields.ts";
import { parseSource, readCode } from "./tree.ts";

const AT_MOST = 11;

/**
 * Folders that may keep state per lane: that of the lane itself, and that of routing to owners, which is about lanes of
 * other nodes.
 */
const AT_HOME = /^src\/application\/(lane|cluster)\//;

/**
 * Collections outside the folders for lane state that are keyed by lane, signer, transaction or a plain string, each
 * with the reason why it cannot be a field of the lane.
 */
const BESIDE: Readonly<Record<string, string>> = {
  // Keyed by any address, because any caller may request the balance of any address; such an address may have no lane
  // on this node.
  "ChainContext.balances": "questions to the chain about any address, shared for a poll interval",
  "KnownBalances.read": "the chain's last answer about any address, for lists of signers",
  "Counts.asked": "questions to the chain about any address, shared for a poll interval",
  "Counts.known": "the chain's last answer about any address, for lists of signers",
  "KnownCode.addresses": "receivers of calls, not signers",
  "PoolMembers.queues": "queues of lanes that other nodes own",
  "PoolMembers.balancesAskedAtMs": "members of a pool that other nodes own",
  "PoolMembers.chosen": "choices among members that other nodes own",
  "AttentionDesk.explained": "explanations of transactions of every node, kept for three seconds",
  kept: "questions of people about transactions of every node (queries/transactions.ts)",
  byAddress: "contracts that have an ABI, not signers (queries/abis.ts)",
  known: "the EIP-55 spelling of any address (domain/text/checksum.ts)",
  // Indexes for finding lanes. The lanes fill them themselves: see LaneIndex in lane/owned-lane.ts.
  "ChainContext.hashes": "one look-up by hash for all lanes of a chain",
  "ChainContext.onChain": "the lanes of a chain that a new block may concern",
  // Limits that must survive when the owner reloads the lane from the database.
  "HookRunner.perLane": "a limit that a reload of the lane resets is no limit",
  "HookRunner.perTransaction": "a limit that a reload of the lane resets is no limit",
  "HookRunner.underWay": "a question to the hook goes on while the lane is read again",
  "HookRunner.noops": "a decision that is in the history already is not written again after a reload",
  "WaitingRoom.lanes": "writes that wait to be committed, also of a lane that has been dropped",
  "SharedReads.unanswered": "reads of the feed by position, of all lanes together",
  "RequestIds.asking": "requests are looked up before it is known who owns their lane",
  // State of another process, or of code behind a port that has no access to the lanes in memory.
  "PayloadMemory.lanes": "what the signing process signed, which it checks by itself",
  "RememberedLanes.rows": "lane rows as the last commits left them; the server compares them under its lock",
  "RememberedLanes.failed": "how often those rows were out of date",
  open: "the gauge of nonce drift is set to 0 when a drift is over (adapters/system/metrics.ts)",
  resumedMs: "spans are made from events, after the lane may be gone",
  // Collections with a string key that does not name a lane.
  "BlockProver.proved": "by block",
  "Campaign.foreign": "by transaction hash, of transactions that no node sent (main/dev/chaos)",
  "DeliveryWindow.lanes": "outcomes of lanes of every node, which one subscriber has not taken yet",
  "Deliveries.freeSinceMs": "by subscriber",
  "Deliveries.runs": "by subscriber",
  "SubscriberWatch.alerted": "by subscriber",
  "CostSums.sums": "by group of a query",
  "Figures.troubles": "by code of an alert",
  "Disputes.open": "by block",
  "KeyRates.fullAtMs": "by API key",
  "LiveKeys.principals": "by the hash of an API key",
  "NodeReports.last": "by row of a report, also about chains and endpoints",
  "OverviewBoard.dear": "by what an API key may see",
  "RecentAlerts.standing": "by alert",
  "RecentAlerts.past": "by alert",
  "StandingAlerts.standing": "by alert",
};

const source = readCode("src");
const inside = source.filter(({ path }) => /^src\/(domain|application)\//.test(path));
const ofLane = mutableFields(source, "src/application/lane/owned-lane.ts", "OwnedLane");

describe("the in-memory state of a lane", () => {
  it("has few mutable fields", () => {
    expect(ofLane.length, ofLane.join(" ")).toBeLessThanOrEqual(AT_MOST);
  });

  it("keeps its timing in immutable values that are replaced", () => {
    for (const [path, type] of [
      ["src/domain/pace/lane-pace.ts", "LanePace"],
      ["src/domain/pace/transaction-pace.ts", "TransactionPace"],
    ] as const) {
      expect(mutableFields(source, path, type)).toEqual([]);
    }
  });

  it("keeps the acknowledged database state in immutable values that are replaced", () => {
    expect(mutableFields(source, "src/domain/ledger/ledger.ts", "Ledger")).toEqual([]);
    expect(mutableFields(source, "src/domain/ledger/kept-transaction.ts", "KeptTransaction")).toEqual([]);
  });

  it.each(ofLane)("has %s assigned in only one place of the code", (field) => {
    expect(inside.flatMap((file) => assignmentsOf(file, field))).toHaveLength(1);
  });

  it("is kept only in the folders lane/ and cluster/, except for listed fields", () => {
    const beside = laneMemories(source).filter(({ path }) => !AT_HOME.test(path));
    expect(beside.map(({ name }) => name).sort()).toEqual(Object.keys(BESIDE).sort());
  });
});

describe("times in the code", () => {
  it("are never special numbers such as infinity", () => {
    expect(inside.flatMap(sentinelTimes)).toEqual([]);
  });

  it("are never invalid dates, and no function returns infinity", () => {
    const elsewhere = source.filter(({ path }) => !path.startsWith("src/adapters/postgres/commit/"));
    expect(elsewhere.flatMap(nonAnswers)).toEqual([]);
  });
});

describe("the check of a lane's state", () => {
  const fieldsOf = (...texts: readonly string[]) =>
    mutableFields(
      texts.map((text, index) => parseSource(`src/${index}.ts`, text)),
      "src/0.ts",
      "Lane",
    );

  it.each([
    ["class Lane { readonly a = 1; b = 2; private c: number; get d() { return 1; } e() {} }", ["Lane.b", "Lane.c"]],
    ["interface Lane { readonly a: Part; } interface Part { b: number; readonly c: number }", ["Part.b"]],
    ["class Lane { readonly a = new Part(); } class Part { b = 1; }", ["Part.b"]],
    [
      "class Lane { readonly a = new Map<number, Part>(); } type Part = { b: number } | Other; interface Other { c: 1 }",
      ["Part.b", "Other.c"],
    ],
    ["interface Lane { readonly a: { b: number } }", ["Lane.b"]],
    ["interface Lane { readonly a: Lane; work(part: Part): void } interface Part { b: number }", []],
  ])("counts the mutable fields in %s", (text, fields) => {
    expect(fieldsOf(text)).toEqual(fields);
  });

  it("follows imports and re-exports", () => {
    const lane = `import { type Part as P } from "./1.ts"; class Lane { readonly a: P; }`;
    expect(fieldsOf(lane, `export { type Part } from "./2.ts";`, "export interface Part { b: number }")).toEqual([
      "Part.b",
    ]);
  });

  it.each([
    ["class Lane { a = 1; constructor() { this.a = 2; } }", 0],
    ["class Lane { a = 1; b() { this.a = 2; } } class Other { b() { this.a = 3; } }", 1],
    ["class Lane { a = 1; b() { this.a = 2; } } lane.a = 3; lane.a++; lane.a += 1;", 4],
  ])("counts the assignments in %s", (text, places) => {
    expect(assignmentsOf(parseSource("src/a.ts", text), "Lane.a")).toHaveLength(places);
  });

  const memoriesIn = (text: string, path = "src/application/a.ts") =>
    laneMemories([parseSource(path, text)]).map(({ name, key }) => `${name}: ${key}`);

  it.each([
    ["const by = new WeakMap<OwnedLane, Look>();", "by: OwnedLane"],
    ["const by: WeakMap<Tracked, Search> = make();", "by: Tracked"],
    ["class A { private readonly b = new Map<LaneKey, number>(); }", "A.b: LaneKey"],
    ["class A { #b = new Set<string>(); }", "A.b: string"],
    ["class A { private readonly b: Lane[] = []; }", "A.b: Lane"],
    ["class A { private b: ReadonlyMap<Address, number> = EMPTY; }", "A.b: Address"],
    ["class A { readonly b = { c: new Map<Address, number>() }; }", "A.b: Address"],
    ["class A { readonly b: Other['c'] = new Map(); }", "A.b: not declared"],
    ["function make() { const by = new Map<LaneKey, number>(); return { get: (key) => by.get(key) }; }", "by: LaneKey"],
    ["class By<K> { private readonly c = new Map<K, number>(); } class A { b = new By<LaneKey>(); }", "A.b: LaneKey"],
  ])("finds the stored lane data in %s", (text, memory) => {
    expect(memoriesIn(text)).toEqual([memory]);
  });

  it.each([
    "new WeakMap<FeeMarket, Digest>();",
    "class A { private readonly b: ReadonlySet<Address>; }",
    "class A { private readonly b = new Map<number, string>(); }",
    "function count(rows) { const by = new Map<LaneKey, number>(); rows.forEach((row) => by.set(row.key, 1)); return by; }",
  ])("finds no stored lane data in %s", (text) => {
    expect(memoriesIn(text)).toEqual([]);
  });

  it("ignores a set of strings in an adapter, where a string is not a transaction id", () => {
    expect(memoriesIn("class A { b = new Set<string>(); }", "src/adapters/http/a.ts")).toEqual([]);
  });

  it.each([
    "class A { private nextMs = Number.NEGATIVE_INFINITY; }",
    "tx.checkedAtMs = -Infinity;",
    "const untilMs = a ? Number.POSITIVE_INFINITY : b;",
    "export const A = { seenAt: Number.MIN_SAFE_INTEGER };",
    "this.dueMs = dueMs ?? Infinity;",
  ])("finds the special number used as a time in %s", (text) => {
    expect(sentinelTimes(parseSource("src/a.ts", text))).toHaveLength(1);
  });

  it.each(["const room = Number.POSITIVE_INFINITY;", "tx.nextMs = null;", "this.dueMs = at(1);"])(
    "finds no special number used as a time in %s",
    (text) => {
      expect(sentinelTimes(parseSource("src/a.ts", text))).toEqual([]);
    },
  );

  it.each([
    "function a() { return b ?? Number.POSITIVE_INFINITY; }",
    "const a = (b) => (b === null ? Infinity : b.ms);",
    "class A { #next = Number.NEGATIVE_INFINITY; }",
    "const at = row?.at ?? new Date(Number.NaN);",
  ])("finds the invalid date or infinity returned in %s", (text) => {
    expect(nonAnswers(parseSource("src/a.ts", text))).toHaveLength(1);
  });

  it.each(["function a(most = Number.POSITIVE_INFINITY) { return Math.min(most, b ?? Infinity); }", "new Date(text);"])(
    "finds no invalid date and no returned infinity in %s",
    (text) => {
      expect(nonAnswers(parseSource("src/a.ts", text))).toEqual([]);
    },
  );
});
