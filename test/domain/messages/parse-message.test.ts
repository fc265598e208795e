import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { encodeType } from "../../../src/domain/messages/message.ts";
import { type AskedTypedData, parsePersonal, parseTypedData } from "../../../src/domain/messages/parse-message.ts";
import { aPermit, TOKEN } from "../../support/message-samples.ts";

const codec = createCodec();
const OWNER = `0x${"a".repeat(40)}` as const;
const permit = aPermit(OWNER);

type Parts = Partial<Record<keyof AskedTypedData, unknown>>;

/** The path of the mistake in typed data that differs from a valid permit in these parts. */
function mistake(parts: Parts): string | undefined {
  try {
    parseTypedData({ ...permit, ...parts }, codec);
    return undefined;
  } catch (error) {
    if (error instanceof FencepostError) return error.extras.path;
    throw error;
  }
}

const domain = (parts: object) => ({ domain: { ...(permit.domain as object), ...parts } });
const message = (parts: object) => ({ message: { ...(permit.message as object), ...parts } });
const types = (parts: object) => ({ types: { ...(permit.types as object), ...parts } });
const field = (type: string, value: unknown) => ({
  ...{ types: { T: [{ name: "x", type }] }, primaryType: "T", message: { x: value } },
});
const DOMAIN_TYPE = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
];
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);

describe("typed data", () => {
  it.each<readonly [string, Parts, string]>([
    ["an unknown domain field", domain({ chain: 1 }), "typedData.domain.chain"],
    ["a domain without fields", { domain: {} }, "typedData.domain"],
    ["a domain field of null", domain({ salt: null }), "typedData.domain.salt"],
    ["a chain id with a sign", domain({ chainId: "+1" }), "typedData.domain.chainId"],
    ["a domain type that lacks a field", types({ EIP712Domain: DOMAIN_TYPE.slice(1) }), "typedData.types.EIP712Domain"],
    [
      "a domain type in another order",
      types({ EIP712Domain: [...DOMAIN_TYPE].reverse() }),
      "typedData.types.EIP712Domain",
    ],
    [
      "a domain type with other types",
      types({ EIP712Domain: DOMAIN_TYPE.map((each) => ({ ...each, type: "string" })) }),
      "typedData.types.EIP712Domain",
    ],
    ["the domain as primary type", { primaryType: "EIP712Domain" }, "typedData.primaryType"],
    ["an unknown primary type", { primaryType: "constructor" }, "typedData.primaryType"],
    ["a struct named like a built-in type", types({ uint256: [] }), "typedData.types.uint256"],
    ["a struct named address", types({ address: [{ name: "x", type: "uint256" }] }), "typedData.types.address"],
    ["a struct with a name in Cyrillic", types({ Реrmit: [] }), "typedData.types"],
    ["a struct name with brackets", types({ "Permit[]": [] }), "typedData.types"],
    [
      "a field that occurs twice",
      {
        ...field("bool", true),
        types: {
          T: [
            { name: "x", type: "bool" },
            { name: "x", type: "bool" },
          ],
        },
      },
      "typedData.types.T.1.name",
    ],
    [
      "a field with a third member",
      { types: { Permit: [{ name: "x", type: "bool", indexed: true }] } },
      "typedData.types.Permit.0",
    ],
    [
      "a struct that contains itself",
      { types: { Permit: [{ name: "x", type: "Permit[]" }] } },
      "typedData.types.Permit",
    ],
    ["an unknown type", field("Token", 1), "typedData.types.T.0.type"],
    ["uint without bits", field("uint", "1"), "typedData.types.T.0.type"],
    ["uint7", field("uint7", "1"), "typedData.types.T.0.type"],
    ["uint264", field("uint264", "1"), "typedData.types.T.0.type"],
    ["bytes33", field("bytes33", "0x"), "typedData.types.T.0.type"],
    ["a function type", field("function", "0x"), "typedData.types.T.0.type"],
    ["a list of no elements", field("bool[0]", []), "typedData.types.T.0.type"],
    ["a type with a space", field("uint256 ", "1"), "typedData.types.T.0.type"],
    ["a missing member", { message: {} }, "typedData.message.owner"],
    ["a member that the type lacks", message({ extra: 1 }), "typedData.message.extra"],
    ["a negative amount", message({ value: "-1" }), "typedData.message.value"],
    ["an amount above 2^256 - 1", message({ value: String(1n << 256n) }), "typedData.message.value"],
    ["a number beyond 2^53", message({ value: 2 ** 53 }), "typedData.message.value"],
    ["an amount with an exponent", message({ value: "1e18" }), "typedData.message.value"],
    ["an amount with a space", message({ value: " 1" }), "typedData.message.value"],
    ["an empty amount", message({ value: "" }), "typedData.message.value"],
    ["an amount of digits that are no ASCII", message({ value: "１" }), "typedData.message.value"],
    ["an amount of 65 hex digits", message({ value: `0x${"1".repeat(65)}` }), "typedData.message.value"],
    ["an int8 of 128", field("int8", "128"), "typedData.message.x"],
    ["an int8 in two's complement", field("int8", "0xff"), "typedData.message.x"],
    ["an address with a wrong checksum", message({ spender: `0xA${TOKEN.slice(3)}` }), "typedData.message.spender"],
    ["an address with a zero too many", message({ spender: `${TOKEN}0` }), "typedData.message.spender"],
    ["a boolean as text", field("bool", "true"), "typedData.message.x"],
    ["bytes4 with three bytes", field("bytes4", "0x010203"), "typedData.message.x"],
    ["text with NUL", field("string", "a\0b"), "typedData.message.x"],
    ["text with half a surrogate pair", field("string", "\ud83d"), "typedData.message.x"],
    ["a list of another length", field("uint8[2]", [1]), "typedData.message.x"],
    ["text for a list", field("uint8[]", "12"), "typedData.message.x"],
    [
      "lists that are nested too deeply",
      field(`uint8${"[]".repeat(17)}`, nested(17)),
      `typedData.message.x${".0".repeat(15)}`,
    ],
    [
      "too many values",
      field(
        "uint8[]",
        Array.from({ length: 5_000 }, () => 1),
      ),
      "typedData.message.x.4095",
    ],
    [
      "too many types",
      types(Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`T${at}`, []]))),
      "typedData.types",
    ],
    [
      "too many fields",
      types({ T: Array.from({ length: 300 }, (_, at) => ({ name: `f${at}`, type: "bool" })) }),
      "typedData.types",
    ],
    // protects [Messages] src/domain/messages/parse-message.ts
  ])("is refused with %s", (_, parts, path) => {
    expect(mistake(parts)).toBe(path);
  });

  it("is kept in one normal form, with only the types that it needs", () => {
    const { value, types: kept } = parseTypedData(
      {
        ...permit,
        ...types({ Unused: [{ name: "x", type: "bool" }], EIP712Domain: DOMAIN_TYPE }),
        ...message({ value: "0x00ff", nonce: 7, deadline: "0010", spender: TOKEN.toUpperCase().replace("0X", "0x") }),
      },
      codec,
    );
    expect(value).toEqual({ owner: OWNER, spender: TOKEN, value: "255", nonce: "7", deadline: "10" });
    expect(Object.keys(kept)).toEqual(["Permit"]);
  });

  it("has the same digest in every notation of its integers and addresses", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, (1n << 256n) - 1n), (value) => {
        const digestOf = (written: unknown) =>
          codec.messageDigest(parseTypedData(aPermit(OWNER, { value: written }), codec));
        expect(digestOf(`0x${value.toString(16)}`)).toBe(digestOf(String(value)));
      }),
    );
  });

  it("encodes its type as EIP-712 does: the primary type first, the others sorted, each once", () => {
    const mail = {
      Transaction: [
        { name: "from", type: "Person" },
        { name: "to", type: "Person[]" },
        { name: "tx", type: "Asset" },
      ],
      Person: [{ name: "wallet", type: "address" }],
      Asset: [{ name: "token", type: "address" }],
    };
    expect(encodeType(mail, "Transaction")).toBe(
      "Transaction(Person from,Person[] to,Asset tx)Asset(address token)Person(address wallet)",
    );
  });

  it("encodes structs of structs too", () => {
    const nested = {
      A: [{ name: "b", type: "B" }],
      B: [{ name: "c", type: "C[2]" }],
      C: [{ name: "x", type: "uint256" }],
    };
    expect(encodeType(nested, "A")).toBe("A(B b)B(C[2] c)C(uint256 x)");
  });

  it("named like members of every object is no way around its types", () => {
    expect(mistake({ types: { constructor: [] }, primaryType: "toString" })).toBe("typedData.primaryType");
    const hostile = JSON.parse('{"__proto__": [{"name": "x", "type": "bool"}]}') as object;
    expect(mistake({ types: hostile, primaryType: "__proto__" })).toBe("typedData.types");
  });
});

describe("a personal message", () => {
  it("is its bytes in UTF-8, or the bytes that are given", () => {
    expect(parsePersonal("é")).toEqual({ kind: "personal", bytes: "0xc3a9" });
    expect(parsePersonal({ raw: "0xAB" })).toEqual({ kind: "personal", bytes: "0xab" });
  });

  it.each([
    ["half a surrogate pair", "\udc00"],
    ["an odd number of hex digits", { raw: "0xabc" }],
    ["more than 65,536 bytes", "a".repeat(65_537)],
  ])("is refused with %s", (_, asked) => {
    expect(() => parsePersonal(asked)).toThrow(FencepostError);
  });
});
