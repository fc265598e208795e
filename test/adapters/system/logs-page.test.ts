import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { loggedFields } from "../../support/logged-fields.ts";

const page = readFileSync("docs/logs.md", "utf8");
const section = (title: string): string => page.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? "";
const names = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
const rows = (title: string) =>
  section(title)
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.slice(2, -2).split(" | "));

describe("docs/logs.md", () => {
  it("lists every log event with its fields, and no other", () => {
    const documented = rows("Events").map(([event = "", , fields = ""]) => [names(event)[0], names(fields)]);
    expect(documented).toEqual([...loggedFields()].map(([event, fields]) => [event, fields]));
    expect(documented.length).toBeGreaterThan(40);
  });

  it("explains every field", () => {
    const explained = new Set(rows("Fields").flatMap(([field = ""]) => names(field)));
    const fields = [...loggedFields().values()].flat();
    expect(fields.filter((field) => !explained.has(field))).toEqual([]);
  });
});
