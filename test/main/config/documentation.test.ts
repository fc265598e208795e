import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CHAIN_SETTING_KEYS, SETTING_KEYS, SETTINGS } from "../../../src/main/config/schema.ts";
import type { Setting } from "../../../src/main/config/setting.ts";

const sections = new Map(
  readFileSync("docs/configuration.md", "utf8")
    .split(/^## /m)
    .map((section) => [section.split("\n", 1)[0] ?? "", section]),
);
const rows = (section: string) =>
  [...(sections.get(section) ?? "").matchAll(/^\| `(\w+)` \| `(FENCEPOST_\w+)` \| (.*?) \| .+ \|$/gm)].map(
    ([, key = "", variable = "", fallback = ""]) => ({ key, variable, fallback }),
  );
const expected = (keys: readonly (keyof typeof SETTINGS)[]) =>
  keys.map((key) => {
    const setting: Setting<unknown> = SETTINGS[key];
    return { key, variable: setting.variable, fallback: setting.show(setting.fallback) };
  });
const byKey = (a: { key: string }, b: { key: string }) => a.key.localeCompare(b.key);

describe("docs/configuration.md", () => {
  it("lists every setting with its variable and default, and no other", () => {
    const documented = [...sections.keys()].flatMap(rows);
    expect(documented.sort(byKey)).toEqual(expected(SETTING_KEYS).sort(byKey));
  });

  it("lists under Chains exactly the settings of a chain", () => {
    expect(rows("Chains").sort(byKey)).toEqual(expected(CHAIN_SETTING_KEYS).sort(byKey));
  });
});
