/**
 * LeaseStore on PostgreSQL. Heartbeat and lane are different rows: a renewal never waits behind a write of one's own,
 * and a takeover waits for every open write of the lane, because it must lock the same row.
 */
import type { Fence } from "../../domain/lane.ts";
import { BatchRefused, StoreUnavailable } from "../../ports/lane-store.ts";
import type { Announcement, DeathEvidence, LeaseRecord, LockTold } from "../../ports/lease-store.ts";
import type { HeldLock } from "../../ports/session-lock.ts";
import { withLane, withOwner } from "./columns.ts";
import type { Connections } from "./session/connections.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "./session/durably.ts";
import type { WriteTransaction } from "./session/write-transaction.ts";
import { readClusterSecret } from "./statements/database.ts";
import { listLeases, lockLanesOfInstance, releaseLane, releaseLanes } from "./statements/lease.ts";
import {
  announceInstance,
  declareDead,
  renewInstance,
  renewKnownInstance,
  retireInstance,
  tellKnownLock,
  tellLock,
} from "./statements/node-instance.ts";
import type { Command, Statement } from "./statements/statement.ts";

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
    return renewed || (await writeRows(this.renewing, renewInstance, [instanceId, leaseDurationMs])).length > 0;
  }

  /** One statement in one round trip, in the history that is known. False: nothing is committed. */
  private async atOnce(commandFor: (marker: string) => Command): Promise<boolean> {
    const known = this.renewing.history.standing;
    if (known === null) return false;
    const commandsFor = (marker: string) => [commandFor(marker)];
    return (await durablyAtOnce(this.renewing, { known, commandsFor })) !== null;
  }

  async announce(instanceId: string, { chains, draining, standsBack }: Announcement): Promise<void> {
    await writeRows(this.runtime, announceInstance, [instanceId, chains, draining, standsBack]);
  }

  /** As a renewal: others who miss a lock that was told of take this process for dead unless they are told in time. */
  async tellLock(instanceId: string, lock: HeldLock | null): Promise<LockTold> {
    const values = [instanceId, lock?.key ?? null, lock?.session ?? null];
    if (await this.atOnce((marker) => ({ statement: tellKnownLock, values: [...values, marker] }))) return "told";
    const [row] = await writeRows(this.renewing, tellLock, values);
    if (row === undefined) return "over";
    return row.told || lock === null ? "told" : "unseen";
  }

  async declareDead(instanceId: string, counter: number, evidence: DeathEvidence): Promise<boolean> {
    return (await writeRows(this.runtime, declareDead, [instanceId, counter, evidence])).length > 0;
  }

  /** Lanes first, as everywhere; then the heartbeat, which no writer ever locks. */
  async retire(instanceId: string): Promise<number> {
    const [, released] = await writeLease(this.runtime, {
      statements: 3,
      waits: 3,
      find: (run) =>
        Promise.all([
          run(lockLanesOfInstance, [instanceId]),
          run(releaseLanes, [instanceId]),
          run(retireInstance, [instanceId]),
        ]),
      decide: (result) => ({ commands: [], result }),
    });
    return released.length;
  }

  async release({ lane, instanceId, token }: Fence): Promise<boolean> {
    const values = [lane.chainId, lane.signer, instanceId, token];
    return (await writeRows(this.runtime, releaseLane, values)).length > 0;
  }
}

/** One statement that answers with what it changed; where that is nothing, nothing is kept. */
export function writeRows<Row>(
  runtime: DurableRuntime,
  statement: Statement<Row>,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return writeLease(runtime, {
    statements: 1,
    waits: 1,
    find: (run) => run(statement, values),
    decide: (rows) => ({ commands: [], result: rows, rollback: rows.length === 0 }),
  });
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

export async function readSecret(connections: Connections): Promise<string> {
  const [row] = await connections.read((run) => run(readClusterSecret, []));
  if (row === undefined) throw new Error("the schema holds no cluster secret");
  return row.secret;
}

export async function readLeases(connections: Connections): Promise<readonly LeaseRecord[]> {
  const rows = await connections.read((run) => run(listLeases, []));
  return rows.map((row) => withOwner(withLane(row)));
}
