import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shorten } from "../../../../src/adapters/evm/codec/error-texts.ts";

describe("a node's error text", () => {
  it("is shortened to at most 300 characters, without control characters", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "\u0000", "\n", "\ud83d", "\ude00", "😀", "ü"),
      maxLength: 700,
    });
    fc.assert(
      fc.property(text, (words) => {
        const short = shorten(words);
        expect(Array.from(short).length).toBeLessThanOrEqual(300);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: their absence is the claim.
        expect(short).not.toMatch(/[\u0000-\u001f]/);
        expect(Buffer.from(short, "utf8").toString("utf8")).toBe(short);
      }),
    );
  });

  it("is unchanged if it is short", () => {
    expect(shorten("nonce too low: next nonce 5, tx nonce 3")).toBe("nonce too low: next nonce 5, tx nonce 3");
    expect(shorten("x".repeat(301))).toBe(`${"x".repeat(299)}…`);
  });
});
