import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../architecture/tree.ts";

const TSC = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
/** Inside the tree, so that packages are found as from any file of it. */
const place = mkdtempSync(join(ROOT, "node_modules/.types-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** What the real compiler says of each of these files, in the settings of the tree. Once for all: it reads viem's types each time. */
function complaints(files: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = Object.keys(files);
  for (const name of names) writeFileSync(join(place, name), files[name] ?? "");
  const paths = { fencepost: [join(ROOT, "src/index.ts")], "fencepost/client": [join(ROOT, "src/client/index.ts")] };
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
  .replaceAll("../../src/index.ts", "fencepost");

/** As a reader of the page would run them: what they leave open is declared. */
const PRELUDE = `
import type { Client } from "pg";
declare const client: Client;
declare const order: { readonly id: string; readonly total: string };
declare const signer: string, token: string, buyer: string, recipient: \`0x\${string}\`, signerKey: string, apiKey: string;
declare const amount: bigint, lastSeen: number, txId: string;
declare const book: (completion: unknown) => Promise<void>;
declare const db: { query(text: string, values?: readonly unknown[]): Promise<{ rows: { seq: number; epoch: number }[] }> };
declare const log: (...words: unknown[]) => void;
`;

function snippetsOf(path: string): Readonly<Record<string, string>> {
  // Of a wallet client, those are run by test/integration/snippets.test.ts.
  const all = [...readFileSync(join(ROOT, path), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)];
  const blocks = all.filter(([, code = ""]) => !code.includes("createWalletClient"));
  const names = blocks.map((_, at) => `${path.replaceAll(/[^a-zA-Z]/g, "-")}-${at}.ts`);
  return Object.fromEntries(blocks.map(([, code = ""], at) => [names[at], `${PRELUDE}\n${code}\nexport {};\n`]));
}

describe("the compiler", () => {
  const snippets = { ...snippetsOf("README.md"), ...snippetsOf("docs/sdk.md") };
  const loose = mistakes.replace("vlaue: 1n", "value: 1n");
  let said: ReadonlyMap<string, readonly string[]>;
  beforeAll(async () => {
    said = await complaints({ "mistakes.ts": mistakes, "loose.ts": loose, ...snippets });
  });

  it("refuses every planted mistake, in the library and in the SDK, and nothing else", () => {
    expect(mistakes.match(/@ts-expect-error/g)?.length).toBeGreaterThan(20);
    expect(said.get("mistakes.ts")).toEqual([]);
    expect(said.get("elsewhere")).toEqual([]);
  });

  it("would say so where a type had become loose", () => {
    expect(said.get("loose.ts")).toEqual([expect.stringMatching(/Unused '@ts-expect-error' directive/)]);
  });

  it("takes the snippets of README.md and docs/sdk.md", () => {
    const names = Object.keys(snippets);
    expect(names.length).toBeGreaterThan(5);
    expect(names.flatMap((name) => said.get(name) ?? [])).toEqual([]);
  });
});
