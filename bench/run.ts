/** `npm run bench`: every measure in one run, compared with what the same machine does at the same time. */
import { compareWith } from "./against.ts";
import { LAUNCHER } from "./environment/node-process.ts";
import { openWorkbench, type Workbench } from "./environment/workbench.ts";
import { measureBatchCreate } from "./measures/batch-create.ts";
import { measureBroadcastLatency } from "./measures/broadcast-latency.ts";
import { measureBurst } from "./measures/burst.ts";
import { measureConfirm } from "./measures/confirm.ts";
import { measureFigures } from "./measures/figures.ts";
import { measureIdle } from "./measures/idle.ts";
import { measureIdleLanes, measureLanes } from "./measures/lanes.ts";
import { measureReads } from "./measures/reads.ts";
import { measureScale } from "./measures/scale.ts";
import { measureSingleCreate } from "./measures/single-create.ts";
import { measureWebhooks } from "./measures/webhooks.ts";
import { type BenchOptions, type Pace, parseOptions } from "./options.ts";
import { type Figure, missed, print, printComparison } from "./report.ts";

type Measure = (bench: Workbench, pace: Pace) => Promise<readonly Figure[]>;

const MEASURES: Readonly<Record<string, Measure>> = {
  idle: measureIdle,
  batch: measureBatchCreate,
  single: measureSingleCreate,
  burst: measureBurst,
  confirm: measureConfirm,
  broadcast: measureBroadcastLatency,
  scale: measureScale,
  reads: measureReads,
  lanes: measureLanes,
  resting: measureIdleLanes,
  figures: measureFigures,
  webhooks: measureWebhooks,
};

/** Measures of waits rather than of work: two builds that share the machine would wait for each other. */
const ALONE: ReadonlySet<string> = new Set(["burst"]);

const chosen = ({ only }: BenchOptions) =>
  Object.entries(MEASURES).filter(([name]) => only.length === 0 || only.includes(name));

async function run(options: BenchOptions): Promise<readonly Figure[]> {
  const bench = await openWorkbench({ profileTo: options.profileTo, launcher: LAUNCHER });
  const figures: Figure[] = [];
  try {
    for (const [name, measure] of chosen(options)) {
      process.stderr.write(`measuring: ${name}\n`);
      figures.push(...(await measure(bench, options.pace)));
    }
    return figures;
  } finally {
    await bench.close();
  }
}

const options = parseOptions(process.argv.slice(2));
if (options.against === null) {
  const figures = await run(options);
  print(figures, options);
  process.exitCode = missed(figures).length === 0 ? 0 : 1;
} else {
  const measures = chosen(options).map(([name, measure]) => ({
    alone: ALONE.has(name),
    run: (bench: Workbench) => measure(bench, options.pace),
  }));
  printComparison(await compareWith(options.against, options.turns, measures), options);
}
