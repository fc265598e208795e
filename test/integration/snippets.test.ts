/**
 * Every snippet of the pages about testing, viem and ethers, run in a directory of its own. `npm run test:pack` is the long
 * form: the package as npm would publish it, installed by npm, with a typed script of ten lines, all compiled against its types.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { spawnScript } from "../support/node-process.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<
  "dependencies" | "devDependencies" | "peerDependencies",
  Readonly<Record<string, string>>
>;
/** What a user has beside Fencepost. */
const BESIDE = ["typescript", "@types/node", "viem", ...Object.keys(manifest.peerDependencies)];
const IS_LONG = process.env.FENCEPOST_PACK_LONG !== undefined;

const TEN_LINES = `
import { createClient } from "fencepost/client";
import { startFencepost } from "fencepost/testing";

const stack = await startFencepost();
const client = createClient({ url: stack.url });
const [signer, to] = stack.signers as [string, string];
const { txId, nonce } = await client.send({ signer, requestId: "order-42", payload: { to, value: "1" } });
const { state, txHash } = await client.waitFor(txId);
console.log(JSON.stringify({ ready: true, nonce, state, txHash }));
await stack.stop();
`;

/** Without types to look at, compiling is only leaving them out, in a moment. */
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

/** The blocks of a page, on the stack's addresses instead of those of \`fencepost dev\`. */
function snippetsOf(page: string): readonly (readonly [name: string, text: string])[] {
  const blocks = [...readFileSync(join(root, "docs", page), "utf8").matchAll(/^```ts\n(.*?)^```/gms)];
  return blocks.map(([, text = ""], index) => [
    `${page.replace(".md", "")}-${index}`,
    text.replaceAll("http://127.0.0.1:3000", stack.url).replaceAll("http://127.0.0.1:8545", stack.rpcUrl),
  ]);
}

/** As npm would publish it, from the registry or its cache. */
function install(): void {
  const pack = ["pack", "--ignore-scripts", "--silent", "--pack-destination", directory.path];
  const tarball = execFileSync("npm", pack, { cwd: root, encoding: "utf8" }).trim();
  const versions = { ...manifest.dependencies, ...manifest.devDependencies };
  const packages = BESIDE.map((name) => `${name}@${versions[name]}`);
  const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  execFileSync("npm", ["install", ...options, `./${tarball}`, ...packages], { cwd: directory.path, stdio: "pipe" });
}

function link(): void {
  const modules = join(directory.path, "node_modules");
  mkdirSync(join(modules, "@types"), { recursive: true });
  symlinkSync(root, join(modules, "fencepost"));
  for (const name of ["viem", "ethers", "@types/node"])
    symlinkSync(join(root, "node_modules", name), join(modules, name));
}

beforeAll(async () => {
  directory = await makeTemporaryDirectory();
  stack = await startFencepost();
  writeFileSync(join(directory.path, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }));
  if (IS_LONG) install();
  else link();
  const snippets = [...snippetsOf("testing.md"), ...snippetsOf("viem.md"), ["ten-lines", TEN_LINES] as const];
  for (const [name, text] of snippets) writeFileSync(join(directory.path, `${name}.ts`), text);
  writeFileSync(join(directory.path, "tsconfig.json"), JSON.stringify(TSCONFIG));
}, 300_000);
afterAll(async () => {
  await stack?.stop();
  await directory?.remove();
});

const run = async (name: string) => {
  const child = spawnScript([join("out", `${name}.js`)], { directory: directory.path });
  const { code } = await child.exited;
  expect({ code, said: `${child.stdout()}${child.stderr()}` }).toEqual({ code: 0, said: expect.any(String) });
  return child.stdout();
};

const LONG: readonly [name: string, said: RegExp][] = [
  ["testing-0", /^CONFIRMED$/m],
  ["ten-lines", /"nonce":0,"state":"CONFIRMED"/],
];

describe("the package", () => {
  beforeAll(async () => {
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const compiled = spawnScript([tsc, "-p", "."], { directory: directory.path });
    expect({ ...(await compiled.exited), said: compiled.stdout() }).toMatchObject({ code: 0, said: "" });
  });

  it.each([
    ["viem-0", /^success CONFIRMED$/m],
    ["viem-1", /^0x[0-9a-f]{64}$/m],
    ["viem-2", /^1\nfunction$/m],
    ["testing-1", /^# pass 1$/m],
    ...(IS_LONG ? LONG : []),
  ])("runs %s", async (name, said) => {
    expect(await run(name)).toMatch(said);
  });
});
