import * as fc from "fast-check";
import { encodeAbiParameters } from "viem";
import { describe, expect, it } from "vitest";
import { decodeRevert, shorten } from "../../../src/adapters/evm/codec/error-texts.ts";
import type { Hex } from "../../../src/domain/lane.ts";

const word = (value: bigint) => value.toString(16).padStart(64, "0");
const bytes = fc.uint8Array({ maxLength: 200 }).map((array): Hex => `0x${Buffer.from(array).toString("hex")}`);

describe("decodeRevert", () => {
  it("decodes every reason text, in any script", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (reason) => {
        const encoded = encodeAbiParameters([{ type: "string" }], [reason]);
        const data: Hex = `0x08c379a0${encoded.slice(2)}`;
        expect(decodeRevert(data)).toEqual({ name: "Error", message: shorten(reason), data });
      }),
    );
  });

  it("replaces characters that PostgreSQL refuses or that cannot be decoded", () => {
    const reverted = (reason: string) => {
      const encoded = encodeAbiParameters([{ type: "string" }], [reason]);
      return decodeRevert(`0x08c379a0${encoded.slice(2)}`).message;
    };
    expect(reverted("a\0b")).toBe("a b");
    expect(reverted("x".repeat(100_000))?.length).toBeLessThan(1_000);
  });

  it.each([
    [0x01n, "assertion failed (0x1)"],
    [0x11n, "arithmetic overflow or underflow (0x11)"],
    [0x12n, "division or modulo by zero (0x12)"],
    [0x32n, "array index out of bounds (0x32)"],
    [0x99n, "unknown panic (0x99)"],
  ])("names the cause of panic code %s", (code, message) => {
    expect(decodeRevert(`0x4e487b71${word(code)}`)).toMatchObject({ name: "Panic", message });
  });

  it.each([
    ["nothing", "0x"],
    ["a custom error", `0xdeadbeef${word(42n)}`],
    ["an Error without arguments", "0x08c379a0"],
    ["an Error that points far away", `0x08c379a0${word(2n ** 255n)}${word(1n)}`],
    ["an Error longer than its data", `0x08c379a0${word(32n)}${word(1_000_000n)}`],
    ["a Panic with too little", "0x4e487b7111"],
    ["a Panic with too much", `0x4e487b71${word(1n)}${word(1n)}`],
    ["half a selector", "0x08c3"],
  ] as const)("returns %s undecoded", (_, data) => {
    expect(decodeRevert(data)).toEqual({ name: null, message: null, data });
  });

  it("never throws, whatever data a contract reverts with", () => {
    const selector = fc.constantFrom("0x08c379a0", "0x4e487b71", "0x");
    fc.assert(
      fc.property(selector, bytes, (start, rest) => decodeRevert(`${start}${rest.slice(2)}` as Hex).data.length >= 2),
    );
  });
});
