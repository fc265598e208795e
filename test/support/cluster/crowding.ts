import { availableParallelism, loadavg } from "node:os";

/**
 * What a bar of so many milliseconds is on this machine now. A node's share of a processor that others use as well is not
 * the node's; where time is ours, the bar itself is kept to the millisecond: test/application/takeover.test.ts.
 */
export function crowdedMs(ms: number): number {
  return ms * Math.max(1, (loadavg()[0] as number) / availableParallelism());
}
