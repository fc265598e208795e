/**
 * Begins an instance, in the history of the database that it finds. Where that is another one than was known, commits may
 * be lost and sequence numbers may repeat: in the same transaction every term ends, and the feed begins a new epoch.
 */
import { epochStart } from "../../../domain/cluster/epochs.ts";
import type { InstanceRegistration, Registered } from "../../../ports/lease-store.ts";
import type { FeedPosition } from "../../../ports/query-store.ts";
import { refuseTooNew } from "../rows/schema-skew.ts";
import { type DurableRuntime, durably, durablyAtOnce } from "../session/durably.ts";
import { type Evidence, type Judgement, judgeHistory } from "../session/judge-history.ts";
import type { Opened } from "../session/write-transaction.ts";
import { purgeReports, purgeTakeovers } from "../statements/cluster-past.ts";
import { purgeCommitMarkers, readOwnMarkers } from "../statements/commit-marker.ts";
import {
  readDatabaseHistory,
  readNewerMigrations,
  rememberPosition,
  writeDatabaseHistory,
} from "../statements/database.ts";
import { beginEpoch, readFeed, recordEpochFloors } from "../statements/feed.ts";
import { lockLaneTable } from "../statements/lane.ts";
import { endTerms } from "../statements/lease.ts";
import {
  endInstances,
  insertInstance,
  lockRegistration,
  purgeInstances,
  replaceInstance,
} from "../statements/node-instance.ts";
import { limitWaits, proveContinuity } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";

/** What a process brings with it into a new instance. */
interface Luggage extends Pick<Evidence, "seen"> {
  /** The newest migration it knows. */
  readonly newestMigration: string;
}

/**
 * A process that was an instance before, in a history that has gone on, becomes another one in a single round trip: it is
 * short of time already. Every other registration takes two, because the history has to be judged in between.
 */
export async function registerInstance(
  runtime: DurableRuntime,
  registration: InstanceRegistration,
  luggage: Luggage,
): Promise<Registered> {
  return (await registerAtOnce(runtime, registration, luggage)) ?? judgeAndRegister(runtime, registration, luggage);
}

/** Null: nothing is committed. */
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
  const proof = [systemIdentifier, timeline, epoch, seen.seq, slots.storeId, ...kept, newestMigration];
  const commandsFor = (marker: string) => [
    { statement: lockRegistration, values: [] },
    { statement: proveContinuity, values: proof },
    { statement: rememberPosition, values: [marker] },
    { statement: purgeInstances, values: [] },
    { statement: purgeTakeovers, values: [] },
    { statement: purgeReports, values: [] },
    { statement: purgeCommitMarkers, values: [] },
    ...replacing(registration, marker),
    { statement: insertInstance, values: [...columnsOf(registration), newestMigration, marker] },
  ];
  const registered = await durablyAtOnce(runtime, { known: standing, commandsFor }, slots.takeFresh());
  if (registered === null) return null;
  if (registered.opened !== null) history.pin({ ...registered.opened.history, epoch });
  return { epoch, begun: false, mayHaveLost: false };
}

function columnsOf(registration: InstanceRegistration): readonly unknown[] {
  const { instanceId, nodeId, url, version, mode, leaseDurationMs, chains, signers, standsBack } = registration;
  const { publicKey, keyProof, keysAway } = registration;
  const announced = [chains, signers, standsBack, publicKey, keyProof, keysAway];
  return [instanceId, nodeId, url, version, mode, leaseDurationMs, ...announced];
}

function replacing({ replaces = [] }: InstanceRegistration, marker: string | null): readonly Command[] {
  return replaces.length === 0 ? [] : [{ statement: replaceInstance, values: [replaces, marker] }];
}

async function judgeAndRegister(
  runtime: DurableRuntime,
  registration: InstanceRegistration,
  { seen, newestMigration }: Luggage,
): Promise<Registered> {
  const { instanceId } = registration;
  const { history, slots } = runtime;
  // What was known before the database is asked: other transactions of this process may learn more meanwhile.
  const { memory } = history;
  const slot = slots.takeFresh();
  const expected = slots.expected();
  const { judgement, opened } = await durably(
    runtime,
    {
      statements: 10,
      waits: 1,
      find: (run) =>
        Promise.all([
          run(lockRegistration, []),
          run(readFeed, []),
          run(readDatabaseHistory, []),
          run(readOwnMarkers, [slots.storeId]),
          run(purgeInstances, []),
          run(purgeCommitMarkers, []),
          run(readNewerMigrations, [newestMigration]),
          run(insertInstance, [...columnsOf(registration), newestMigration, null]),
          run(purgeTakeovers, []),
          run(purgeReports, []),
        ]),
      anyHistory: true,
      decide: ([, [feed], [recorded], markers, , , newer], opened) => {
        refuseTooNew(newer, newestMigration);
        const position = feed as FeedPosition;
        const judgement = judgeHistory({
          observed: { ...opened.history, walPosition: recorded?.positionNow ?? opened.history.walPosition },
          recorded: recorded ?? null,
          memory,
          commitsKept: slots.areKept(expected, markers),
          feed: { epoch: position.epoch, lastSeq: position.lastSeq },
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
  history.pin({ ...opened.history, epoch: judgement.epoch });
  const { epoch, begins, mayHaveLost } = judgement;
  return { epoch, begun: begins, mayHaveLost };
}

/** Every lane is to be locked and changed, however many there are, and no node can write before that is done. */
function patience({ limits }: DurableRuntime): Command {
  const longest = String(limits.writing(1).statementMs);
  return { statement: limitWaits, values: [longest, longest] };
}

/**
 * In the order of the locks: lanes, heartbeats, the feed's counter last. The table of lanes as a whole, not each of its
 * rows: a lane row that another node has inserted and not committed yet is not visible, and would keep its old term.
 */
function beginning({ epoch, mayHaveLost }: Judgement, instanceId: string, start: number): readonly Command[] {
  return [
    { statement: lockLaneTable, values: [] },
    { statement: endTerms, values: [mayHaveLost] },
    { statement: endInstances, values: [instanceId] },
    { statement: recordEpochFloors, values: [] },
    { statement: beginEpoch, values: [epoch, start] },
  ];
}

function remember({ ordinal, epoch, mayHaveLost }: Judgement, { history }: Opened): Command {
  const { systemIdentifier, timeline, walPosition } = history;
  const values = [ordinal, systemIdentifier, timeline, walPosition.toString(), epoch, mayHaveLost];
  return { statement: writeDatabaseHistory, values };
}
