/**
 * `npm run stryker`: StrykerJS changes the expressions of the core one by one, and runs the tests in memory that reach
 * them. Fails if they find too few of the changes in an area.
 *
 * `-- --area ledger,pace` selects areas, `--turn 7` one of them in rotation, `--mutate src/domain/ledger/move.ts` files.
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { AREAS } from "./areas.mjs";
import { EQUIVALENT } from "./equivalent.mjs";

const { values } = parseArgs({
  options: {
    area: { type: "string" },
    turn: { type: "string" },
    mutate: { type: "string" },
    incremental: { type: "boolean", default: false },
    workers: { type: "string", default: String(availableParallelism()) },
  },
});

/** Options of each area, in Stryker's words. */
const optionsOf = (name, { mutate, tests, except = [] }) => ({
  mutate: values.mutate?.split(",") ?? [mutate],
  plugins: [fileURLToPath(new URL("./one-process.mjs", import.meta.url))],
  testRunner: "one process",
  oneProcess: { tests, except },
  coverageAnalysis: "perTest",
  // A change to what is computed once per process would need a new process for each.
  ignoreStatic: true,
  // Words that the code compares are literal types: the compiler refuses another one. The other texts are for people.
  mutator: { excludedMutations: ["StringLiteral"] },
  // TypeScript 7 has no API with which Stryker could rewrite its configuration or switch its checks off.
  tsconfigFile: "none.json",
  disableTypeChecks: false,
  concurrency: Number(values.workers),
  timeoutMS: 60_000,
  dryRunTimeoutMinutes: 30,
  ignorePatterns: ["/*", "!/src", "!/test", "!/docs", "!/package.json", "!/tsconfig.json", "node_modules"],
  tempDirName: "coverage/stryker/sandbox",
  incremental: values.incremental,
  incrementalFile: `coverage/stryker/${name}.json`,
  reporters: ["progress-append-only", "clear-text", "html"],
  clearTextReporter: { allowColor: false, reportTests: false, logTests: false },
  htmlReporter: { fileName: `coverage/stryker/${name}.html` },
});

const names = Object.keys(AREAS);
const wanted = values.turn === undefined ? (values.area?.split(",") ?? names) : [names[values.turn % names.length]];
process.chdir(fileURLToPath(new URL("../../", import.meta.url)));
for (const name of wanted) {
  if (!passes(name, await new Stryker(optionsOf(name, AREAS[name])).runMutationTest())) process.exitCode = 1;
}

/** Prints the result of an area. True if enough of its mutants were found, and the equivalent ones were not. */
function passes(name, all) {
  const results = all.filter(({ status }) => status !== "Ignored");
  const files = new Set(results.map(({ fileName }) => relative(".", fileName)));
  const left = EQUIVALENT.filter(({ file }) => files.has(file));
  const survivors = results.filter(({ status }) => status === "Survived" || status === "NoCoverage");
  const unexplained = survivors.filter((mutant) => {
    const at = left.findIndex((row) => isOf(row, mutant));
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
  const counts = [...new Set(results.map(({ status }) => status))].map(
    (status) => `${results.filter((each) => each.status === status).length} ${status}`,
  );
  const share = (100 * (results.length - unexplained.length)) / results.length;
  const summary = `${counts.join(", ")}; ${share.toFixed(1)} % without the equivalent ones (bar ${AREAS[name].atLeast} %)`;
  process.stdout.write(`${name}: ${summary}\n`);
  for (const { file, code } of left)
    process.stdout.write(`${file}: no mutant of ${code} survived as equivalent.mjs has it\n`);
  return share >= AREAS[name].atLeast && left.length === 0;
}

function isOf({ file, code, becomes }, { fileName, location: { start, end }, replacement }) {
  if (relative(".", fileName) !== file || replacement !== becomes) return false;
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1);
  return lines.join("\n").slice(start.column - 1) === code;
}
