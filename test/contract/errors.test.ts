import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ERROR_CATALOGUE, REJECTION_REASONS } from "../../src/domain/errors.ts";

const text = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
const rows = [...text.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \| (\w+) \| (.+) \|$/gm)];
const reasons = [...text.matchAll(/^\| `([A-Z_]+)` \| ([^|]+) \|$/gm)].map((row) => row[1]);

describe("docs/errors.md and the error catalogue", () => {
  it("name the same codes, each with its status and whether a retry helps", () => {
    const documented = rows.map(([, code, status, retry]) => [code, { status: Number(status), retry }]);
    const catalogued = Object.entries(ERROR_CATALOGUE).map(([code, { status, retry }]) => [code, { status, retry }]);
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(catalogued));
    expect(documented).toHaveLength(catalogued.length);
  });

  it("name the same rejection reasons", () => {
    expect(reasons).toEqual([...REJECTION_REASONS]);
  });

  it("agree in the codes that the document's text names", () => {
    const known = new Set<string>([...Object.keys(ERROR_CATALOGUE), ...REJECTION_REASONS]);
    const named = [...text.matchAll(/`([A-Z]+(?:_[A-Z]+)*)`/g)].map((match) => match[1] ?? "");
    expect(named.filter((code) => !known.has(code))).toEqual([]);
  });
});
