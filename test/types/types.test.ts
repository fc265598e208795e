import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ROOT } from "../architecture/tree.ts";

const TSC = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
/** Inside the tree, so that packages are found as from any file of it. */
const place = mkdtempSync(join(ROOT, "node_modules/.types-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** What the real compiler says of these files, in the settings of the tree. */
function complaints(files: Readonly<Record<string, string>>): Promise<string> {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
  const paths = { fencepost: [join(ROOT, "src/index.ts")], "fencepost/client": [join(ROOT, "src/client/index.ts")] };
  const compilerOptions = {
    noEmit: true,
    noUnusedLocals: false,
    paths,
    typeRoots: [join(ROOT, "node_modules/@types")],
  };
  const names = Object.keys(files);
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, include: [], files: names };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify(config));
  return new Promise((resolve) =>
    execFile(process.execPath, [TSC, "-p", place, "--pretty", "false"], (_, stdout) => resolve(stdout)),
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
  const blocks = [...readFileSync(join(ROOT, path), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)];
  const names = blocks.map((_, at) => `${path.replaceAll(/[^a-zA-Z]/g, "-")}-${at}.ts`);
  return Object.fromEntries(blocks.map(([, code = ""], at) => [names[at], `${PRELUDE}\n${code}\nexport {};\n`]));
}

describe("the compiler", () => {
  it("refuses every planted mistake, in the library and in the SDK, and nothing else", async () => {
    expect(mistakes.match(/@ts-expect-error/g)?.length).toBeGreaterThan(20);
    expect(await complaints({ "mistakes.ts": mistakes })).toBe("");
  });

  it("would say so where a type had become loose", async () => {
    const loose = mistakes.replace("vlaue: 1n", "value: 1n");
    expect(await complaints({ "loose.ts": loose })).toMatch(/Unused '@ts-expect-error' directive/);
  });

  it("takes the snippets of README.md and docs/sdk.md", async () => {
    const snippets = { ...snippetsOf("README.md"), ...snippetsOf("docs/sdk.md") };
    expect(Object.keys(snippets).length).toBeGreaterThan(5);
    expect(await complaints(snippets)).toBe("");
  });
});
