/** Every field of a rule about messages: the values that it accepts, what they mean, and where they end. */
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { parsePolicies } from "../../../src/domain/policy/parse.ts";
import { decodeType } from "../../../src/domain/policy/parse-message-rules.ts";
import { GREETING_RULE, PERMIT_TYPE, permitRule, SPENDER, TOKEN } from "../../support/message-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";

const SIGNER = `0x${"a".repeat(40)}` as const;
const codec = createCodec();
const SIGN_IN = { domain: "example.com", chainId: 1, uri: "https://example.com/login" };
const DAY_MS = 24 * 3_600_000;

const rulesOf = (messages: object) => forSigner(SIGNER, { messages }).signers.get(SIGNER)?.messages;
const isRefused = (messages: object, scope: "signers" | "keys" = "signers") =>
  "mistakes" in parsePolicies({ [scope]: { [SIGNER]: { messages } } }, codec);
const typed = (parts: object) => ({ typedData: [permitRule(parts)] });
const personal = (parts: object) => ({ personal: [{ ...GREETING_RULE, ...parts }] });
const signIn = (parts: object) => ({ personal: [{ name: "login", signIn: { ...SIGN_IN, ...parts } }] });
const bounded = (bound: object, field = "value") => typed({ fields: { [field]: bound } });
const UNCOUNTED = { signatures: { perHour: null, perDay: null }, requireApproval: null };

describe("a rule about messages", () => {
  it("about typed data has exactly the bounds of its document", () => {
    const fields = { value: { min: "-1", max: "7" }, spender: { in: [SPENDER] }, deadline: { withinSeconds: 60 } };
    const amount = { field: "value", perSignature: "1", perDay: "2" };
    const requireApproval = { aboveAmount: "5", expiresAfter: "1h" };
    const none = { in: null, min: null, max: null, withinSeconds: null };
    expect(rulesOf(typed({ fields, amount, requireApproval, signatures: { perHour: 3 } }))).toEqual({
      personal: [],
      typedData: [
        {
          name: "usdc",
          signatures: { perHour: 3, perDay: null },
          requireApproval: { aboveAmount: 5n, expiresAfterMs: 3_600_000 },
          domain: { name: "USD Coin", version: "2", chainId: "1", verifyingContract: TOKEN },
          type: PERMIT_TYPE,
          fields: [
            { ...none, path: ["value"], min: -1n, max: 7n },
            { ...none, path: ["spender"], in: new Set([SPENDER]) },
            { ...none, path: ["deadline"], withinSeconds: 60 },
          ],
          amount: { path: ["value"], perSignature: 1n, perHour: null, perDay: 2n },
        },
      ],
    });
    expect(rulesOf(typed({ fields: undefined }))?.typedData).toMatchObject([
      { ...UNCOUNTED, fields: [], amount: null },
    ]);
  });

  it("about text has exactly its prefix and length, or its sign-in", () => {
    expect(rulesOf(personal({ requireApproval: {} }))).toEqual({
      typedData: [],
      personal: [{ ...GREETING_RULE, ...UNCOUNTED, requireApproval: { aboveAmount: null, expiresAfterMs: DAY_MS } }],
    });
    const login = { name: "login", ...UNCOUNTED };
    expect(rulesOf(signIn({}))?.personal).toEqual([{ ...login, signIn: { ...SIGN_IN, resources: new Set() } }]);
    const resources = ["https://example.com/terms", "!", "~"];
    expect(rulesOf(signIn({ resources }))?.personal).toMatchObject([{ signIn: { resources: new Set(resources) } }]);
  });

  it.each<[string, (value: unknown) => object, readonly unknown[], readonly unknown[]]>([
    ["name", (name) => personal({ name }), ["a", "A-_9", "x".repeat(64)], ["", "x".repeat(65), "a b", "é", undefined]],
    ["signatures", (n) => personal({ signatures: { perDay: n } }), [0, 1, 2 ** 53 - 1], [-1, 1.5, "1", 2 ** 53, null]],
    [
      "prefix",
      (prefix) => personal({ prefix }),
      ["12345678", "eight é!"],
      ["1234567", 12_345_678, "with \n\u0007 bell", null],
    ],
    ["maxLength", (maxLength) => personal({ maxLength }), [1, 65_536], [0, -1, 65_537, 1.5, "80", undefined]],
    ["domain", (domain) => signIn({ domain }), ["a", "example.com:8080"], ["", "a b", "é", " a", "a ", 1, undefined]],
    ["uri", (uri) => signIn({ uri }), ["urn:x"], ["", "a\n", undefined]],
    ["chainId", (chainId) => signIn({ chainId }), [1], [0, "1", undefined]],
    ["resources", (resources) => signIn({ resources }), [[], ["a"]], ["a", ["a b"], [1]]],
    ["min", (min) => bounded({ min }), ["0", "-5", "9".repeat(78)], [0, "9".repeat(79), "x1", "1x", "--1", "", true]],
    ["withinSeconds", (s) => bounded({ withinSeconds: s }), [1, 31_536_000], [0, -1, 31_536_001, 1.5, "60"]],
    ["in", (list) => bounded({ in: list }, "spender"), [[SPENDER], []], [["0x1"], [5], SPENDER]],
    [
      "amount",
      (amount) => typed({ amount }),
      [{ field: "value" }, { field: "value", perHour: "0" }],
      [{ field: "spender" }, { field: "values" }, { field: "value", perHour: 1 }, { field: "value", perWeek: "1" }, {}],
    ],
    [
      "domain of typed data",
      (domain) => typed({ domain }),
      [{ chainId: 1 }, { name: "x" }],
      [{}, { chainId: "x" }, { verifyingContract: "0x1" }, { other: 1 }],
    ],
    [
      "type",
      (type) => typed({ type, fields: undefined }),
      [PERMIT_TYPE, "A()"],
      ["", "A", "A(uint x) ", "A(uint256 x)B()", 5],
    ],
    [
      "approval",
      (of) => typed({ requireApproval: of, amount: { field: "value" } }),
      [{}, { aboveAmount: "0" }],
      [{ aboveAmount: 1 }, { aboveValue: "1" }, { expiresAfter: "1" }],
    ],
    ["approval of text", (requireApproval) => personal({ requireApproval }), [{}, undefined], [{ aboveAmount: "1" }]],
    [
      "kind of text",
      (parts) => personal(parts as object),
      [{}],
      [{ signIn: SIGN_IN }, { prefix: undefined }, { other: 1 }],
    ],
  ])("accepts its own values alone: %s", (_, rule, accepted, refused) => {
    expect(accepted.filter((value) => isRefused(rule(value)))).toEqual([]);
    expect(refused.filter((value) => !isRefused(rule(value)))).toEqual([]);
  });

  it("bounds numbers only where the field is one, and only times by seconds", () => {
    const of = (type: string, bound: object) => isRefused(typed({ type: `T(${type} a)`, fields: { a: bound } }));
    const numbers = ["uint8", "uint256", "int64", "uint256[]"];
    expect(numbers.filter((type) => of(type, { max: "1" }))).toEqual([]);
    expect(["address", "bool", "string", "bytes32"].filter((type) => !of(type, { max: "1" }))).toEqual([]);
    expect(["uint256", "uint48"].filter((type) => of(type, { withinSeconds: 5 }))).toEqual([]);
    expect(["int256", "address"].filter((type) => !of(type, { withinSeconds: 5 }))).toEqual([]);
  });

  it("names a field by its path through structs, and not a struct", () => {
    const type = "Order(Item item,Item[] items)Item(uint256 price)";
    const of = (path: string) => isRefused(typed({ type, fields: { [path]: { max: "1" } } }));
    expect(["item.price", "items.price"].filter(of)).toEqual([]);
    expect(["item", "items", "price", "item.price.x", "item.none"].filter((path) => !of(path))).toEqual([]);
  });

  it("is counted for signers alone", () => {
    expect(isRefused(typed({ signatures: {} }), "keys")).toBe(true);
    for (const limit of ["perHour", "perDay"]) {
      expect(isRefused(typed({ amount: { field: "value", [limit]: "1" } }), "keys")).toBe(true);
    }
    const ofKey = policiesOf({
      keys: { shop: { messages: typed({ amount: { field: "value", perSignature: "1" } }) } },
    });
    expect(ofKey.keys.get("shop")?.messages?.typedData).toMatchObject([{ amount: { perSignature: 1n } }]);
  });

  it("has a name that no other rule of its policy has", () => {
    expect(isRefused({ personal: [GREETING_RULE, { ...GREETING_RULE, name: "other" }] })).toBe(false);
    expect(isRefused({ personal: [GREETING_RULE, { name: "x", signIn: SIGN_IN }, GREETING_RULE] })).toBe(true);
    expect(isRefused({ ...typed({ name: "same" }), ...personal({ name: "same" }) })).toBe(true);
  });
});

describe("a type as EIP-712 encodes it", () => {
  it("is read with all structs that it needs", () => {
    expect(decodeType("A(B b,uint256[] list)B(bool on)")).toEqual({
      primaryType: "A",
      types: {
        A: [
          { type: "B", name: "b" },
          { type: "uint256[]", name: "list" },
        ],
        B: [{ type: "bool", name: "on" }],
      },
    });
    expect(decodeType("Empty()")).toEqual({ primaryType: "Empty", types: { Empty: [] } });
  });

  it.each([
    ["", "nothing"],
    ["A", "no members"],
    ["A(uint256 x)x", "more behind it"],
    ["A(uint256  x)", "a second space"],
    ["A(C c)", "an unknown struct"],
    ["A(bool x,C c)", "an unknown struct behind a known type"],
    ["A(bool x)B(bool y)", "a struct that it does not need"],
    ["A(C c,B b)C(bool x)B(bool x)", "structs in another order"],
    ["uint256(bool x)", "a name that is a type"],
    ["A(uint256 b)uint256(bool x)", "a struct that is named as a type"],
    [`A(${Array.from({ length: 1_500 }, (_, at) => `bool x${at}`).join()})`, "more than 10,000 characters"],
  ])("is refused as %s: %s", (text) => {
    expect(decodeType(text)).toBeNull();
  });
});
