import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import type { TestProject } from "vitest/node";
import { makeTemporaryDirectory } from "../temporary-directory.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the bundle of `process-main.ts` and everything that it imports. */
    simulation: string;
  }
}

/** Program that does one job of the simulation. */
const MAIN = new URL("./process-main.ts", import.meta.url);

/**
 * Bundles the simulation into a file of the directory and returns its path. A thousand simulations take most of a minute
 * of CPU time as plain JavaScript, and three times that in a process of vitest, where each use of an imported name is a
 * call and coverage counts every branch.
 */
export async function bundleSimulation(directory: string, main = MAIN, ...plugins: Plugin[]): Promise<string> {
  const file = join(directory, "simulation.mjs");
  // vitest is loaded from its installed path; its `expect` works in any process.
  const vitest = new URL("dist/index.js", pathToFileURL(createRequire(import.meta.url).resolve("vitest/package.json")));
  const bundle = await rolldown({
    input: fileURLToPath(main),
    platform: "node",
    external: ["vitest"],
    logLevel: "warn",
    plugins,
  });
  await bundle.write({ file, paths: { vitest: vitest.href }, codeSplitting: false });
  await bundle.close();
  return file;
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await makeTemporaryDirectory();
  project.provide("simulation", await bundleSimulation(directory.path));
  return () => directory.remove();
}
