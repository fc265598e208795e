import { describe, expect, it } from "vitest";
import { assignmentsOf, memoriesBeside, mutableFields, sentinelTimes } from "./rules/mutable-fields.ts";
import { parseSource, readCode } from "./tree.ts";

const AT_MOST = 11;

const source = readCode("src");
const inside = source.filter(({ path }) => /^src\/(domain|application)\//.test(path));
const ofLane = mutableFields(source, "src/application/lane/owned-lane.ts", "OwnedLane");

describe("what a lane is in memory", () => {
  it("has few fields that change: of itself, of its transactions, and of all that it owns", () => {
    expect(ofLane.length, ofLane.join(" ")).toBeLessThanOrEqual(AT_MOST);
  });

  it("keeps its pace in values that are replaced, never changed", () => {
    for (const [path, type] of [
      ["src/domain/pace/lane-pace.ts", "LanePace"],
      ["src/domain/pace/transaction-pace.ts", "TransactionPace"],
    ] as const) {
      expect(mutableFields(source, path, type)).toEqual([]);
    }
  });

  it("takes what the database acknowledged as values that are replaced", () => {
    expect(mutableFields(source, "src/domain/ledger/ledger.ts", "Ledger")).toEqual([]);
    expect(mutableFields(source, "src/domain/ledger/kept-transaction.ts", "KeptTransaction")).toEqual([]);
  });

  it.each(ofLane)("changes %s in one place", (field) => {
    expect(inside.flatMap((file) => assignmentsOf(file, field))).toHaveLength(1);
  });

  it("is remembered nowhere beside it", () => {
    expect(source.flatMap(memoriesBeside)).toEqual([]);
  });
});

describe("times", () => {
  it("are moments, and what is no moment has a name", () => {
    expect(inside.flatMap(sentinelTimes)).toEqual([]);
  });
});

describe("the rules about a lane's state", () => {
  const fieldsOf = (...texts: readonly string[]) =>
    mutableFields(
      texts.map((text, index) => parseSource(`src/${index}.ts`, text)),
      "src/0.ts",
      "Lane",
    );

  it.each([
    ["class Lane { readonly a = 1; b = 2; private c: number; get d() { return 1; } e() {} }", ["Lane.b", "Lane.c"]],
    ["interface Lane { readonly a: Part; } interface Part { b: number; readonly c: number }", ["Part.b"]],
    ["class Lane { readonly a = new Part(); } class Part { b = 1; }", ["Part.b"]],
    [
      "class Lane { readonly a = new Map<number, Part>(); } type Part = { b: number } | Other; interface Other { c: 1 }",
      ["Part.b", "Other.c"],
    ],
    ["interface Lane { readonly a: { b: number } }", ["Lane.b"]],
    ["interface Lane { readonly a: Lane; work(part: Part): void } interface Part { b: number }", []],
  ])("count in %s", (text, fields) => {
    expect(fieldsOf(text)).toEqual(fields);
  });

  it("follow what is imported, and what is handed on", () => {
    const lane = `import { type Part as P } from "./1.ts"; class Lane { readonly a: P; }`;
    expect(fieldsOf(lane, `export { type Part } from "./2.ts";`, "export interface Part { b: number }")).toEqual([
      "Part.b",
    ]);
  });

  it.each([
    ["class Lane { a = 1; constructor() { this.a = 2; } }", 0],
    ["class Lane { a = 1; b() { this.a = 2; } } class Other { b() { this.a = 3; } }", 1],
    ["class Lane { a = 1; b() { this.a = 2; } } lane.a = 3; lane.a++; lane.a += 1;", 4],
  ])("count the places that assign in %s", (text, places) => {
    expect(assignmentsOf(parseSource("src/a.ts", text), "Lane.a")).toHaveLength(places);
  });

  it.each(["const by = new WeakMap<OwnedLane, Look>();", "const by: WeakMap<Tracked, Search> = make();"])(
    "find the memory in %s",
    (text) => {
      expect(memoriesBeside(parseSource("src/a.ts", text))).toHaveLength(1);
    },
  );

  it("let other memories be", () => {
    expect(memoriesBeside(parseSource("src/a.ts", "new WeakMap<FeeMarket, Digest>();"))).toEqual([]);
  });

  it.each([
    "class A { private nextMs = Number.NEGATIVE_INFINITY; }",
    "tx.checkedAtMs = -Infinity;",
    "const untilMs = a ? Number.POSITIVE_INFINITY : b;",
    "export const A = { seenAt: Number.MIN_SAFE_INTEGER };",
    "this.dueMs = dueMs ?? Infinity;",
  ])("find the number that is no moment in %s", (text) => {
    expect(sentinelTimes(parseSource("src/a.ts", text))).toHaveLength(1);
  });

  it.each(["const room = Number.POSITIVE_INFINITY;", "tx.nextMs = null;", "this.dueMs = at(1);"])(
    "let %s be",
    (text) => {
      expect(sentinelTimes(parseSource("src/a.ts", text))).toEqual([]);
    },
  );
});
