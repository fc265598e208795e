import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";
import type { Hash, Hex } from "../../../../src/domain/lane.ts";
import { BadEncoding } from "../../../../src/ports/codec.ts";

const codec = createCodec();
const TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const word = (digits: string) => digits.padStart(64, "0");

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
    [[null]],
    [[7]],
  ])("refuses what is not an ABI: %j", (abi) => {
    expect(() => codec.readWords(abi)).toThrow(BadEncoding);
  });
});
