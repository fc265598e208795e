/** Every field of a policy document: the values that it accepts, what they mean, and where they end. */
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { inForce, KnownPolicy, type PolicyRecord } from "../../../src/domain/policy/in-force.ts";
import { parsePolicies } from "../../../src/domain/policy/parse.ts";
import type { Policy } from "../../../src/domain/policy/policy.ts";
import { permitRule } from "../../support/message-samples.ts";
import { policiesOf } from "../../support/policies.ts";

const codec = createCodec();
const TO = `0x${"b".repeat(40)}`;
const NO_LIMIT = { perTransaction: null, perHour: null, perDay: null };
const NO_RULES: Policy = {
  ...{ chains: null, to: null, selectors: null, hours: null, maxValue: NO_LIMIT, maxCost: NO_LIMIT },
  ...{ arguments: new Map(), requireApproval: null, messages: null },
};

const policyOf = (said: object) => policiesOf({ keys: { shop: said } }).keys.get("shop");
const mistakesOf = (said: unknown, abis: object = {}) => {
  const parsed = parsePolicies({ keys: { shop: said }, abis }, codec);
  return "mistakes" in parsed ? parsed.mistakes.map((each) => each.replace("keys.shop.", "")) : [];
};
/** True if this value of a field is refused, and nothing else. */
const isRefused = (field: string, value: unknown) => {
  const mistakes = mistakesOf({ [field]: value });
  if (mistakes.length > 0) expect(mistakes.every((each) => each.startsWith(field))).toBe(true);
  return mistakes.length > 0;
};

describe("a policy", () => {
  it.each<[string, object, Partial<Policy>]>([
    ["no rules", {}, {}],
    ["chains", { chains: [1, 10] }, { chains: new Set([1, 10]) }],
    [
      "receivers and creations",
      { to: [TO.toUpperCase().replace("X", "x"), "deploy"] },
      { to: new Set([TO, "deploy"]) },
    ],
    [
      "functions",
      { selectors: ["0xAABBCCDD", "0x", "deploy"] },
      { selectors: new Set(["0xaabbccdd", "0x", "deploy"]) },
    ],
    ["signatures", { selectors: ["transfer(address,uint256)"] }, { selectors: new Set(["0xa9059cbb"]) }],
    ["hours", { hours: "08:05-23:59" }, { hours: { from: 485, to: 1_439 } }],
    ["hours across midnight", { hours: "23:00-00:00" }, { hours: { from: 1_380, to: 0 } }],
    ["limits", { maxValue: { perTransaction: "1", perDay: "0" } }, { maxValue: limits(1n, null, 0n) }],
    ["limits of cost", { maxCost: { perHour: "7" } }, { maxCost: limits(null, 7n, null) }],
    ["approval", { requireApproval: { aboveCost: "5" } }, { requireApproval: bound(null, 5n, 86_400_000) }],
    [
      "approval in time",
      { requireApproval: { aboveValue: "5", expiresAfter: "1s" } },
      { requireApproval: bound(5n, null, 1_000) },
    ],
    ["no messages", { messages: {} }, { messages: { typedData: [], personal: [] } }],
  ])("has exactly the rules of its document: %s", (_, said, rules) => {
    expect(policyOf(said)).toEqual({ ...NO_RULES, ...rules });
  });

  it("bounds arguments of calls by name or place, in the words of their type", () => {
    const abi = ["function f(address to, bool on, uint64 small, uint large, uint256[] list, uint8 last)"];
    const args = {
      to: { in: [TO] },
      on: { in: [true, false] },
      small: { min: "1", max: `0x${"f".repeat(16)}` },
      "3": { max: "9" },
      last: { min: "2" },
    };
    const policies = policiesOf({
      abis: { a: abi },
      keys: { shop: { calls: [{ abi: "a", function: "f", arguments: args }] } },
    });
    const [bounds] = [...(policies.keys.get("shop")?.arguments.values() ?? [])];
    const none = { in: null, min: null, max: null };
    expect([...(bounds ?? [])].sort((a, b) => a.word - b.word)).toEqual([
      { ...none, name: "to", word: 0, bits: 160, in: new Set([BigInt(TO)]) },
      { ...none, name: "on", word: 1, bits: 1, in: new Set([1n, 0n]) },
      { ...none, name: "small", word: 2, bits: 64, min: 1n, max: (1n << 64n) - 1n },
      { ...none, name: "3", word: 3, bits: 256, max: 9n },
      { ...none, name: "last", word: 5, bits: 8, min: 2n },
    ]);
  });

  it("has a whole document, with its hash and whether any rule requires approval", () => {
    const approving = { requireApproval: { aboveCost: "5" } };
    expect(policiesOf({})).toMatchObject({ asksApproval: false, unreadable: [], document: {} });
    expect(policiesOf({ keys: { a: {}, b: approving } }).asksApproval).toBe(true);
    expect(policiesOf({ signers: { [TO]: approving, "*": {} } }).asksApproval).toBe(true);
    expect([...policiesOf({ signers: { [TO.toUpperCase().replace("X", "x")]: {}, "*": {} } }).signers.keys()]).toEqual([
      TO,
      "*",
    ]);
  });
});

describe("a field of a policy document", () => {
  it.each<[string, readonly unknown[], readonly unknown[]]>([
    ["chains", [[1], [2 ** 53 - 1], []], [[0], [-1], [1.5], [2 ** 53], ["1"], {}, "1", 1]],
    ["to", [[TO], ["deploy"], []], [["0x12"], [5], TO, {}]],
    ["selectors", [["0x00000000"], ["0x"], ["f()"]], [["0x1234567"], ["0x123456789"], ["x0x12345678"], [""], "0x"]],
    [
      "hours",
      ["00:00-23:59", "19:59-20:00"],
      ["08:00-08:00", "24:00-25:00", "08:60-09:00", " 08:00-09:00", "08:00-09:00 ", "8:00-9:00", "08:00", 8],
    ],
    [
      "maxValue",
      [{ perHour: "0" }, { perHour: "9".repeat(78) }, {}],
      [
        { perHour: "9".repeat(79) },
        { perHour: "-1" },
        { perHour: "1.0" },
        { perHour: " 1" },
        { perHour: "1 " },
        { perHour: 1 },
        { perHour: null },
        { perWeek: "1" },
        [],
        "1",
      ],
    ],
    [
      "requireApproval",
      [{ aboveValue: "0" }, { aboveCost: "0" }, { aboveCost: "0", expiresAfter: "8760h" }],
      [
        {},
        { aboveCost: "1", expiresAfter: "1d" },
        { aboveCost: "1", expiresAfter: "1" },
        { aboveCost: "1", expiresAfter: "x90m" },
        { aboveCost: "1", expiresAfter: "90mx" },
      ],
    ],
    [
      "calls",
      [[{ function: "f()", arguments: {} }], []],
      [[{ function: "f(", arguments: {} }], [{ function: "f()" }], [{ abi: "none", function: "f", arguments: {} }], {}],
    ],
    ["messages", [{}, { typedData: [] }, { typedData: [permitRule()] }], [{ typedData: {} }, { signed: [] }, []]],
  ])("accepts its own values alone: %s", (field, accepted, refused) => {
    expect(accepted.filter((value) => isRefused(field, value))).toEqual([]);
    expect(refused.filter((value) => !isRefused(field, value))).toEqual([]);
  });

  it.each([
    ["in", ["5"], []],
    ["in", ["x"], ["calls.0.arguments.a.in.0"]],
    ["in", [5], ["calls.0.arguments.a.in.0"]],
    ["in", "5", ["calls.0.arguments.a.in"]],
    ["max", `0x${"f".repeat(64)}`, []],
    ["max", `0x${"f".repeat(65)}`, ["calls.0.arguments.a.max"]],
    ["max", "0x", ["calls.0.arguments.a.max"]],
    ["max", "y0x1", ["calls.0.arguments.a.max"]],
    ["min", true, []],
    ["above", "5", ["calls.0.arguments.a.above"]],
  ])("bounds an argument by numbers alone: %s of %j", (name, value, places) => {
    const calls = [{ function: "f(uint256 a)", arguments: { a: { [name]: value } } }];
    expect(mistakesOf({ calls }).map((each) => each.split(" ")[0])).toEqual(places);
  });

  it.each([
    ["uint256 a", true],
    ["uint8 a", true],
    ["uint256[] b, bool a", true],
    ["string b, address a", true],
    ["int256 a", false],
    ["bytes32 a", false],
    ["uint256[] a", false],
    ["uint256[2] b, uint256 a", false],
    ["uint256[10] b, uint256 a", false],
    ["uint256[2][] b, uint256 a", false],
    ["(uint256 x) b, uint256 a", false],
  ])("bounds an argument only where its word is known: f(%s)", (inputs, may) => {
    const calls = [{ function: `f(${inputs})`, arguments: { a: { max: "1" } } }];
    expect(mistakesOf({ calls }).length === 0).toBe(may);
  });

  it("has no text that PostgreSQL cannot store, in names and values at any depth", () => {
    const mistake = "the document has characters that PostgreSQL cannot store (NUL or unpaired surrogates)";
    for (const [name, said] of [
      ["\0", {}],
      ["\ud800", {}],
      ["shop", { selectors: ["f()", "\udfff"] }],
    ] as const) {
      const parsed = parsePolicies({ keys: { [name]: said } }, codec);
      expect("mistakes" in parsed && parsed.mistakes.includes(mistake), JSON.stringify(name)).toBe(true);
    }
    expect("policies" in parsePolicies({ keys: { "\u{1f600}": {} } }, codec)).toBe(true);
  });
});

describe("the policy document in force", () => {
  const record: PolicyRecord = {
    ...{ version: 1, stamp: "a", document: { keys: { shop: {} } }, changedAt: null, changedBy: null, reason: null },
  };

  it("limits nothing if there is none, and gives no nonce if it cannot be read", () => {
    expect(inForce({ ...record, document: null }, codec).policies).toBeNull();
    expect(inForce(record, codec).policies).toMatchObject({ unreadable: [], document: record.document });
    const document = { later: {} };
    const unreadable = inForce({ ...record, document }, codec).policies;
    expect(unreadable).toMatchObject({ asksApproval: false, document });
    expect(unreadable?.unreadable).toEqual(["later is not a known field (known: signers, keys, abis)"]);
    expect([unreadable?.signers.size, unreadable?.keys.size]).toEqual([0, 0]);
  });

  it("is told to each listener once, when its stamp changes", () => {
    const known = new KnownPolicy();
    const received: string[] = [];
    known.onChange(({ stamp }) => received.push(stamp));
    expect(known.current).toMatchObject({ version: 0, policies: null });
    const first = known.take(inForce(record, codec));
    expect(known.take(inForce({ ...record, version: 2 }, codec))).toBe(first);
    expect(known.current).toBe(first);
    const second = known.take(inForce({ ...record, stamp: "b" }, codec));
    expect(known.current).toBe(second);
    expect(received).toEqual(["a", "b"]);
  });
});

function limits(perTransaction: bigint | null, perHour: bigint | null, perDay: bigint | null) {
  return { perTransaction, perHour, perDay };
}

function bound(aboveValue: bigint | null, aboveCost: bigint | null, expiresAfterMs: number) {
  return { aboveValue, aboveCost, expiresAfterMs };
}
