/**
 * Runs every snippet of the documentation pages about the first steps, migration, the SDK, embedding, testing, viem and
 * ethers, JSON-RPC, pools and time, in a separate directory. `npm run test:pack` does the same with the package as npm would
 * publish and install it. It also runs a typed script of ten lines, and compiles everything against the package's
 * types.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { spawnScript } from "../support/node-process.ts";
import { blocksOf, openSnippets } from "../support/open-snippets.ts";
import { linkPackages, npmInstall, pack } from "../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<
  "dependencies" | "devDependencies" | "peerDependencies",
  Readonly<Record<string, string>>
>;
/** Packages that a user installs beside Fencepost. */
const BESIDE = ["typescript", "@types/node", ...Object.keys(manifest.peerDependencies)];
/** Database libraries of the page about embedding: a caller sends inside a transaction of such a library. */
const OF_CALLERS = ["pg", "drizzle-orm", "kysely", "knex", "postgres"];
const IS_LONG = process.env.FENCEPOST_PACK_LONG !== undefined;

const TEN_LINES = `
import { type Address, createClient } from "fencepost/client";
import { startFencepost } from "fencepost/testing";

const stack = await startFencepost();
const client = createClient({ url: stack.url });
const [signer, to] = stack.signers as [Address, Address];
const { txId, nonce } = await client.send({ signer, requestId: "order-42", payload: { to, value: "1" } });
const { state, txHash } = await client.waitFor(txId);
console.log(JSON.stringify({ ready: true, nonce, state, txHash }));
await stack.stop();
`;

/** Compiler options without type checking: the compiler only strips types, which is fast. */
const UNCHECKED = { noCheck: true, noResolve: true, types: [] };
const TSCONFIG = {
  compilerOptions: {
    ...{ module: "nodenext", target: "es2023", strict: true, outDir: "out", types: ["node"] },
    ...(IS_LONG ? {} : UNCHECKED),
  },
  include: ["*.ts"],
};

let directory: TemporaryDirectory;
let stack: Stack;

/** The snippets of a page, with the stack's addresses instead of those of `fencepost dev`. */
function snippetsOf(page: string): readonly (readonly [name: string, text: string])[] {
  return blocksOf(page).map((text, index) => [
    `${page.replace(".md", "").replace("/", "-")}-${index}`,
    text.replaceAll("http://127.0.0.1:3000", stack.url),
  ]);
}

function install(): void {
  const versions = { ...manifest.dependencies, ...manifest.devDependencies };
  npmInstall(directory.path, [
    pack(directory.path),
    ...[...BESIDE, ...OF_CALLERS].map((name) => `${name}@${versions[name]}`),
  ]);
}

beforeAll(async () => {
  directory = await makeTemporaryDirectory();
  stack = await startFencepost({ pools: { payouts: [1, 2] } });
  writeFileSync(join(directory.path, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
  if (IS_LONG) install();
  else linkPackages(directory.path, ["viem", "ethers", "@types/node", ...OF_CALLERS]);
  const pages = ["testing.md", "viem.md", "guides/start.md", "guides/migration.md"].flatMap(snippetsOf);
  const snippets = [...pages, ["ten-lines", TEN_LINES] as const];
  for (const [name, text] of snippets) writeFileSync(join(directory.path, `${name}.ts`), text);
  writeFileSync(join(directory.path, "tsconfig.json"), JSON.stringify(TSCONFIG));
}, 300_000);
afterAll(async () => {
  await stack?.stop();
  await directory?.remove();
});

const run = async (script: string) => {
  const child = spawnScript([script], { directory: directory.path });
  const { code } = await child.exited;
  expect({ code, said: `${child.stdout()}${child.stderr()}` }).toEqual({ code: 0, said: expect.any(String) });
  return child.stdout();
};

/**
 * Matches types in snippets that are run without a compiler: `as const`, `const store: FeedStore`, `type FeedStore` in
 * an import.
 */
const TYPES = / as const|(?<=const \w+): [A-Z]\w+|, type \w+/g;

const LONG: readonly [name: string, said: RegExp][] = [
  ["testing-0", /^CONFIRMED$/m],
  ["ten-lines", /"nonce":0,"state":"CONFIRMED"/],
];

describe("the package, used as in the documentation,", () => {
  beforeAll(async () => {
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const compiled = spawnScript([tsc, "-p", "."], { directory: directory.path });
    expect({ ...(await compiled.exited), said: compiled.stdout() }).toMatchObject({ code: 0, said: "" });
  });

  it("runs the snippets that need values from the test", async () => {
    const open = openSnippets(stack);
    expect(open).toHaveLength(10);
    for (const { name, text, said } of open) {
      // Snippets that use undeclared names are not compiled, because the test inserts values for these names that are
      // not TypeScript.
      writeFileSync(join(directory.path, `${name}.mjs`), text.replaceAll(TYPES, ""));
      expect(await run(`${name}.mjs`), name).toMatch(said);
    }
  }, 180_000);

  it.each([
    ["viem-0", /^success CONFIRMED$/m],
    ["viem-1", /^0x[0-9a-f]{64}$/m],
    ["viem-2", /^1\nfunction$/m],
    ["testing-1", /^# pass 1$/m],
    ["guides-start-0", /CONFIRMED null\nCONFIRMED \d+$/m],
    ["guides-migration-0", /^0x[0-9a-f]{64}$/m],
    ...(IS_LONG ? LONG : []),
  ])("runs the snippet %s", async (name, said) => {
    expect(await run(join("out", `${name}.js`))).toMatch(said);
  });
});
