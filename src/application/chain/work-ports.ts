import type { Ports } from "../../ports/ports.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { ChainContext } from "./chain-context.ts";

/** Ports of work across the lanes and chains of a node. */
export interface WorkPorts extends LanePorts {
  readonly chains: ReadonlyMap<number, ChainContext>;
  /** The lanes that this node owns on a chain, now. */
  readonly lanesOf: (chainId: number) => readonly OwnedLane[];
  /** The intake table has a row that is due a nonce. */
  readonly intakeDue: () => void;
}

/** Work on one lane: what it is done with, the lane's chain, and the lane. */
export interface LaneWork {
  readonly ports: LanePorts;
  readonly context: ChainContext;
  readonly lane: OwnedLane;
}

/** The one list of ports for calls: queries and operations pick from it. */
export interface CallPorts extends Omit<Ports, "signer">, Omit<WorkPorts, keyof Ports> {
  readonly signer: WorkPorts["signer"] & Pick<Ports["signer"], "addresses">;
  /** How long a final transaction is kept; absent: for ever. */
  readonly retention?: { readonly ageMs: number };
}
