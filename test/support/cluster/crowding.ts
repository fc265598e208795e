import { availableParallelism, loadavg } from "node:os";

/**
 * Number of processes that compete for each processor. Tests multiply their time limits by it, because the node is not
 * responsible for delays caused by other processes. Exact times are tested with a simulated clock in
 * test/application/cluster/takeover.test.ts.
 */
export function crowding(): number {
  return Math.max(1, (loadavg()[0] as number) / availableParallelism());
}
