import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { normalisePayload } from "../../../src/application/requests/fields.ts";
import type { FencepostError } from "../../../src/domain/errors.ts";
import type { Codec } from "../../../src/ports/codec.ts";

const codec = createCodec();
const TO = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const LOWER = TO.toLowerCase();
const KEY = `0x${"ab".repeat(32)}`;
const TRANSFER = {
  type: "function",
  name: "transfer",
  inputs: [
    { name: "to", type: "address" },
    { name: "amount", type: "uint256" },
  ],
  outputs: [],
  stateMutability: "nonpayable",
};
const CALLDATA = `0xa9059cbb${LOWER.slice(2).padStart(64, "0")}${"5".padStart(64, "0")}`;
const LARGEST = `0x${"00".repeat(96 * 1024)}`;

const normal = (payload: unknown) => normalisePayload(codec, payload);

function complaint(payload: unknown): string | undefined {
  try {
    normal(payload);
  } catch (error) {
    expect(error).toMatchObject({ code: "INVALID_REQUEST" });
    return (error as FencepostError).extras.path;
  }
  throw new Error("it was accepted");
}

describe("the raw fields of a payload", () => {
  it("are normalised to one form", () => {
    expect(normal({ to: TO })).toEqual({ to: LOWER, data: "0x", value: 0n });
    expect(normal({ to: TO, data: "0xAB", value: "0x10", gas: "21000", gasPrice: 7, type: 0 })).toEqual({
      to: LOWER,
      data: "0xab",
      value: 16n,
      gas: 21_000n,
      gasPrice: 7n,
      type: "legacy",
    });
  });

  it.each([
    ["nothing at all", {}, "payload.to"],
    ["to null", { to: null }, "payload.to"],
    ["to a number", { to: 5 }, "payload.to"],
    ["to too long", { to: `${TO}00` }, "payload.to"],
    ["to with a bad checksum", { to: TO.replace("Fd6", "fD6") }, "payload.to"],
    ["to not hex", { to: `0x${"g".repeat(40)}` }, "payload.to"],
    ["data of odd length", { to: TO, data: "0xabc" }, "payload.data"],
    ["data without 0x", { to: TO, data: "abcd" }, "payload.data"],
    ["data not hex", { to: TO, data: "0xzz" }, "payload.data"],
    ["data a number", { to: TO, data: 5 }, "payload.data"],
    ["data an array", { to: TO, data: [1] }, "payload.data"],
    ["data over 96 kB", { to: TO, data: `${LARGEST}00` }, "payload.data"],
    ["value negative", { to: TO, value: -1 }, "payload.value"],
    ["value negative, in words", { to: TO, value: "-1" }, "payload.value"],
    ["value fractional", { to: TO, value: 1.5 }, "payload.value"],
    ["value fractional, in words", { to: TO, value: "1.5" }, "payload.value"],
    ["value beyond what a number holds", { to: TO, value: 2 ** 53 }, "payload.value"],
    ["value not a number", { to: TO, value: Number.NaN }, "payload.value"],
    ["value infinite", { to: TO, value: Number.POSITIVE_INFINITY }, "payload.value"],
    ["value 2^256", { to: TO, value: (1n << 256n).toString() }, "payload.value"],
    ["value 2^256, in hex", { to: TO, value: `0x1${"0".repeat(64)}` }, "payload.value"],
    ["value very long", { to: TO, value: "9".repeat(10_000) }, "payload.value"],
    ["value empty", { to: TO, value: "" }, "payload.value"],
    ["value 0x", { to: TO, value: "0x" }, "payload.value"],
    ["value in hex, prefix in capitals", { to: TO, value: "0X1" }, "payload.value"],
    ["data, prefix in capitals", { to: TO, data: "0X12" }, "payload.data"],
    ["value with a leading zero", { to: TO, value: "007" }, "payload.value"],
    ["value with spaces", { to: TO, value: " 1 " }, "payload.value"],
    ["value scientific", { to: TO, value: "1e18" }, "payload.value"],
    ["value an object", { to: TO, value: {} }, "payload.value"],
    ["value true", { to: TO, value: true }, "payload.value"],
    ["gas over 2^63", { to: TO, gas: (1n << 63n).toString() }, "payload.gas"],
    ["gas negative", { to: TO, gas: -21_000 }, "payload.gas"],
    ["an unknown field", { to: TO, nonce: 4 }, "payload.nonce"],
    ["a field of another form", { to: TO, bytecode: "0x00" }, "payload.to"],
    ["a field that every object has", JSON.parse(`{"to":"${TO}","constructor":1}`), "payload.constructor"],
  ])("are refused if one of them is invalid, with its path: %s", (_, payload, path) => {
    expect(complaint(payload)).toBe(path);
  });

  it.each([
    [{ value: ((1n << 256n) - 1n).toString() }, { value: (1n << 256n) - 1n }],
    [{ value: Number.MAX_SAFE_INTEGER }, { value: 9007199254740991n }],
    [{ value: "-0" }, { value: 0n }],
    [{ value: "0xFf" }, { value: 255n }],
    [{ data: LARGEST }, { data: LARGEST }],
    [{ gas: ((1n << 63n) - 1n).toString() }, { gas: (1n << 63n) - 1n }],
  ])("are accepted at the limit of their range", (fields, expected) => {
    expect(normal({ to: TO, ...fields })).toMatchObject(expected);
  });
});

describe("an ABI call in a payload", () => {
  it.each([
    ["a signature", { function: "transfer(address,uint256)", args: [TO, 5] }],
    ["a signature with names", { function: "function transfer(address to, uint256 amount)", args: [LOWER, "5"] }],
    ["an ABI of one function", { abi: [TRANSFER], args: [TO, "0x5"] }],
    ["an ABI in the field `function`", { function: [TRANSFER], args: [TO, 5] }],
    ["a name in an ABI", { function: "transfer", abi: [TRANSFER, { ...TRANSFER, name: "other" }], args: [TO, 5] }],
  ])("is encoded to call data from %s", (_, fields) => {
    expect(normal({ to: TO, value: 3, ...fields })).toEqual({ to: LOWER, data: CALLDATA, value: 3n });
  });

  it("needs no arguments if the function has no parameters", () => {
    expect(normal({ to: TO, function: "pause()" }).data).toBe("0x8456cb59");
    expect(normal({ to: TO, function: "pause()", args: null }).data).toBe("0x8456cb59");
  });

  it.each([
    ["no target", { function: "pause()" }, "payload.to"],
    ["data beside a function", { to: TO, function: "pause()", data: "0x" }, "payload.data"],
    ["a signature that is none", { to: TO, function: "transfer(" }, "payload.function"],
    ["a function that is no text", { to: TO, function: 5 }, "payload.function"],
    ["a function that is null", { to: TO, function: null }, "payload.function"],
    ["arguments alone", { to: TO, args: [] }, "payload.function"],
    ["arguments that are no list", { to: TO, function: "pause()", args: { a: 1 } }, "payload.args"],
    ["too few arguments", { to: TO, function: "transfer(address,uint256)", args: [TO] }, "payload.args"],
    [
      "an argument that does not fit",
      { to: TO, function: "transfer(address,uint256)", args: [TO, -1] },
      "payload.args.1",
    ],
    ["an address that is none", { to: TO, function: "transfer(address,uint256)", args: ["0x12", 1] }, "payload.args.0"],
    ["an ABI that is no list", { to: TO, abi: {}, args: [] }, "payload.abi"],
    ["an ABI that is null", { to: TO, abi: null }, "payload.abi"],
    ["a name the ABI lacks", { to: TO, function: "mint", abi: [TRANSFER], args: [] }, "payload.function"],
    ["an ABI with entries that are none", { to: TO, function: "mint", abi: [TRANSFER, null, 5] }, "payload.abi"],
    ["a name that is no text", { to: TO, function: 7, abi: [TRANSFER], args: [] }, "payload.function"],
    ["an ABI without functions", { to: TO, abi: [], args: [] }, "payload.abi"],
    ["an ABI of lines without functions", { to: TO, function: [], args: [] }, "payload.function"],
  ])("is refused if it is invalid, with the path of the wrong field: %s", (_, payload, path) => {
    expect(complaint(payload)).toBe(path);
  });

  it("is refused if its call data would exceed 96 kB", () => {
    const args = [`0x${"00".repeat(96 * 1024)}`];
    expect(complaint({ to: TO, function: "store(bytes)", args })).toBe("payload.data");
  });
});

describe("a contract deployment in a payload", () => {
  it("has its constructor arguments after the bytecode", () => {
    const takesOne = { type: "constructor", inputs: [{ type: "uint256" }] };
    expect(normal({ bytecode: "0x60FE", value: 1 })).toEqual({ to: null, data: "0x60fe", value: 1n });
    expect(normal({ bytecode: "0x60fe", abi: [takesOne], args: [5] }).data).toBe(`0x60fe${"5".padStart(64, "0")}`);
  });

  it.each([
    ["with a target", { bytecode: "0x60fe", to: TO }, "payload.to"],
    ["of nothing", { bytecode: "0x" }, "payload.bytecode"],
    ["of null", { bytecode: null }, "payload.bytecode"],
    ["of odd length", { bytecode: "0x6" }, "payload.bytecode"],
    ["over 96 kB", { bytecode: `${LARGEST}00` }, "payload.bytecode"],
    ["with arguments but no constructor", { bytecode: "0x60fe", args: [1] }, "payload.args"],
    ["with an ABI that is no list", { bytecode: "0x60fe", abi: "x" }, "payload.abi"],
    ["with data", { bytecode: "0x60fe", data: "0x" }, "payload.data"],
  ])("is refused if it is invalid, with the path of the wrong field: %s", (_, payload, path) => {
    expect(complaint(payload)).toBe(path);
  });
});

describe("the access list of a payload", () => {
  it("is normalised, entry by entry", () => {
    const accessList = [{ address: TO, storageKeys: [KEY.toUpperCase().replace("0X", "0x")] }, { address: TO }];
    expect(normal({ to: TO, accessList }).accessList).toEqual([
      { address: LOWER, storageKeys: [KEY] },
      { address: LOWER, storageKeys: [] },
    ]);
  });

  it.each([
    ["an object", {}, "payload.accessList"],
    ["too long", Array(1_001).fill({ address: TO }), "payload.accessList"],
    ["with an entry that is no object", [5], "payload.accessList.0"],
    ["with an unknown field", [{ address: TO, keys: [] }], "payload.accessList.0.keys"],
    ["without an address", [{ address: TO }, {}], "payload.accessList.1.address"],
    ["with an address that is none", [{ address: "0x" }], "payload.accessList.0.address"],
    ["with keys that are no list", [{ address: TO, storageKeys: KEY }], "payload.accessList.0.storageKeys"],
    ["with a key too short", [{ address: TO, storageKeys: [KEY, "0xab"] }], "payload.accessList.0.storageKeys.1"],
    ["with a key that is no text", [{ address: TO, storageKeys: [5] }], "payload.accessList.0.storageKeys.0"],
  ])("is refused if it is invalid, with the path of the wrong field: %s", (_, accessList, path) => {
    expect(complaint({ to: TO, accessList })).toBe(path);
  });
});

describe("the fees and the type of a payload", () => {
  it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["none", {}, {}],
    ["a cap alone", { maxFeePerGas: 9 }, { maxFeePerGas: 9n }],
    ["a tip alone", { maxPriorityFeePerGas: 9 }, { maxPriorityFeePerGas: 9n }],
    ["tip and cap equal", { maxFeePerGas: 9, maxPriorityFeePerGas: 9 }, { maxFeePerGas: 9n, maxPriorityFeePerGas: 9n }],
    [
      "a gas price with an access list",
      { gasPrice: 7, accessList: [] },
      { gasPrice: 7n, type: "eip2930", accessList: [] },
    ],
    ["type 1 by name", { type: "eip2930", gasPrice: 7 }, { type: "eip2930", gasPrice: 7n }],
    ["type 2 as a number", { type: 2, maxFeePerGas: 9 }, { type: "eip1559", maxFeePerGas: 9n }],
    ["type 2 in hex, priced by the market", { type: "0x2" }, { type: "eip1559" }],
    ["type 0 as text", { type: "0" }, { type: "legacy" }],
    ["an access list under type 2", { type: 2, accessList: [] }, { type: "eip1559", accessList: [] }],
  ])("are accepted and normalised: %s", (_, fields, expected) => {
    expect(normal({ to: TO, ...fields })).toEqual({ to: LOWER, data: "0x", value: 0n, ...expected });
  });

  it.each([
    ["a gas price beside a cap", { gasPrice: 1, maxFeePerGas: 1 }, "payload.gasPrice"],
    ["a gas price beside a tip", { gasPrice: 1, maxPriorityFeePerGas: 1 }, "payload.gasPrice"],
    ["a tip above its cap", { maxFeePerGas: 1, maxPriorityFeePerGas: 2 }, "payload.maxPriorityFeePerGas"],
    ["type 2 with a gas price", { type: 2, gasPrice: 1 }, "payload.gasPrice"],
    ["type 0 with a cap", { type: 0, maxFeePerGas: 1 }, "payload.type"],
    ["type 1 with a tip", { type: 1, maxPriorityFeePerGas: 1 }, "payload.type"],
    ["type 0 with an access list", { type: 0, accessList: [] }, "payload.accessList"],
    ["type 3", { type: 3 }, "payload.type"],
    ["type 4 in hex", { type: "0x4" }, "payload.type"],
    ["a type of words", { type: "blob" }, "payload.type"],
    ["a type that every object has", { type: "constructor" }, "payload.type"],
    ["another of those", { type: "toString" }, "payload.type"],
    ["a type that is a list", { type: ["legacy"] }, "payload.type"],
    ["a gas price that is negative", { gasPrice: "-5" }, "payload.gasPrice"],
    ["a cap over 2^256", { maxFeePerGas: (1n << 256n).toString() }, "payload.maxFeePerGas"],
    ["a tip that is fractional", { maxPriorityFeePerGas: 0.1 }, "payload.maxPriorityFeePerGas"],
  ])("are refused if they are invalid, with the path of the wrong field: %s", (_, fields, path) => {
    expect(complaint({ to: TO, ...fields })).toBe(path);
  });
});

it("payload parsing rethrows an internal error of the codec instead of blaming the caller", () => {
  const broken: Codec = {
    ...codec,
    encodeCall: () => {
      throw new RangeError("out of memory");
    },
  };
  expect(() => normalisePayload(broken, { to: TO, function: "pause()" })).toThrow(RangeError);
});
