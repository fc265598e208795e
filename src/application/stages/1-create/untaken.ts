/**
 * Stage 1, beside the road: creates that found no owner who could be asked are left in the database for it. In the intake
 * table, which keeps them until somebody acts for the lane; or, where one of the lane names its nonce or comes from a pool, as
 * requests that the owner answers within seconds or never begins (leave-creates.ts).
 *
 * Reads: request ids. Writes: the intake table, or requests that were left. Invariants: I4, I5, I10. What may have been accepted
 * somewhere, unheard, is not left: it would be asked for twice. A crash leaves what through-intake.ts says, or leave-creates.ts.
 */
import type { ForwardedCreate } from "../../../ports/peers.ts";
import type { ThroughIntake } from "../../cluster/through-intake.ts";
import { failureOf } from "../../requests/unanswered.ts";
import { answerExisting, type Fate } from "./answer-existing.ts";
import type { LeaveCreates } from "./leave-creates.ts";
import { isComplete } from "./prepare.ts";
import { type Entering, refuseOverShare, type SharePorts } from "./queue-shares.ts";
import type { RequestIds } from "./request-ids.ts";

export interface UntakenPorts extends SharePorts {
  readonly requestIds: RequestIds;
  readonly throughIntake: Pick<ThroughIntake, "leave" | "leaving">;
  readonly leaveCreates: Pick<LeaveCreates, "leave">;
  /** Whether nothing was accepted because the lane's owner cannot be asked. */
  readonly isUnasked: (fate: unknown) => boolean;
}

/** A create that found no owner, in the words that another node would be told. */
export interface Untaken extends Entering {
  readonly forwarded: () => ForwardedCreate;
}

interface Item extends Untaken {
  readonly index: number;
}

/** The fates of creates of one lane, with those that no owner could be asked for replaced by what became of them. */
export async function leaveUntaken(
  ports: UntakenPorts,
  entering: readonly Untaken[],
  fates: readonly Fate[],
): Promise<readonly Fate[]> {
  const all = entering.map((each, index) => ({ ...each, index }));
  const items = all.filter(({ index }) => ports.isUnasked(fates[index]));
  if (items.length === 0) return fates;
  const settled = [...fates];
  try {
    const unseen = new Set((await answerExisting(ports, items, settled)).map(({ index }) => index));
    const asked = items.filter(({ index }) => unseen.has(index));
    // All of them on one road: on two, one that names its nonce would overtake what has to come before it.
    const leave = asked.some(isForOwner) ? leaveForOwner : leaveInIntake;
    await leave(ports, asked, settled);
  } catch (error) {
    for (const { index, intent } of items) settled[index] = failureOf(error, intent.txId);
  }
  return settled;
}

/** Rows of the intake table have no place for the pool that chose the lane, nor for a nonce that was named: without them it could be made twice. */
function isForOwner({ intent: { pool, exactNonce } }: Item): boolean {
  return pool !== undefined || exactNonce !== undefined;
}

/** The owner judges the key's part of its queue itself. */
async function leaveForOwner({ leaveCreates }: UntakenPorts, asked: readonly Item[], settled: Fate[]): Promise<void> {
  const { lane } = (asked[0] as Item).intent;
  const creates = asked.map(({ forwarded }) => forwarded());
  const mayShare = asked.every(({ intent }) => isComplete(intent));
  const left = await leaveCreates.leave(lane, creates, mayShare);
  asked.forEach(({ index }, at) => {
    settled[index] = left[at] as Fate;
  });
}

async function leaveInIntake(ports: UntakenPorts, asked: readonly Item[], settled: Fate[]): Promise<void> {
  const { throughIntake } = ports;
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
}
