/** Takes the processor away from others, for a bounded time, and measures how much of it a process had to do without. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** Whatever becomes of the test, a busy loop ends by itself after this. */
const BUSY_AT_MOST_S = 90;

/**
 * Loops that do nothing, each in a session of its own: Linux shares the processor out by session (autogroup), so loops in
 * the session of the tests would only starve the tests.
 */
export function startBusyLoops(count: number): () => void {
  const loops = Array.from({ length: count }, () =>
    spawn("timeout", [String(BUSY_AT_MOST_S), "sh", "-c", "while :; do :; done"], { detached: true, stdio: "ignore" }),
  );
  const stop = (): void => {
    for (const { pid } of loops.splice(0)) if (pid !== undefined) killGroup(pid);
    process.off("exit", stop);
  };
  process.once("exit", stop);
  return stop;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

export interface Share {
  readonly ranMs: number;
  /** It could have run, and others did. */
  readonly waitedMs: number;
}

/** Of the main thread of a process, since it began (Documentation/scheduler/sched-stats.rst). */
export function shareOf(pid: number): Share {
  const [ran, waited] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ").map(Number) as [number, number];
  return { ranMs: ran / 1e6, waitedMs: waited / 1e6 };
}
