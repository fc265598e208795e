/** Loads the built package in a process of its own, by every way that a host program has. */
import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { spawnScript } from "../support/node-process.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
  readonly exports: Readonly<Record<string, unknown>>;
};
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
