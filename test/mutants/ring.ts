/**
 * Process that runs each mutant's tests with the mutant in place. The source on disk stays unchanged: the mutant is
 * applied while vitest loads the file. One vitest serves all rows, because starting it takes longer than most tests.
 */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createVitest, type TestSpecification, type Vitest } from "vitest/node";
import config from "../../vitest.config.ts";
import { type Mutant, mutated } from "./mutant.ts";
import type { Result } from "./report.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Time limit of one test: some mutants make a test wait for something that never happens. */
const TEST_MS = 20_000;

let current: Mutant | null = null;

const plugin = {
  name: "mutant",
  enforce: "pre" as const,
  transform(code: string, id: string) {
    if (current === null || id.split("?")[0] !== resolve(ROOT, current.file)) return undefined;
    return { code: mutated(current, code), map: null };
  },
};

async function startVitest(): Promise<Vitest> {
  const { projects = [], ...test } = config.test ?? {};
  // The simulation runs from a bundle, which simulate.ts mutates.
  const served = projects.flatMap((project) => {
    if (typeof project !== "object" || !("test" in project) || project.test?.name === "simulation") return [];
    return [{ ...project, test: { ...project.test, testTimeout: TEST_MS }, plugins: [plugin] }];
  });
  const vitest = await createVitest("test", {
    ...test,
    root: ROOT,
    config: false,
    watch: false,
    maxWorkers: 1,
    bail: 1,
    reporters: [{}],
    projects: served,
  });
  await vitest.standalone();
  return vitest;
}

/** Names of the failed tests; empty if all pass. Throws if no test ran. */
async function failuresOf(vitest: Vitest, specifications: readonly TestSpecification[]): Promise<readonly string[]> {
  const run = await vitest.runTestSpecifications([...specifications]);
  // A run also returns modules of earlier runs that ended at their first failure.
  const wanted = new Set(specifications.map(({ moduleId }) => moduleId));
  const testModules = run.testModules.filter(({ moduleId }) => wanted.has(moduleId));
  const failed = testModules.flatMap((module) => [
    ...[...module.children.allTests("failed")].map(({ fullName }) => fullName),
    ...module.errors().map(({ message }) => message),
    ...[...module.children.allSuites()].flatMap((suite) => suite.errors().map(({ message }) => message)),
  ]);
  const passed = testModules.flatMap((module) => [...module.children.allTests("passed")]);
  if (failed.length === 0 && passed.length === 0) throw new Error("no test ran");
  return [...failed, ...run.unhandledErrors.map(messageOf)];
}

/** An error of another process arrives as an object without a prototype. */
function messageOf(error: unknown): string {
  return typeof error === "object" && error !== null && "message" in error
    ? String(error.message)
    : "an unhandled error";
}

async function main(rows: readonly Mutant[], report: (result: Result) => void): Promise<void> {
  const vitest = await startVitest();
  const all = await vitest.globTestSpecifications();
  const checked = new Map<string, Promise<readonly string[]>>();
  const specificationsOf = (tests: readonly string[]) => {
    const paths = tests.map((path) => resolve(ROOT, path));
    return all.filter(({ moduleId }) => paths.includes(moduleId));
  };
  for (const mutant of rows) {
    const startedAt = performance.now();
    const found = async (): Promise<Pick<Result, "verdict" | "detail">> => {
      for (const test of mutant.tests) {
        const specifications = specificationsOf([test]);
        if (specifications.length === 0) return { verdict: "broken", detail: `${test} is not a test of npm test` };
        // A test that fails without the mutant proves nothing.
        const before = checked.get(test) ?? failuresOf(vitest, specifications);
        checked.set(test, before);
        const [failure] = await before;
        if (failure !== undefined) return { verdict: "broken", detail: `${test} fails without it: ${failure}` };
        const [ring] = await withMutant(vitest, mutant, () => failuresOf(vitest, specifications));
        if (ring !== undefined) return { verdict: "found", detail: ring };
      }
      return { verdict: "survived", detail: mutant.tests.join(", ") };
    };
    const result = await found();
    report({ name: mutant.name, file: mutant.file, ...result, ms: Math.round(performance.now() - startedAt) });
  }
  await vitest.close();
}

async function withMutant<T>(vitest: Vitest, mutant: Mutant, run: () => Promise<T>): Promise<T> {
  const path = resolve(ROOT, mutant.file);
  current = mutant;
  vitest.invalidateFile(path);
  try {
    return await run();
  } finally {
    current = null;
    vitest.invalidateFile(path);
  }
}

process.on("disconnect", () => process.exit());
process.on("message", (rows: readonly Mutant[]) => {
  void main(rows, (result) => process.send?.(result)).then(
    // vitest sets the exit code to 1 after a failed test, which here is the expected result.
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
