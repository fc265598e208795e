import { availableParallelism, loadavg } from "node:os";

/**
 * How many want each processor. A node's share of one that others use as well is not the node's delay: bars of time are
 * this much longer then. Where time is ours, they are kept to the millisecond: test/application/cluster/takeover.test.ts.
 */
export function crowding(): number {
  return Math.max(1, (loadavg()[0] as number) / availableParallelism());
}
