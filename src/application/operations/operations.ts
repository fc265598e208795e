import type { FencepostApi } from "../api.ts";
import { actOnLane, type LaneActionPorts } from "./lane-actions.ts";
import { type ActionPorts, act, acting } from "./transaction-actions.ts";

export interface OperationPorts extends ActionPorts, LaneActionPorts {
  readonly store: ActionPorts["store"] & LaneActionPorts["store"];
  readonly signer: ActionPorts["signer"] & LaneActionPorts["signer"];
  readonly codec: ActionPorts["codec"];
}

/** What an operator may do; each on the node that owns the lane. */
export function createOperations(ports: OperationPorts): Pick<FencepostApi, "act" | "actOnLane"> {
  return {
    act: (order) => acting(act(ports, order)),
    actOnLane: (order) => acting(actOnLane(ports, order)),
  };
}
