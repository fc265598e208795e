import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";

/**
 * Number of processes that compete for each processor, at least 1. Tests multiply their time limits by it, because the node
 * is not responsible for delays caused by other processes. Exact times are tested with a simulated clock in
 * test/application/cluster/takeover.test.ts.
 */
export function crowding(): number {
  return Math.max(1, Math.max(loadavg()[0] ?? 0, runnable()) / availableParallelism());
}

/** Threads that run or wait for a processor now: the mean of a minute follows a sudden load too slowly. Linux only. */
function runnable(): number {
  try {
    return Number(/(\d+)\/\d+/.exec(readFileSync("/proc/loadavg", "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
