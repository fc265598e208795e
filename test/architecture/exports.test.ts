import { describe, expect, it } from "vitest";
import { entryFiles } from "./package.ts";
import { deadExports } from "./rules/exports.ts";
import { parseSource, readCode } from "./tree.ts";

describe("the source tree", () => {
  it("has no unused export", () => {
    const source = readCode("src");
    const files = [...source, ...readCode("test"), ...readCode("bench"), ...readCode("scripts")];
    expect(deadExports(source, { files, entries: entryFiles() })).toEqual([]);
  });
});

describe("the check of exports", () => {
  it("finds an unused export", () => {
    const files = [
      parseSource("src/domain/a.ts", "export const used = 1; export function dead() {} export const own = used;"),
      parseSource("src/domain/b.ts", `import { own } from "./a.ts"; export class Dead {} export interface Shape {}`),
    ];
    expect(deadExports(files, { files, entries: [] })).toEqual(["src/domain/a.ts: dead", "src/domain/b.ts: Dead"]);
  });
});
