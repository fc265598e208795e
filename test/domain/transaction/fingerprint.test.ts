import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalisePayload } from "../../../src/application/requests/fields.ts";
import type { Hash } from "../../../src/domain/lane.ts";
import { fingerprint, fingerprintOfJson } from "../../../src/domain/transaction/fingerprint.ts";
import type { Payload } from "../../../src/domain/transaction/transaction.ts";

const codec = createCodec();
const TO = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" as const;
const CHECKSUMMED = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const KEY = `0x${"0a".repeat(32)}` as Hash;

const of = (payload: unknown) => fingerprint(normalisePayload(codec, payload));

describe("two notations of one payload have equal fingerprints", () => {
  it.each<[string, unknown, unknown]>([
    ["casing of the address", { to: TO }, { to: CHECKSUMMED }],
    ["casing of data", { to: TO, data: "0xABCDEF" }, { to: TO, data: "0xabcdef" }],
    ["decimal, hex and number", { to: TO, value: "255" }, { to: TO, value: "0xff" }],
    ["number and bigint", { to: TO, value: 255 }, { to: TO, value: 255n }],
    ["leading zeros of hex", { to: TO, value: "0x00ff" }, { to: TO, value: 255 }],
    ["nothing and zero value", { to: TO }, { to: TO, value: 0 }],
    ["nothing and empty data", { to: TO }, { to: TO, data: "0x" }],
    ["null and nothing", { to: TO, gas: null, data: null, value: null, type: null }, { to: TO }],
    ["order of fields", { to: TO, value: 1, gas: 21_000 }, { gas: 21_000, value: 1, to: TO }],
    ["type by name and by number", { to: TO, type: "eip1559" }, { to: TO, type: 2 }],
    ["type by number and by hex", { to: TO, type: "1" }, { to: TO, type: "0x1" }],
    [
      "a signature and the bytes it stands for",
      { to: TO, function: "transfer(address,uint256)", args: [CHECKSUMMED, 5] },
      { to: TO, data: `0xa9059cbb${TO.slice(2).padStart(64, "0")}${"5".padStart(64, "0")}` },
    ],
    [
      "an access list with and without keys named",
      { to: TO, accessList: [{ address: CHECKSUMMED }] },
      { to: TO, accessList: [{ address: TO, storageKeys: [] }] },
    ],
  ])("if they differ in %s", (_, one, other) => {
    expect(of(one)).toBe(of(other));
  });
});

describe("the fingerprint of a payload", () => {
  const base: Payload = { to: TO, data: "0xab", value: 1n };
  const variants: readonly Payload[] = [
    base,
    { ...base, to: null },
    { ...base, to: `0x${"1".repeat(40)}` },
    { ...base, data: "0x" },
    { ...base, data: "0xac" },
    { ...base, value: 0n },
    { ...base, value: 2n },
    { ...base, gas: 1n },
    { ...base, gas: 2n },
    { ...base, type: "legacy" },
    { ...base, type: "eip2930" },
    { ...base, type: "eip1559" },
    { ...base, gasPrice: 1n },
    { ...base, maxFeePerGas: 1n },
    { ...base, maxPriorityFeePerGas: 1n },
    { ...base, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
    { ...base, accessList: [] },
    { ...base, accessList: [{ address: TO, storageKeys: [] }] },
    { ...base, accessList: [{ address: TO, storageKeys: [KEY] }] },
    { ...base, accessList: [{ address: TO, storageKeys: [KEY, KEY] }] },
    {
      ...base,
      accessList: [
        { address: TO, storageKeys: [KEY] },
        { address: TO, storageKeys: [KEY] },
      ],
    },
  ];

  it("differs if any field that the caller chose differs", () => {
    const prints = variants.map((variant) => fingerprint(variant));
    expect(new Set(prints).size).toBe(variants.length);
    for (const print of prints) expect(print).toMatch(/^0x[0-9a-f]{64}$/);
  });

  it("differs if the same value is in another field", () => {
    expect(fingerprint({ ...base, gas: 7n })).not.toBe(fingerprint({ ...base, gasPrice: 7n }));
    expect(fingerprint({ ...base, maxFeePerGas: 7n })).not.toBe(fingerprint({ ...base, maxPriorityFeePerGas: 7n }));
  });
});

const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((all): `0x${string}` => `0x${Buffer.from(all).toString("hex")}`);
const payloads: fc.Arbitrary<Payload> = fc.record(
  {
    to: fc.option(hex(20)),
    data: hex(4),
    value: fc.bigInt({ min: 0n, max: (1n << 256n) - 1n }),
    gas: fc.bigInt({ min: 0n, max: 100n }),
    gasPrice: fc.bigInt({ min: 0n, max: 100n }),
    type: fc.constantFrom("legacy" as const, "eip2930" as const, "eip1559" as const),
  },
  { requiredKeys: ["to", "data", "value"] },
);

it("a fingerprint depends only on the payload", () => {
  fc.assert(
    fc.property(payloads, payloads, (one, other) => {
      expect(fingerprint({ ...one })).toBe(fingerprint(structuredClone(one)));
      const same = JSON.stringify(flat(one)) === JSON.stringify(flat(other));
      expect(fingerprint(one) === fingerprint(other)).toBe(same);
    }),
  );
});

function flat({ to, data, value, gas, gasPrice, type }: Payload): readonly unknown[] {
  return [to, data, String(value), gas === undefined ? null : String(gas), String(gasPrice), type ?? null];
}

describe("the fingerprint of a request with a deadline", () => {
  it("covers the deadline", () => {
    const payload: Payload = { to: TO, data: "0x", value: 0n };
    const prints = [{}, { validUntil: new Date(1) }, { validUntil: new Date(2) }].map((each) =>
      fingerprint(payload, each),
    );
    expect(new Set(prints).size).toBe(3);
  });
});

describe("the fingerprint of a JSON document", () => {
  it("is the same in any order of members, and in one order of elements", () => {
    expect(fingerprintOfJson({ a: 1, b: { c: [1, 2], d: 3n } })).toBe(
      fingerprintOfJson({ b: { d: 3n, c: [1, 2] }, a: 1 }),
    );
    expect(fingerprintOfJson([1, 2])).not.toBe(fingerprintOfJson([2, 1]));
  });
});
