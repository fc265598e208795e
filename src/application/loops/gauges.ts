import type { OwnedLane } from "../lane/owned-lane.ts";
import type { ChainLoop } from "./chain-loop.ts";

/** What only memory knows, for the gauges. */
export interface NodeGauges {
  readonly lanesHeld: number;
  readonly writerQueueDepth: number;
  readonly pendingDepth: number;
  readonly noncesReserved: number;
  readonly oldestPendingAgeSeconds: number;
  readonly receiptBacklog: number;
}

export interface GaugedParts {
  readonly lanes: readonly OwnedLane[];
  readonly writer: { readonly depth: number };
  readonly loops: readonly Pick<ChainLoop, "backlog">[];
  readonly now: Date;
}

export function gaugesOf({ lanes, writer, loops, now }: GaugedParts): NodeGauges {
  const oldest = Math.min(...lanes.map((lane) => lane.oldestPendingAt()?.getTime() ?? Number.POSITIVE_INFINITY));
  return {
    lanesHeld: lanes.length,
    writerQueueDepth: writer.depth,
    pendingDepth: lanes.reduce((sum, lane) => sum + lane.pendingDepth(), 0),
    noncesReserved: lanes.reduce((sum, lane) => sum + lane.nonces.reserved, 0),
    oldestPendingAgeSeconds: Number.isFinite(oldest) ? (now.getTime() - oldest) / 1_000 : 0,
    receiptBacklog: loops.reduce((sum, loop) => sum + loop.backlog, 0),
  };
}
