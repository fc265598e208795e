/**
 * LeaseStore on PostgreSQL. Heartbeat and lane are different rows: a renewal never waits behind a write of one's own,
 * and a takeover waits for every open write of the lane, because it must lock the same row.
 */
import type { Address, Fence } from "../../domain/lane.ts";
import { BatchRefused, StoreUnavailable } from "../../ports/lane-store.ts";
import type { Announcement, InstanceRecord, LaneOwner, LeaseRecord, LockTold } from "../../ports/lease-store.ts";
import type { HeldLock } from "../../ports/session-lock.ts";
import { laneOf } from "./columns.ts";
import type { Connections } from "./session/connections.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "./session/durably.ts";
import type { WriteTransaction } from "./session/write-transaction.ts";
import { readClusterSecret } from "./statements/database.ts";
import { listLeases, lockLanesOfInstance, type OwnerColumns, releaseLane, releaseLanes } from "./statements/lease.ts";
import {
  announceInstance,
  declareDead,
  listInstances,
  readSigners,
  renewInstance,
  renewKnownInstance,
  retireInstance,
  tellKnownLock,
  tellLock,
} from "./statements/node-instance.ts";
import type { Command } from "./statements/statement.ts";

export class Leases {
  private readonly runtime: DurableRuntime;
  private readonly renewing: DurableRuntime;

  /** `renewing` has connections of its own, so that a renewal never waits behind other work. */
  constructor(runtime: DurableRuntime, renewing: DurableRuntime) {
    this.runtime = runtime;
    this.renewing = renewing;
  }

  /**
   * In one round trip: between two of them the server counts the idle time of a transaction, a thirtieth of the lease,
   * and a node with much to do, or little processor time, would be late for that again and again.
   */
  async renew(instanceId: string, leaseDurationMs: number): Promise<boolean> {
    const renewed = await this.atOnce((marker) => {
      return { statement: renewKnownInstance, values: [instanceId, leaseDurationMs, marker] };
    });
    return renewed || this.renewOrTellWhy(instanceId, leaseDurationMs);
  }

  /** One statement in one round trip, in the history that is known. False: nothing is committed. */
  private async atOnce(commandFor: (marker: string) => Command): Promise<boolean> {
    const known = this.renewing.history.standing;
    if (known === null) return false;
    const commandsFor = (marker: string) => [commandFor(marker)];
    return (await durablyAtOnce(this.renewing, { known, commandsFor })) !== null;
  }

  private async renewOrTellWhy(instanceId: string, leaseDurationMs: number): Promise<boolean> {
    const rows = await writeLease(this.renewing, {
      statements: 1,
      waits: 1,
      find: (run) => run(renewInstance, [instanceId, leaseDurationMs]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: (renewed) => ({ commands: [], result: renewed, rollback: renewed.length === 0 }),
    });
    return rows.length > 0;
  }

  async announce(instanceId: string, { chains, draining, standsBack }: Announcement): Promise<void> {
    await this.write({
      statements: 1,
      waits: 1,
      find: (run) => run(announceInstance, [instanceId, chains, draining, standsBack]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: () => ({ commands: [], result: undefined }),
    });
  }

  /** As a renewal: others who miss a lock that was told of take this process for dead unless they are told in time. */
  async tellLock(instanceId: string, lock: HeldLock | null): Promise<LockTold> {
    const values = [instanceId, lock?.key ?? null, lock?.session ?? null];
    if (await this.atOnce((marker) => ({ statement: tellKnownLock, values: [...values, marker] }))) return "told";
    const [row] = await writeLease(this.renewing, {
      statements: 1,
      waits: 1,
      find: (run) => run(tellLock, values),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: (rows) => ({ commands: [], result: rows, rollback: rows.length === 0 }),
    });
    if (row === undefined) return "over";
    return row.told || lock === null ? "told" : "unseen";
  }

  async declareDead({ instanceId, counter, evidence }: { instanceId: string; counter: number; evidence: string }) {
    const rows = await this.write({
      statements: 1,
      waits: 1,
      find: (run) => run(declareDead, [instanceId, counter, evidence]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: (dead) => ({ commands: [], result: dead, rollback: dead.length === 0 }),
    });
    return rows.length > 0;
  }

  /** Lanes first, as everywhere; then the heartbeat, which no writer ever locks. */
  async retire(instanceId: string): Promise<number> {
    const [, released] = await this.write({
      statements: 3,
      waits: 3,
      find: (run) =>
        Promise.all([
          run(lockLanesOfInstance, [instanceId]),
          run(releaseLanes, [instanceId]),
          run(retireInstance, [instanceId]),
        ]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: (result) => ({ commands: [], result }),
    });
    return released.length;
  }

  async release({ lane, instanceId, token }: Fence): Promise<boolean> {
    const rows = await this.write({
      statements: 1,
      waits: 1,
      find: (run) => run(releaseLane, [lane.chainId, lane.signer, instanceId, token]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: (released) => ({ commands: [], result: released, rollback: released.length === 0 }),
    });
    return rows.length > 0;
  }

  private write<Found, Result>(transaction: WriteTransaction<Found, Result>): Promise<Result> {
    return writeLease(this.runtime, transaction);
  }
}

/** Losing a race between judging and taking is no fault of the data: try again. */
export async function writeLease<Found, Result>(
  runtime: DurableRuntime,
  transaction: WriteTransaction<Found, Result>,
): Promise<Result> {
  try {
    return await durably(runtime, transaction);
  } catch (error) {
    if (error instanceof BatchRefused) throw new StoreUnavailable(error.message, { cause: error, busy: true });
    throw error;
  }
}

export async function readInstances(connections: Connections): Promise<readonly InstanceRecord[]> {
  const rows = await connections.read((run) => run(listInstances, []));
  return rows.map((row) => ({
    instanceId: row.instance_id,
    nodeId: row.node_id,
    url: row.url,
    version: row.version,
    mode: row.mode,
    startedAt: row.started_at,
    heartbeatAt: row.heartbeat_at,
    expiresAt: row.expires_at,
    counter: row.counter,
    dead: row.dead,
    expired: row.expired,
    lanes: row.lanes,
    chains: row.chains.map(Number),
    draining: row.draining,
    standsBack: row.stands_back,
    lock: row.lock,
  }));
}

export async function readSignersOf(connections: Connections, instanceId: string): Promise<readonly Address[]> {
  const rows = await connections.read((run) => run(readSigners, [instanceId]));
  return rows.map(({ signer }) => signer as Address);
}

export async function readSecret(connections: Connections): Promise<string> {
  const [row] = await connections.read((run) => run(readClusterSecret, []));
  if (row === undefined) throw new Error("the schema holds no cluster secret");
  return row.secret;
}

export async function readLeases(connections: Connections): Promise<readonly LeaseRecord[]> {
  const rows = await connections.read((run) => run(listLeases, []));
  return rows.map((row) => ({
    lane: laneOf(row),
    owner: ownerOf(row),
    token: row.token,
    acquiredAt: row.acquired_at,
  }));
}

export function ownerOf(row: OwnerColumns): LaneOwner | null {
  if (row.instance_id === null) return null;
  return {
    instanceId: row.instance_id,
    nodeId: row.node_id as string,
    url: row.url as string,
    expiresAt: row.expires_at as Date,
  };
}
