/** `npm run mutants`: removes each protection of the table in turn. A mutant that no test finds fails the run. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Mutant } from "./mutant.ts";
import { parseOptions, selected } from "./options.ts";
import { line, type Result, summary } from "./report.ts";
import { simulateAll } from "./simulate.ts";
import { TABLE } from "./table/index.ts";

const RING = fileURLToPath(new URL("./ring.ts", import.meta.url));

/** Rows by worker: rows with the same tests stay together, because each test also runs once without a mutant. */
function sharesOf(rows: readonly Mutant[], workers: number): readonly (readonly Mutant[])[] {
  const groups = new Map<string, Mutant[]>();
  for (const row of rows) {
    const key = row.tests.join();
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const shares = Array.from({ length: Math.max(1, workers) }, (): Mutant[] => []);
  for (const group of [...groups.values()].sort((a, b) => b.length - a.length)) {
    shares.reduce((least, share) => (share.length < least.length ? share : least)).push(...group);
  }
  return shares.filter((share) => share.length > 0);
}

async function ringShare(rows: readonly Mutant[], report: (result: Result) => void): Promise<void> {
  const child = fork(RING, { execArgv: ["--import", "jiti/register"] });
  const exited = once(child, "exit");
  child.on("message", (result) => report(result as Result));
  child.send(rows);
  const [code] = await exited;
  if (code !== 0) throw new Error(`the process of ${rows.length} mutants ended with ${code}`);
}

const options = parseOptions(process.argv.slice(2));
const rows = selected(TABLE, options);
const results: Result[] = [];
const report = (result: Result) => {
  results.push(result);
  process.stdout.write(line(result));
  if (options.log !== null) appendFileSync(options.log, `${JSON.stringify(result)}\n`);
};
const failing = options.simulation ? await simulateAll(rows, options, report) : [];
for (const failure of failing) process.stdout.write(`${failure}\n`);
if (!options.simulation) await Promise.all(sharesOf(rows, options.workers).map((share) => ringShare(share, report)));
const { text, failed } = summary(results, options);
process.stdout.write(text);
process.exitCode = failed || failing.length > 0 || results.length < rows.length ? 1 : 0;
