import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { blocksOf } from "../architecture/rules/vocabulary.ts";
import { listFiles, ROOT, readText } from "../architecture/tree.ts";

const TSC = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
/** A folder inside the repository, so that packages are found as from any of its files. */
const place = mkdtempSync(join(ROOT, "node_modules/.types-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** Built declarations of the package's entries: a caller compiles against them, and sources take ten times as long. */
const paths = Object.fromEntries(
  Object.entries(manifest.exports).flatMap(([entry, files]) =>
    typeof files === "string" ? [] : [[entry.replace(/^\./, "fencepost"), [join(ROOT, files.types)]] as const],
  ),
);

/**
 * The real compiler's errors for each of these files, with the repository's settings. All are compiled in one run,
 * because each run reads viem's types.
 */
function complaints(files: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = Object.keys(files);
  for (const name of names) writeFileSync(join(place, name), files[name] ?? "");
  const compilerOptions = { noEmit: true, noUnusedLocals: false, paths };
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, include: [], files: names };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify(config));
  return new Promise((resolve) =>
    execFile(process.execPath, [TSC, "-p", place, "--pretty", "false"], { cwd: place }, (_, stdout) => {
      const said = stdout.split("\n").filter((line) => line !== "");
      const byFile = names.map((name) => [name, said.filter((line) => line.startsWith(`${name}(`))] as const);
      const others = said.filter((line) => !/^\s/.test(line) && !names.some((name) => line.startsWith(`${name}(`)));
      resolve(new Map([...byFile, ["elsewhere", others]]));
    }),
  );
}

const mistakes = readFileSync(new URL("mistakes.ts", import.meta.url), "utf8")
  .replaceAll("../../src/client/index.ts", "fencepost/client")
  .replaceAll("../../src/index.ts", "fencepost")
  .replaceAll("../../src/main/config/define.ts", "fencepost/config");

/** Matches one mistake: its marker, the statement that must not compile, and the comment with its correct twin. */
const MISTAKE = /^ {2}\/\/ @ts-expect-error (.*)\n([\s\S]*?)^ {2}\/\/: (.*)$/gm;
const LEAST_MISTAKES = 60;

/** Types of the names that snippets use without declaring them. A reader of the page would have such values. */
const GIVEN: Readonly<Record<string, string>> = {
  client: "import('pg').Client",
  order: "{ readonly id: string; readonly total: string }",
  signer: "import('viem').Address",
  token: "import('viem').Address",
  buyer: "import('viem').Address",
  to: "import('viem').Address",
  recipient: "import('viem').Address",
  apiKey: "string",
  secret: "string",
  txId: "string",
  amount: "bigint",
  lastSeen: "number",
  payload: "{ to: import('viem').Address; value: bigint }",
  book: "(completion: unknown) => Promise<void>",
  db: "{ query(text: string, values?: readonly unknown[]): Promise<{ rows: { seq: number; epoch: number }[] }> }",
  log: "(...words: unknown[]) => void",
  account: "import('viem').LocalAccount",
  content: "import('viem').TransactionSerializableEIP1559",
  chain: "import('viem').Chain",
  http: "typeof import('viem').http",
  createWalletClient: "typeof import('viem').createWalletClient",
  defineConfig: "typeof import('fencepost/config').defineConfig",
};
/** Types of names that have another type on some pages. */
const OF_PAGE: Readonly<Record<string, typeof GIVEN>> = {
  "docs/pools.md": { client: "ReturnType<typeof import('fencepost/client').createClient>" },
};
/**
 * Pages compiled as a whole in test/support/embed-guide.ts, or compiled and run by test/integration/snippets.test.ts.
 * Recipes are compiled against the libraries that they name by test/integration/documents/recipes.test.ts.
 */
const ELSEWHERE = ["docs/embed.md", "docs/viem.md", "docs/testing.md", "docs/recipes/"];

function asModule(path: string, code: string): string {
  // If the snippet is only a part of a configuration file, complete it.
  const whole = /^\w+: /.test(code) ? `export default defineConfig({ ${code} });` : code;
  const known: typeof GIVEN = { ...GIVEN, ...OF_PAGE[path] };
  const open = Object.keys(known).filter((name) => isUsed(name, whole) && !isDeclared(name, whole));
  const declared = open.map((name) => `declare const ${name}: ${known[name]};`);
  return `${declared.join("\n")}\n${whole}\nexport {};\n`;
}

const isUsed = (name: string, code: string) => new RegExp(`\\b${name}\\b`).test(code);
const isDeclared = (name: string, code: string) =>
  new RegExp(`(const|let) (${name}\\b|[{[][^}\\]=]*\\b${name}\\b)|import [^;]*\\b${name}\\b[^;]*;`).test(code);

function snippetsOf(path: string): Readonly<Record<string, string>> {
  const name = (at: number) => `${path.replaceAll(/[^a-zA-Z]/g, "-")}-${at}.ts`;
  return Object.fromEntries(blocksOf(readText(path), "ts").map((code, at) => [name(at), asModule(path, code)]));
}

const pages = ["README.md", ...listFiles("docs")].filter(
  (path) => path.endsWith(".md") && !ELSEWHERE.some((page) => path.startsWith(page)),
);

describe("the TypeScript compiler", () => {
  const snippets = Object.assign({}, ...pages.map(snippetsOf)) as Readonly<Record<string, string>>;
  const loose = mistakes.replace("vlaue: 1n", "value: 1n");
  const twins = mistakes.replaceAll(MISTAKE, "  $3");
  let said: ReadonlyMap<string, readonly string[]>;
  beforeAll(async () => {
    said = await complaints({ "mistakes.ts": mistakes, "loose.ts": loose, "twins.ts": twins, ...snippets });
  });

  // protects [The SDK and the library] src/contract/schemas/typed-payload.ts, src/client/face.ts
  it("rejects exactly the deliberate mistakes in the type tests", () => {
    const planted = [...mistakes.matchAll(MISTAKE)];
    expect(planted.length).toBeGreaterThanOrEqual(LEAST_MISTAKES);
    expect(mistakes.match(/@ts-expect-error/g)).toHaveLength(planted.length);
    expect(said.get("mistakes.ts")).toEqual([]);
    expect(said.get("elsewhere")).toEqual([]);
  });

  it("accepts the correct twin of every mistake", () => {
    expect(twins).not.toMatch(/@ts-expect-error|\/\/: /);
    expect(said.get("twins.ts")).toEqual([]);
  });

  it("reports an unused @ts-expect-error if a type has become too loose", () => {
    expect(said.get("loose.ts")).toEqual([expect.stringMatching(/Unused '@ts-expect-error' directive/)]);
  });

  it("accepts every snippet of README.md and docs/", () => {
    const names = Object.keys(snippets);
    expect(names.length).toBeGreaterThan(15);
    expect(names.flatMap((name) => said.get(name) ?? [])).toEqual([]);
  });
});
