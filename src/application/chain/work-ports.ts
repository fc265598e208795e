import type { Ports } from "../../ports/ports.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import type { NodeSettings } from "../settings.ts";
import type { ChainContext } from "./chain-context.ts";

/** Ports of work across the lanes and chains of a node. */
export interface WorkPorts extends LanePorts {
  readonly chains: ReadonlyMap<number, ChainContext>;
  /** The lanes that this node currently owns on a chain. */
  readonly lanesOf: (chainId: number) => readonly OwnedLane[];
  /** Signals that the intake table has a row that needs a nonce. */
  readonly intakeDue: () => void;
}

/** Input of work on one lane: the ports, the context of the lane's chain, and the lane. */
export interface LaneWork {
  readonly ports: LanePorts;
  readonly context: ChainContext;
  readonly lane: OwnedLane;
}

/** All ports of API calls; queries and operations pick from it. */
export interface CallPorts extends Omit<Ports, "signer">, Omit<WorkPorts, keyof Ports> {
  readonly signer: WorkPorts["signer"] & Pick<Ports["signer"], "addresses">;
  readonly settings: Pick<NodeSettings, "nodeId" | "version" | "signerNames" | "abis">;
  /** How long a final transaction is kept; if absent, for ever. */
  readonly retention?: { readonly ageMs: number };
}
