import { readdir, readFile } from "node:fs/promises";
import type { Figure } from "../report.ts";
import { median } from "../statistics.ts";

/** Linux counts in hundredths of a second (USER_HZ), whatever the kernel was built with. */
const MS_PER_TICK = 10;

interface Counted {
  readonly parent: number;
  /** Of all its threads. */
  readonly ticks: number;
  /** Of its children that have ended. */
  readonly endedTicks: number;
}

/** Milliseconds of processor time that a process and its children have taken, all threads. */
export async function processorMs(pid: number): Promise<number> {
  const own = await read(pid);
  if (own === null) return Number.NaN;
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const children = (await Promise.all(pids.map(read))).filter((each) => each?.parent === pid);
  return children.reduce((sum, each) => sum + (each?.ticks ?? 0), own.ticks + own.endedTicks) * MS_PER_TICK;
}

/** proc(5): the name in parentheses may hold anything, so fields are counted from behind it. Null: it is gone. */
async function read(pid: number): Promise<Counted | null> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (text === null) return null;
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const at = (index: number): number => Number(fields[index]);
  return { parent: at(1), ticks: at(11) + at(12), endedTicks: at(13) + at(14) };
}

/** Processor time of a node and of its database, in milliseconds. */
export interface Spent {
  readonly nodeMs: number;
  readonly databaseMs: number;
}

/** What was spent in between for each of `count` transactions or seconds. */
export function spentPer(before: Spent, after: Spent, count: number): Spent {
  return {
    nodeMs: (after.nodeMs - before.nodeMs) / count,
    databaseMs: (after.databaseMs - before.databaseMs) / count,
  };
}

export function processorFigures(turns: readonly Spent[]): readonly Figure[] {
  const figure = (name: string, key: keyof Spent): Figure => ({
    measure: `  processor time of the ${name}`,
    value: 1_000 * median(turns.map((turn) => turn[key])),
    unit: "µs per tx",
  });
  return [figure("node", "nodeMs"), figure("database", "databaseMs")];
}
