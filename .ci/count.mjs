// Adds up what the steps of .ci/run left behind, and ends with the line that counts: `N passed, N failed`.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const steps = readdirSync(folder)
  .filter((name) => name.endsWith(".status"))
  .map((name) => name.slice(0, -".status".length));

/** A file that cannot be loaded fails no test, and a step may fail without one: by its build, its lint, its coverage. */
function judge(step) {
  const status = Number(readFileSync(join(folder, `${step}.status`), "utf8"));
  const path = join(folder, `${step}.json`);
  const report = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { testResults: [] };
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const passed = tests.filter((test) => test.status === "passed").length;
  const failing = tests.filter((test) => test.status === "failed").length;
  const unloaded = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  ).length;
  const failed = failing + unloaded;
  return { passed, failed: status !== 0 && failed === 0 ? 1 : failed };
}

const verdicts = steps.map(judge);
const sum = (pick) => verdicts.map(pick).reduce((total, count) => total + count, 0);
const passed = sum((verdict) => verdict.passed);
const failed = sum((verdict) => verdict.failed);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
