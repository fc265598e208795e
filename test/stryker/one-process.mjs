/**
 * Runs tests for StrykerJS in one process, where they are loaded once: a mutant is switched on, the tests that reach it
 * run, first those that found most mutants in the shortest time, and the first that fails ends it. Starting vitest for
 * each mutant took several times as long. What a test may use of vitest's interface is in `interfaceOf`.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { INSTRUMENTER_CONSTANTS } from "@stryker-mutator/api/core";
import { commonTokens, declareClassPlugin, PluginKind, tokens } from "@stryker-mutator/api/plugin";
import {
  DryRunStatus,
  determineHitLimitReached,
  TestStatus,
  toMutantRunResult,
} from "@stryker-mutator/api/test-runner";
import { expect, vi } from "vitest";
import { createViteServer } from "vitest/node";

const STRYKER = INSTRUMENTER_CONSTANTS.NAMESPACE;
const INTERFACE = "__fencepostTests";

/** Suites and tests of all files, as the files declare them while they are loaded. */
class Declared {
  suite = { parent: null, beforeAll: [], beforeEach: [], afterEach: [], afterAll: [] };
  tests = [];
  file = "";
  /** Cleanups that the running test has asked for. */
  finished = [];

  within(work) {
    const parent = this.suite;
    this.suite = { parent, beforeAll: [], beforeEach: [], afterEach: [], afterAll: [] };
    work();
    this.suite = parent;
  }

  add(name, work) {
    const id = `${this.file}#${this.tests.length} ${name}`;
    this.tests.push({ id, name: id, file: this.file, suite: this.suite, work, ...expected(this.file) });
  }
}

/** Time that a test has taken and mutants that it has found, guessed as long as neither is known. */
const expected = (file) => (file.includes(".property.") ? { ms: 50, found: 0.5 } : { ms: 5, found: 0.05 });

function interfaceOf(declared) {
  const each = (declare) => (rows) => (name, work) => {
    for (const row of rows) declare(name, () => (Array.isArray(row) ? work(...row) : work(row)));
  };
  const describe = (_, work) => declared.within(work);
  const it = (name, work) => declared.add(name, work);
  const hook = (kind) => (work) => declared.suite[kind].push(work);
  return {
    ...{ expect, vi, it, test: it, describe },
    ...{ beforeAll: hook("beforeAll"), beforeEach: hook("beforeEach") },
    ...{ afterEach: hook("afterEach"), afterAll: hook("afterAll") },
    onTestFinished: (work) => declared.finished.push(work),
    each: { it: each(it), describe: each(describe) },
  };
}

const MODULE = `
const all = globalThis.${INTERFACE};
export const { expect, vi, beforeAll, beforeEach, afterEach, afterAll, onTestFinished } = all;
export const it = Object.assign((...declared) => all.it(...declared), { each: all.each.it });
export const test = it;
export const describe = Object.assign((...declared) => all.describe(...declared), { each: all.each.describe });
`;

const plugin = {
  name: "tests in one process",
  enforce: "pre",
  resolveId: (id) => (id === "vitest" ? "\0vitest" : undefined),
  load: (id) => (id === "\0vitest" ? MODULE : undefined),
};

/** A suite and those around it, the outermost first. */
const around = (suite) => (suite === null ? [] : [...around(suite.parent), suite]);

class OneProcess {
  static inject = tokens(commonTokens.options);
  declared = new Declared();
  server = null;
  stryker = {};
  /** Failure outside of any test's own calls. */
  stray = null;

  constructor({ oneProcess }) {
    this.wanted = oneProcess;
  }

  /** No mutant is switched on while tests are loaded, so nothing has to be loaded anew for the next one. */
  capabilities() {
    return { reloadEnvironment: true };
  }

  async init() {
    globalThis[INTERFACE] = interfaceOf(this.declared);
    this.stryker = globalThis[STRYKER] ??= {};
    process.on("unhandledRejection", (error) => {
      this.stray ??= error;
    });
    this.server = await createViteServer({
      ...{ configFile: false, root: process.cwd(), appType: "custom", logLevel: "error", plugins: [plugin] },
      ssr: { noExternal: ["vitest"] },
      ...{ server: { middlewareMode: true, watch: null, ws: false, hmr: false }, optimizeDeps: { noDiscovery: true } },
    });
    await this.server.ssrLoadModule("/test/stryker/same-cases.ts");
    const { tests, except } = this.wanted;
    const all = readdirSync("test", { recursive: true }).map((path) => join("test", path));
    const isWanted = (path) => tests.some((start) => path.startsWith(start)) && !except.includes(path);
    for (const path of all.filter((path) => path.endsWith(".test.ts") && isWanted(path)).sort()) {
      this.declared.file = path;
      await this.server.ssrLoadModule(`/${path}`);
    }
  }

  async dryRun() {
    this.stryker.activeMutant = undefined;
    const results = await this.run(this.declared.tests, false);
    return { status: DryRunStatus.Complete, tests: results, mutantCoverage: this.stryker.mutantCoverage };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit }) {
    const { stryker } = this;
    const wanted = testFilter === undefined ? null : new Set(testFilter);
    const tests = this.declared.tests.filter(({ id }) => wanted?.has(id) ?? true);
    Object.assign(stryker, { activeMutant: activeMutant.id, hitCount: 0, hitLimit });
    const results = await this.run(
      tests.toSorted((a, b) => a.ms / a.found - b.ms / b.found),
      true,
    );
    const reached = determineHitLimitReached(stryker.hitCount, hitLimit);
    Object.assign(stryker, { activeMutant: undefined, hitCount: undefined, hitLimit: undefined });
    return toMutantRunResult(reached ?? { status: DryRunStatus.Complete, tests: results });
  }

  async dispose() {
    await this.server?.close();
  }

  /** Runs tests one after the other. `bail`: not those after a failure. */
  async run(tests, bail) {
    const results = [];
    const begun = new Set();
    for (const test of tests) {
      const startedAt = performance.now();
      this.stryker.currentTestId = test.id;
      const failure = await this.failureOf(test, begun);
      this.stryker.currentTestId = undefined;
      const timeSpentMs = performance.now() - startedAt;
      if (bail) Object.assign(test, { ms: test.ms + timeSpentMs, found: test.found + (failure === null ? 0 : 1) });
      const { id, name } = test;
      const result = { id, name, fileName: join(process.cwd(), test.file), timeSpentMs };
      const status = failure === null ? TestStatus.Success : TestStatus.Failed;
      results.push({ ...result, status, ...(failure === null ? {} : { failureMessage: String(failure?.message) }) });
      if (failure !== null && bail) break;
    }
    for (const { afterAll } of begun) for (const work of afterAll) await work();
    return results;
  }

  async failureOf({ suite, work }, begun) {
    const suites = around(suite);
    this.stray = null;
    this.declared.finished = [];
    let failure = null;
    const attempt = async (step) => {
      try {
        await step();
      } catch (error) {
        failure ??= error ?? new Error("it failed");
      }
    };
    for (const each of suites.filter((one) => !begun.has(one))) {
      begun.add(each);
      for (const step of each.beforeAll) await attempt(step);
    }
    for (const step of suites.flatMap(({ beforeEach }) => beforeEach)) await attempt(step);
    if (failure === null) await attempt(() => work({}));
    for (const step of suites.toReversed().flatMap(({ afterEach }) => afterEach)) await attempt(step);
    for (const step of this.declared.finished.reverse()) await attempt(step);
    return failure ?? this.stray;
  }
}

export const strykerValidationSchema = { properties: { oneProcess: { type: "object" } } };
export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, "one process", OneProcess)];
