/**
 * Implements LeaseStore on PostgreSQL. Heartbeat and lane are different rows. So a renewal never waits for a write of
 * the same node, while a takeover waits for every open write of the lane, because it must lock the same row.
 */
import { BatchRefused, StoreUnavailable } from "../../../ports/lane-store.ts";
import type { LeaseStore } from "../../../ports/lease-store.ts";
import { withLane, withOwner } from "../rows/columns.ts";
import { ask } from "../session/connections.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "../session/durably.ts";
import type { WriteTransaction } from "../session/write-transaction.ts";
import { listLeases, lockLanesOfInstance, releaseLane, releaseLanes } from "../statements/lease.ts";
import * as instances from "../statements/node-instance.ts";
import type { Command } from "../statements/statement.ts";

type Held = Omit<LeaseStore, "registerInstance" | "acquireLane" | "claimLanes">;

/** Implements leases. `renewing` has separate connections, so that a renewal never waits behind other work. */
export function leasesIn(leasing: DurableRuntime, renewing: DurableRuntime): Held {
  /**
   * Commits one statement in one round trip; false if nothing is committed. The server ends the transaction if the
   * instance is dead or expired, or if the database was restored or replaced.
   */
  const atOnce = async (commandFor: (marker: string) => Command) => {
    const known = renewing.history.standing;
    if (known === null) return false;
    return (await durablyAtOnce(renewing, { known, commandsFor: (marker) => [commandFor(marker)] })) !== null;
  };
  const hasChanged = async (command: Command, runtime = leasing) => (await writeRows(runtime, command)).length > 0;
  return {
    /**
     * Renew in one round trip: between two round trips the server limits a transaction's idle time to a thirtieth of
     * the lease, which a busy node, or one with little processor time, would exceed again and again.
     */
    renewInstance: async (...instance) =>
      (await atOnce((marker) => instances.renewKnownInstance(...instance, marker))) ||
      hasChanged(instances.renewInstance(...instance), renewing),
    async announce(instanceId, { chains, draining, standsBack, keysAway }) {
      await hasChanged(instances.announceInstance(instanceId, chains, draining, standsBack, keysAway));
    },
    /**
     * Publish a change of the session lock as fast as a renewal. A node that finds a published lock missing declares
     * this process dead, unless it has read in time that this process no longer uses the lock.
     */
    async publishLock(instanceId, lock) {
      const values = [instanceId, lock?.key, lock?.session];
      if (await atOnce((marker) => instances.publishKnownLock(...values, marker))) return "told";
      const [row] = await writeRows(renewing, instances.publishLock(...values));
      if (row === undefined) return "over";
      return row.published || lock === null ? "told" : "unseen";
    },
    declareDead: (...instance) => hasChanged(instances.declareDead(...instance)),
    /** Lock the lanes first, as everywhere, then the heartbeat, which no writer ever locks. */
    async retireInstance(instanceId) {
      const ending = [
        lockLanesOfInstance(instanceId),
        releaseLanes(instanceId),
        instances.retireInstance(instanceId),
      ] as const;
      return (await write(leasing, ...ending))[1].length;
    },
    releaseLane: ({ lane, instanceId, token }) => hasChanged(releaseLane(lane.chainId, lane.signer, instanceId, token)),
    instances: () => ask(leasing.connections, instances.listInstances()),
    async signersOf(instanceId) {
      return (await ask(leasing.connections, instances.readSigners(instanceId))).map(({ signer }) => signer);
    },
    leases: async () => (await ask(leasing.connections, listLeases())).map((row) => withOwner(withLane(row))),
  };
}

/** Runs statements in one transaction. */
export function write<const Commands extends readonly Command[]>(runtime: DurableRuntime, ...find: Commands) {
  return durably(runtime, { waits: find.length, find, decide: (result) => ({ commands: [], result }) });
}

/** Runs one statement and returns the rows that it changed; if there are none, the transaction is rolled back. */
export function writeRows<Row>(runtime: DurableRuntime, command: Command<Row>): Promise<readonly Row[]> {
  return writeLease(runtime, {
    waits: 1,
    find: [command],
    decide: ([rows]) => ({ commands: rows.length === 0 ? null : [], result: rows }),
  });
}

/**
 * Runs a lease transaction. Another node may take the lane between the check and the write. That is no error in the
 * data, so it is reported as retryable.
 */
export async function writeLease<const Commands extends readonly Command[], Result>(
  runtime: DurableRuntime,
  transaction: WriteTransaction<Commands, Result>,
): Promise<Result> {
  try {
    return await durably(runtime, transaction);
  } catch (error) {
    if (error instanceof BatchRefused) throw new StoreUnavailable(error.message, { cause: error, busy: true });
    throw error;
  }
}
