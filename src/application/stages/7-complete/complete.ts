/**
 * Stage 7: the outcome and its place in the feed become durable together, in one fenced transaction whose last statement
 * is the feed's counter.
 *
 * Reads: nothing more. Writes: final state, history, completion. Invariant I8: a completion once per entry into a final
 * state, commit order = sequence order. A crash before the commit leaves TRACKING/MINED, decided again by the next owner;
 * after it, everything is said.
 */
import type { TransitionEvent } from "../../../domain/transitions.ts";
import type { Failpoints } from "../../../ports/failpoints.ts";
import { commitPlanned, type LaneWriterPorts, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";

export interface CompletePorts extends LaneWriterPorts {
  readonly failpoint: Failpoints;
  /** Wakes those who wait for the feed on this node. */
  readonly feedGrew: () => void;
}

export async function complete(ports: CompletePorts, lane: OwnedLane, decided: readonly Tracked[]): Promise<void> {
  const planned = decided.map((tx) => {
    lane.settle(tx);
    return plan(tx, outcomeOf(tx));
  });
  if (!(await commitPlanned(ports, lane, planned))) return;
  ports.feedGrew();
  await ports.failpoint("complete.committed");
}

/** Decided by whose payload was mined, and only for the caller's own also by how it ended. */
function outcomeOf({ attempts, receipt }: Tracked): TransitionEvent {
  const mined = attempts.find((attempt) => attempt.txHash === receipt?.txHash);
  if (mined?.foreign === true) return "loseNonce";
  if (mined?.kind === "cancel" || mined?.kind === "placeholder") return "confirmCancel";
  if (receipt?.status === "reverted") return "revert";
  return mined?.kind === "replace" ? "confirmReplacement" : "confirm";
}
