import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../../src/main/config/parsers.ts";

describe("duration settings", () => {
  it.each([
    ["10s", 10_000],
    ["250ms", 250],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["1.5s", 1500],
    ["0.1s", 100],
    ["2.005s", 2005],
    ["0", 0],
    ["0s", 0],
    ["8760h", 31_536_000_000],
  ])("parse %s", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    "",
    "10",
    "s",
    "-1s",
    "+1s",
    "1 s",
    "1S",
    "10sec",
    "1d",
    "1e3ms",
    "0x10s",
    "1.5ms",
    "1..5s",
    "1m30s",
    "8761h",
    "∞",
    "٣s",
  ])("refuse %j", (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  it("parse every formatted duration back to the same value", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 31_536_000_000 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  it("are formatted in the largest exact unit", () => {
    expect([0, 250, 10_000, 90_000, 300_000, 7_200_000].map(formatDuration)).toEqual([
      "0ms",
      "250ms",
      "10s",
      "90s",
      "5m",
      "2h",
    ]);
  });

  it("parse any text to whole milliseconds or null", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.]{0,20}(ms|s|m|h)?$/)), (text) => {
        const ms = parseDuration(text);
        expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
      }),
    );
  });
});
