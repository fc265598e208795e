import { describe, expect, it } from "vitest";
import { gasOverLimit, knownGasCap, lowerLimit, plainTransferGas } from "../../src/domain/fees/gas.ts";

const TO = `0x${"ab".repeat(20)}` as const;
const ARBITRUM = 42_161;
const POLYGON = 137;

describe("the known gas cap per transaction of a chain", () => {
  it.each([
    ["Ethereum", 1],
    ["Sepolia", 11_155_111],
    ["Holesky", 17_000],
    ["Hoodi", 560_048],
    ["BNB Smart Chain", 56],
    ["Gnosis Chain", 100],
    ["Base", 8_453],
  ])("is the cap of EIP-7825 on %s", (_, chainId) => {
    expect(knownGasCap(chainId)).toBe(16_777_216n);
  });

  it.each([
    ["Arbitrum", ARBITRUM],
    ["Optimism", 10],
    ["Polygon, whose cap is another", POLYGON],
    ["a chain for development", 31_337],
    ["a private chain", 987_654],
    // protects [Holes] src/domain/fees/gas.ts
  ])("is absent on %s", (_, chainId) => {
    expect(knownGasCap(chainId)).toBeNull();
  });
});

describe("the known gas cost of a plain transfer", () => {
  const transfer = { to: TO, data: "0x" } as const;

  it.each([1, 11_155_111, 10, 56, 100, POLYGON, 8_453, 43_114, 31_337])("is 21,000 on chain %i", (chainId) => {
    expect(plainTransferGas(chainId, transfer)).toBe(21_000n);
  });

  it.each([
    ["Arbitrum", ARBITRUM],
    ["Arbitrum Nova", 42_170],
    ["zkSync Era", 324],
    ["Mantle", 5_000],
    ["Filecoin", 314],
    ["a chain that is not listed", 987_654],
  ])("is not known on %s", (_, chainId) => {
    expect(plainTransferGas(chainId, transfer)).toBeNull();
  });

  it.each<[string, Parameters<typeof plainTransferGas>[1]]>([
    ["a call", { to: TO, data: "0x01" }],
    ["a deployment", { to: null, data: "0x" }],
    ["a transfer with an access list", { ...transfer, accessList: [{ address: TO, storageKeys: [] }] }],
    ["a transfer to a precompiled contract", { to: `0x${"0".repeat(38)}01`, data: "0x" }],
    ["a transfer to the newest of them", { to: `0x${"0".repeat(37)}100`, data: "0x" }],
  ])("is not known for %s", (_, payload) => {
    expect(plainTransferGas(1, payload)).toBeNull();
  });

  it("also applies to a transfer with an empty access list", () => {
    expect(plainTransferGas(1, { ...transfer, accessList: [] })).toBe(21_000n);
  });
});

describe("the gas limit of a transaction", () => {
  it.each<[string, bigint | null, bigint | null, ReturnType<typeof lowerLimit>]>([
    ["nothing is known", null, null, null],
    ["the block's limit", 30n, null, { gas: 30n, of: "block" }],
    ["the cap", null, 16n, { gas: 16n, of: "transaction" }],
    ["the cap below the block", 30n, 16n, { gas: 16n, of: "transaction" }],
    ["the block below the cap", 10n, 16n, { gas: 10n, of: "block" }],
  ])("is %s", (_, block, cap, expected) => {
    expect(lowerLimit(block, cap)).toEqual(expected);
  });

  it("is reported with its source if it is exceeded", () => {
    expect(gasOverLimit(17n, { gas: 16n, of: "transaction" })).toMatch(/17 .*this chain for one transaction, 16/);
    expect(gasOverLimit(31n, { gas: 30n, of: "block" })).toMatch(/31 .*block's limit, 30/);
    expect(gasOverLimit(16n, { gas: 16n, of: "transaction" })).toBeNull();
    expect(gasOverLimit(10n ** 18n, null)).toBeNull();
  });
});
