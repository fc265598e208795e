/**
 * Implements RetentionStore on PostgreSQL. A transaction's row is removed like any write of its lane: under the lane's
 * lock, and only if the fencing token is still valid. All rows that depend on it are removed with it. The same database
 * transaction stores its request id as a hash. So a repeat of the request that arrives at this moment waits for the
 * lane's lock, and then finds the row or the hash. The feed's completions are removed in the transaction that moves the
 * feed's truncation mark.
 *
 * A crash leaves a batch as it was, or removed as a whole.
 */

import { leavesThrough, mayLeave } from "../../../domain/cluster/retention.ts";
import { grouped } from "../../../domain/grouped.ts";
import { type Fence, type Lane, laneKey } from "../../../domain/lane.ts";
import type { RetentionStore } from "../../../ports/retention-store.ts";
import { termsOf } from "../commit/lookup.ts";
import { laneOf } from "../rows/columns.ts";
import { ask, type Reading } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import { lockLanes } from "../statements/lane.ts";
import * as old from "../statements/old-row.ts";
import { deleteSignatures, findLanesWithOldSignatures, readOldSignatures } from "../statements/signature.ts";
import { forgetSpent } from "../statements/spent-request.ts";
import type { Command } from "../statements/statement.ts";
import { forgetDecisions } from "../statements/subscriber.ts";
import { writeRows } from "./leases.ts";

/**
 * Longest wait for a lane's lock in ms. Later commits of the lane queue behind this wait. If it is exceeded, the lane
 * is busy and is tried again later.
 */
const LANE_WAIT_MS = 100;

export function oldRowsIn(reading: Reading, runtime: DurableRuntime): RetentionStore {
  return {
    shortenFeed: (ageMs, most) => shortenFeed(runtime, ageMs, most),
    lanesWithOld: async (lanes, ageMs) => (lanes.length === 0 ? [] : await lanesWithOld(reading, lanes, ageMs)),
    abandonedLanes: () => ask(reading, old.listAbandonedLanes()),
    removeOld: (fences, ageMs, most) => removeOld(runtime, fences, { ageMs, most }),
    forgetRequestIds: async (...limits) => (await writeRows(runtime, forgetSpent(...limits))).length,
    forgetSubscriberDecisions: async (...limits) => (await writeRows(runtime, forgetDecisions(...limits))).length,
  };
}

async function lanesWithOld(reading: Reading, lanes: readonly Lane[], ageMs: number): Promise<readonly Lane[]> {
  const found = await reading.read(old.findOldLanes(lanes, ageMs), findLanesWithOldSignatures(lanes, ageMs));
  return [...new Map(found.flat().map((lane) => [laneKey(lane), lane])).values()];
}

function shortenFeed(runtime: DurableRuntime, ageMs: number, most: number): ReturnType<RetentionStore["shortenFeed"]> {
  return durably(runtime, {
    find: [old.takeFeedTurn(), old.readLowest(most + 1)],
    decide: ([[turn], lowest], { now }) => {
      const through = leavesThrough(lowest.slice(0, most), new Date(now.getTime() - ageMs));
      const isTurn = turn?.taken === true && through !== null;
      const leaving = isTurn ? lowest.filter(({ seq }) => seq <= through).length : 0;
      const commands = isTurn ? [old.deleteCompletions(through, leaving), old.markTruncated(through)] : null;
      return { commands, result: { completions: leaving, oldestAt: lowest[leaving]?.at ?? null } };
    },
  });
}

function removeOld(
  runtime: DurableRuntime,
  fences: readonly Fence[],
  { ageMs, most }: { readonly ageMs: number; readonly most: number },
): Promise<number> {
  const lanes = fences.map(({ lane }) => lane);
  const share = Math.ceil(most / Math.max(1, fences.length));
  return durably(runtime, {
    waits: 1,
    waitAtMostMs: LANE_WAIT_MS,
    find: [
      lockLanes(termsOf(fences.map((fence) => ({ fence })))),
      old.readOldRows(lanes, ageMs, share),
      readOldSignatures(lanes, ageMs, share),
    ],
    decide: ([held, found, asked], { now }) => {
      const keys = new Set(held.map(laneKey));
      const leaving = found.filter((row) => keys.has(laneKey(row)) && mayLeave(row, { now, ageMs, ...row }));
      const rows = leaving.slice(0, most);
      const signatures = asked.filter((row) => keys.has(laneKey(row))).map(({ signatureId }) => signatureId);
      const commands = [
        ...(rows.length === 0 ? [] : removal(rows)),
        ...(signatures.length === 0 ? [] : [deleteSignatures(signatures.sort())]),
      ];
      return { commands: commands.length === 0 ? null : commands, result: rows.length + signatures.length };
    },
  });
}

/** Statements that remove old transactions, in lock order: lanes, transactions and their rows, pools. */
function removal(rows: readonly old.OldTransactionRow[]): readonly Command[] {
  const ids = rows.map(({ txId }) => txId).sort();
  const marks = [...grouped(rows, laneKey).values()].map((all) => {
    const below = Math.max(...all.map(({ nonce }) => (nonce === null ? 0 : nonce + 1)));
    return { ...laneOf(all[0] as old.OldTransactionRow), below };
  });
  return [old.markDeparted(marks), old.keepRequests(ids), old.deleteTransactions(ids)];
}
