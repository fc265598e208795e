import type { LanePorts } from "../lane/lane-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { ChainContext } from "./chain-context.ts";

/** What work across the lanes and chains of a node is done with. */
export interface WorkPorts extends LanePorts {
  readonly chains: ReadonlyMap<number, ChainContext>;
  /** The lanes that this node owns on a chain, now. */
  readonly lanesOf: (chainId: number) => readonly OwnedLane[];
  /** There is something in the intake table that a nonce is due to. */
  readonly intakeDue: () => void;
}

/** Work on one lane: what it is done with, the lane's chain, and the lane. */
export interface LaneWork {
  readonly ports: LanePorts;
  readonly context: ChainContext;
  readonly lane: OwnedLane;
}
