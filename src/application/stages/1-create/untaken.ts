/**
 * Stage 1, beside the road: creates that found no owner who could be asked are left in the intake table for it.
 *
 * Reads: request ids. Writes: the intake table. Invariants: I4, I5, I10. What may have been accepted somewhere, unheard, is
 * not left there: it would be asked for twice. A crash leaves what through-intake.ts says.
 */
import type { Intent } from "../../../domain/transaction.ts";
import type { ThroughIntake } from "../../cluster/through-intake.ts";
import { failureOf } from "../../requests/unanswered.ts";
import { answerExisting, type Fate } from "./answer-existing.ts";
import { type Entering, refuseOverShare, type SharePorts } from "./queue-shares.ts";
import type { RequestIds } from "./request-ids.ts";

export interface UntakenPorts extends SharePorts {
  readonly requestIds: RequestIds;
  readonly throughIntake: Pick<ThroughIntake, "leave" | "leaving">;
  /** Whether nothing was accepted because the lane's owner cannot be asked. */
  readonly isUnasked: (fate: unknown) => boolean;
}

/** The fates of creates of one lane, with those that no owner could be asked for replaced by what became of them. */
export async function leaveUntaken(
  { throughIntake, isUnasked, ...ports }: UntakenPorts,
  entering: readonly Entering[],
  fates: readonly Fate[],
): Promise<readonly Fate[]> {
  const all = entering.map(({ intent, queueShare }, index) => ({ intent, queueShare, index }));
  const items = all.filter(({ intent, index }) => mayBeLeft(intent) && isUnasked(fates[index]));
  if (items.length === 0) return fates;
  const settled = [...fates];
  try {
    const unseen = new Set((await answerExisting(ports, items, settled)).map(({ index }) => index));
    const asked = items.filter(({ index }) => unseen.has(index));
    const refused = await refuseOverShare(ports, asked, (intent) => throughIntake.leaving(intent));
    const within = asked.filter((_, place) => !refused.has(place));
    const leaving = throughIntake.leave(within.map(({ intent }) => intent));
    asked.forEach(({ index }, place) => {
      settled[index] = refused.get(place) ?? (settled[index] as Fate);
    });
    const left = await leaving;
    within.forEach(({ index }, at) => {
      settled[index] = left[at] as Fate;
    });
  } catch (error) {
    for (const { index, intent } of items) settled[index] = failureOf(error, intent.txId);
  }
  return settled;
}

/** Rows of the intake table have no place for the pool that chose the lane, nor for a nonce that was named: without them it could be made twice. */
function mayBeLeft({ pool, exactNonce }: Intent): boolean {
  return pool === undefined && exactNonce === undefined;
}
