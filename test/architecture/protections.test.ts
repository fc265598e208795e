import { describe, expect, it } from "vitest";
import { ALERT_CODES } from "../../src/domain/alerts.ts";
import { listFiles, readText } from "./tree.ts";

const files = new Set(["src", "test"].flatMap((folder) => listFiles(folder)));
const page = readText("docs/protections.md");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| promise") && !line.startsWith("| ---"))
  .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")));

/** `test/a.test.ts`: "one", "another"; `test/b.test.ts`: "a third" */
function named(cell: string): readonly (readonly [file: string, title: string])[] {
  return cell.split("`test/").flatMap((part, index) => {
    if (index === 0) return [];
    const [file = "", titles = ""] = part.split("`: ");
    return [...titles.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => [`test/${file}`, title] as const);
  });
}

describe("the page of protections", () => {
  it("has a place in the code and a test on every line", () => {
    expect(rows.length).toBeGreaterThan(80);
    for (const [promise = "", code = "", tests = ""] of rows) {
      expect(
        [...code.matchAll(/`(src\/[^`]+)`/g)].map(([, path]) => path),
        promise,
      ).not.toEqual([]);
      expect(named(tests), promise).not.toEqual([]);
    }
  });

  it("names only tests that exist", () => {
    const all = rows.flatMap(([, , tests = ""]) => named(tests));
    expect(all.filter(([file, title]) => !files.has(file) || !readText(file).includes(title))).toEqual([]);
  });
});

it("every alert is asked for by a test", () => {
  const tests = [...files].filter((path) => /^test\/.*\.ts$/.test(path)).map(readText);
  expect(ALERT_CODES.filter((code) => !tests.some((text) => text.includes(code)))).toEqual([]);
});
