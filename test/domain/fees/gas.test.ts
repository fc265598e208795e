import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { intrinsicGas, isOutOfProportion, withMargin } from "../../../src/domain/fees/gas.ts";
import type { Hex } from "../../../src/domain/lane.ts";

const TO = `0x${"ab".repeat(20)}` as const;
const KEY = `0x${"00".repeat(32)}` as const;

describe("intrinsic gas", () => {
  it.each<[string, Parameters<typeof intrinsicGas>[0], bigint]>([
    ["a plain transfer", { to: TO, data: "0x" }, 21_000n],
    ["a zero byte", { to: TO, data: "0x00" }, 21_004n],
    ["another byte", { to: TO, data: "0x01" }, 21_016n],
    ["a byte whose digits are each zero once", { to: TO, data: "0x0110" }, 21_032n],
    ["zeros across a byte boundary, which are no zero byte", { to: TO, data: "0x1001" }, 21_032n],
    ["a deployment without code", { to: null, data: "0x" }, 53_000n],
    ["a deployment of one word", { to: null, data: `0x${"01".repeat(32)}` }, 53_514n],
    ["a deployment of a word and a byte", { to: null, data: `0x${"01".repeat(33)}` }, 53_532n],
    ["an address on the access list", { to: TO, data: "0x", accessList: [{ address: TO, storageKeys: [] }] }, 23_400n],
    ["two keys on it", { to: TO, data: "0x", accessList: [{ address: TO, storageKeys: [KEY, KEY] }] }, 27_200n],
    ["an empty access list", { to: TO, data: "0x", accessList: [] }, 21_000n],
  ])("is correct for %s", (_, payload, gas) => {
    expect(intrinsicGas(payload)).toBe(gas);
  });

  it("equals a byte-by-byte count for any data", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, deploys) => {
        const data: Hex = `0x${Buffer.from(bytes).toString("hex")}`;
        const words = Math.ceil(bytes.length / 32);
        const calldata = [...bytes].reduce((sum, byte) => sum + (byte === 0 ? 4 : 16), 0);
        const expected = 21_000 + calldata + (deploys ? 32_000 + 2 * words : 0);
        expect(intrinsicGas({ to: deploys ? null : TO, data })).toBe(BigInt(expected));
      }),
    );
  });
});

describe("the safety margin added to a gas estimate", () => {
  it.each<[string, bigint, Parameters<typeof withMargin>[1], bigint | null, bigint]>([
    ["nothing for a plain transfer: it always costs the same", 21_000n, { to: TO, data: "0x" }, 30_000_000n, 21_000n],
    ["nothing for one that a search found", 21_001n, { to: TO, data: "0x" }, 30_000_000n, 21_001n],
    ["a fifth for a transfer to a contract: it runs code", 45_000n, { to: TO, data: "0x" }, 30_000_000n, 54_000n],
    ["a fifth for a call", 100_000n, { to: TO, data: "0xaa" }, 30_000_000n, 120_000n],
    ["a fifth for a deployment, also of nothing", 100_000n, { to: null, data: "0x" }, 30_000_000n, 120_000n],
    ["what is left below the block's limit", 28_000_000n, { to: TO, data: "0xaa" }, 30_000_000n, 30_000_000n],
    ["nothing at the limit itself", 30_000_000n, { to: TO, data: "0xaa" }, 30_000_000n, 30_000_000n],
    ["a fifth if the limit is not known", 28_000_000n, { to: TO, data: "0xaa" }, null, 33_600_000n],
    ["what is left below a cap of EIP-7825", 14_191_170n, { to: TO, data: "0xaa" }, 16_777_216n, 16_777_216n],
    ["a fifth just below it", 13_981_013n, { to: TO, data: "0xaa" }, 16_777_216n, 16_777_215n],
  ])("is %s", (_, estimate, payload, limit, expected) => {
    expect(withMargin(estimate, payload, limit)).toBe(expected);
  });

  it("never lowers the estimate", () => {
    const gas = fc.bigInt({ min: 21_000n, max: 10n ** 8n });
    fc.assert(
      fc.property(gas, gas, (estimate, limit) => {
        const padded = withMargin(estimate, { to: TO, data: "0xaa" }, limit);
        expect(padded >= estimate).toBe(true);
        if (estimate <= limit) expect(padded <= limit).toBe(true);
      }),
    );
  });
});

describe("the check for an implausible gas estimate (over ten times the intrinsic gas)", () => {
  it.each<[string, bigint, Parameters<typeof isOutOfProportion>[1], boolean]>([
    ["ten times a transfer", 210_000n, { to: TO, data: "0x" }, false],
    ["one gas more", 210_001n, { to: TO, data: "0x" }, true],
    ["ten times a call with data", 210_160n, { to: TO, data: "0x01" }, false],
    ["ten times a deployment", 530_000n, { to: null, data: "0x" }, false],
    ["more than that", 530_001n, { to: null, data: "0x" }, true],
  ])("has the expected result for %s", (_, estimate, payload, expected) => {
    expect(isOutOfProportion(estimate, payload)).toBe(expected);
  });
});
