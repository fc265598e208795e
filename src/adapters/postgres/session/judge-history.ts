/**
 * What a registration makes of the history it finds: the same as before, or another one, with which the feed begins a
 * new epoch. Registrations take turns, so the first to notice begins it, and the others find it begun.
 *
 * That nothing was lost is believed in one case only: a standby was promoted (same system, next timeline), this very
 * process saw just before that commits were acknowledged by a standby too, and what was last acknowledged to it is there.
 */

import type { DatabaseHistoryRow } from "../statements/database.ts";
import { type DatabaseIdentity, type ObservedHistory, sameIdentity } from "./known-history.ts";

export interface Evidence {
  readonly observed: ObservedHistory;
  /** The history of the newest registration; null if there never was one. */
  readonly recorded: DatabaseHistoryRow | null;
  /** The history that this process saw before; null if it has just started. */
  readonly memory: ObservedHistory | null;
  /** The last commits that were acknowledged to this process are there. */
  readonly commitsKept: boolean;
  readonly feed: { readonly epoch: number; readonly lastSeq: number };
  /** The highest that this process has read of the feed. */
  readonly seen: { readonly epoch: number; readonly seq: number };
}

export interface Judgement {
  readonly ordinal: number;
  readonly epoch: number;
  readonly begins: boolean;
  readonly mayHaveLost: boolean;
}

export function judgeHistory(evidence: Evidence): Judgement {
  const { recorded, memory, feed, seen } = evidence;
  if (recorded === null) return { ordinal: 1, epoch: feed.epoch, begins: false, mayHaveLost: false };
  const { ordinal, epoch } = recorded;
  if (!begins(evidence, recorded)) return { ordinal, epoch, begins: false, mayHaveLost: recorded.mayHaveLost };
  const highest = Math.max(epoch, feed.epoch, seen.epoch, memory?.epoch ?? 0);
  const mayHaveLost = !isPromotionWithoutLoss(evidence, recorded);
  return { ordinal: ordinal + 1, epoch: highest + 1, begins: true, mayHaveLost };
}

function begins({ observed, memory, commitsKept, feed, seen }: Evidence, recorded: DatabaseHistoryRow) {
  if (!continues(recorded, observed) || recorded.loadedAnew) return true;
  if (feed.lastSeq < seen.seq || recorded.epoch < seen.epoch) return true;
  if (memory === null) return false;
  // Another node has begun an epoch since. That is enough, unless it saw no loss and a commit acknowledged to us is gone.
  if (recorded.epoch > memory.epoch) return !commitsKept && !recorded.mayHaveLost;
  // No record in the database can show this: a restored database holds its own older state.
  return recorded.epoch < memory.epoch || !commitsKept || !continues(memory, observed);
}

function isPromotionWithoutLoss(evidence: Evidence, recorded: DatabaseHistoryRow) {
  const { observed, memory, commitsKept, feed, seen } = evidence;
  if (memory === null || !memory.synchronous || !commitsKept || feed.lastSeq < seen.seq) return false;
  return (
    sameIdentity(memory, recorded) &&
    !recorded.loadedAnew &&
    recorded.epoch === memory.epoch &&
    observed.systemIdentifier === recorded.systemIdentifier &&
    Number.parseInt(observed.timeline, 16) > Number.parseInt(recorded.timeline, 16)
  );
}

function continues(before: DatabaseIdentity, now: DatabaseIdentity) {
  return sameIdentity(before, now) && now.walPosition >= before.walPosition;
}
