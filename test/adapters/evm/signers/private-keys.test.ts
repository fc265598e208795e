import fc from "fast-check";
import { bytesToHex, numberToBytes } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { BadKey, toSigningKey } from "../../../../src/adapters/evm/signers/private-keys.ts";

const GROUP_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const keyOf = (scalar: bigint) => numberToBytes(scalar, { size: 32 });

describe("the address of a private key", () => {
  it("is the address that viem computes", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: GROUP_ORDER - 1n }), (scalar) => {
        const privateKey = keyOf(scalar);
        const expected = privateKeyToAddress(bytesToHex(privateKey)).toLowerCase();
        expect(toSigningKey(privateKey, "it")).toEqual({ address: expected, privateKey });
      }),
      { numRuns: 300, examples: [[1n], [2n], [255n], [2n ** 128n], [GROUP_ORDER - 1n]] },
    );
  });

  it("is stored with a copy of the key bytes, so that the caller can erase the original", () => {
    const given = Buffer.from(keyOf(7n));
    const { privateKey } = toSigningKey(given, "it");
    given.fill(0);
    expect(privateKey).toEqual(keyOf(7n));
    expect(privateKey.buffer.byteLength).toBe(32);
  });

  it.each([
    ["zero", keyOf(0n)],
    ["the group order", keyOf(GROUP_ORDER)],
    ["above the group order", keyOf(GROUP_ORDER + 1n)],
    ["all ones", keyOf(2n ** 256n - 1n)],
    ["nothing", new Uint8Array()],
    ["a byte short", keyOf(1n).subarray(1)],
    ["a byte long", new Uint8Array([0, ...keyOf(1n)])],
  ])("is refused for an invalid key (%s), as in viem", (_, privateKey) => {
    expect(() => privateKeyToAddress(bytesToHex(privateKey))).toThrow();
    expect(() => toSigningKey(privateKey, "key 3")).toThrow(new BadKey("key 3 is not a valid secp256k1 key"));
  });
});
