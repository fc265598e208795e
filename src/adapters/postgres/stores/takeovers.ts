/**
 * How lanes are taken: new ones, released ones, and those of dead nodes. Each lane is checked and taken under the lock
 * that every write of the lane holds until COMMIT, so a takeover waits for the last write before it, and only for that.
 *
 * Transactions that share a row lock (FOR SHARE) overtake one that waits for it exclusively, and sixteen of them can
 * keep a takeover waiting for a minute. So a takeover that has waited too long queues for the lock of the whole table,
 * which is granted in order. All writes of all lanes then wait behind the takeover, so this is done only for lanes
 * without an owner, for a few hundred milliseconds, and seldom.
 */
import { type Fence, type Lane, laneKey } from "../../../domain/lane.ts";
import { StoreUnavailable } from "../../../ports/lane-store.ts";
import { type Acquisition, InstanceOver, type LeaseStore } from "../../../ports/lease-store.ts";
import { laneOf, withOwner } from "../rows/columns.ts";
import { ask } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import type { Decision } from "../session/write-transaction.ts";
import { insertTakeovers } from "../statements/cluster-past.ts";
import { ensureLanes, findLanes, lockLanesByKey, lockLaneTable } from "../statements/lane.ts";
import { findFreeLanes, type LeaseRow, type PickedRow, pickLanes, readLease, takeLanes } from "../statements/lease.ts";
import { readInstance } from "../statements/node-instance.ts";
import type { Command } from "../statements/statement.ts";
import { writeLease, writeRows } from "./leases.ts";

type Held = Extract<Acquisition, { fence: Fence }>;

interface Claimed {
  readonly held: readonly Held[];
  /** Free lanes that were skipped because another transaction had them locked. */
  readonly passedOver: readonly Lane[];
}

/**
 * Longest wait in ms for the lock of one lane. It leaves time for a second attempt. The wait is longer only if a
 * stalled owner may hold the lock.
 */
const WAIT_MS = 350;
const OUTLAST_MS = 20;
/**
 * A claim takes free lanes and skips those that are locked. Number of times that it tries the skipped ones again. Most
 * transactions that lock a free lane are about to take it.
 */
const LOOKS = 3;
const LOOK_EVERY_MS = 50;
const INSIST_AT_MOST_MS = 300;
const INSIST_EVERY_MS = 5_000;

export function takeoversIn(runtime: DurableRuntime): Pick<LeaseStore, "acquireLane" | "claimLanes"> {
  const { clock, connections } = runtime;
  let insistAgainAtMs = Number.NEGATIVE_INFINITY;
  const mayInsist = () => {
    const nowMs = clock.monotonicMs();
    if (nowMs < insistAgainAtMs) return false;
    insistAgainAtMs = nowMs + INSIST_EVERY_MS;
    return true;
  };
  return {
    async acquireLane(lane, instanceId) {
      try {
        return await acquire(runtime, lane, instanceId, false);
      } catch (error) {
        if (!(error instanceof StoreUnavailable && error.busy)) throw error;
        // Check without a lock that the lane is free, because locking the whole table delays all lanes.
        const [free] = await ask(connections, findFreeLanes([lane]));
        if (free === undefined || !mayInsist()) throw error;
        return acquire(runtime, lane, instanceId, true);
      }
    },
    async claimLanes(lanes, instanceId, limit) {
      if (lanes.length === 0 || limit <= 0) return [];
      await ensure(runtime, lanes);
      const held: Held[] = [];
      let wanted = lanes;
      for (let look = 1; wanted.length > 0 && held.length < limit; look++) {
        if (look > 1) await clock.sleep(LOOK_EVERY_MS);
        const insists = look > LOOKS;
        if (insists && !mayInsist()) break;
        const picking = [pickLanes(wanted, instanceId, limit - held.length), findFreeLanes(wanted)] as const;
        const claimed = await claim(runtime, picking, instanceId, insists).catch((error) => nothingMore(error, held));
        held.push(...claimed.held);
        wanted = insists ? [] : claimed.passedOver;
      }
      return held;
    },
  };
}

function acquire(runtime: DurableRuntime, lane: Lane, instanceId: string, insists: boolean): Promise<Acquisition> {
  return writeLease(runtime, {
    waitAtMostMs: insists ? INSIST_AT_MOST_MS : Math.max(WAIT_MS, runtime.limits.idleMs + OUTLAST_MS),
    // Lock the lane before its owner is read, so that the owner cannot change until COMMIT.
    locks: [...(insists ? [lockLaneTable()] : []), ensureLanes([lane]), lockLanesByKey([lane])],
    find: [readLease(lane.chainId, lane.signer), readInstance(instanceId)],
    decide: ([[lease], [claimant]]): Decision<Acquisition> => {
      if (claimant?.alive !== true) throw new InstanceOver(instanceId);
      const result = judge(lease as LeaseRow, instanceId);
      const taken = result.result === "acquired" || result.result === "takenOver";
      return { commands: taken ? take([lane], instanceId) : null, result };
    },
  });
}

function claim(
  runtime: DurableRuntime,
  picking: readonly [Command<PickedRow>, Command<Lane>],
  instanceId: string,
  insists: boolean,
): Promise<Claimed> {
  return writeLease(runtime, {
    waits: 1,
    ...(insists && { waitAtMostMs: INSIST_AT_MOST_MS, locks: [lockLaneTable()] }),
    find: [...picking, readInstance(instanceId)],
    decide: ([picked, free, [claimant]]): Decision<Claimed> => {
      if (claimant?.alive !== true) throw new InstanceOver(instanceId);
      const taken = picked.filter((row) => !row.kept).map(laneOf);
      const keys = new Set(taken.map(laneKey));
      const passedOver = free.filter((lane) => !keys.has(laneKey(lane)));
      const result = { held: picked.map((row) => heldBy(row, instanceId)), passedOver };
      return { commands: taken.length === 0 ? null : take(taken, instanceId), result };
    },
  });
}

/**
 * Inserts missing lanes in a separate transaction, so that many claimants of new lanes do not wait for each other's
 * claims.
 */
async function ensure(runtime: DurableRuntime, lanes: readonly Lane[]) {
  const known = await ask(runtime.connections, findLanes(lanes));
  const keys = new Set(known.map(laneKey));
  const missing = lanes.filter((lane) => !keys.has(laneKey(lane)));
  if (missing.length > 0) await writeRows(runtime, ensureLanes(missing));
}

/**
 * Handles an error after some lanes were already taken: these are still returned, and the other lanes are claimed at
 * the next attempt.
 */
function nothingMore(error: unknown, held: readonly Held[]): Claimed {
  if (held.length === 0 || !(error instanceof StoreUnavailable)) throw error;
  return { held: [], passedOver: [] };
}

function heldBy(row: PickedRow, instanceId: string): Held {
  const token = row.kept ? row.token : row.token + 1;
  const fence = { lane: laneOf(row), instanceId, token };
  return { result: row.kept ? "kept" : token === 1 ? "acquired" : "takenOver", fence };
}

function judge(lease: LeaseRow, instanceId: string): Acquisition {
  const { owner } = withOwner(lease);
  if (owner === null) return heldBy({ ...lease, kept: false }, instanceId);
  return owner.instanceId === instanceId
    ? heldBy({ ...lease, kept: true }, instanceId)
    : { result: "notLeader", owner };
}

/** Statements that take lanes and record their previous owners for operators. */
function take(lanes: readonly Lane[], instanceId: string): readonly Command[] {
  return [insertTakeovers(lanes, instanceId), takeLanes(lanes, instanceId)];
}
