import type { ChainContext } from "../chain/chain-context.ts";
import { expireUnsent } from "../detours/expiry.ts";
import { Activity, type Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { sign } from "../stages/3-sign/sign.ts";
import { broadcast } from "../stages/4-broadcast/broadcast.ts";
import { tendLane } from "./tend.ts";

/** Gives a resumed lane its activities, all at rest. */
export function beginWork(ports: LanePorts, context: ChainContext, lane: OwnedLane): void {
  const failed = (error: unknown) => lane.term.readAgain(String(error));
  const working = (work: () => Working) => new Activity(() => lane.term.work(work), failed);
  lane.activities = {
    signing: working(() => sign(ports, context, lane)),
    broadcasting: working(() => broadcast(ports, context, lane)),
    tending: working(() => tendLane(ports, context, lane)),
    expiring: working(() => expireUnsent(ports, lane)),
  };
}
