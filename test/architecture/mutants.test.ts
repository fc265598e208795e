import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Mutant, occurrences } from "../mutants/mutant.ts";
import { type MutantOptions, parseOptions, selected } from "../mutants/options.ts";
import { type Result, summary } from "../mutants/report.ts";
import { TABLE } from "../mutants/table/index.ts";
import { ROOT, readText } from "./tree.ts";

const label = ({ file, name }: Mutant) => `${file}: ${name}`;

describe("the mutation table", () => {
  it("has snippets that occur exactly once in their file", () => {
    const wrong = TABLE.filter(
      (row) => !existsSync(join(ROOT, row.file)) || occurrences(row, readText(row.file)) !== 1,
    );
    expect(wrong.map((row) => `${label(row)}: ${row.find}`)).toEqual([]);
  });

  it("changes the code in every row", () => {
    expect(TABLE.filter(({ find, replace }) => find === replace).map(label)).toEqual([]);
  });

  it("names each protection once", () => {
    const names = TABLE.map(label);
    expect(names.filter((name, index) => names.indexOf(name) < index)).toEqual([]);
  });

  it("names tests that exist", () => {
    const missing = TABLE.flatMap((row) =>
      row.tests.filter((path) => !existsSync(join(ROOT, path))).map((path) => [label(row), path]),
    );
    expect(missing).toEqual([]);
    expect(TABLE.filter(({ tests }) => tests.length === 0).map(label)).toEqual([]);
  });
});

describe("npm run mutants", () => {
  const options = { ...parseOptions([]), workers: 1 };
  const rows = ["a", "b", "c", "d", "e"].map((name) => ({
    name,
    file: "src/x.ts",
    find: "1",
    replace: "2",
    tests: [],
  }));
  const namesOf = (changes: Partial<MutantOptions>) =>
    selected(rows, { ...options, ...changes }).map(({ name }) => name);

  it("covers the whole table with consecutive samples", () => {
    expect([0, 1, 2].flatMap((turn) => namesOf({ sample: 2, turn }))).toEqual(["a", "b", "c", "d", "e", "a"]);
    expect(namesOf({ sample: 9, turn: 3 })).toEqual(["a", "b", "c", "d", "e"]);
    expect(namesOf({ only: "^[bd]$" })).toEqual(["b", "d"]);
  });

  it("covers it with consecutive samples of a random order too", () => {
    const sampled = [0, 1, 2].flatMap((turn) => namesOf({ sample: 2, turn, shuffle: 7 }));
    expect(sampled.slice(0, 5).toSorted()).toEqual(["a", "b", "c", "d", "e"]);
    expect(sampled.slice(0, 5)).not.toEqual(["a", "b", "c", "d", "e"]);
    expect(sampled).toEqual([0, 1, 2].flatMap((turn) => namesOf({ sample: 2, turn, shuffle: 7 })));
  });

  const result = (verdict: Result["verdict"], file = "src/domain/ledger/x.ts"): Result => {
    return { name: "x", file, verdict, detail: "", ms: 1 };
  };

  it("fails if a mutant survives or cannot be judged", () => {
    expect(summary([result("found")], options).failed).toBe(false);
    expect(summary([result("found"), result("survived")], options).failed).toBe(true);
    expect(summary([result("found"), result("broken")], options).failed).toBe(true);
  });

  it("fails if the simulation finds fewer than 90 % of the core's mutants, or 60 % of all", () => {
    const simulated = { ...options, simulation: true };
    const core = (found: number) => Array.from({ length: 10 }, (_, i) => result(i < found ? "found" : "survived"));
    const others = (found: number) =>
      Array.from({ length: 10 }, (_, i) => result(i < found ? "found" : "survived", "src/adapters/x.ts"));
    expect(summary([...core(9), ...others(3)], simulated).failed).toBe(false);
    expect(summary([...core(8), ...others(10)], simulated).failed).toBe(true);
    expect(summary([...core(9), ...others(2)], simulated).failed).toBe(true);
  });
});
