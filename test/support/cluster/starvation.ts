/** Keeps other processes from getting CPU time, for a bounded time, and measures how much CPU time a process lacked. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** Seconds after which a busy loop ends by itself, even if the test is killed. */
const BUSY_AT_MOST_S = 90;

/**
 * Starts busy loops, each in a session of its own: Linux shares CPU time by session (autogroup), so loops in the
 * session of the tests would starve only the tests.
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
    // Ignore the error: the loop has already ended by itself.
  }
}

export interface Share {
  /** CPU time in ms of all threads of the process. */
  readonly ranMs: number;
  /** Time in ms in which the process's main thread ran, or was ready to run but had to wait for other threads. */
  readonly wantedMs: number;
}

/** CPU time and waiting time of a process since its start (Documentation/scheduler/sched-stats.rst). */
export function shareOf(pid: number): Share {
  const [ran, waited] = statOf(`/proc/${pid}/schedstat`);
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => statOf(`/proc/${pid}/task/${thread}/schedstat`)[0]);
  return { ranMs: threads.reduce((sum, each) => sum + each, 0), wantedMs: ran + waited };
}

function statOf(file: string): readonly [ranMs: number, waitedMs: number] {
  const [ran = 0, waited = 0] = readFileSync(file, "utf8").split(" ").map(Number);
  return [ran / 1e6, waited / 1e6];
}
