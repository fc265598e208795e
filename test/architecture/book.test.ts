/** Checks docs/ as a book: every page is in the contents, names only what exists, and its examples can be parsed. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { pagePath, siteLink } from "../../docs/.vitepress/page-paths.ts";
import { CHAPTERS } from "../../docs/.vitepress/sidebar.ts";
import { createMetrics } from "../../src/adapters/system/metrics.ts";
import { ROUTES } from "../../src/contract/routes.ts";
import { ceilingsOf } from "../../src/domain/fees/ceilings.ts";
import { knownGasCap } from "../../src/domain/fees/gas.ts";
import { STATES, SUB_STATES } from "../../src/domain/transaction/transitions.ts";
import { SETTING_KEYS, SETTINGS } from "../../src/main/config/schema.ts";
import type { Setting } from "../../src/main/config/setting.ts";
import { readPackage } from "./package.ts";
import { blocksOf, brokenJson, unknownNames, type Vocabulary } from "./rules/vocabulary.ts";
import { listFiles, readText } from "./tree.ts";

const pages = [...listFiles("docs"), "README.md", "ARCHITECTURE.md"].filter((path) => path.endsWith(".md"));
const listed = CHAPTERS.flatMap((chapter) => chapter.pages.map(([, path]) => path));

const vocabulary: Vocabulary = {
  routes: ROUTES.map(({ method, path }) => `${method} ${path}`),
  words: new Set(
    listFiles("src")
      .filter((path) => /\.(ts|sql)$/.test(path))
      .flatMap((path) => readText(path).match(/\b[A-Z][A-Z0-9_]{2,}\b/g) ?? []),
  ),
  metrics: new Set(
    [...(await createMetrics({ processMetrics: false }).expose()).body.matchAll(/^# TYPE (\w+) /gm)].map(
      ([, name = ""]) => name,
    ),
  ),
};

describe("the table of contents of the documentation site", () => {
  it("lists every page of docs/ once", () => {
    expect(listFiles("docs").filter((path) => path.endsWith(".md") && !listed.includes(path))).toEqual([]);
    expect(listed.filter((path, at) => listed.indexOf(path) !== at)).toEqual([]);
  });

  it("maps file links to site pages", () => {
    const known = new Set(["docs/README.md", "docs/errors.md", "docs/operations/alerts.md", "ARCHITECTURE.md"]);
    expect(pagePath("docs/README.md")).toBe("index.md");
    const links = [
      ["docs/operations/alerts.md", "../errors.md#again", "/errors#again"],
      ["docs/errors.md", "README.md", "/"],
      ["docs/errors.md", "../ARCHITECTURE.md", "/project/ARCHITECTURE"],
      ["docs/errors.md", "../src/domain/errors.ts", ""],
      ["docs/errors.md", "#here", null],
      ["docs/errors.md", "https://example.org/a.md", null],
    ] as const;
    for (const [from, href, expected] of links) expect(siteLink(from, href, known)).toBe(expected);
  });
});

describe("the documentation site", () => {
  it("is not part of the published package", () => {
    const { files } = readPackage();
    expect(files).toEqual(expect.arrayContaining(["docs", "!docs/.vitepress", "!docs/node_modules"]));
  });
});

describe("the documentation pages", () => {
  it.each(pages)("name only routes, codes, states and metrics that exist: %s", (path) => {
    expect(unknownNames(readText(path), vocabulary)).toEqual([]);
  });

  it.each(pages)("contain valid JSON in their json blocks: %s", (path) => {
    expect(brokenJson(readText(path))).toEqual([]);
  });

  it.each(pages.filter((path) => blocksOf(readText(path), "sh").length > 0))(
    "contain valid shell syntax in their sh blocks: %s",
    (path) => {
      const script = blocksOf(readText(path), "sh").join("\n");
      expect(() => execFileSync("bash", ["-n"], { input: script, stdio: "pipe" })).not.toThrow();
    },
  );

  it("have a test for every page with sh blocks", () => {
    const tests = listFiles("test")
      .filter((path) => /\.test\.ts$/.test(path) && !path.startsWith("test/architecture/"))
      .map(readText)
      .join("\n");
    const unrun = pages.filter((path) => blocksOf(readText(path), "sh").length > 0 && !tests.includes(path));
    expect(unrun).toEqual([]);
  });

  it("declare a language for every code block", () => {
    const openings = (text: string) => (text.match(/^```.*$/gm) ?? []).filter((_, at) => at % 2 === 0);
    expect(pages.filter((path) => openings(readText(path)).includes("```"))).toEqual([]);
  });

  it.each([
    ["`POST /api/v1/gone`"],
    ["`DELETE /tx`"],
    ["`GET /api/v1/tx/completion`"],
    ["```sh\ncurl http://127.0.0.1:3000/api/v1/gone\n```"],
    ["`POST /api/v1/signers/{signer}/{suspend,gone}`"],
    ["`GONE_CODE`"],
    ["`TRACKING/CONFIRMED`"],
    ["`fencepost_gone_total`"],
  ])("are refused if they name something that does not exist: %j", (text) => {
    expect(unknownNames(text, vocabulary)).toHaveLength(1);
  });

  it.each([
    ["`GET /api/v1/tx/{txId}/explain`, `POST /tx`, `GET /readyz?chain=10`, `POST /nonces/{id}/used`"],
    ["`POST /api/v1/signers/{signer}/{suspend,resume}`, <http://127.0.0.1:3000/docs>, http://127.0.0.1:3000"],
    ["`STUCK`, `TRACKING/MINED`, `NO_CODE`, `fencepost_lease_fenced_total`, `fencepost_getTransaction`"],
  ])("are accepted if everything they name exists: %j", (text) => {
    expect(unknownNames(text, vocabulary)).toEqual([]);
  });

  it("are refused if a JSON block is broken", () => {
    expect(brokenJson('```json\n{ "a": 1, }\n```\n```json\n{"a":1}\n{"b":2}\n```\n')).toHaveLength(1);
  });
});

describe("docs/states.md", () => {
  it("lists every state, and every sub-state under its state", () => {
    const text = readText("docs/states.md");
    const [states = "", words = ""] = text.split("## The second word");
    expect([...states.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, state]) => state).sort()).toEqual([...STATES].sort());
    const pairs = [...words.matchAll(/^\| `([A-Z_]+)` \| `([A-Z_]+)` \|/gm)].map(
      ([, state, word]) => `${state}/${word}`,
    );
    expect(pairs.sort()).toEqual(STATES.flatMap((state) => SUB_STATES[state].map((word) => `${state}/${word}`)).sort());
  });
});

describe("docs/guides/finality.md", () => {
  const rows = [
    ...readText("docs/guides/finality.md").matchAll(
      /^\| ([^|]+) \| (\d+) \| [^|]+ \| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| (yes|no) \|$/gm,
    ),
  ];
  const byVariable = new Map<string, Setting<unknown>>(
    SETTING_KEYS.map((key) => [SETTINGS[key].variable, SETTINGS[key]]),
  );

  it("lists fifteen chains", () => {
    expect(new Set(rows.map(([, , id]) => id)).size).toBe(15);
  });

  it.each(rows.map(([, name = "", id, set = "", fee, cost, cap]) => ({ name, id: Number(id), set, fee, cost, cap })))(
    "states for $name what the code does",
    ({ id, set, fee, cost, cap }) => {
      const { feePerGas, gasCost } = ceilingsOf(id, { maxFeeWei: null, maxGasCostWei: null, maxCostWei: null });
      expect([Number(fee), Number(cost)]).toEqual([Number(feePerGas) / 1e9, Number(gasCost) / 1e18]);
      expect(cap).toBe(knownGasCap(id) === null ? "no" : "yes");
      for (const [, variable = "", value = ""] of set.matchAll(/`(\w+)=(\w+)`/g)) {
        expect(byVariable.get(variable)?.parse(value)).toHaveProperty("value");
      }
    },
  );
});
