import { toEventSelector } from "viem/utils";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import type { Hash, Hex } from "../../../../src/domain/lane.ts";
import { BadEncoding } from "../../../../src/ports/codec.ts";

const codec = createCodec();
const TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const word = (digits: string) => digits.padStart(64, "0");

/** A tuple that contains this many others, one in the other. */
function tupleIn(depth: number): object {
  return depth === 0 ? { type: "bool" } : { type: "tuple", components: [tupleIn(depth - 1)] };
}

/** Structs each of which contains the one before it twice. */
function doubled(count: number): readonly string[] {
  const rest = Array.from({ length: count }, (_, at) => `struct S${at + 1} { S${at} a; S${at} b; }`);
  return ["struct S0 { bool a; }", ...rest, `function pay(S${count} x)`];
}

describe("an ABI in words", () => {
  const words = codec.readWords([
    "function pay(address to, uint256[] amounts, (bool fast, string note) how)",
    "event Paid(address indexed to, uint256 amount, string indexed note)",
    "error Poor(uint256 has, uint256 needs)",
  ]);

  it("names a call and its arguments, nested ones as JSON", () => {
    const callee = "pay(address,uint256[],(bool,string))";
    const data = codec.encodeCall(callee, [TO, ["1", `${2n ** 200n}`], [true, "hi"]]);
    expect(words.call(data)).toEqual({
      name: "pay",
      args: [
        { name: "to", value: TO },
        { name: "amounts", value: `["1","${2n ** 200n}"]` },
        { name: "how", value: '{"fast":true,"note":"hi"}' },
      ],
    });
    expect(words.error(data)).toBeNull();
  });

  it("has no words for data that does not match its layout, and never throws", () => {
    const data = codec.encodeCall("pay(address,uint256[],(bool,string))", [TO, ["1"], [true, "hi"]]);
    for (const wrong of [data.slice(0, 40), data.slice(0, 10), "0x", "0x12345678"] as Hex[]) {
      expect(words.call(wrong)).toBeNull();
      expect(words.error(wrong)).toBeNull();
      expect(words.event([], wrong)).toBeNull();
    }
  });

  // protects [Figures] src/adapters/evm/codec/abi-words.ts
  it("has no words for data whose offsets point many times to the same bytes", () => {
    const multicall = codec.readWords(["function multicall(bytes[] calls)", "event Calls(bytes[] calls)"]);
    const honest = codec.encodeCall("multicall(bytes[])", [Array.from({ length: 100 }, () => `0x${"ab".repeat(40)}`)]);
    expect(multicall.call(honest)).toMatchObject({ name: "multicall" });
    const selector = honest.slice(0, 10);
    const bomb = (count: number, bytes: number) => {
      const offsets = word((32 * count).toString(16)).repeat(count);
      return `${word("20")}${word(count.toString(16))}${offsets}${word(bytes.toString(16))}${"ab".repeat(bytes)}`;
    };
    expect(multicall.call(`${selector}${bomb(2, 320)}` as Hex)).toMatchObject({ name: "multicall" });
    expect(multicall.call(`${selector}${bomb(150, 4_800)}` as Hex)).toBeNull();
    const topic = toEventSelector("Calls(bytes[])");
    expect(multicall.event([topic], `0x${bomb(2, 320)}`)).toMatchObject({ name: "Calls" });
    expect(multicall.event([topic], `0x${bomb(150, 4_800)}`)).toBeNull();
  });

  // protects [Figures] src/adapters/evm/codec/parse-signatures.ts
  it("is refused if its structs double, also as the ABI of a call", () => {
    expect(codec.readWords(doubled(3)).call("0x")).toBeNull();
    const call = () => codec.encodeCall({ abi: doubled(40), function: "pay" }, [[]]);
    expect(call).toThrow("its structs are too large");
  });

  const without = [
    { type: "tuple[]", components: [] },
    { type: "tuple", components: [{ type: "tuple[9]", components: [] }] },
    { type: "uint256[0][]" },
    { type: "bool[00]" },
  ];
  // protects [Figures] src/adapters/evm/codec/check-inputs.ts
  it.each(without)("is refused if a list of a parameter without bytes would never end: %j", (input) => {
    expect(() => codec.readWords([{ type: "error", name: "E", inputs: [input] }])).toThrow(BadEncoding);
  });

  it("shortens names, and removes their control characters", () => {
    const long = {
      type: "function",
      name: "a".repeat(5_000),
      inputs: [{ type: "bool", name: "\u001b[2J\u009b\n<b>" }],
    };
    const { name, args } =
      codec.readWords([long]).call(codec.encodeCall({ abi: [long], function: long.name }, [true])) ?? {};
    expect(name).toHaveLength(100);
    expect(args).toEqual([{ name: "[2J <b>", value: "true" }]);
  });

  it("names events and errors", () => {
    // keccak256("Paid(address,uint256,string)"), computed by the same rule that names the event.
    const json = [
      {
        type: "event",
        name: "Paid",
        inputs: [
          { name: "to", type: "address", indexed: true },
          { name: "", type: "uint256", indexed: false },
        ],
      },
    ];
    const selector = "0x737c69225d647e5994eab1a6c301bf6d9232beb2759ae1e27a8966b4732bc489" as Hash;
    const topics = [selector, `0x${word(TO.slice(2).toLowerCase())}`] as Hash[];
    expect(codec.readWords(json).event(topics, `0x${word("2a")}`)).toEqual({
      name: "Paid",
      args: [
        { name: "to", value: TO },
        { name: "1", value: "42" },
      ],
    });
    expect(codec.readWords(json).event(topics.slice(0, 1), `0x${word("2a")}`)).toBeNull();
    const error = codec.encodeCall("Poor(uint256,uint256)", ["1", "2"]);
    expect(words.error(error)).toEqual({
      name: "Poor",
      args: [
        { name: "has", value: "1" },
        { name: "needs", value: "2" },
      ],
    });
  });

  it.each([
    [["function pay("]],
    [["x".repeat(30_000)]],
    [[{ type: "function", name: "pay", inputs: [{ type: "uint257x" }] }]],
    [[{ type: "function", name: "pay", inputs: [{ type: "tuple", components: [{ type: "uint257x" }] }] }]],
    [[{ type: "function", name: "pay", inputs: [{ type: "tuple" }] }]],
    [[{ type: "function", name: "pay", inputs: [{ type: "bool", name: { toString: "no text" } }] }]],
    [[{ type: "function", name: "pay", inputs: [tupleIn(17)] }]],
    [doubled(40)],
    [[null]],
    [[7]],
  ])("refuses what is not an ABI: %j", (abi) => {
    expect(() => codec.readWords(abi)).toThrow(BadEncoding);
  });
});
