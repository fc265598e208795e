/**
 * RetentionStore on PostgreSQL. A transaction's row leaves under its lane's fence like any write of the lane, together with
 * everything that hangs on it and in the database transaction that keeps its request id as a hash: a repeat that comes in
 * this moment waits for the lane's lock and finds one or the other. The feed's completions leave in the transaction that
 * moves its mark.
 *
 * A crash leaves a batch as it was, or gone as a whole.
 */

import { leavesThrough, mayLeave } from "../../../domain/cluster/retention.ts";
import { type Fence, type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { RetentionStore } from "../../../ports/retention-store.ts";
import { termsOf } from "../commit/lookup.ts";
import { laneOf, rowsOf } from "../rows/columns.ts";
import { ask, type Reading } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import { lockLanes } from "../statements/lane.ts";
import {
  deleteCompletions,
  deleteTransactions,
  findOldLanes,
  keepRequests,
  listAbandonedLanes,
  markDeparted,
  markTruncated,
  type OldTransactionRow,
  readLowest,
  readOldRows,
  takeFeedTurn,
} from "../statements/old-row.ts";
import { forgetSpent } from "../statements/spent-request.ts";
import type { Command } from "../statements/statement.ts";

/** Whoever waits for a lane's lock holds up those that come behind: what is busy is left for later. */
const LANE_WAIT_MS = 100;

export function oldRowsIn(reading: Reading, runtime: DurableRuntime): RetentionStore {
  return {
    shortenFeed: (ageMs, most) => shortenFeed(runtime, ageMs, most),
    async lanesWithOld(lanes, ageMs) {
      if (lanes.length === 0) return [];
      const columns = [lanes.map(({ chainId }) => chainId), lanes.map(({ signer }) => signer)];
      return (await ask(reading, findOldLanes, [ageMs, ...columns])).map(laneOf);
    },
    abandonedLanes: async () => (await ask(reading, listAbandonedLanes)).map(laneOf),
    removeOld: (fences, ageMs, most) => removeOld(runtime, fences, { ageMs, most }),
    forgetRequestIds: (ageMs, most) =>
      durably(runtime, {
        statements: 1,
        waits: 1,
        find: (run) => run(forgetSpent, [ageMs, most]),
        decide: (gone) => ({ commands: [], result: gone.length, rollback: gone.length === 0 }),
      }),
  };
}

function shortenFeed(runtime: DurableRuntime, ageMs: number, most: number): ReturnType<RetentionStore["shortenFeed"]> {
  return durably(runtime, {
    statements: 2,
    waits: 0,
    find: (run) => Promise.all([run(takeFeedTurn, []), run(readLowest, [most + 1])]),
    decide: ([[turn], lowest], { now }) => {
      const through = leavesThrough(lowest.slice(0, most), new Date(now.getTime() - ageMs));
      const [oldest = null] = lowest;
      if (turn?.taken !== true || through === null) {
        const result = { completions: 0, oldestAt: oldest?.at ?? null };
        return { commands: [], result, rollback: true };
      }
      const leaving = lowest.filter(({ seq }) => seq <= through).length;
      const oldestAt = lowest[leaving]?.at ?? null;
      const commands = [
        { statement: deleteCompletions, values: [through, leaving] },
        { statement: markTruncated, values: [through] },
      ];
      return { commands, result: { completions: leaving, oldestAt } };
    },
  });
}

function removeOld(
  runtime: DurableRuntime,
  fences: readonly Fence[],
  { ageMs, most }: { readonly ageMs: number; readonly most: number },
): Promise<number> {
  const lanes = fences.map(({ lane }) => lane);
  const columns = [lanes.map(({ chainId }) => chainId), lanes.map(({ signer }) => signer)];
  return durably(runtime, {
    statements: 2,
    waits: 1,
    waitAtMostMs: LANE_WAIT_MS,
    find: (run) =>
      Promise.all([
        run(lockLanes, termsOf(fences.map((fence) => ({ fence })))),
        run(readOldRows, [ageMs, ...columns, Math.ceil(most / Math.max(1, fences.length))]),
      ]),
    decide: ([held, found], { now }) => {
      const keys = new Set(held.map(laneKey));
      const old = found.filter((row) => keys.has(laneKey(row)) && mayLeave(row, { now, ageMs, ...row }));
      const rows = old.slice(0, most);
      return { commands: removal(rows), result: rows.length, rollback: rows.length === 0 };
    },
  });
}

/** In the order of the locks: lanes, transactions and what hangs on them, pools. */
function removal(rows: readonly OldTransactionRow[]): readonly Command[] {
  if (rows.length === 0) return [];
  const ids = rows.map(({ txId }) => txId).sort();
  const lanes = new Map<LaneKey, { chainId: number; signer: string; below: number }>();
  for (const { chainId, signer, nonce } of rows) {
    const key = laneKey({ chainId, signer });
    const below = Math.max(lanes.get(key)?.below ?? 0, nonce === null ? 0 : nonce + 1);
    lanes.set(key, { chainId, signer, below });
  }
  const marks = [...lanes.values()];
  return [
    { statement: markDeparted, values: rowsOf(markDeparted, marks, marks.length) },
    { statement: keepRequests, values: [ids] },
    { statement: deleteTransactions, values: [ids, ids.length] },
  ];
}
