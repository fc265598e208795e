import { describe, expect, it } from "vitest";
import { agoOf, etherOf, gweiOf, plural, shortHex, weiOf } from "../../../src/adapters/dashboard/public/dom.js";
import { progressOf, STAGES, stageOf } from "../../../src/adapters/dashboard/public/stages.js";
import { STATES, SUB_STATES } from "../../../src/domain/transitions.ts";

describe("amounts", () => {
  it.each([
    ["0", "0"],
    ["1", "< 0.0001"],
    ["99999999999999", "< 0.0001"],
    ["100000000000000", "0.0001"],
    ["1000000000000000000", "1"],
    ["1234567890000000000000", "1,234.5678"],
    ["9999990000000000000000", "9,999.99"],
    [(2n ** 256n - 1n).toString(), /^115,792,089,.*\.\d{1,4}$/],
  ])("%s wei reads as %s ether", (wei, text) => {
    if (typeof text === "string") expect(etherOf(wei)).toBe(text);
    else expect(etherOf(wei)).toMatch(text);
  });

  it.each([
    ["1", "1000000000000000000"],
    ["0.001", "1000000000000000"],
    ["0", "0"],
    ["00.5", "500000000000000000"],
    ["0.000000000000000001", "1"],
    ["123456789.123456789123456789", "123456789123456789123456789"],
  ])("%s ether is %s wei, to the last digit", (ether, wei) => {
    expect(weiOf(ether)).toBe(wei);
  });

  it("writes fees in gwei", () => {
    expect(gweiOf("3000000000")).toBe("3");
    expect(gweiOf("1234567")).toBe("0.001235");
  });
});

describe("words", () => {
  it("shorten hashes, not short things", () => {
    expect(shortHex("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")).toBe("0xf39F…2266");
    expect(shortHex("0x1234")).toBe("0x1234");
  });

  it("say how long ago, never in the future", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect(agoOf("2026-01-02T00:00:05Z", now)).toBe("0 s ago");
    expect(agoOf("2026-01-01T23:59:01Z", now)).toBe("59 s ago");
    expect(agoOf("2026-01-01T23:00:01Z", now)).toBe("59 min ago");
    expect(agoOf("2026-01-01T00:00:01Z", now)).toBe("23 h ago");
    expect(agoOf("2025-12-30T00:00:00Z", now)).toBe("3 d ago");
  });

  it("count", () => {
    expect(plural(1, "hole")).toBe("1 hole");
    expect(plural(1200, "hole")).toBe("1,200 holes");
  });
});

describe("stages", () => {
  const every = STATES.flatMap((state) =>
    [null, ...SUB_STATES[state]].map((subState) => ({ state, subState, nonce: 7 as number | null })),
  );

  it("have a place for every state that a transaction may have", () => {
    for (const transaction of every) {
      const { passed, mood } = progressOf(transaction);
      expect(passed).toBeGreaterThanOrEqual(1);
      expect(passed).toBeLessThanOrEqual(STAGES.length);
      expect(["moving", "done", "failed", "stuck"]).toContain(mood);
      expect(STAGES).toContain(stageOf(transaction));
    }
  });

  it("only grow along the road", () => {
    const road = [
      { state: "CREATED", subState: null },
      { state: "ALLOCATED", subState: null },
      { state: "TRACKING", subState: "PENDING" },
      { state: "TRACKING", subState: "BROADCAST" },
      { state: "TRACKING", subState: "MINED" },
      { state: "CONFIRMED", subState: null },
    ];
    expect(road.map((place) => progressOf({ ...place, nonce: 1 }).passed)).toEqual([1, 2, 3, 4, 5, 7]);
    expect(road.map((place) => stageOf({ ...place, nonce: 1 }))).toEqual([
      "allocate",
      "sign",
      "broadcast",
      "receipt",
      "finality",
      "complete",
    ]);
  });

  it("tell a refusal from a revert", () => {
    expect(progressOf({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null })).toEqual({
      passed: 1,
      mood: "failed",
    });
    expect(progressOf({ state: "FAILED_FINAL", subState: "REVERTED", nonce: 3 })).toEqual({
      passed: 7,
      mood: "failed",
    });
  });
});
