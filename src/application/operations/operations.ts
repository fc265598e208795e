import type { FencepostApi, OperationName } from "../api.ts";
import { actOnLane, type LaneActionPorts } from "./lane-actions.ts";
import { findReservation, releaseNonce, reserveNonce } from "./reservations.ts";
import { type ActionPorts, act, acting } from "./transaction-actions.ts";
import { markUsed, submitReserved, type UseNoncePorts } from "./use-nonce.ts";

export interface OperationPorts extends ActionPorts, LaneActionPorts, UseNoncePorts {
  readonly store: ActionPorts["store"] & LaneActionPorts["store"] & UseNoncePorts["store"];
  readonly signer: ActionPorts["signer"] & LaneActionPorts["signer"];
  readonly codec: ActionPorts["codec"];
}

/** What an operator, or a caller that signs itself, may do; each on the node that owns the lane. */
export function createOperations(ports: OperationPorts): Pick<FencepostApi, OperationName> {
  return {
    act: (order) => acting(act(ports, order)),
    actOnLane: (order) => acting(actOnLane(ports, order)),
    reserveNonce: (request) => acting(reserveNonce(ports, request)),
    reservation: (reservationId) => acting(findReservation(ports, reservationId)),
    submitReserved: (reservationId, request) => acting(submitReserved(ports, reservationId, request)),
    markUsed: (reservationId, request) => acting(markUsed(ports, reservationId, request)),
    releaseNonce: (reservationId) => acting(releaseNonce(ports, reservationId)),
  };
}
