import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildOf } from "./environment/build.ts";
import { LAUNCHER } from "./environment/node-process.ts";
import { openWorkbench, type Workbench } from "./environment/workbench.ts";
import type { Figure } from "./report.ts";
import { interval, median } from "./statistics.ts";

/** One figure of this build beside the same figure of another commit. */
export interface Comparison {
  readonly measure: string;
  readonly unit: Figure["unit"];
  readonly here: number;
  readonly there: number;
  /** Median of the ratios of all turns, above 1 if this build is better; `from` and `to` are its 95 % interval. */
  readonly better: number;
  readonly from: number;
  readonly to: number;
}

interface Measure {
  /** True to measure one build after the other in each turn, not both at the same time. */
  readonly alone: boolean;
  run(bench: Workbench): Promise<readonly Figure[]>;
}

/**
 * Measures this build and that of another commit at the same time, turn after turn: the speed of a shared machine changes
 * within seconds, and both builds meet the same. Each turn starts them in the opposite order of the one before. Measures
 * of waits take each turn one after the other.
 */
export async function compareWith(
  ref: string,
  turns: number,
  measures: readonly Measure[],
): Promise<readonly Comparison[]> {
  const directory = await mkdtemp(join(tmpdir(), "fencepost-against-"));
  const build = await buildOf(ref, directory);
  try {
    const pairs: Pair[] = [];
    for (let turn = 0; turn < turns; turn++) {
      for (const measure of measures) {
        const sides = turn % 2 === 0 ? [LAUNCHER, build.launcher] : [build.launcher, LAUNCHER];
        const figures = new Map<string, readonly Figure[]>();
        const take = async (launcher: string) => figures.set(launcher, await figuresOf(launcher, measure));
        if (measure.alone) for (const launcher of sides) await take(launcher);
        else await Promise.all(sides.map(take));
        const taken = pairsOf(figures.get(LAUNCHER) ?? [], figures.get(build.launcher) ?? []);
        process.stderr.write(`${JSON.stringify(taken)}\n`);
        pairs.push(...taken);
      }
      process.stderr.write(`turn ${turn + 1} of ${turns}\n`);
    }
    const names = new Set(pairs.map(({ measure }) => measure));
    return [...names].map((name) => comparisonOf(pairs.filter(({ measure }) => measure === name)));
  } finally {
    await build.remove();
    await rm(directory, { recursive: true, force: true });
  }
}

async function figuresOf(launcher: string, measure: Measure): Promise<readonly Figure[]> {
  const bench = await openWorkbench({ profileTo: null, launcher });
  try {
    return await measure.run(bench);
  } catch (error) {
    // An overloaded machine: this turn has no figures of the measure, the others count.
    process.stderr.write(`left out of this turn: ${String(error)}\n`);
    return [];
  } finally {
    await bench.close();
  }
}

interface Pair {
  readonly measure: string;
  readonly unit: Figure["unit"];
  readonly here: number;
  readonly there: number;
}

/**
 * Pairs the figures of both builds. An indented figure gets the name of the last unindented one in front. Figures with the
 * same name, such as the processor time of two clients, are numbered: a median must not mix them.
 */
function pairsOf(here: readonly Figure[], there: readonly Figure[]): readonly Pair[] {
  let parent = "";
  const seen = new Map<string, number>();
  return here.flatMap(({ measure, unit, value }, index) => {
    if (!measure.startsWith(" ")) parent = measure;
    const plain = measure === parent ? measure : `${parent}: ${measure.trim()}`;
    const times = (seen.get(plain) ?? 0) + 1;
    seen.set(plain, times);
    const name = times === 1 ? plain : `${plain} (${times})`;
    const other = there[index];
    return other?.measure === measure ? [{ measure: name, unit, here: value, there: other.value }] : [];
  });
}

function comparisonOf(pairs: readonly Pair[]): Comparison {
  const [{ measure, unit } = { measure: "", unit: "/s" as const }] = pairs;
  const ratios = pairs.map(({ here, there }) => (unit === "/s" ? here / there : there / here));
  return {
    measure,
    unit,
    here: median(pairs.map(({ here }) => here)),
    there: median(pairs.map(({ there }) => there)),
    better: median(ratios),
    ...interval(ratios),
  };
}
