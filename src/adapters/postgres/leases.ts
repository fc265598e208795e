/**
 * LeaseStore on PostgreSQL. Heartbeat and lane are different rows: a renewal never waits behind a write of one's own,
 * and a takeover waits for every open write of the lane, because it must lock the same row.
 */
import { type Address, compareLanes, type Fence, type Lane, laneKey } from "../../domain/lane.ts";
import { BatchRefused, StoreUnavailable } from "../../ports/lane-store.ts";
import {
  type Acquisition,
  type Announcement,
  InstanceOver,
  type InstanceRecord,
  type LaneOwner,
  type LeaseRecord,
} from "../../ports/lease-store.ts";
import { laneOf } from "./columns.ts";
import { chainIds, signers } from "./commit/lookup.ts";
import type { Connections } from "./connections.ts";
import { type DurableRuntime, durably } from "./durably.ts";
import { announceInstance } from "./statements/announce-instance.ts";
import { declareDead } from "./statements/declare-dead.ts";
import { ensureLanes } from "./statements/ensure-lanes.ts";
import { findLanes } from "./statements/find-lanes.ts";
import { listInstances } from "./statements/list-instances.ts";
import { type LeaseRow, listLeases, type OwnerColumns } from "./statements/list-leases.ts";
import { lockLanesByKey } from "./statements/lock-lanes-by-key.ts";
import { lockLanesOfInstance } from "./statements/lock-lanes-of-instance.ts";
import { pickLanes } from "./statements/pick-lanes.ts";
import { readClusterSecret } from "./statements/read-cluster-secret.ts";
import { readInstance } from "./statements/read-instance.ts";
import { readLease } from "./statements/read-lease.ts";
import { readSigners } from "./statements/read-signers.ts";
import { releaseLane } from "./statements/release-lane.ts";
import { releaseLanes } from "./statements/release-lanes.ts";
import { renewInstance } from "./statements/renew-instance.ts";
import { retireInstance } from "./statements/retire-instance.ts";
import type { Command } from "./statements/statement.ts";
import { takeLanes } from "./statements/take-lanes.ts";
import type { WriteTransaction } from "./write-transaction.ts";

export type Held = Extract<Acquisition, { fence: Fence }>;

export class Leases {
  private readonly runtime: DurableRuntime;

  constructor(runtime: DurableRuntime) {
    this.runtime = runtime;
  }

  async renew(instanceId: string, leaseDurationMs: number): Promise<boolean> {
    const rows = await this.write({
      statements: 1,
      waits: 1,
      find: (run) => run(renewInstance, [instanceId, leaseDurationMs]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: (renewed) => ({ commands: [], result: renewed, rollback: renewed.length === 0 }),
    });
    return rows.length > 0;
  }

  async announce(instanceId: string, { chains, draining }: Announcement): Promise<void> {
    await this.write({
      statements: 1,
      waits: 1,
      find: (run) => run(announceInstance, [instanceId, chains, draining]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: () => ({ commands: [], result: undefined }),
    });
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

  async acquire(lane: Lane, instanceId: string): Promise<Acquisition> {
    const keys = keysOf([lane]);
    return this.write({
      statements: 4,
      waits: 2,
      // The lane is locked before its owner is read: what is found then stays true until COMMIT.
      find: (run) =>
        Promise.all([
          run(ensureLanes, [keys]),
          run(lockLanesByKey, [keys, [lane.chainId], [lane.signer]]),
          run(readLease, [lane.chainId, lane.signer]),
          run(readInstance, [instanceId]),
        ]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: ([, , leases, claimant]) => {
        if (claimant[0]?.alive !== true) throw new InstanceOver(instanceId);
        const result = judge(leases[0] as LeaseRow, instanceId);
        const taken = result.result === "acquired" || result.result === "takenOver";
        return { commands: taken ? [take([lane], instanceId)] : [], result, rollback: !taken };
      },
    });
  }

  async claim(lanes: readonly Lane[], instanceId: string, limit: number): Promise<readonly Held[]> {
    if (lanes.length === 0 || limit <= 0) return [];
    await this.ensure(lanes);
    return this.write({
      statements: 2,
      waits: 1,
      find: (run) =>
        Promise.all([
          run(pickLanes, [keysOf(lanes), instanceId, chainIds(lanes), signers(lanes), limit]),
          run(readInstance, [instanceId]),
        ]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: ([picked, claimant]) => {
        if (claimant[0]?.alive !== true) throw new InstanceOver(instanceId);
        const free = picked.filter((row) => !row.kept).map(laneOf);
        const result = picked.map((row): Held => {
          const token = row.kept ? row.token : row.token + 1;
          const fence = { lane: laneOf(row), instanceId, token };
          return { result: row.kept ? "kept" : token === 1 ? "acquired" : "takenOver", fence };
        });
        return { commands: free.length === 0 ? [] : [take(free, instanceId)], result, rollback: free.length === 0 };
      },
    });
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

  /** In a transaction of its own, so that many claimants of new lanes do not wait for each other's claims. */
  private async ensure(lanes: readonly Lane[]): Promise<void> {
    const known = await this.runtime.connections.read((run) => run(findLanes, [chainIds(lanes), signers(lanes)]));
    const keys = new Set(known.map((row) => laneKey(laneOf(row))));
    const missing = lanes.filter((lane) => !keys.has(laneKey(lane)));
    if (missing.length === 0) return;
    await this.write({
      statements: 1,
      waits: 1,
      find: (run) => run(ensureLanes, [keysOf(missing)]),
      verify: ({ history }, floor) => this.runtime.history.verify(history, floor),
      decide: () => ({ commands: [], result: undefined }),
    });
  }

  /** Losing a race between judging and taking is no fault of the data: try again. */
  private async write<Found, Result>(transaction: WriteTransaction<Found, Result>): Promise<Result> {
    try {
      return await durably(this.runtime, transaction);
    } catch (error) {
      if (error instanceof BatchRefused) throw new StoreUnavailable(error.message, { cause: error, busy: true });
      throw error;
    }
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

function judge(lease: LeaseRow, instanceId: string): Acquisition {
  const lane = laneOf(lease);
  const owner = ownerOf(lease);
  if (owner === null) {
    const fence = { lane, instanceId, token: lease.token + 1 };
    return { result: lease.token === 0 ? "acquired" : "takenOver", fence };
  }
  if (owner.instanceId === instanceId) return { result: "kept", fence: { lane, instanceId, token: lease.token } };
  return { result: "notLeader", owner };
}

function take(lanes: readonly Lane[], instanceId: string): Command {
  return { statement: takeLanes, values: [keysOf(lanes), instanceId, chainIds(lanes), signers(lanes), lanes.length] };
}

/** Ascending, the one lock order. */
function keysOf(lanes: readonly Lane[]): string {
  const sorted = [...lanes].sort(compareLanes);
  return JSON.stringify(sorted.map(({ chainId, signer }) => ({ chain_id: chainId, signer })));
}
