/**
 * Decides at registration whether the database's history is the same as before. If it is another one, the feed begins a
 * new epoch. Registrations take turns, so the first node to notice begins the epoch, and the others find it.
 *
 * After a change of history, commits are assumed to be lost, with one exception. It requires all of the following. A
 * standby was promoted (same system, later timeline). Shortly before, this process saw that commits also waited for a
 * standby. And the last commit acknowledged to this process is still there.
 */

import type { DatabaseHistoryRow } from "../statements/database.ts";
import { type DatabaseIdentity, type ObservedHistory, sameIdentity } from "./known-history.ts";

export interface Evidence {
  readonly observed: ObservedHistory;
  /** The history recorded by the newest registration; null if there was none. */
  readonly recorded: DatabaseHistoryRow | null;
  /** The history that this process saw before; null if the process has just started. */
  readonly memory: ObservedHistory | null;
  /** True if the database still has the last commits that were acknowledged to this process. */
  readonly commitsKept: boolean;
  readonly feed: { readonly epoch: number; readonly lastSeq: number };
  /** The highest position of the feed that this process has read. */
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
  // Another node has begun an epoch after this process's last registration. No further epoch is needed, unless that
  // node saw no loss and a commit acknowledged to this process is missing.
  if (recorded.epoch > memory.epoch) return !commitsKept && !recorded.mayHaveLost;
  // Only this process's memory can show that commits are missing: a restored database contains its own older state.
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
