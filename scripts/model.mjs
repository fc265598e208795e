// `npm run model`: checks every model of spec/ exhaustively with Spin. Each model names its protections as `switch NAME: text`.
// With all of them no assertion may fail; without any single one an assertion must fail. `--nodes 3` checks more nodes,
// `--only fence` one model.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { argv, exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const FOLDER = join(dirname(dirname(fileURLToPath(import.meta.url))), "spec");
/** Depth of the search; a search that reaches it is not exhaustive, and fails. */
const DEPTH = 2_000_000;

/**
 * The protections of a model, in the order of its header.
 *
 * @param {string} text
 * @returns {readonly { readonly name: string, readonly does: string }[]}
 */
export function switchesOf(text) {
  return [...text.matchAll(/^ \* switch ([A-Z_]+): (.+)$/gm)].map(([, name, does]) => ({ name, does }));
}

/** Promises over time, which need a search of their own. */
const promisesOf = (text) => [...text.matchAll(/^ltl (\w+) /gm)].map(([, name]) => name);

/**
 * The result of a search from the output of Spin's verifier: `held`, `violated` with the promise, or `incomplete`.
 *
 * @param {string} output
 */
export function judge(output) {
  const errors = Number(/errors: (\d+)/.exec(output)?.[1] ?? Number.NaN);
  const states = Number(/^\s*([\d.e+]+) states, stored/m.exec(output)?.[1] ?? 0);
  if (errors > 0) {
    const violated = /^pan:\d+: (.+?) \(at depth/m.exec(output)?.[1] ?? "an error";
    return { verdict: "violated", states, violated };
  }
  const cut = /max search depth too small|Search not completed|out of memory/i.test(output);
  return { verdict: errors === 0 && !cut ? "held" : "incomplete", states, violated: null };
}

function run(command, options, cwd) {
  const {
    error,
    status,
    stdout: out,
    stderr,
  } = spawnSync(command, options, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (error?.code === "ENOENT")
    throw new Error(`${command} is not installed: the models need spin and gcc (Debian: apt-get install spin gcc)`);
  return { status, output: `${out}${stderr}` };
}

/** Searches one model; `without` names the protection that is switched off, `promise` an ltl formula. */
function search(directory, model, { nodes, without, promise }) {
  const definitions = [`-DNODES=${nodes}`, ...(without === null ? [] : [`-DWITHOUT_${without}`])];
  const translated = run("spin", ["-a", ...definitions, join(FOLDER, model)], directory);
  const error = /^.*Error:.*$/im.exec(translated.output);
  if (translated.status !== 0 || error !== null) throw new Error(`spin refuses ${model}: ${translated.output}`);
  // Safety: assertions only. A deadlock is no violation, since bounded processes end.
  const kind = promise === null ? ["-DSAFETY", "-DNOCLAIM"] : ["-DNFAIR=8"];
  const compiled = run("gcc", ["-O1", "-w", "-DMEMLIM=8192", "-DCOLLAPSE", ...kind, "-o", "pan", "pan.c"], directory);
  if (compiled.status !== 0) throw new Error(`gcc refuses ${model}: ${compiled.output}`);
  const how = promise === null ? ["-E"] : ["-a", "-f", "-N", promise];
  return judge(run(join(directory, "pan"), [`-m${DEPTH}`, ...how], directory).output);
}

function check(model, nodes) {
  const directory = mkdtempSync(join(tmpdir(), "fencepost-model-"));
  const text = readFileSync(join(FOLDER, model), "utf8");
  const searches = [
    { without: null, promise: null, does: "every protection on" },
    ...promisesOf(text).map((promise) => ({ without: null, promise, does: `every protection on: ${promise}` })),
    ...switchesOf(text).map(({ name, does }) => ({ without: name, promise: null, does: `without: ${does}` })),
  ];
  let failed = 0;
  try {
    for (const { without, promise, does } of searches) {
      const startedAt = performance.now();
      let { verdict, states, violated } = search(directory, model, { nodes, without, promise });
      // What is off may break no assertion, but a promise over time.
      for (const other of without === null || verdict !== "held" ? [] : promisesOf(text)) {
        if (verdict === "held")
          ({ verdict, states, violated } = search(directory, model, { nodes, without, promise: other }));
      }
      const right = verdict === (without === null ? "held" : "violated");
      if (!right) failed += 1;
      const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6);
      stdout.write(
        `${right ? "ok    " : "FAILED"} ${seconds} s ${String(states).padStart(10)} states  ${model}: ${does}: ${violated ?? verdict}\n`,
      );
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return failed;
}

function main(options) {
  const { values } = parseArgs({
    args: options,
    options: { nodes: { type: "string", default: "2" }, only: { type: "string", default: "" } },
  });
  const models = readdirSync(FOLDER).filter((name) => name.endsWith(".pml") && name.startsWith(values.only));
  const failed = models.reduce((sum, model) => sum + check(model, Number(values.nodes)), 0);
  stdout.write(
    failed === 0 ? "every model holds, and fails without any one of its protections\n" : `${failed} searches failed\n`,
  );
  return failed === 0 ? 0 : 1;
}

if (argv[1] === fileURLToPath(import.meta.url)) exit(main(argv.slice(2)));
