import { describe, expect, it } from "vitest";
import {
  ageOf,
  cut,
  durationOf,
  etherOf,
  exactOf,
  fieldOf,
  gweiOf,
  instantOf,
  plural,
  shortHex,
  useZone,
  visible,
  weiOf,
} from "../../../src/adapters/dashboard/public/formats.js";
import { linkTo, parseRoute } from "../../../src/adapters/dashboard/public/routes.js";
import { progressOf, STAGES, stageDurations, stageOf } from "../../../src/adapters/dashboard/public/stages.js";
import type { Transaction } from "../../../src/contract/schemas/transaction-schema.ts";
import { STATES, SUB_STATES } from "../../../src/domain/transaction/transitions.ts";

describe("amounts on the dashboard", () => {
  it.each([
    ["0", "0"],
    ["1", "< 0.0001"],
    ["99999999999999", "< 0.0001"],
    ["100000000000000", "0.0001"],
    ["1000000000000000000", "1"],
    ["1234567890000000000000", "1,234.5678"],
    ["9999990000000000000000", "9,999.99"],
    [(2n ** 256n - 1n).toString(), /^115,792,089,.*\.\d{1,4}$/],
  ])("are shown in ether: %s wei as %s ether", (wei, text) => {
    if (typeof text === "string") expect(etherOf(wei)).toBe(text);
    else expect(etherOf(wei)).toMatch(text);
  });

  it.each([
    ["0", 18, "0"],
    ["1", 18, "0.000000000000000001"],
    ["1000000000000000000", 18, "1"],
    ["1234567890123456789012", 18, "1234.567890123456789012"],
    ["10500000000", 9, "10.5"],
    ["100000000000", 9, "100"],
  ])("are exact on request: %s of %i digits as %s", (wei, digits, text) => {
    expect(exactOf(wei, digits)).toBe(text);
  });

  it.each([
    ["1", "1000000000000000000"],
    ["0.001", "1000000000000000"],
    ["0", "0"],
    ["00.5", "500000000000000000"],
    ["0.000000000000000001", "1"],
    ["123456789.123456789123456789", "123456789123456789123456789"],
  ])("are converted from %s ether to %s wei, exact to the last digit", (ether, wei) => {
    expect(weiOf(ether)).toBe(wei);
  });

  it("are shown in gwei if they are fees", () => {
    expect(gweiOf("3000000000")).toBe("3");
    expect(gweiOf("1234567")).toBe("0.001235");
  });
});

describe("times in fields of the dashboard", () => {
  it("are those of the page's zone", () => {
    useZone("UTC");
    expect(fieldOf("2026-11-18T09:30:00.000Z")).toBe("2026-11-18T09:30");
    expect(instantOf("2026-11-18T09:30")).toBe("2026-11-18T09:30:00.000Z");
    useZone(undefined);
    const [winter, summer] = ["2026-01-18T09:30:00.000Z", "2026-07-18T09:30:00.000Z"];
    for (const iso of [winter, summer]) expect(instantOf(fieldOf(iso))).toBe(iso);
  });

  it("are none if the field is empty or the address is wrong, and wait for the whole year", () => {
    expect(instantOf("")).toBeUndefined();
    expect(fieldOf("yesterday")).toBe("");
    expect(["0002-11-18T09:30", "0202-11-18T09:30"].map(instantOf)).toEqual([null, null]);
  });
});

describe("texts on the dashboard", () => {
  it("are shortened if they are long", () => {
    expect(shortHex("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")).toBe("0xf39F…2266");
    expect(shortHex("0x1234")).toBe("0x1234");
  });

  it("never show a negative age", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect(ageOf("2026-01-02T00:00:05Z", now)).toBe("0 s");
    expect(ageOf("2026-01-01T23:59:01Z", now)).toBe("59 s");
    expect(ageOf("2026-01-01T23:00:01Z", now)).toBe("59 min");
    expect(ageOf("2026-01-01T00:00:01Z", now)).toBe("23 h 59 min");
    expect(ageOf("2025-12-30T00:00:00Z", now)).toBe("3 d");
  });

  it.each([
    [0, "0 ms"],
    [-5, "0 ms"],
    [999.4, "999 ms"],
    [1_000, "1.0 s"],
    [59_999, "59 s"],
    [3_600_000, "1 h"],
    [5_400_000, "1 h 30 min"],
  ])("show a duration of %d ms as %s", (ms, text) => {
    expect(durationOf(ms)).toBe(text);
  });

  // protects [Attacks] src/adapters/dashboard/public/dom.js, src/adapters/dashboard/public/formats.js
  it("show invisible and direction-changing characters as code points", () => {
    expect(visible("a\u0000b\u202Ec\u200Bd\u2028e\n")).toBe("a⟨U+0000⟩b⟨U+202E⟩c⟨U+200B⟩d⟨U+2028⟩e⟨U+000A⟩");
    expect(visible("Zoë 東京 🦉 <b>")).toBe("Zoë 東京 🦉 <b>");
  });

  it("are cut if they are long, followed by the number of removed characters", () => {
    expect(cut("x".repeat(10), 10)).toBe("x".repeat(10));
    expect(cut("x".repeat(12), 10)).toBe(`${"x".repeat(10)}… and 2 characters more`);
  });

  it("use the singular and the plural correctly", () => {
    expect(plural(1, "hole")).toBe("1 hole");
    expect(plural(1200, "hole")).toBe("1,200 holes");
  });
});

describe("the stages of a transaction on the dashboard", () => {
  const every = STATES.flatMap((state) =>
    [null, ...SUB_STATES[state]].map((subState) => ({ state, subState, nonce: 7 as number | null })),
  );

  it("cover every state of a transaction", () => {
    for (const transaction of every) {
      const { passed, mood } = progressOf(transaction);
      expect(passed).toBeGreaterThanOrEqual(1);
      expect(passed).toBeLessThanOrEqual(STAGES.length);
      expect(["moving", "waiting", "done", "closed", "failed", "stuck"]).toContain(mood);
      expect(STAGES).toContain(stageOf(transaction));
    }
  });

  it("never go backwards while a transaction's state advances", () => {
    const road = [
      { state: "CREATED", subState: null },
      { state: "ALLOCATED", subState: null },
      { state: "TRACKING", subState: "PENDING" },
      { state: "TRACKING", subState: "BROADCAST" },
      { state: "TRACKING", subState: "MINED" },
      { state: "CONFIRMED", subState: null },
    ] as const;
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

  it("distinguish a rejected transaction from a reverted one", () => {
    expect(progressOf({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null })).toEqual({
      passed: 1,
      mood: "failed",
    });
    expect(progressOf({ state: "FAILED_FINAL", subState: "REVERTED", nonce: 3 })).toEqual({
      passed: 7,
      mood: "failed",
    });
  });

  it("distinguish a cancelled or expired transaction from a failed one", () => {
    const moodOf = (subState: Transaction["subState"]) =>
      progressOf({ state: "FAILED_FINAL", subState, nonce: 3 }).mood;
    expect((["CANCELLED", "EXPIRED"] as const).map(moodOf)).toEqual(["closed", "closed"]);
    expect((["REVERTED", "NONCE_CONSUMED_EXTERNALLY"] as const).map(moodOf)).toEqual(["failed", "failed"]);
  });

  it("have durations computed from the history", () => {
    const at = (ms: number) => new Date(1_760_000_000_000 + ms).toISOString();
    const step = (event: string, ms: number) => ({ event, firstAt: at(ms) });
    const history = [step("allocate", 10), step("sign", 30), step("broadcast", 100), step("mine", 1_000)];
    const moving = { createdAt: at(0), updatedAt: at(1_000), confirmedAt: null, state: "TRACKING", history };
    const durations = (members: object) => stageDurations({ ...moving, ...members } as unknown as Transaction);
    expect(durations({ receipt: {} })).toEqual([0, 10, 20, 70, 900, null, null]);
    expect(durations({ receipt: null })).toEqual([0, 10, 20, 70, null, null, null]);
    const over = { state: "CONFIRMED", confirmedAt: at(3_000), receipt: {} };
    expect(durations(over)).toEqual([0, 10, 20, 70, 900, 2_000, 0]);
  });
});

describe("URLs of dashboard pages", () => {
  it("decode to the values that were encoded", () => {
    const link = linkTo(["lanes", "1", "0xAb"], { at: 7, text: "a&b=c#d", empty: "" });
    expect(parseRoute(link)).toEqual({
      path: "/lanes/1/0xAb",
      parts: ["lanes", "1", "0xAb"],
      query: { at: "7", text: "a&b=c#d" },
    });
  });

  it("are parsed even if their encoding is invalid", () => {
    expect(parseRoute("#/tx/%E0%A4%A").parts).toEqual(["tx", "%E0%A4%A"]);
    expect(parseRoute("")).toEqual({ path: "/", parts: [], query: {} });
  });
});
