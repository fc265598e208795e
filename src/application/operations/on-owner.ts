import { FencepostError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

export interface OwnerPorts {
  readonly lanes: { own(lane: Lane): Promise<OwnedLane> };
}

/**
 * Runs an act where the lane's owner is: here, after acquiring the lane where nobody has it, as a create does. Where
 * another node owns it, the act is refused with that node's name (NOT_LEADER).
 */
export async function onOwner<T>(ports: OwnerPorts, lane: Lane, act: (lane: OwnedLane) => Promise<T>): Promise<T> {
  return act(await ports.lanes.own(lane));
}

/** The lane was ours when the act began, and is no more: nothing was done. */
export function lostLane(): FencepostError {
  return new FencepostError("NOT_LEADER", "another node took this signer over", {
    ownerUrl: null,
    retryAfterSeconds: 1,
  });
}
