/**
 * `npm run sim`: plays seeds on all cores until they or the minutes are over. A failing seed is shrunk, and printed with
 * the command that replays it. `--seed N --trace` prints every step and every event of one seed.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { bundleSimulation } from "../support/simulation/bundle.ts";
import { inProcess } from "../support/simulation/elsewhere.ts";
import type { Played } from "../support/simulation/play.ts";
import { PARTS, type Part, type Scenario } from "../support/simulation/simulate.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const AT_ONCE = 20;
/** Time limit of twenty seeds: a simulation that never ends is a failure. */
const PART_MS = 300_000;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    first: { type: "string", default: "1" },
    minutes: { type: "string" },
    workers: { type: "string", default: String(availableParallelism()) },
    seed: { type: "string" },
    most: { type: "string" },
    without: { type: "string", default: "" },
    trace: { type: "boolean", default: false },
  },
});

function numberOf(name: "seeds" | "first" | "minutes" | "workers" | "seed" | "most"): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new Error(`--${name} must be a whole number, not ${values[name]}`);
}

function parts(): readonly Part[] {
  const named = values.without.split(",").filter((name) => name !== "");
  return named.map((name) => {
    const part = PARTS.find((each) => each === name);
    if (part === undefined) throw new Error(`--without knows ${PARTS.join(", ")}, not ${name}`);
    return part;
  });
}

function commandFor({ seed, most, without }: Required<Scenario>) {
  const left = without.length === 0 ? "" : ` --without "${without.join(",")}"`;
  return `npm run sim -- --seed ${seed} --most ${most}${left} --trace`;
}

async function playOne(bundle: string, scenario: Scenario): Promise<boolean> {
  const job = { kind: "scenario", scenario, trace: values.trace } as const;
  const { failure } = await inProcess<{ readonly failure: string | null }>(bundle, job);
  process.stdout.write(failure === null ? `seed ${scenario.seed} passes\n` : `seed ${scenario.seed}: ${failure}\n`);
  return failure === null;
}

/** Prints a failure with the smallest scenario that fails too. */
async function report(bundle: string, failure: string): Promise<void> {
  const [, seed] = /^seed (\d+): /.exec(failure) ?? [];
  process.stdout.write(`${failure}\n`);
  if (seed === undefined) return;
  const job = { kind: "shrink", scenario: { seed: Number(seed) } } as const;
  const smaller = await inProcess<Required<Scenario>>(bundle, job).catch(() => null);
  if (smaller !== null) process.stdout.write(`smaller: ${commandFor(smaller)}\n`);
}

async function playAll(bundle: string): Promise<boolean> {
  const endsAt = values.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + 60_000 * numberOf("minutes");
  const last = numberOf("first") + (values.minutes === undefined ? numberOf("seeds") : Number.MAX_SAFE_INTEGER / 2) - 1;
  let [next, played, failed] = [numberOf("first"), 0, 0];
  const work = async () => {
    while (next <= last && Date.now() < endsAt) {
      const first = next;
      const count = Math.min(AT_ONCE, last - first + 1);
      next += count;
      const { failures } = await inProcess<Played>(
        bundle,
        { kind: "seeds", first, count },
        { timeoutMs: PART_MS },
      ).catch((error: Error) => ({ failures: [error.message] }));
      played += count;
      failed += failures.length;
      for (const failure of failures) await report(bundle, failure);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, numberOf("workers")) }, work));
  process.stdout.write(`${played} seeds from ${numberOf("first")} on played, ${failed} failed\n`);
  return failed === 0;
}

const directory = await makeTemporaryDirectory();
try {
  const bundle = await bundleSimulation(directory.path);
  const most = values.most === undefined ? {} : { most: numberOf("most") };
  const passes =
    values.seed === undefined
      ? await playAll(bundle)
      : await playOne(bundle, { seed: numberOf("seed"), without: parts(), ...most });
  process.exitCode = passes ? 0 : 1;
} finally {
  await directory.remove();
}
