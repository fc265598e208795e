/**
 * Registers an instance. It compares the database's history (system, timeline, epoch, last commits) with the known one.
 * If they differ, commits may be lost and sequence numbers may repeat. Then the same transaction ends the ownership of
 * every lane and begins a new epoch of the feed.
 */
import { epochStart } from "../../../domain/cluster/epochs.ts";
import type { InstanceRegistration, Registered } from "../../../ports/lease-store.ts";
import type { FeedPosition } from "../../../ports/query-store.ts";
import { refuseTooNew } from "../rows/schema-skew.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "../session/durably.ts";
import { type Evidence, type Judgement, judgeHistory } from "../session/judge-history.ts";
import { purgeReports, purgeTakeovers } from "../statements/cluster-past.ts";
import { purgeCommitMarkers, readOwnMarkers } from "../statements/commit-marker.ts";
import * as database from "../statements/database.ts";
import { beginEpoch, readFeed, recordEpochFloors } from "../statements/feed.ts";
import { lockLaneTable } from "../statements/lane.ts";
import { endTerms } from "../statements/lease.ts";
import * as instances from "../statements/node-instance.ts";
import { limitWaits, type Opened, proveContinuity } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";

/** State that a process carries over to a new instance. */
interface Luggage extends Pick<Evidence, "seen"> {
  /** Name of the newest migration that the process knows. */
  readonly newestMigration: string;
}

/**
 * Registers an instance. If the process was registered before and the database's history continues, one round trip
 * suffices. This matters, because a process that has to register again has already lost time. Every other registration
 * takes two round trips, because the history must be checked in between.
 */
export async function registerInstance(
  runtime: DurableRuntime,
  registration: InstanceRegistration,
  luggage: Luggage,
): Promise<Registered> {
  return (await registerAtOnce(runtime, registration, luggage)) ?? judgeAndRegister(runtime, registration, luggage);
}

/** Registers in one round trip. Null if nothing is committed. */
async function registerAtOnce(
  runtime: DurableRuntime,
  registration: InstanceRegistration,
  { seen, newestMigration }: Luggage,
): Promise<Registered | null> {
  const { history, slots } = runtime;
  const { standing } = history;
  if (standing === null || standing.epoch < seen.epoch) return null;
  const { systemIdentifier, timeline, epoch } = standing;
  const accepted = [...slots.accepted(slots.expected())];
  const kept = [accepted.map(([slot]) => slot), accepted.map(([, markers]) => markers.join(","))];
  const commandsFor = (marker: string) => [
    instances.lockRegistration(),
    proveContinuity(systemIdentifier, timeline, epoch, seen.seq, slots.storeId, ...kept, newestMigration),
    database.rememberPosition(marker),
    ...PURGES,
    ...replacing(registration, marker),
    insertion(registration, newestMigration, marker),
  ];
  const registered = await durablyAtOnce(runtime, { known: standing, commandsFor }, slots.takeFresh());
  if (registered === null) return null;
  if (registered.opened !== null) history.pin({ ...registered.opened, epoch });
  return { epoch, begun: false, mayHaveLost: false };
}

const PURGES = [instances.purgeInstances(), purgeTakeovers(), purgeReports(), purgeCommitMarkers()] as const;

function insertion(registration: InstanceRegistration, ...more: readonly unknown[]) {
  const { instanceId, nodeId, url, version, mode, leaseDurationMs, chains, signers, standsBack } = registration;
  const { publicKey, keyProof, keysAway } = registration;
  const announced = [chains, signers, standsBack, publicKey, keyProof, keysAway];
  return instances.insertInstance(instanceId, nodeId, url, version, mode, leaseDurationMs, ...announced, ...more);
}

function replacing({ replaces = [] }: InstanceRegistration, marker: string | null): readonly Command[] {
  return replaces.length === 0 ? [] : [instances.replaceInstance(replaces, marker)];
}

async function judgeAndRegister(
  runtime: DurableRuntime,
  registration: InstanceRegistration,
  { seen, newestMigration }: Luggage,
): Promise<Registered> {
  const { instanceId } = registration;
  const { history, slots } = runtime;
  // Take the known state before the database is read, because other transactions of this process may update it
  // meanwhile.
  const { memory } = history;
  const slot = slots.takeFresh();
  const expected = slots.expected();
  const { judgement, opened } = await durably(
    runtime,
    {
      locks: [instances.lockRegistration()],
      find: [
        readFeed(),
        database.readDatabaseHistory(),
        readOwnMarkers(slots.storeId),
        database.readNewerMigrations(newestMigration),
        insertion(registration, newestMigration, null),
        ...PURGES,
      ],
      anyHistory: true,
      decide: ([[feed], [recorded], markers, newer], opened) => {
        refuseTooNew(newer, newestMigration);
        const position = feed as FeedPosition;
        const judgement = judgeHistory({
          observed: { ...opened, walPosition: recorded?.positionNow ?? opened.walPosition },
          recorded: recorded ?? null,
          memory,
          commitsKept: slots.areKept(expected, markers),
          feed: position,
          seen,
        });
        const start = epochStart([position.lastSeq, seen.seq], judgement.mayHaveLost);
        const begun = judgement.begins ? [patience(runtime), ...beginning(judgement, instanceId, start)] : [];
        const commands = [remember(judgement, opened), ...begun, ...replacing(registration, null)];
        return { commands, result: { judgement, opened } };
      },
    },
    slot,
  );
  if (judgement.epoch !== memory?.epoch) slots.forgetAllBut(slot);
  history.pin({ ...opened, epoch: judgement.epoch });
  const { epoch, begins, mayHaveLost } = judgement;
  return { epoch, begun: begins, mayHaveLost };
}

/**
 * Statement that lengthens the lock wait: all lanes must be locked and changed, however many there are, and no node can
 * write before that.
 */
function patience({ limits }: DurableRuntime) {
  const { statementMs } = limits.writing(1);
  return limitWaits(statementMs, statementMs);
}

/**
 * Statements that begin a new epoch, in lock order: lanes, heartbeats, the feed's counter last. The lane table is
 * locked as a whole, not row by row. Otherwise a lane that another node has inserted and not committed yet would not be
 * visible, and would keep its old owner.
 */
function beginning({ epoch, mayHaveLost }: Judgement, instanceId: string, start: number): readonly Command[] {
  return [
    lockLaneTable(),
    endTerms(mayHaveLost),
    instances.endInstances(instanceId),
    recordEpochFloors(),
    beginEpoch(epoch, start),
  ];
}

function remember({ ordinal, epoch, mayHaveLost }: Judgement, opened: Opened) {
  const { systemIdentifier, timeline, walPosition } = opened;
  return database.writeDatabaseHistory(ordinal, systemIdentifier, timeline, walPosition, epoch, mayHaveLost);
}
