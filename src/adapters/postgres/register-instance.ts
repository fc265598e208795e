/**
 * Begins an instance, in the history of the database that it finds. Where that is another one than the last
 * registration saw, commits may be lost and sequence numbers may repeat: the feed begins a new epoch.
 */
import type { InstanceRegistration } from "../../ports/lease-store.ts";
import { type DurableRuntime, durably } from "./durably.ts";
import { type ObservedHistory, sameIdentity } from "./known-history.ts";
import { beginEpoch } from "./statements/begin-epoch.ts";
import { insertInstance } from "./statements/insert-instance.ts";
import { lockRegistration } from "./statements/lock-registration.ts";
import { purgeCommitMarkers } from "./statements/purge-commit-markers.ts";
import { purgeInstances } from "./statements/purge-instances.ts";
import { type DatabaseHistoryRow, readDatabaseHistory } from "./statements/read-database-history.ts";
import { readFeed } from "./statements/read-feed.ts";
import { recordEpochFloors } from "./statements/record-epoch-floors.ts";
import { writeDatabaseHistory } from "./statements/write-database-history.ts";

export async function registerInstance(
  runtime: DurableRuntime,
  registration: InstanceRegistration,
  seenSeq: number,
): Promise<void> {
  const { instanceId, nodeId, url, version, mode, leaseDurationMs, chains, signers } = registration;
  const { floor } = runtime.history;
  const observed = await durably(runtime, {
    statements: 6,
    waits: 1,
    find: (run) =>
      Promise.all([
        run(lockRegistration, []),
        run(readFeed, []),
        run(readDatabaseHistory, []),
        run(purgeInstances, []),
        run(purgeCommitMarkers, []),
        run(insertInstance, [instanceId, nodeId, url, version, mode, leaseDurationMs, chains, signers]),
      ]),
    verify: () => undefined,
    decide: ([, [feed], [known]], { history }) => {
      const changed = known !== undefined && !continues(known, history);
      const behind = feed !== undefined && feed.last_seq < seenSeq;
      const renewed = changed || behind;
      const ordinal = (known?.ordinal ?? 0) + (known === undefined || changed ? 1 : 0);
      const epoch = (feed?.epoch ?? 1) + Number(renewed);
      const { systemIdentifier, timeline, walPosition } = history;
      const seen = [ordinal, systemIdentifier, timeline, walPosition.toString(), epoch];
      return {
        commands: [
          { statement: writeDatabaseHistory, values: seen },
          ...(renewed
            ? [
                { statement: recordEpochFloors, values: [] },
                { statement: beginEpoch, values: [seenSeq] },
              ]
            : []),
        ],
        result: history,
      };
    },
  });
  runtime.history.pin(instanceId, observed, floor);
}

function continues(known: DatabaseHistoryRow, now: ObservedHistory): boolean {
  const before = {
    systemIdentifier: known.system_identifier,
    timeline: known.timeline,
    walPosition: known.wal_position,
  };
  return sameIdentity(before, now) && now.walPosition >= before.walPosition;
}
