import { describe, expect, it } from "vitest";
import { ALERT_CODES } from "../../src/domain/troubles/alerts.ts";
import { type NamedTest, type PageRow, rowsOf, testsIn } from "./rules/promises.ts";
import { listFiles, readText } from "./tree.ts";

const files = new Set(["src", "test"].flatMap((folder) => listFiles(folder)));
const promises = rowsOf(readText("docs/protections.md"));
const testsOf = ({ cells }: PageRow): readonly NamedTest[] => testsIn(cells[2] ?? "");
const isThere = ({ file, title }: NamedTest): boolean => files.has(file) && readText(file).includes(title);

describe("the page of protections", () => {
  it("has a place in the code and a test on every line", () => {
    expect(promises.length).toBeGreaterThan(80);
    for (const row of promises) {
      const [promise, code = ""] = row.cells;
      expect(
        [...code.matchAll(/`((?:src\/|package)[^`]+)`/g)].map(([, path]) => path),
        promise,
      ).not.toEqual([]);
      expect(testsOf(row), promise).not.toEqual([]);
    }
  });

  it("names only tests that exist", () => {
    expect(promises.flatMap(testsOf).filter((named) => !isThere(named))).toEqual([]);
  });
});

describe("the page of attackers", () => {
  const attempts = rowsOf(readText("docs/security.md")).filter(({ section }) => section !== "");
  const textOf = ({ file, title }: NamedTest): string => `${file}: ${title}`;

  it("says on every line what happens, and which test fails otherwise", () => {
    expect(attempts.length).toBeGreaterThan(60);
    expect(attempts.filter(({ cells }) => cells.length !== 3).map(({ cells }) => cells[0])).toEqual([]);
    expect(attempts.filter((row) => testsOf(row).length === 0).map(({ cells }) => cells[0])).toEqual([]);
  });

  it("names tests of the page of protections alone, where the code behind each stands", () => {
    const known = new Set(promises.flatMap(testsOf).map(textOf));
    const named = attempts.flatMap(testsOf).map(textOf);
    expect(named.filter((each) => !known.has(each))).toEqual([]);
  });

  it("leaves out no line about attacks, nor about the kill switch: each has somebody who tries it", () => {
    const named = new Set(attempts.flatMap(testsOf).map(textOf));
    const about = promises.filter(({ section }) => section === "Attacks" || section === "The kill switch");
    expect(about.length).toBeGreaterThan(60);
    const unnamed = about.filter((row) => !testsOf(row).some((each) => named.has(textOf(each))));
    expect(unnamed.map(({ cells }) => cells[0])).toEqual([]);
  });
});

it("every alert is asked for by a test", () => {
  const tests = [...files].filter((path) => /^test\/.*\.ts$/.test(path)).map(readText);
  expect(ALERT_CODES.filter((code) => !tests.some((text) => text.includes(code)))).toEqual([]);
});
