/**
 * `npm run stryker`: StrykerJS changes the expressions of the core one by one, and runs the tests in memory that reach
 * them. Fails if an area finds too few of its changes.
 *
 * `-- --area ledger,pace` selects areas, `--turn 7` one of them in rotation, `--mutate src/domain/ledger/move.ts` files.
 */
import { availableParallelism } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { AREAS } from "./areas.mjs";

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
const optionsOf = (name, { mutate, atLeast }) => ({
  mutate: values.mutate?.split(",") ?? [mutate],
  thresholds: { high: 100, low: atLeast, break: atLeast },
  plugins: [fileURLToPath(new URL("./one-process.mjs", import.meta.url))],
  testRunner: "one process",
  coverageAnalysis: "perTest",
  // A change to what is computed once per process would need a new process for each.
  ignoreStatic: true,
  // Words that the code compares are literal types: the compiler refuses another one. The other texts are for people.
  mutator: { excludedMutations: ["StringLiteral"] },
  // TypeScript 7 has no API with which Stryker could rewrite its configuration or switch its checks off.
  tsconfigFile: "none.json",
  disableTypeChecks: false,
  concurrency: Number(values.workers),
  timeoutMS: 20_000,
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
  process.env.FENCEPOST_STRYKER_TESTS = JSON.stringify(AREAS[name]);
  await new Stryker(optionsOf(name, AREAS[name])).runMutationTest();
}
