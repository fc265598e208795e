import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { OFFERED_ACTIONS } from "../../../src/domain/troubles/situation.ts";
import { CAUSE_CODES, HELP_CODES, TROUBLES } from "../../../src/domain/troubles/table.ts";

const page = readFileSync(new URL("../../../docs/explain.md", import.meta.url), "utf8");
const [, causes = "", help = ""] = page.split(/^## (?:Causes|Help)$/m);
const rows = (table: string): readonly (readonly string[])[] =>
  [...table.matchAll(/^\| `([A-Z_]+)` \| .* \| (.*) \|$/gm)].map(([, code = "", last = ""]) => [
    code,
    ...[...last.matchAll(/`(\w+)`/g)].map(([, word = ""]) => word),
  ]);

describe("docs/explain.md", () => {
  // protects [Explained, and said aloud] docs/explain.md, src/domain/troubles/table.ts
  it("lists every cause with its remedies", () => {
    const documented = Object.fromEntries(rows(causes).map(([code = "", ...helps]) => [code, helps]));
    expect(documented).toEqual(Object.fromEntries(CAUSE_CODES.map((code) => [code, TROUBLES[code].helps])));
    expect(rows(causes).length).toBe(CAUSE_CODES.length);
  });

  // protects [Explained, and said aloud] docs/explain.md, src/domain/troubles/table.ts
  it("lists every remedy and every action", () => {
    const documented = rows(help);
    expect(documented.map(([code]) => code).sort()).toEqual([...HELP_CODES].sort());
    expect(new Set(documented.flatMap(([, ...actions]) => actions))).toEqual(new Set(OFFERED_ACTIONS));
  });
});
