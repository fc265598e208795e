import type { LeftRequestStore } from "../../ports/left-request-store.ts";
import type { Dequeue } from "../cluster/dequeue.ts";
import type { Intake } from "../detours/intake.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";

interface TakeWaitingParts {
  readonly store: Pick<LeftRequestStore, "whatWaits">;
  readonly lanes: { all(): readonly OwnedLane[] };
  readonly intakes: Pick<Intake, "look" | "noteNews">;
  readonly cluster: { readonly dequeue: Pick<Dequeue, "look"> };
}

/** Takes up intents and waiting requests for this node's lanes. A node at rest asks the database one question a second. */
export async function takeWaiting({ store, lanes, intakes, cluster }: TakeWaitingParts): Promise<void> {
  const waits = await store.whatWaits();
  if (waits.intents) await intakes.look(() => lanes.all().filter((lane) => !lane.heldByHistory));
  if (!waits.requests) return;
  intakes.noteNews();
  await cluster.dequeue.look(() => lanes.all());
}
