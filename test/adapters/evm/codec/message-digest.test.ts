import { hashMessage as ethersHashMessage, TypedDataEncoder } from "ethers";
import fc from "fast-check";
import { hashMessage, hashTypedData } from "viem";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import type { Hex } from "../../../../src/domain/lane.ts";
import { encodeType, type TypedData } from "../../../../src/domain/messages/message.ts";
import { parsePersonal, parseTypedData } from "../../../../src/domain/messages/parse-message.ts";

const codec = createCodec();

type Field = { readonly name: string; readonly type: string };

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((each) => `0x${Buffer.from(each).toString("hex")}` as Hex);

const uint = (bits: number) => fc.bigInt(0n, (1n << BigInt(bits)) - 1n).map(String);
const int = (bits: number) => fc.bigInt(-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n).map(String);

/** Values of each type that needs no definition. */
const ATOMS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  address: hex(20),
  bool: fc.boolean(),
  string: fc.string({ unit: "binary" }).filter((text) => !text.includes("\0")),
  bytes: fc.integer({ min: 0, max: 70 }).chain(hex),
  bytes1: hex(1),
  bytes4: hex(4),
  bytes32: hex(32),
  uint8: uint(8),
  uint48: uint(48),
  uint256: uint(256),
  int16: int(16),
  int256: int(256),
};

const atom = fc.constantFrom(...Object.keys(ATOMS));
const brackets = fc.constantFrom("", "", "", "[]", "[2]", "[][]", "[2][]", "[1]");

/** Structs that refer to earlier ones only, each with a few fields. */
const structs = fc
  .array(fc.array(fc.tuple(atom, brackets, fc.nat(9)), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 })
  .map((all) =>
    all.map((fields, at) =>
      fields.map(([base, list, pick], index): Field => {
        const type = at > 0 && pick < 4 ? `Struct${pick % at}` : base;
        return { name: `field${index}`, type: `${type}${list}` };
      }),
    ),
  );

function typedValue(types: Readonly<Record<string, readonly Field[]>>, type: string): fc.Arbitrary<unknown> {
  const [, element, length] = /^(.*)\[(\d*)\]$/.exec(type) ?? [];
  if (element !== undefined) {
    const size = length === "" ? { maxLength: 3 } : { minLength: Number(length), maxLength: Number(length) };
    return fc.array(typedValue(types, element), size);
  }
  const fields = types[type];
  if (fields === undefined) return ATOMS[type] as fc.Arbitrary<unknown>;
  return fc.record(Object.fromEntries(fields.map((field) => [field.name, typedValue(types, field.type)])));
}

const domain = fc
  .record(
    {
      name: ATOMS.string as fc.Arbitrary<string>,
      version: fc.constantFrom("1", "2"),
      chainId: fc.integer({ min: 1, max: 100_000 }),
      verifyingContract: hex(20),
      salt: hex(32),
    },
    { requiredKeys: [] },
  )
  .filter((fields) => Object.keys(fields).length > 0);

const typedData = fc.tuple(structs, domain).chain(([all, fields]) => {
  const types = Object.fromEntries(all.map((struct, at) => [`Struct${at}`, struct]));
  const primaryType = `Struct${all.length - 1}`;
  return typedValue(types, primaryType).map((message) => ({ domain: fields, types, primaryType, message }));
});

type Asked = { domain: object; types: Record<string, readonly Field[]>; primaryType: string; message: object };

describe("the digest of a message", () => {
  it("of typed data is that of viem and of ethers", () => {
    fc.assert(
      fc.property(typedData, (asked) => {
        const parsed = parseTypedData(asked, codec);
        const { types, message } = asked as unknown as Asked;
        const digest = codec.messageDigest(parsed);
        expect(digest).toBe(hashTypedData(asked as never));
        const used = Object.fromEntries(Object.keys(parsed.types).map((name) => [name, [...(types[name] ?? [])]]));
        expect(digest).toBe(TypedDataEncoder.hash(asked.domain, used, message));
        expect(encodeType(parsed.types, parsed.primaryType)).toBe(
          TypedDataEncoder.from(used).encodeType(asked.primaryType),
        );
      }),
      { numRuns: 400 },
    );
  });

  it("of a personal message is that of viem and of ethers", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string({ unit: "grapheme" }), (bytes, text) => {
        const raw = `0x${Buffer.from(bytes).toString("hex")}` as Hex;
        expect(codec.messageDigest(parsePersonal({ raw }))).toBe(hashMessage({ raw }));
        expect(codec.messageDigest(parsePersonal({ raw }))).toBe(ethersHashMessage(bytes));
        expect(codec.messageDigest(parsePersonal(text))).toBe(hashMessage(text));
      }),
    );
  });

  it("is that of EIP-712's own example", () => {
    const person = (name: string, wallet: string) => ({ name, wallet });
    const mail = parseTypedData(
      {
        domain: {
          name: "Ether Mail",
          version: "1",
          chainId: 1,
          verifyingContract: "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
        },
        types: {
          EIP712Domain: [
            { name: "name", type: "string" },
            { name: "version", type: "string" },
            { name: "chainId", type: "uint256" },
            { name: "verifyingContract", type: "address" },
          ],
          Person: [
            { name: "name", type: "string" },
            { name: "wallet", type: "address" },
          ],
          Mail: [
            { name: "from", type: "Person" },
            { name: "to", type: "Person" },
            { name: "contents", type: "string" },
          ],
        },
        primaryType: "Mail",
        message: {
          from: person("Cow", "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"),
          to: person("Bob", "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"),
          contents: "Hello, Bob!",
        },
      },
      codec,
    );
    expect(codec.messageDigest(mail)).toBe("0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2");
  });

  it("is computed at once for types that refer to each other along 2^60 paths", () => {
    const chain = Array.from({ length: 60 }, (_, at) => `T${at}`);
    const types = Object.fromEntries(
      chain.map((name, at) => {
        const next = chain[at + 1];
        return [
          name,
          next === undefined
            ? [{ name: "x", type: "uint256" }]
            : [
                { name: "a", type: `${next}[]` },
                { name: "b", type: `${next}[]` },
              ],
        ];
      }),
    );
    const begun = performance.now();
    const asked = { domain: { name: "deep" }, types, primaryType: "T0", message: { a: [], b: [] } };
    const parsed: TypedData = parseTypedData(asked, codec);
    expect(codec.messageDigest(parsed)).toBe(hashTypedData(asked as never));
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});
