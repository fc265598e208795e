import { encodeErrorResult, parseAbi, toFunctionSelector } from "viem/utils";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../../src/adapters/evm/codec/codec.ts";

const { decodeError } = createCodec();

const LINES = [
  "function transfer(address to, uint256 amount)",
  "error Short(address who, uint256 has, uint256 needs)",
  "error Nothing()",
  "struct Place { uint8 x; int256[] y; }",
  "error Placed(Place place, bytes raw, bool sure)",
] as const;
const abi = parseAbi(LINES);
const who = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const short = encodeErrorResult({ abi, errorName: "Short", args: [who, 1n, 2n ** 200n] });

describe("a custom error of a contract", () => {
  const endless = [{ type: "tuple[]", components: [] }, { type: "uint256[0][]" }];
  // protects [Attacks] src/adapters/evm/codec/error-texts.ts, src/adapters/evm/codec/check-inputs.ts
  it.each(endless)(
    "is not decoded by a list of parameters without bytes, whose length the data chooses: %j",
    (input) => {
      const inputs = [{ name: "x", ...input }];
      const selector = toFunctionSelector({
        type: "function",
        name: "E",
        inputs,
        outputs: [],
        stateMutability: "view",
      });
      const words = [32n, 2n ** 40n, 0n].map((each) => each.toString(16).padStart(64, "0")).join("");
      expect(decodeError([{ type: "error", name: "E", inputs }], `${selector}${words}`)).toBeNull();
      expect(decodeError([{ type: "error", name: "E", inputs }, ...abi], short)).toMatchObject({ name: "Short" });
    },
  );

  it.each([
    ["JSON", abi],
    ["human-readable lines", LINES],
  ])("is decoded with name and arguments if the caller gives the ABI as %s", (_, given) => {
    expect(decodeError(given, short)).toEqual({ name: "Short", args: [who, "1", String(2n ** 200n)] });
    expect(decodeError(given, encodeErrorResult({ abi, errorName: "Nothing" }))).toEqual({ name: "Nothing", args: [] });
    const placed = encodeErrorResult({
      abi,
      errorName: "Placed",
      args: [{ x: 3, y: [-1n, 2n] }, "0xabcd", true],
    });
    expect(decodeError(given, placed)).toEqual({
      name: "Placed",
      args: [{ x: 3, y: ["-1", "2"] }, "0xabcd", true],
    });
  });

  it.each([
    ["another selector", abi, `0xdeadbeef${short.slice(10)}`],
    ["too few bytes", abi, short.slice(0, 80)],
    ["no bytes", abi, "0x"],
    ["an error of Solidity itself, which the ABI does not name", abi, `0x4e487b71${"11".padStart(64, "0")}`],
    ["more bytes than the limit", abi, `${short}${"00".repeat(6_000)}`],
    ["no ABI", [], short],
    ["an ABI of nonsense", [null, 1, "x"], short],
    ["an ABI with an invalid structure", [{ type: "error", name: "Short", inputs: "all" }], short],
    // protects [Attacks] src/adapters/evm/codec/error-texts.ts
  ])("is not decoded if data and ABI do not match: %s", (_, given, data) => {
    expect(decodeError(given, data as `0x${string}`)).toBeNull();
  });
});
