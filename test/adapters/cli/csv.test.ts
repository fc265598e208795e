import { describe, expect, it } from "vitest";
import { csvOf } from "../../../src/adapters/cli/table.ts";

describe("CSV of the command line", () => {
  it("quotes commas, quotes and line breaks", () => {
    const rows = [
      { a: 'x "y"', b: "1,2" },
      { a: "two\nlines", b: null },
    ];
    expect(csvOf(["a", "b"], rows)).toBe('a,b\n"x ""y""","1,2"\n"two\nlines",\n');
  });

  it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＠SUM(A1)"])(
    "makes no formula of the caller's text %j",
    (text) => {
      const cell = csvOf(["a"], [{ a: text }], false);
      expect(cell.replace(/^"/, "")).toMatch(/^'/);
    },
  );

  it("leaves numbers as they are", () => {
    expect(csvOf(["a", "b"], [{ a: -0.5, b: "12" }], false)).toBe("-0.5,12\n");
  });
});
