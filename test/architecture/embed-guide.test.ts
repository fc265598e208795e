import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const lines = (text: string) => text.split("\n").map((line) => line.trim());

describe("docs/embed.md", () => {
  it("shows only code that is compiled in test/support/embed-guide.ts", () => {
    const compiled = lines(read("test/support/embed-guide.ts")).join("\n");
    const snippets = [...read("docs/embed.md").matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code.trim());
    expect(snippets).toHaveLength(9);
    for (const snippet of snippets) expect(compiled).toContain(lines(snippet).join("\n"));
  });
});
