import { readdir, readFile } from "node:fs/promises";

/** Linux counts in hundredths of a second (USER_HZ), whatever the kernel was built with. */
const MS_PER_TICK = 10;

interface Counted {
  readonly parent: number;
  /** Of all its threads. */
  readonly ticks: number;
  /** Of its children that have ended. */
  readonly endedTicks: number;
}

/** Milliseconds of processor time that a process has taken, all threads, with its children where asked. */
export async function processorMs(pid: number, { withChildren = false } = {}): Promise<number> {
  const own = await read(pid);
  if (own === null) return Number.NaN;
  if (!withChildren) return own.ticks * MS_PER_TICK;
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
