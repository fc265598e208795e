import type { LeftRequestStore } from "../../ports/left-request-store.ts";
import type { TakeRequests } from "../cluster/take-requests.ts";
import type { Intake } from "../detours/intake.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

export interface TakeWaitingParts {
  readonly store: Pick<LeftRequestStore, "whatWaits">;
  readonly lanes: { all(): readonly OwnedLane[] };
  readonly intakes: Pick<Intake, "look" | "noteNews">;
  readonly cluster: { readonly leftRequests: Pick<TakeRequests, "look"> };
}

/** Takes up what others left for this node's lanes. One question to the database where nothing was: a node at rest asks it every second. */
export async function takeWaiting({ store, lanes, intakes, cluster }: TakeWaitingParts): Promise<void> {
  const waits = await store.whatWaits();
  if (waits.intents) await intakes.look(() => lanes.all().filter((lane) => !lane.heldByHistory));
  if (!waits.requests) return;
  intakes.noteNews();
  await cluster.leftRequests.look(() => lanes.all());
}
