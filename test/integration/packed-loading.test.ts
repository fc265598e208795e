/**
 * `npm run test:pack`: a project installs the package as npm would publish it, loads it in each way that docs/embed.md
 * names, and sends a transaction from its own process.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { arch, platform } from "node:process";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { spawnProgram } from "../support/node-process.ts";
import { npmInstall, pack } from "../support/packed.ts";
import { makeTemporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const TOOLS = [
  "@arethetypeswrong/cli@0.18.5",
  "@types/node@20.19.43",
  "esbuild@0.28.2",
  "ethers@6.17.0",
  "jest@30.5.2",
  "publint@0.3.25",
  "ts-node@10.9.2",
  "tsx@4.23.15",
  "typescript@7.0.2",
  "typescript-5@npm:typescript@5.9.3",
  "viem@2.57.1",
  "vitest@4.1.12",
  "webpack@5.112.2",
];

/** Versions of Node that must load the package. npm has each as a package of the platform. */
const NODES = ["20.19.0", "22.23.3", "24.9.0"];
const nodePackage = (version: string) =>
  `node-${version}@npm:node-${platform === "darwin" ? "bin-" : ""}${platform}-${arch}@${version}`;

/** Sends one transaction and waits for its outcome. */
const SEND = `
  const { DATABASE, RPC, KEY, SIGNER } = process.env;
  const chains = [{ rpc: String(RPC), confirmations: 1 }];
  const fencepost = await createFencepost({ databaseUrl: String(DATABASE), chains, signers: [asHex(String(KEY))] });
  const signer = asAddress(String(SIGNER));
  const { txId } = await fencepost.send({ signer, payload: { to: signer, value: 1n } });
  const { state } = await fencepost.waitFor(txId);
  await fencepost.close();
  console.log(state);
`;
const NAMES = "{ asAddress, asHex, createFencepost }";
const IMPORT = `import ${NAMES} from "fencepost";`;
const ASYNC = `(async () => {${SEND}})().catch((error) => { console.error(error.message); process.exit(1); });`;
const reexports = (...paths: readonly string[]) =>
  paths.map((path) => `export * as ${path} from "fencepost/${path}";`).join("\n");
const BUNDLED = ["client", "viem", "ethers", "config"];
const TYPESCRIPT = { strict: true, target: "es2022", types: ["node"] };

const FILES: Readonly<Record<string, string>> = {
  "package.json": JSON.stringify({ name: "app", private: true, jest: { testTimeout: 60_000 } }),
  "imported.mjs": IMPORT + SEND,
  "subpaths.cjs": `
    const paths = ["client", "viem", "ethers", "testing", "config"];
    console.log(paths.map((path) => Object.keys(require("fencepost/" + path)).length > 0).join());`,
  "required.cjs": `const ${NAMES} = require("fencepost"); ${ASYNC}`,
  "static.test.mjs": `${IMPORT} test("sends", async () => {${SEND}});`,
  "app.test.js": `test("sends", async () => { const ${NAMES} = await import("fencepost"); ${SEND} });`,
  "app.spec.mjs": `import { test } from "vitest"; ${IMPORT} test("sends", async () => {${SEND}}, 60_000);`,
  "typed/app.ts": IMPORT + ASYNC,
  "typed/subpaths.ts": reexports("testing", ...BUNDLED),
  "bundled.mjs": reexports(...BUNDLED),
  "typed/nodenext.json": JSON.stringify({ compilerOptions: { ...TYPESCRIPT, module: "nodenext", outDir: "nodenext" } }),
  "typed/node10.json": JSON.stringify({
    compilerOptions: {
      ...{ ...TYPESCRIPT, module: "commonjs", moduleResolution: "node10", outDir: "node10" },
      // The types of the packages below are not all written for this old resolution.
      skipLibCheck: true,
    },
  }),
};

/** Scripts that need nothing but the package. */
const SCRIPTS = ["imported.mjs", "required.cjs"];

type Argv = readonly string[];

const TS_NODE = ["node_modules/ts-node/dist/bin.js", "-C", "typescript-5", "-P", "typed/node10.json"];

const tsc = (version: string, project: string) => [`node_modules/${version}/bin/tsc`, "-p", `typed/${project}.json`];

function esbuild(outfile: string, external: Argv, entry = "typed/app.ts"): Argv {
  const form = { bundle: true, platform: "node", format: outfile.endsWith(".mjs") ? "esm" : "cjs", logLevel: "error" };
  const options = { ...form, entryPoints: [entry], outfile: `dist/${outfile}`, external };
  return ["-e", `require("esbuild").buildSync(${JSON.stringify(options)})`];
}

function webpack(filename: string, externals: object): Argv {
  const form = { mode: "production", target: "node", entry: "./imported.mjs" };
  const options = { ...form, output: { filename }, externals };
  const check = "if (error || stats.hasErrors() || stats.hasWarnings()) throw error ?? new Error(stats.toString());";
  return ["-e", `require("webpack")(${JSON.stringify(options)}, (error, stats) => { ${check} })`];
}

let directory: TemporaryDirectory;
let stack: Stack;

async function node(argv: Argv, program = process.execPath, place = directory.path) {
  const { address, privateKey } = stack.strangers[0] as Stack["strangers"][number];
  const variables = { DATABASE: stack.databaseUrl, RPC: stack.rpcUrl, KEY: privateKey, SIGNER: address };
  const child = spawnProgram(program, argv, { directory: place, variables });
  const { code } = await child.exited;
  return { code, output: child.stdout() + child.stderr() };
}

beforeAll(async () => {
  directory = await makeTemporaryDirectory();
  stack = await startFencepost({ signers: 1 });
  mkdirSync(join(directory.path, "typed"));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(directory.path, name), text);
  npmInstall(directory.path, [pack(directory.path), ...TOOLS, ...NODES.map(nodePackage)]);
}, 600_000);
afterAll(async () => {
  await stack?.stop();
  await directory?.remove();
});

describe("the packed library sends a transaction if it is loaded by", () => {
  it.each<readonly [name: string, build: Argv | null, run: Argv]>([
    ["import in node -e", null, ["--input-type=module", "-e", IMPORT + SEND]],
    ["TypeScript compiled to CommonJS", tsc("typescript", "nodenext"), ["typed/nodenext/app.js"]],
    ["TypeScript 5 with node10 resolution", tsc("typescript-5", "node10"), ["typed/node10/app.js"]],
    ["tsx", null, ["node_modules/tsx/dist/cli.mjs", "typed/app.ts"]],
    ["ts-node", null, [...TS_NODE, "typed/app.ts"]],
    ["Vitest", null, ["node_modules/vitest/vitest.mjs", "run", "app.spec.mjs"]],
    ["Jest", null, ["--experimental-vm-modules", "node_modules/jest/bin/jest.js", "app.test.js"]],
    ["Jest in an ES module", null, ["--experimental-vm-modules", "node_modules/jest/bin/jest.js", "static.test.mjs"]],
    ["a bundle of esbuild in ESM", esbuild("external.mjs", ["fencepost"]), ["dist/external.mjs"]],
    ["a bundle of esbuild in CommonJS", esbuild("external.cjs", ["fencepost"]), ["dist/external.cjs"]],
    ["a bundle of webpack", webpack("webpack.cjs", { fencepost: "commonjs fencepost" }), ["dist/webpack.cjs"]],
  ])("%s", { timeout: 240_000 }, async (name, build, run) => {
    if (build !== null) expect(await node(build)).toEqual({ code: 0, output: "" });
    const said = /Jest|Vitest/.test(name) ? /CONFIRMED/ : /^CONFIRMED\n$/;
    expect(await node(run)).toEqual({ code: 0, output: expect.stringMatching(said) });
  });
});

describe.each(NODES)("the packed library on Node %s", (version) => {
  const program = () => join(directory.path, `node_modules/node-${version}/bin/node`);

  it.each(SCRIPTS)("sends a transaction by %s", { timeout: 240_000 }, async (file) => {
    expect(await node([file], program())).toEqual({ code: 0, output: "CONFIRMED\n" });
  });

  it("loads every subpath by require", async () => {
    expect(await node(["--version"], program())).toEqual({ code: 0, output: `v${version}\n` });
    expect(await node(["subpaths.cjs"], program())).toEqual({ code: 0, output: "true,true,true,true,true\n" });
  });
});

describe("the packed library alone, without optional packages such as viem,", () => {
  let bare: TemporaryDirectory;
  beforeAll(async () => {
    bare = await makeTemporaryDirectory();
    const compilerOptions = { strict: true, module: "nodenext", noEmit: true, skipLibCheck: false, types: [] };
    const app = `import { createFencepost, type FencepostOptions } from "fencepost";
      export const open = (options: FencepostOptions) => createFencepost(options);
      ${reexports("client", "config")}`;
    const typed = { "package.json": "{}", "app.ts": app, "tsconfig.json": JSON.stringify({ compilerOptions }) };
    for (const name of SCRIPTS) writeFileSync(join(bare.path, name), `${FILES[name]}`);
    for (const [name, text] of Object.entries(typed)) writeFileSync(join(bare.path, name), text);
    npmInstall(bare.path, [pack(bare.path)]);
  }, 300_000);
  afterAll(() => bare?.remove());

  it.each(SCRIPTS)("sends a transaction by %s", { timeout: 240_000 }, async (file) => {
    expect(readdirSync(join(bare.path, "node_modules"))).not.toContain("viem");
    expect(await node([file], process.execPath, bare.path)).toEqual({ code: 0, output: "CONFIRMED\n" });
  });

  it.each(["typescript", "typescript-5"])(
    "has whole types for %s",
    async (version) => {
      const argv = [join(directory.path, `node_modules/${version}/bin/tsc`), "-p", join(bare.path, "tsconfig.json")];
      expect(await node(argv)).toEqual({ code: 0, output: "" });
    },
    240_000,
  );
});

describe("the packed library inside a bundle", () => {
  it.each<readonly [name: string, build: Argv, run: Argv]>([
    ["esbuild in ESM", esbuild("inside.mjs", []), ["dist/inside.mjs"]],
    ["esbuild in CommonJS", esbuild("inside.cjs", []), ["dist/inside.cjs"]],
    ["webpack", webpack("inside-webpack.cjs", {}), ["dist/inside-webpack.cjs"]],
  ])("of %s fails with the option that keeps it outside", async (_, build, run) => {
    expect(await node(build)).toEqual({ code: 0, output: "" });
    expect(await node(run)).toEqual({ code: 1, output: expect.stringContaining("--external:fencepost") });
  });
});

describe("the packed subpaths without files of their own", () => {
  it.each(["bundled.mjs", "bundled.cjs"])("can be part of a bundle, as in %s", async (file) => {
    expect(await node(esbuild(file, [], "bundled.mjs"))).toEqual({ code: 0, output: "" });
    const list = `import("./dist/${file}").then((all) => console.log(all.client.createClient.name))`;
    expect(await node(["-e", list])).toEqual({ code: 0, output: "createClient\n" });
  });
});

describe("the packed types", () => {
  it("are found by every kind of resolution, and describe an ES module", async () => {
    const [file] = readdirSync(directory.path).filter((name) => name.endsWith(".tgz"));
    // Node has `require` of ES modules since 20.19, so that one finding of arethetypeswrong is no error.
    const types = ["node_modules/@arethetypeswrong/cli/dist/index.js", "--ignore-rules", "cjs-resolves-to-esm"];
    expect(await node([...types, "--", `${file}`])).toMatchObject({ code: 0 });
    // publint knows no launcher that begins as a shell script.
    const lint = `import { publint } from "publint";
      const { messages } = await publint({ pkgDir: "node_modules/fencepost" });
      console.log(messages.map(({ code }) => code).join());`;
    expect(await node(["--input-type=module", "-e", lint])).toEqual({ code: 0, output: "BIN_FILE_NOT_EXECUTABLE\n" });
  }, 240_000);
});
