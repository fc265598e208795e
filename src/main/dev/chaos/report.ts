/** Writes what happened in a campaign: the table for people, the timeline, and the history for programs. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ChaosReport } from "../../../adapters/cli/diagnose.ts";
import type { Query } from "./facts.ts";
import type { FaultRecord } from "./faults.ts";
import type { LoadRecord } from "./load-record.ts";
import { type Progression, timeline } from "./timeline.ts";

/** If the campaign's process was stalled for longer, faults and times of arrival are not what the seed drew. */
const STALLED_MS = 2_000;

interface Course {
  readonly query: Query;
  readonly record: LoadRecord;
  readonly faults: readonly FaultRecord[];
  readonly violations: readonly string[];
  readonly arrivals: number;
  readonly delivered: number;
  readonly course: readonly Progression[];
  readonly totalMs: number;
  /** Longest time in which the event loop did nothing. */
  readonly stalledMs: number;
}

export async function report(
  { seed, output }: { readonly seed: number; readonly output: string },
  { query, record, faults, violations, course, totalMs, stalledMs, arrivals, delivered }: Course,
): Promise<ChaosReport> {
  const [rows] = await query<{ all: number; confirmed: number; takeovers: number }>(
    `SELECT count(*)::int AS all, count(*) FILTER (WHERE state = 'CONFIRMED')::int AS confirmed,
       (SELECT sum(token)::int FROM fencepost.lane) AS takeovers FROM fencepost.transaction`,
  );
  const byFault: Record<string, number> = {};
  for (const { name } of faults) byFault[name] = (byFault[name] ?? 0) + 1;
  await mkdir(output, { recursive: true });
  const title = `fencepost chaos --seed ${seed}: ${faults.length} faults, ${violations.length} violations`;
  await writeFile(join(output, "timeline.svg"), timeline(title, { faults, progress: course, totalMs }));
  const { promised, stops, orders, refused } = record;
  const lines = [
    ...faults.map((each) => ({ kind: "fault", ...each })),
    ...stops.map((each) => ({ kind: "stop", ...each })),
    ...promised.map((each) => ({ kind: "promise", ...each })),
    ...violations.map((what) => ({ kind: "violation", what })),
  ];
  await writeFile(join(output, "history.jsonl"), lines.map((each) => `${JSON.stringify(each)}\n`).join(""));
  return {
    ...{ seed, output, violations, byFault, stalledMs },
    verdict: violations.length === 0 ? "held" : stalledMs > STALLED_MS ? "no verdict" : "broken",
    seconds: totalMs / 1_000,
    faults: faults.length,
    accepted: promised.length,
    transactions: rows?.all ?? 0,
    confirmed: rows?.confirmed ?? 0,
    sent: arrivals,
    delivered,
    takeovers: rows?.takeovers ?? 0,
    stops: stops.length,
    orders: Object.fromEntries(orders),
    refused: Object.fromEntries(refused),
  };
}
