import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ALERT_CODES } from "../../../src/domain/troubles/table.ts";

const runbook = readFileSync(new URL("../../../docs/operations/alerts.md", import.meta.url), "utf8");

describe("the runbook docs/operations/alerts.md", () => {
  const sections = runbook.split(/^## /m).slice(1);

  // protects [Explained, and said aloud] docs/operations/alerts.md, src/domain/troubles/table.ts
  it("has one section for every alert code, in order", () => {
    expect(sections.map((section) => section.split("\n")[0])).toEqual([...ALERT_CODES].sort());
  });

  it.each(sections.map((section) => [section.split("\n")[0], section]))(
    "explains what the alert %s means and what the operator must do",
    (_, section) => {
      for (const part of ["**Means** ", "**Fencepost** ", "**You** "]) expect(section).toContain(part);
    },
  );
});
