import * as fc from "fast-check";
import { decodeAbiParameters, decodeFunctionData, encodeFunctionData, parseAbi, toFunctionSelector } from "viem";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import type { Address } from "../../../../src/domain/lane.ts";
import { BadEncoding } from "../../../../src/ports/codec.ts";

const codec = createCodec();
const CHECKSUMMED = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
const LOWER = CHECKSUMMED.toLowerCase() as Address;

function complaint(act: () => unknown): { path: string; message: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof BadEncoding) return { path: error.path, message: error.message };
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("address parsing", () => {
  it("treats lower case, upper case and a correct checksum as the same account", () => {
    const upper = `0x${CHECKSUMMED.slice(2).toUpperCase()}`;
    expect([LOWER, upper, CHECKSUMMED].map((text) => codec.parseAddress(text))).toEqual([LOWER, LOWER, LOWER]);
    expect(codec.checksum(LOWER)).toBe(CHECKSUMMED);
  });

  it.each([
    ["a wrong checksum", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"],
    ["39 digits", LOWER.slice(0, -1)],
    ["41 digits", `${LOWER}0`],
    ["no prefix", LOWER.slice(2)],
    ["an upper-case prefix", `0X${LOWER.slice(2)}`],
    ["a non-hex digit", `${LOWER.slice(0, -1)}g`],
    ["white space", ` ${LOWER}`],
    ["nothing", ""],
    ["a name", "vitalik.eth"],
  ])("refuses %s", (_, text) => {
    expect(complaint(() => codec.parseAddress(text)).path).toBe("");
  });
});

describe("encoding a call by its function signature", () => {
  const TRANSFER = encodeFunctionData({
    abi: parseAbi(["function transfer(address to, uint256 amount)"]),
    args: [LOWER, 5n],
  });

  it.each([
    "transfer(address,uint256)",
    "transfer(address to, uint256 amount)",
    "function transfer(address to, uint256 amount) returns (bool)",
    "  function transfer(address,uint)  ",
  ])("encodes %s", (signature) => {
    expect(codec.encodeCall(signature, [CHECKSUMMED, "5"])).toBe(TRANSFER);
    expect(codec.encodeCall(signature, [LOWER, 5])).toBe(TRANSFER);
    expect(codec.encodeCall(signature, [LOWER, "0x5"])).toBe(TRANSFER);
  });

  it("encodes a function without arguments as the function selector", () => {
    expect(codec.encodeCall("pause()", [])).toBe(toFunctionSelector("function pause()"));
  });

  it("accepts tuples as lists or as objects, nested and in arrays", () => {
    const signature =
      "settle((address to, (uint8 kind, bytes data)[] parts)[] orders, bytes4[2] tags, bool dry, string note)";
    const tail = [["0x01020304", "0xdeadbeef"], false, "grüße"];
    const byList = codec.encodeCall(signature, [[[LOWER, [[1, "0x"]]]], ...tail]);
    const byName = codec.encodeCall(signature, [[{ to: LOWER, parts: [{ data: "0x", kind: "1" }] }], ...tail]);
    expect(byName).toBe(byList);
    const abi = parseAbi([
      "struct Part { uint8 kind; bytes data; }",
      "struct Order { address to; Part[] parts; }",
      "function settle(Order[] orders, bytes4[2] tags, bool dry, string note)",
    ]);
    expect(decodeFunctionData({ abi, data: byList }).args).toEqual([
      [{ to: CHECKSUMMED, parts: [{ kind: 1, data: "0x" }] }],
      ["0x01020304", "0xdeadbeef"],
      false,
      "grüße",
    ]);
  });

  it.each([
    ["", "function"],
    ["transfer", "function"],
    ["transfer(address", "function"],
    ["transfer(adress)", "function"],
    ["f(uint7)", "function"],
    ["f(uint0)", "function"],
    ["f(uint512)", "function"],
    ["f(bytes33)", "function"],
    ["event Transfer(address)", "function"],
    ["constructor(address)", "function"],
    ["error Nope(uint256)", "function"],
  ])("refuses the signature '%s'", (signature, path) => {
    expect(complaint(() => codec.encodeCall(signature, [LOWER])).path).toBe(path);
  });

  it.each([17, 99, 900])("refuses tuples nested %i deep before parsing them", (depth) => {
    const signature = `f(${"(".repeat(depth)}uint256${")".repeat(depth)})`;
    expect(complaint(() => codec.encodeCall(signature, [LOWER])).path).toBe("function");
  });

  it("refuses a signature that is 40 kB long", () => {
    expect(complaint(() => codec.encodeCall(`f(${"uint256,".repeat(5_000)}uint256)`, [])).message).toBe(
      "is longer than 2000 characters",
    );
  });

  it.each<[string, unknown[], string]>([
    ["f(uint256)", [], "args"],
    ["f(uint256)", [1, 2], "args"],
    ["f(uint256)", ["1.5"], "args.0"],
    ["f(uint256)", [1.5], "args.0"],
    ["f(uint256)", [-1], "args.0"],
    ["f(uint256)", ["-1"], "args.0"],
    ["f(uint256)", [2 ** 53], "args.0"],
    ["f(uint256)", [Number.NaN], "args.0"],
    ["f(uint256)", [`${2n ** 256n}`], "args.0"],
    ["f(uint256)", ["1e18"], "args.0"],
    ["f(uint256)", [" 1"], "args.0"],
    ["f(uint256)", [""], "args.0"],
    ["f(uint256)", [null], "args.0"],
    ["f(uint256)", [true], "args.0"],
    ["f(uint8)", [256], "args.0"],
    ["f(int8)", [128], "args.0"],
    ["f(int8)", [-129], "args.0"],
    ["f(address,address)", [LOWER, "0x12"], "args.1"],
    ["f(address)", [12], "args.0"],
    ["f(bool)", ["true"], "args.0"],
    ["f(bool)", [1], "args.0"],
    ["f(string)", [7], "args.0"],
    ["f(string)", ["half a pair \ud83d"], "args.0"],
    ["f(bytes)", ["0x123"], "args.0"],
    ["f(bytes)", ["deadbeef"], "args.0"],
    ["f(bytes4)", ["0x010203"], "args.0"],
    ["f(uint256[])", [{ 0: 1 }], "args.0"],
    ["f(uint256[2])", [[1]], "args.0"],
    ["f(uint256[][])", [[[1], [2, "x"]]], "args.0.1.1"],
    ["f((uint256 a, bool b))", [[1]], "args.0"],
    ["f((uint256 a, bool b))", [{ a: 1 }], "args.0.b"],
    ["f((uint256 a, bool b))", [{ a: 1, b: true, c: 2 }], "args.0.c"],
    ["f((uint256 a, bool b))", ["text"], "args.0"],
    ["f((uint256 a, bool b))", [{ a: 1, b: 0 }], "args.0.1"],
    ["f((uint256,bool))", [{}], "args.0."],
  ])("refuses %s with the invalid arguments %j", (signature, args, path) => {
    expect(complaint(() => codec.encodeCall(signature, args)).path).toBe(path);
  });

  it.each<[string, unknown[], string]>([
    [
      "transfer(address,uint265)",
      [],
      "is not a function signature: argument 1: `uint265` is no Solidity type; did you mean `uint256`?",
    ],
    [
      "transfer(adress to)",
      [],
      "is not a function signature: argument 0: `adress` is no Solidity type; did you mean `address`?",
    ],
    ["f((bytes33 a) x)", [], "is not a function signature: `bytes33` is no Solidity type; did you mean `bytes32`?"],
    ["f(Foo)", [], "is not a function signature: argument 0: `Foo` is no Solidity type"],
    ["transfer", [], 'is not a function signature: write it as "transfer(address,uint256)"'],
    ["f(address to, uint8)", [LOWER], "must have 2 members (address to, uint8), not 1"],
    [
      "f(uint8 amount)",
      ["x"],
      'amount (uint8) must be a whole number: a decimal string, 0x hex, or an integer up to 2^53 - 1; given "x"',
    ],
    ["f(uint8 amount)", [256], "amount (uint8) is out of range: 0 to 2^8 - 1; given 256"],
    ["f(int8)", ["-129"], 'int8 is out of range: -2^7 to 2^7 - 1; given "-129"'],
    ["f(bytes4)", ["0x01"], 'bytes4 must have 4 bytes, not 1; given "0x01"'],
    ["f(bool)", ["true"], 'bool must be true or false, without quotes; given "true"'],
    ["f((uint8 a, bool b) x)", [{ a: 1 }], "is missing (bool)"],
    ["f((uint8 a, bool b) x)", [{ a: 1, c: 1 }], "is no member of this tuple, which has a, b"],
  ])("explains what is wrong with %s and the arguments %j", (signature, args, message) => {
    expect(complaint(() => codec.encodeCall(signature, args)).message).toBe(message);
  });

  it("does not quote long values in an error", () => {
    const { message } = complaint(() => codec.encodeCall("f(address)", [`0x${"5e".repeat(32)}`]));
    expect(message).toBe("address must be an address: 0x and 40 hex digits; given a string of 66 characters");
  });

  it("encodes an integer exactly if the integer is in range", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 257n), max: 2n ** 257n }), (value) => {
        const fits = value >= -(2n ** 255n) && value < 2n ** 255n;
        const encode = () => codec.encodeCall("f(int256)", [value.toString()]);
        if (!fits) return complaint(encode).path === "args.0";
        const [decoded] = decodeAbiParameters([{ type: "int256" }], `0x${encode().slice(10)}`);
        return decoded === value;
      }),
    );
  });

  it("throws only BadEncoding, for any JSON arguments", () => {
    const types = ["uint256", "address", "bool", "bytes", "bytes32", "string", "uint8[]", "(uint8 a, bytes b)[2]"];
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.jsonValue({ depthSize: "small" }), (type, value) => {
        try {
          codec.encodeCall(`f(${type})`, [value]);
        } catch (error) {
          expect(error).toBeInstanceOf(BadEncoding);
        }
      }),
    );
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), fc.array(fc.jsonValue(), { maxLength: 3 }), (signature, args) => {
        try {
          codec.encodeCall(signature, args);
        } catch (error) {
          expect(error).toBeInstanceOf(BadEncoding);
        }
      }),
    );
  });
});

describe("encoding a call by its ABI", () => {
  const transfer = {
    type: "function",
    name: "transfer",
    inputs: [
      { name: "to", type: "address" },
      { name: "amount", type: "uint256" },
    ],
    outputs: [{ type: "bool" }],
    stateMutability: "nonpayable",
  };
  const pause = { type: "function", name: "pause", inputs: [], outputs: [], stateMutability: "nonpayable" };
  const event = { type: "event", name: "Transfer", inputs: [] };
  const expected = codec.encodeCall("transfer(address,uint256)", [LOWER, 1]);

  it("finds the only function that matches the arguments among several", () => {
    expect(codec.encodeCall([event, transfer], [LOWER, 1])).toBe(expected);
    expect(codec.encodeCall([pause, event, transfer], [LOWER, 1])).toBe(expected);
    expect(codec.encodeCall(["function transfer(address,uint256)", "event Transfer(address)"], [LOWER, 1])).toBe(
      expected,
    );
  });

  it("reports the path `function` if no function matches the arguments", () => {
    expect(complaint(() => codec.encodeCall([transfer], [LOWER, "x"])).path).toBe("args.1");
    expect(complaint(() => codec.encodeCall([transfer, pause], [LOWER, "x"])).path).toBe("args.1");
    expect(complaint(() => codec.encodeCall([transfer, pause], [LOWER]))).toEqual({
      path: "function",
      message: "has no function that takes these 1 arguments: it has transfer(address,uint256), pause()",
    });
    const approve = { ...transfer, name: "approve" };
    expect(complaint(() => codec.encodeCall([transfer, approve], [LOWER, 1])).message).toMatch(/several/);
  });

  it("uses the overload that a signature names, with member names from the ABI", () => {
    const overloads = [
      { ...pause, name: "set", inputs: [{ name: "a", type: "uint" }] },
      { ...pause, name: "set", inputs: [{ name: "a", type: "address" }] },
      { ...pause, name: "set", inputs: [{ name: "o", type: "tuple", components: [{ name: "x", type: "int64" }] }] },
    ];
    expect(complaint(() => codec.encodeCall({ abi: overloads, function: "set" }, [LOWER])).message).toMatch(/several/);
    for (const [signature, value] of [
      ["set(uint256)", LOWER],
      ["function set(address a)", LOWER],
      ["set((int64 x))", { x: -3 }],
    ] as const) {
      const expectedCall = codec.encodeCall(signature, [value]);
      expect(codec.encodeCall({ abi: overloads, function: signature }, [value])).toBe(expectedCall);
    }
    const named = codec.encodeCall({ abi: overloads, function: " set((int64)) " }, [{ x: -3 }]);
    expect(named).toBe(codec.encodeCall("set((int64))", [[-3]]));
  });

  it("finds a function by name in a JSON ABI or in human-readable lines", () => {
    const odd = { ...pause, name: "odd", inputs: [{ type: "function" }] };
    expect(codec.encodeCall({ abi: [odd, transfer], function: "transfer" }, [LOWER, 1])).toBe(expected);
    const lines = ["function transfer(address,uint256)", "function approve(address,uint256)"];
    expect(codec.encodeCall({ abi: lines, function: "transfer" }, [LOWER, 1])).toBe(expected);
    expect(codec.encodeCall({ abi: lines, function: "transfer(address,uint256)" }, [LOWER, 1])).toBe(expected);
  });

  it.each(["burn", "transfer(address)", "transfer(", "Transfer"])("reports that an ABI has no function %s", (named) => {
    expect(complaint(() => codec.encodeCall({ abi: [event, transfer], function: named }, [LOWER, 1])).path).toBe(
      "function",
    );
  });

  it.each([
    ["an empty list", []],
    ["only events", [event]],
    ["null", [null]],
    ["a number", [7]],
    ["a mix of text and objects", ["function f()", transfer]],
    ["a function without name", [{ type: "function", inputs: [] }]],
    ["a name that is no identifier", [{ ...pause, name: "f(uint256)" }]],
    ["inputs that are no list", [{ ...pause, inputs: "none" }]],
    ["an input without type", [{ ...pause, inputs: [{ name: "x" }] }]],
    ["a type that ABI encoding does not have", [{ ...pause, inputs: [{ type: "fixed128x18" }] }]],
    ["text that is no ABI", ["nonsense"]],
  ])("refuses an invalid ABI: %s", (_, abi) => {
    expect(complaint(() => codec.encodeCall(abi, [])).path).toBe("function");
  });

  it("reports which argument has an invalid type in the ABI", () => {
    const odd = { ...pause, name: "odd", inputs: [{ type: "bool" }, { name: "x", type: "uint265" }] };
    const message = "argument 1 (x): `uint265` is no Solidity type; did you mean `uint256`?";
    expect(complaint(() => codec.encodeCall([odd], [true, 1]))).toEqual({ path: "function", message });
    expect(complaint(() => codec.encodeCall({ abi: [odd], function: "odd" }, [true, 1]))).toEqual({
      path: "abi",
      message,
    });
    const misspelt = { abi: [odd, transfer], function: "tranfser" };
    expect(complaint(() => codec.encodeCall(misspelt, []))).toEqual({
      path: "function",
      message: "abi has no function named tranfser; it has odd, transfer",
    });
    const deploy = [{ type: "constructor", inputs: [{ name: "x", type: "adress" }] }];
    expect(complaint(() => codec.encodeDeploy("0x6000", deploy, [LOWER]))).toEqual({
      path: "abi",
      message: "argument 0 (x): `adress` is no Solidity type; did you mean `address`?",
    });
  });

  it("refuses tuples nested 5,000 deep", () => {
    let input: object = { type: "uint256" };
    for (let depth = 0; depth < 5_000; depth++) input = { type: "tuple", components: [input] };
    expect(complaint(() => codec.encodeCall([{ ...pause, inputs: [input] }], [[]])).path).toBe("function");
  });

  it("treats uint as uint256 in a JSON ABI too, because the selector uses the long form", () => {
    const short = { ...transfer, inputs: [{ type: "address" }, { type: "uint" }] };
    expect(codec.encodeCall([short], [LOWER, 1])).toBe(expected);
  });
});

describe("encoding a deployment", () => {
  const init = { type: "constructor", inputs: [{ name: "owner", type: "address" }], stateMutability: "nonpayable" };

  it("appends the constructor's arguments, and nothing if there are none", () => {
    expect(codec.encodeDeploy("0x60AA", undefined, [])).toBe("0x60aa");
    expect(codec.encodeDeploy("0x6000", [], [])).toBe("0x6000");
    expect(codec.encodeDeploy("0x6000", [init], [LOWER])).toBe(`0x6000${"0".repeat(24)}${LOWER.slice(2)}`);
  });

  it("refuses bytecode with unlinked libraries", () => {
    expect(complaint(() => codec.encodeDeploy("0x", undefined, [])).path).toBe("bytecode");
    expect(complaint(() => codec.encodeDeploy("0x600", undefined, [])).path).toBe("bytecode");
    expect(complaint(() => codec.encodeDeploy("0x60__$abc$__", undefined, [])).path).toBe("bytecode");
    expect(complaint(() => codec.encodeDeploy("0x6000", undefined, [LOWER])).path).toBe("args");
    expect(complaint(() => codec.encodeDeploy("0x6000", [], [LOWER])).path).toBe("args");
    expect(complaint(() => codec.encodeDeploy("0x6000", [init], [])).path).toBe("args");
    expect(complaint(() => codec.encodeDeploy("0x6000", [init], ["0x1"])).path).toBe("args.0");
  });
});
