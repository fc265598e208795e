import { failureOf, playSeeds } from "./play.ts";
import { shrink } from "./shrink.ts";
import type { Scenario } from "./simulate.ts";

/** What the process is to do: play `count` seeds, play one scenario, or find a smaller one that fails too. */
export type Job =
  | { readonly kind: "seeds"; readonly first: number; readonly count: number; readonly untilFailure?: true }
  | { readonly kind: "scenario" | "shrink"; readonly scenario: Scenario; readonly trace?: boolean };

const isFailing = async (scenario: Scenario) => (await failureOf(scenario)) !== null;

async function done(job: Job): Promise<unknown> {
  if (job.kind === "seeds") return playSeeds(job);
  if (job.kind === "shrink") return shrink(job.scenario, isFailing);
  const print = (atMs: number, line: string) => void process.stdout.write(`${String(atMs).padStart(7)} ms  ${line}\n`);
  return { failure: await failureOf(job.scenario, job.trace ? print : undefined) };
}

/** A process that does one job and sends the result to its parent. */
const [job] = process.argv.slice(2);
if (job === undefined || process.send === undefined) throw new Error("started by a program of the tests only");
// End this process if the parent ends.
process.on("disconnect", () => process.exit());
process.send(await done(JSON.parse(job) as Job), () => process.disconnect());
