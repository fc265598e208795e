import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { protectionsIn, protectionsPage, testFiles } from "../../scripts/protections.mjs";
import { ALERT_CODES } from "../../src/domain/troubles/table.ts";
import { type NamedTest, type PageRow, rowsOf, testsIn } from "./rules/promises.ts";
import { ROOT, readText } from "./tree.ts";

interface Protection extends NamedTest {
  readonly section: string;
  readonly code: readonly string[];
}

const protections: readonly Protection[] = protectionsIn(testFiles());
const nameOf = ({ file, title }: NamedTest): string => `${file}: ${title}`;

describe("the `protects` tags of the tests", () => {
  it("match docs/protections.md, which `npm run protections` writes", () => {
    expect(protections.length).toBeGreaterThan(1_000);
    expect(readText("docs/protections.md")).toBe(protectionsPage(testFiles()));
  });

  it("name source files that exist", () => {
    const missing = protections.flatMap(({ file, code }) =>
      code.filter((path) => !existsSync(join(ROOT, path))).map((path) => [file, path]),
    );
    expect(missing).toEqual([]);
  });

  it("are refused if no test follows them", () => {
    const text = "// protects [Holes] src/a.ts\nconst nothing = 1;\n";
    expect(() => protectionsIn([{ path: "test/a.test.ts", text }])).toThrow(/test\/a\.test\.ts:1/);
  });
});

describe("the page of attacks in the documentation", () => {
  const attempts = rowsOf(readText("docs/security.md")).filter(({ section }) => section !== "");
  const testsOf = ({ cells }: PageRow): readonly NamedTest[] => testsIn(cells[2] ?? "");
  const named = new Set(attempts.flatMap(testsOf).map(nameOf));

  it("names for every attack the test that covers the attack", () => {
    expect(attempts.length).toBeGreaterThan(60);
    expect(attempts.filter(({ cells }) => cells.length !== 3).map(({ cells }) => cells[0])).toEqual([]);
    expect(attempts.filter((row) => testsOf(row).length === 0).map(({ cells }) => cells[0])).toEqual([]);
  });

  it("names only tests with a `protects` tag", () => {
    const known = new Set(protections.map(nameOf));
    expect([...named].filter((each) => !known.has(each))).toEqual([]);
  });

  it("covers all code that tests of attacks and of the kill switch protect", () => {
    const about = protections.filter(({ section }) => section === "Attacks" || section === "The kill switch");
    expect(about.length).toBeGreaterThan(200);
    const tried = new Set(about.filter((each) => named.has(nameOf(each))).flatMap(({ code }) => code));
    expect(about.filter(({ code }) => !code.some((path) => tried.has(path))).map(nameOf)).toEqual([]);
  });
});

it("every alert code appears in a test", () => {
  const tests = testFiles().map(({ text }: { text: string }) => text);
  expect(ALERT_CODES.filter((code) => !tests.some((text) => text.includes(code)))).toEqual([]);
});
