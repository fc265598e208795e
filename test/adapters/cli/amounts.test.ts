import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parameterTypes, toArguments } from "../../../src/adapters/cli/abi-arguments.ts";
import { inEther, roughly, wei } from "../../../src/adapters/cli/amounts.ts";

describe("an amount on the command line", () => {
  it.each([
    ["1.5ether", "1500000000000000000"],
    ["1.5 ether", "1500000000000000000"],
    ["0.000000000000000001eth", "1"],
    ["20gwei", "20000000000"],
    ["1.50gwei", "1500000000"],
    ["100", "100"],
    ["100wei", "100"],
    ["007", "7"],
    ["0", "0"],
    ["0x10", "16"],
    ["1GWEI", "1000000000"],
  ])("%s is parsed as %s wei", (text, amount) => {
    expect(wei(text)).toBe(amount);
  });

  it.each([
    "",
    "1.5",
    "1.5wei",
    "-1",
    "1e18",
    "1,5ether",
    "ether",
    "1bitcoin",
    "0.0000000001gwei",
    "0x",
    "0xzz",
    "1.",
    ".5ether",
    // protects [The command line] src/adapters/cli/amounts.ts, src/adapters/cli/abi-arguments.ts
  ])("%j is refused instead of rounded", (text) => {
    expect(() => wei(text)).toThrow(/\.$/);
  });

  it("above the largest possible value of a transaction is refused", () => {
    expect(() => wei(`${"9".repeat(80)}`)).toThrow("too large for a transaction");
  });

  it("is the same after conversion to ether and back", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 256n - 1n), (amount) => {
        expect(wei(inEther(amount))).toBe(amount.toString());
      }),
    );
    expect(roughly("1234567890000000000")).toBe("1.2345");
    expect(roughly("2000000000000000000")).toBe("2");
  });
});

describe("contract call arguments on the command line", () => {
  it.each([
    ["transfer(address,uint256)", ["address", "uint256"]],
    ["transfer(address to, uint256 amount)", ["address", "uint256"]],
    ["function fill((uint256 a, bool b)[] orders, bytes32 id) returns (bool)", ["(uint256 a, bool b)[]", "bytes32"]],
    ["f((uint8,(bool,string)) x)", ["(uint8,(bool,string))"]],
    ["pause()", []],
    ["pause", null],
    ["broken(", null],
  ])("get their types from the function signature: %s has the types %j", (signature, types) => {
    expect(parameterTypes(signature)).toEqual(types);
  });

  it("are parsed by their type", () => {
    const types = ["address", "bool", "string", "uint256", "bytes"];
    expect(toArguments(["0xAb", "true", "true", "5", "0x00"], types)).toEqual(["0xAb", true, "true", "5", "0x00"]);
    expect(toArguments(["1.5ether", "-5"], ["uint256", "int8"])).toEqual(["1500000000000000000", "-5"]);
    expect(toArguments(['["a", true]', "false"], null)).toEqual([["a", true], false]);
  });

  // protects [The command line] src/adapters/cli/amounts.ts, src/adapters/cli/abi-arguments.ts
  it("keep every digit of numbers in lists", () => {
    const big = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    expect(toArguments([`[${big}, -1]`], ["uint256[]"])).toEqual([[big, "-1"]]);
    expect(toArguments(['[1, "2 and \\"3\\"", [4]]'], ["(uint8,string,uint8[])"])).toEqual([["1", '2 and "3"', ["4"]]]);
  });

  it("are refused if their count is wrong", () => {
    expect(() => toArguments(["1"], ["uint8", "uint8"])).toThrow("takes 2 arguments (uint8, uint8), but 1 is given");
    expect(() => toArguments(["1,2"], ["uint8[]"])).toThrow("must be JSON");
  });
});
