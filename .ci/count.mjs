// Adds up what the steps of .ci/run left behind, says what took longest and what failed and how, and ends with the line that counts: `N passed, N failed`.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const LINES_OF_A_FAULT = 25;
const SLOWEST = 15;
const folder = process.argv[2];
const steps = readdirSync(folder)
  .filter((name) => name.endsWith(".status"))
  .map((name) => name.slice(0, -".status".length));

/** A file that cannot be loaded fails no test, and a step may fail without one: by its build, its lint, its coverage. */
function judge(step) {
  const status = Number(readFileSync(join(folder, `${step}.status`), "utf8"));
  const path = join(folder, `${step}.json`);
  const report = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { testResults: [] };
  const passed = report.testResults.flatMap(testsOf).filter((test) => test.status === "passed").length;
  const faults = report.testResults.flatMap(faultsOf);
  if (status !== 0 && faults.length === 0)
    faults.push(`ended with exit code ${status}, and no test failed: see its output above`);
  return { passed, faults: faults.map((fault) => `${step}: ${fault}`) };
}

function testsOf(file) {
  return file.assertionResults.map((test) => ({ ...test, file: relative(process.cwd(), file.name) }));
}

/** Each failed test of a file with the beginning of what it said; the file's own message where it failed without a test. */
function faultsOf(file) {
  const failed = testsOf(file).filter((test) => test.status === "failed");
  if (failed.length > 0)
    return failed.map((test) => `${test.file} > ${test.fullName}\n${inset(test.failureMessages.join("\n"))}`);
  return file.status === "failed" ? [`${relative(process.cwd(), file.name)}\n${inset(file.message)}`] : [];
}

function inset(message) {
  return message
    .split("\n", LINES_OF_A_FAULT)
    .map((line) => `    ${line}`)
    .join("\n");
}

/** The whole run has a quarter of an hour: where it is spent, in seconds beside the others' work. */
function slowest() {
  const paths = steps.map((step) => join(folder, `${step}.json`)).filter((path) => existsSync(path));
  const files = paths.flatMap((path) => JSON.parse(readFileSync(path, "utf8")).testResults);
  const seconds = ({ startTime, endTime }) => (endTime - startTime) / 1_000;
  const lines = files
    .sort((a, b) => seconds(b) - seconds(a))
    .slice(0, SLOWEST)
    .map((file) => `${seconds(file).toFixed(0).padStart(6)} s  ${relative(process.cwd(), file.name)}\n`);
  return `slowest files:\n${lines.join("")}`;
}

const verdicts = steps.map(judge);
const faults = verdicts.flatMap((verdict) => verdict.faults);
const passed = verdicts.map((verdict) => verdict.passed).reduce((total, count) => total + count, 0);
process.exitCode = faults.length === 0 && passed > 0 ? 0 : 1;
process.stdout.write(
  `\n${slowest()}\n${faults.map((fault) => `FAILED ${fault}\n\n`).join("")}${passed} passed, ${faults.length} failed\n`,
);
