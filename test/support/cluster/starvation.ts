/** Takes the processor away from others, for a bounded time, and measures how much of it a process had to do without. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** A busy loop ends by itself after this time, however the test ends. */
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
  /** All threads of it: they share what the scheduler gives to their session. */
  readonly ranMs: number;
  /** Its main thread ran, or could have run while others did. */
  readonly wantedMs: number;
}

/** Waiting time of a process since it began (Documentation/scheduler/sched-stats.rst). */
export function shareOf(pid: number): Share {
  const [ran, waited] = statOf(`/proc/${pid}/schedstat`);
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => statOf(`/proc/${pid}/task/${thread}/schedstat`)[0]);
  return { ranMs: threads.reduce((sum, each) => sum + each, 0), wantedMs: ran + waited };
}

function statOf(file: string): readonly [ranMs: number, waitedMs: number] {
  const [ran = 0, waited = 0] = readFileSync(file, "utf8").split(" ").map(Number);
  return [ran / 1e6, waited / 1e6];
}
