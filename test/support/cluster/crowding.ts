import { availableParallelism, loadavg } from "node:os";

/**
 * Number of processes that compete for each processor. Time limits of tests are multiplied by it, because delays due to
 * other processes are not the node's. Exact times are tested with a simulated clock in
 * test/application/cluster/takeover.test.ts.
 */
export function crowding(): number {
  return Math.max(1, (loadavg()[0] as number) / availableParallelism());
}
