import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import type { TestProject } from "vitest/node";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of the nodes that tests start: start.mjs and struck.mjs. */
    bundle: string;
  }
}

const root = new URL("../../", import.meta.url);
const ENTRIES = { start: "test/support/starting-node.mjs", struck: "test/support/crashing-node.mjs" };

/** Imported from where they are installed: they look for files of their own beside themselves. */
const LEFT_OUT = ["@nomicfoundation/edr", "jiti"];

/**
 * What is built, in some forty files instead of 1,600. Node spends most of a second of processor time on finding, reading and
 * linking that many, and the suite starts some two hundred nodes. Tests of the command line and of clusters run the package as shipped.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  ensureBuilt();
  const directory = await makeTemporaryDirectory();
  await symlink(fileURLToPath(new URL("node_modules", root)), join(directory.path, "node_modules"));
  const bundle = await rolldown({
    cwd: fileURLToPath(root),
    input: ENTRIES,
    platform: "node",
    logLevel: "silent",
    external: LEFT_OUT,
    plugins: [
      {
        // Migrations, threads and package.json lie beside the module that asks for them, not beside the bundle.
        name: "modules know where they were",
        transform: (code, id) =>
          id.includes("/dist/") && code.includes("import.meta.url")
            ? { code: code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href)) }
            : null,
      },
    ],
  });
  await bundle.write({ dir: directory.path, entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });
  await bundle.close();
  project.provide("bundle", directory.path);
  return directory.remove;
}

/** Once for all: two workers building at the same time would collide. */
function ensureBuilt(): void {
  if (existsSync(new URL("dist/main/cli.js", root))) return;
  execFileSync(process.execPath, [fileURLToPath(new URL("scripts/build.mjs", root))], { stdio: "inherit" });
}
