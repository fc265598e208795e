/**
 * LeaseStore on PostgreSQL. Heartbeat and lane are different rows: a renewal never waits behind a write of one's own,
 * and a takeover waits for every open write of the lane, because it must lock the same row.
 */
import { BatchRefused, StoreUnavailable } from "../../../ports/lane-store.ts";
import type { LeaseStore } from "../../../ports/lease-store.ts";
import { withLane, withOwner } from "../rows/columns.ts";
import { ask } from "../session/connections.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "../session/durably.ts";
import type { WriteTransaction } from "../session/write-transaction.ts";
import { listLeases, lockLanesOfInstance, releaseLane, releaseLanes } from "../statements/lease.ts";
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
} from "../statements/node-instance.ts";
import type { Statement } from "../statements/statement.ts";

type Held = Omit<LeaseStore, "registerInstance" | "acquireLane" | "claimLanes">;

/** `renewing` has connections of its own, so that a renewal never waits behind other work. */
export function leasesIn(leasing: DurableRuntime, renewing: DurableRuntime): Held {
  /** One statement in one round trip, in the history that is known. False: nothing is committed. */
  const atOnce = async (statement: Statement<unknown>, values: readonly unknown[]): Promise<boolean> => {
    const known = renewing.history.standing;
    if (known === null) return false;
    const commandsFor = (marker: string) => [{ statement, values: [...values, marker] }];
    return (await durablyAtOnce(renewing, { known, commandsFor })) !== null;
  };
  const hasChanged = async (statement: Statement<unknown>, values: readonly unknown[], runtime = leasing) =>
    (await writeRows(runtime, statement, values)).length > 0;
  return {
    /**
     * In one round trip: between two of them the server counts the idle time of a transaction, a thirtieth of the lease,
     * and a node with much to do, or little processor time, would be late for that again and again.
     */
    renewInstance: async (...instance) =>
      (await atOnce(renewKnownInstance, instance)) || hasChanged(renewInstance, instance, renewing),
    async announce(instanceId, { chains, draining, standsBack, keysAway }) {
      await hasChanged(announceInstance, [instanceId, chains, draining, standsBack, keysAway]);
    },
    /** As a renewal: others who miss a lock that was told of take this process for dead unless they are told in time. */
    async tellLock(instanceId, lock) {
      const values = [instanceId, lock?.key ?? null, lock?.session ?? null];
      if (await atOnce(tellKnownLock, values)) return "told";
      const [row] = await writeRows(renewing, tellLock, values);
      if (row === undefined) return "over";
      return row.told || lock === null ? "told" : "unseen";
    },
    declareDead: (...instance) => hasChanged(declareDead, instance),
    /** Lanes first, as everywhere; then the heartbeat, which no writer ever locks. */
    async retireInstance(instanceId) {
      const [, released] = await writeLease(leasing, {
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
    },
    releaseLane: ({ lane, instanceId, token }) =>
      hasChanged(releaseLane, [lane.chainId, lane.signer, instanceId, token]),
    instances: () => ask(leasing.connections, listInstances),
    async signersOf(instanceId) {
      return (await ask(leasing.connections, readSigners, [instanceId])).map(({ signer }) => signer);
    },
    leases: async () => (await ask(leasing.connections, listLeases)).map((row) => withOwner(withLane(row))),
  };
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
