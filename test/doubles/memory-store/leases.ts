import { epochStart } from "../../../src/domain/cluster/epochs.ts";
import { type Fence, type Lane, laneKey } from "../../../src/domain/lane.ts";
import {
  type Acquisition,
  type Announcement,
  type DeathEvidence,
  InstanceOver,
  type InstanceRecord,
  type InstanceRegistration,
  type LaneOwner,
  type LeaseRecord,
  type LockPublished,
} from "../../../src/ports/lease-store.ts";
import type { HeldLock } from "../../../src/ports/session-lock.ts";
import { returned, vanished } from "./notices.ts";
import { type DatabaseState, isAlive, LaneRow } from "./state.ts";

export function registerInstance(state: DatabaseState, registration: InstanceRegistration, now: Date): void {
  const { leaseDurationMs, replaces = [], ...identity } = registration;
  if (state.instances.has(identity.instanceId))
    throw new Error(`instance ${identity.instanceId} is registered already`);
  state.instances.set(identity.instanceId, {
    ...identity,
    startedAt: now,
    heartbeatAt: now,
    expiresAt: new Date(now.getTime() + leaseDurationMs),
    counter: 1,
    dead: false,
    draining: false,
  });
  returned(state, identity.nodeId, now);
  for (const each of replaces) {
    const replaced = state.instances.get(each);
    if (replaced !== undefined) replaced.dead = true;
  }
}

/**
 * Begins a new epoch after a change of database history: every owner loses its lanes. If commits may be lost, the lanes
 * wait for an operator.
 */
export function beginEpoch(state: DatabaseState, seenSeq: number): void {
  const { epoch, lastSeq } = state.feed;
  const start = epochStart([lastSeq, seenSeq], state.mayHaveLost);
  Object.assign(state.feed, { epoch: epoch + 1, lastSeq: start, epochStartsAfter: start });
  Object.assign(state, { epochHistory: state.history, epochMayHaveLost: state.mayHaveLost });
  for (const row of state.instances.values()) row.dead = true;
  for (const [key, row] of state.lanes) {
    if (row.cursor !== null) state.epochFloors.set(key, row.cursor);
    row.owner = null;
    if (state.mayHaveLost) row.suspendedBy = "HISTORY";
  }
}

export function announce(state: DatabaseState, instanceId: string, announcement: Announcement): void {
  const row = state.instances.get(instanceId);
  if (row !== undefined) Object.assign(row, announcement);
}

export function renewInstance(state: DatabaseState, id: string, renewal: { durationMs: number; now: Date }): boolean {
  const row = state.instances.get(id);
  if (row === undefined || !isAlive(row, renewal.now)) return false;
  row.counter++;
  row.heartbeatAt = renewal.now;
  row.expiresAt = new Date(renewal.now.getTime() + renewal.durationMs);
  return true;
}

/** Records a heartbeat, and the instance's session lock if other sessions can see that lock. */
export function publishLock(
  state: DatabaseState,
  { instanceId, lock, now }: { instanceId: string; lock: HeldLock | null; now: Date },
): LockPublished {
  const row = state.instances.get(instanceId);
  if (row === undefined || !isAlive(row, now)) return "over";
  row.counter++;
  const isSeen = lock !== null && state.locks.has(lock.key) && lock.session === lock.key;
  if (isSeen) state.published.set(instanceId, lock.key);
  else state.published.delete(instanceId);
  return lock === null || isSeen ? "told" : "unseen";
}

function lockOf({ locks, published }: DatabaseState, instanceId: string): InstanceRecord["lock"] {
  const key = published.get(instanceId);
  if (key === undefined) return "none";
  return locks.has(key) ? "held" : "gone";
}

export function declareDead(
  state: DatabaseState,
  claim: { instanceId: string; counter: number; evidence: DeathEvidence },
  now: Date,
): boolean {
  const row = state.instances.get(claim.instanceId);
  if (row === undefined || row.dead || row.counter !== claim.counter) return false;
  if (claim.evidence === "expired" && row.expiresAt > now) return false;
  if (claim.evidence === "lock-gone" && lockOf(state, row.instanceId) !== "gone") return false;
  row.dead = true;
  vanished(state, claim.instanceId, { at: now, why: claim.evidence });
  return true;
}

export function retireInstance(state: DatabaseState, instanceId: string): number {
  const held = [...state.lanes.values()].filter((row) => row.owner === instanceId);
  for (const row of held) row.owner = null;
  const instance = state.instances.get(instanceId);
  if (instance !== undefined) instance.dead = true;
  return held.length;
}

export function listInstances(state: DatabaseState, now: Date): readonly InstanceRecord[] {
  const held = new Map<string | null, number>();
  for (const { owner } of state.lanes.values()) held.set(owner, (held.get(owner) ?? 0) + 1);
  const kills = [...state.kills.values()];
  const killChanges = kills.length + kills.filter(({ ended }) => ended).length;
  const rows = [...state.instances.values()].map((row) => ({
    ...row,
    lock: lockOf(state, row.instanceId),
    expired: row.expiresAt <= now,
    lanes: held.get(row.instanceId) ?? 0,
    killChanges,
    readAt: now,
  }));
  return rows.sort((a, b) => a.startedAt.getTime() - b.startedAt.getTime() || (a.instanceId < b.instanceId ? -1 : 1));
}

export function acquireLane(
  state: DatabaseState,
  lane: Lane,
  claimant: { instanceId: string; now: Date },
): Acquisition {
  if (!isAlive(state.instances.get(claimant.instanceId), claimant.now)) throw new InstanceOver(claimant.instanceId);
  const row = laneRow(state, lane);
  if (row.owner === claimant.instanceId) return { result: "kept", fence: fenceOf(row, claimant.instanceId) };
  const owner = ownerOf(state, row);
  if (owner !== null) return { result: "notLeader", owner };
  const result = row.token === 0 ? "acquired" : "takenOver";
  if (result === "takenOver") noteTakeover(state, row, claimant);
  row.owner = claimant.instanceId;
  row.token++;
  row.acquiredAt = claimant.now;
  return { result, fence: fenceOf(row, claimant.instanceId) };
}

function noteTakeover(state: DatabaseState, row: LaneRow, claimant: { instanceId: string; now: Date }): void {
  const before = row.owner === null ? undefined : state.instances.get(row.owner);
  const last = state.takeovers.findLast(({ lane }) => laneKey(lane) === laneKey(row.lane));
  const expired = before !== undefined && before.expiresAt <= claimant.now;
  const dead = expired ? "the heartbeat of its node had run out" : "its node ended, or was declared dead";
  state.takeovers.push({
    lane: row.lane,
    from: before?.nodeId ?? last?.to ?? null,
    to: state.instances.get(claimant.instanceId)?.nodeId ?? "",
    token: row.token + 1,
    why: row.owner === null ? "it was given back, or its term had ended" : dead,
    at: claimant.now,
  });
}

/** Claims lanes for an instance. Lanes that it already holds come first and count towards `limit`. */
export function claimLanes(
  state: DatabaseState,
  lanes: readonly Lane[],
  claim: { instanceId: string; limit: number; now: Date },
): readonly Extract<Acquisition, { fence: Fence }>[] {
  const mine = (lane: Lane) => state.lanes.get(laneKey(lane))?.owner === claim.instanceId;
  const held: Extract<Acquisition, { fence: Fence }>[] = [];
  for (const lane of [...lanes].sort((a, b) => Number(mine(b)) - Number(mine(a)))) {
    if (held.length >= claim.limit) break;
    const acquisition = acquireLane(state, lane, claim);
    if (acquisition.result !== "notLeader") held.push(acquisition);
  }
  return held;
}

export function releaseLane(state: DatabaseState, fence: Fence): boolean {
  const row = state.lanes.get(laneKey(fence.lane));
  if (row === undefined || row.owner !== fence.instanceId || row.token !== fence.token) return false;
  row.owner = null;
  return true;
}

export function listLeases(state: DatabaseState): readonly LeaseRecord[] {
  return [...state.lanes.values()].map((row) => ({
    lane: row.lane,
    owner: ownerOf(state, row),
    token: row.token,
    acquiredAt: row.acquiredAt,
  }));
}

/** The lane's owner; null if the lane is free, because it has no owner or its owner is dead. */
export function ownerOf(state: DatabaseState, row: LaneRow): LaneOwner | null {
  const instance = row.owner === null ? undefined : state.instances.get(row.owner);
  if (instance === undefined || instance.dead) return null;
  const { instanceId, nodeId, url, expiresAt } = instance;
  return { instanceId, nodeId, url, expiresAt };
}

function laneRow(state: DatabaseState, lane: Lane): LaneRow {
  const known = state.lanes.get(laneKey(lane));
  if (known !== undefined) return known;
  const fresh = new LaneRow(lane);
  state.lanes.set(laneKey(lane), fresh);
  return fresh;
}

function fenceOf(row: LaneRow, instanceId: string): Fence {
  return { lane: row.lane, instanceId, token: row.token };
}
