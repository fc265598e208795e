/** Loads the built package in a process of its own, by every way that a host program has. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { describe, expect, it, onTestFinished } from "vitest";
import { spawnScript } from "../support/node-process.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { exports, dependencies, peerDependencies } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as Readonly<
  Record<"exports" | "dependencies" | "peerDependencies", Readonly<Record<string, unknown>>>
>;
const SUBPATHS = Object.keys(exports).map((path) => path.replace(/^\./, "fencepost"));
/** Every module that the package exports, and the one that `createFencepost` loads when it is called. */
const MODULES = [...SUBPATHS.filter((path) => !path.endsWith(".json")), `${root}dist/main/library.js`];

async function run(...argv: readonly string[]) {
  const child = spawnScript(argv);
  const { code } = await child.exited;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

describe("the package", () => {
  it("is loaded by require from CommonJS, at every subpath, with the same exports as by import", async () => {
    const script = `(async () => {
      require("fencepost/package.json");
      for (const path of ${JSON.stringify(MODULES)}) {
        const required = Object.keys(require(path));
        const imported = Object.keys(await import(path));
        console.log(path, required.length > 0 && required.join() === imported.join());
      }
    })()`;
    expect(await run("--input-type=commonjs", "--no-warnings", "-e", script)).toEqual({
      ...{ code: 0, stderr: "" },
      stdout: MODULES.map((path) => `${path} true\n`).join(""),
    });
  });

  it("explains itself inside a bundle that keeps the URL of its module, as Next.js makes one", async () => {
    const { path, remove } = await makeTemporaryDirectory();
    onTestFinished(remove);
    const url = JSON.stringify(pathToFileURL(`${root}dist/main/create-fencepost.js`).href);
    const bundle = await rolldown({
      input: `${root}dist/index.js`,
      external: [/library\.js$/],
      transform: { define: { "import.meta.url": url } },
      ...{ platform: "node", logLevel: "silent", makeAbsoluteExternalsRelative: false },
    });
    await bundle.write({ file: join(path, "bundle.mjs") });
    await bundle.close();
    const script = `
      import { createFencepost } from ${JSON.stringify(pathToFileURL(join(path, "bundle.mjs")).href)};
      await createFencepost({}).catch(({ code, message }) => console.log(code, message));`;
    expect(await run("--input-type=module", "-e", script)).toEqual({
      ...{ code: 0, stderr: "" },
      stdout: expect.stringMatching(/^CONFIGURATION .*Mark fencepost as external .*serverExternalPackages/),
    });
  });

  it.each([
    ["--input-type=module", "-e"],
    ["--input-type", "module", "-e"],
  ])("signs in a thread if the host runs a script by %s %s", async (...flags) => {
    const script = `
      import { createLocalSigner } from "${pathToFileURL(`${root}dist/adapters/evm/signers/local-signer.js`)}";
      const signer = await createLocalSigner({ keys: { privateKeys: ["${"1".repeat(64)}"] } });
      console.log(signer.curve);
      await signer.close();`;
    expect(await run(...flags, script)).toEqual({ code: 0, stderr: "", stdout: "wasm\n" });
  });
});

/** Files that a program loads, by the coverage report that V8 writes when it ends. */
async function filesLoadedBy(...argv: readonly string[]): Promise<readonly string[]> {
  const { path, remove } = await makeTemporaryDirectory();
  onTestFinished(remove);
  const child = spawnScript(argv, { variables: { NODE_V8_COVERAGE: path } });
  expect(await child.exited).toEqual({ code: 0, signal: null });
  const reports = readdirSync(path).map((file) => JSON.parse(readFileSync(join(path, file), "utf8")));
  const urls = reports.flatMap(({ result }) => result as readonly { readonly url: string }[]).map(({ url }) => url);
  return urls.filter((url) => url.startsWith("file:"));
}

describe("the start time stays short, because", () => {
  it.each<readonly [name: string, most: number, argv: readonly string[]]>([
    // 14 files and 0.10 s of processor time on Node 20, of which Node itself takes 0.08. Limit: 0.4 s.
    ['import "fencepost"', 40, ["--input-type=module", "-e", 'import "fencepost";']],
    // 30 files and 0.15 s. Limit: 0.2 s.
    ["fencepost --help", 45, [`${root}bin/fencepost.js`, "--help"]],
  ])("%s loads at most %i files", async (_, most, argv) => {
    const files = await filesLoadedBy(...argv);
    expect(files.length).toBeGreaterThan(5);
    expect(files.length).toBeLessThanOrEqual(most);
  });
});

describe("the compiled library", () => {
  it("imports only packages that npm installs with it, or that are optional peers", () => {
    const seen = new Set<string>();
    const packages = new Set<string>();
    const read = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      const code = readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
      for (const [, from = "", loaded = from, thread = loaded] of code.matchAll(LOADED)) {
        if (thread.startsWith(".")) read(join(file, "..", thread));
        else if (!thread.startsWith("node:")) packages.add((/^(?:@[^/]+\/)?[^/]+/.exec(thread) ?? [thread])[0]);
      }
    };
    for (const target of Object.values(exports)) {
      if (typeof target === "object") read(join(root, (target as { readonly default: string }).default));
    }
    expect(seen.size).toBeGreaterThan(400);
    const installed = [...Object.keys(dependencies), ...Object.keys(peerDependencies)];
    expect([...packages].filter((name) => !installed.includes(name))).toEqual([]);
    // A bundle of viem's functions is part of the package, and viem itself is not loaded.
    expect([...packages]).not.toContain("viem");
    expect([...seen].filter((file) => file.includes("/dist/packages/")).length).toBeGreaterThan(1);
  });
});

/** The specifier of an import, an export, a dynamic import, or a file that is started as a thread. */
const LOADED = /\b(?:from|import) "([^"]+)"|\bimport\(\s*"([^"]+)"|new URL\("(\.[^"]+\.js)"/g;
