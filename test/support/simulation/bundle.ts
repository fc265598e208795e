import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import type { TestProject } from "vitest/node";
import { makeTemporaryDirectory } from "../temporary-directory.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the bundle of `process-main.ts` and everything that it imports. */
    simulation: string;
  }
}

/**
 * Bundles the simulation. A thousand simulations take most of a minute of CPU time as plain JavaScript, and three times
 * that in a process of vitest, where each use of an imported name is a call and coverage counts every branch.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await makeTemporaryDirectory();
  const file = join(directory.path, "simulation.mjs");
  // vitest is loaded from its installed path; its `expect` works in any process.
  const vitest = new URL("dist/index.js", pathToFileURL(createRequire(import.meta.url).resolve("vitest/package.json")));
  const bundle = await rolldown({
    input: fileURLToPath(new URL("./process-main.ts", import.meta.url)),
    platform: "node",
    external: ["vitest"],
    logLevel: "warn",
  });
  await bundle.write({ file, paths: { vitest: vitest.href }, codeSplitting: false });
  await bundle.close();
  project.provide("simulation", file);
  return () => directory.remove();
}
