import { randomUUID } from "node:crypto";
import { OutcomeUnknown, StoreUnavailable } from "../../../ports/lane-store.ts";
import { closeSlot } from "../statements/commit-marker.ts";
import { type Opened, openTransaction } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";
import type { Mark } from "./commit-slots.ts";
import type { Floor } from "./known-history.ts";
import { BEGIN } from "./opening.ts";
import {
  CommitUnanswered,
  commitAtOnce,
  openingValues,
  type WholeTransaction,
  type WriteRuntime,
  type WriteTransaction,
  writeTransaction,
} from "./write-transaction.ts";

export interface DurableRuntime extends WriteRuntime {
  /** How long to look up the outcome of a COMMIT that got no response. */
  readonly patienceMs: number;
}

/** Runs a write transaction. If COMMIT gets no response, its outcome is looked up before a result is returned. */
export async function durably<const Commands extends readonly Command[], Result>(
  runtime: DurableRuntime,
  transaction: WriteTransaction<Commands, Result>,
  slot = runtime.slots.take(),
): Promise<Result> {
  let decided: { readonly result: Result } | null = null;
  const decide: typeof transaction.decide = (found, opened) => {
    const decision = transaction.decide(found, opened);
    decided = decision;
    return decision;
  };
  try {
    return await writeTransaction(runtime, { ...transaction, decide }, slot);
  } catch (error) {
    if (decided === null) throw error;
    await resolveCommit(runtime, error);
    return (decided as { readonly result: Result }).result;
  } finally {
    runtime.slots.give(slot);
  }
}

type KnownWrite = Pick<WholeTransaction, "known"> & { readonly commandsFor: (marker: string) => readonly Command[] };

/** Result of a commit in one round trip. */
export interface CommittedAtOnce {
  /** Time of the transaction, which is also the time of its rows. */
  readonly at: Date;
  /** Result of the opening statement; null if COMMIT got no response and a look-up found the commit. */
  readonly opened: Opened | null;
}

/**
 * Like `durably`, but in one round trip. Possible only if the database's history is known and nothing must be looked up
 * first. The commands contain the assumptions on which they are based, and the server refuses them if an assumption is
 * wrong. Null if nothing is committed; a commit in two round trips then finds the reason.
 */
export async function durablyAtOnce(
  runtime: DurableRuntime,
  { known, commandsFor }: KnownWrite,
  slot = runtime.slots.take(),
): Promise<CommittedAtOnce | null> {
  const { slots, history } = runtime;
  const { floor } = history;
  const mark = { slot, marker: randomUUID() };
  try {
    const opened = await commitAtOnce(runtime, { mark, known, commands: commandsFor(mark.marker) });
    if (opened === null) return null;
    history.noteCommitted(opened, floor);
    return { at: opened.now, opened };
  } catch (error) {
    return { at: await resolveCommit(runtime, error), opened: null };
  } finally {
    slots.give(slot);
  }
}

const PAUSE_MS = 50;
const NOT_COMMITTED = "the connection ended before COMMIT";

/**
 * Determines the outcome of a COMMIT without a response. The transaction holds the lock of its marker's row, so the
 * look-up waits for it. If the marker is there, the transaction is committed. If not, the slot is closed, so that a
 * transaction whose bytes are still on their way to the server (possible after a single write) fails. Without a
 * response in time the outcome stays unknown.
 *
 * `failure`: the transaction's error; any other than a COMMIT without a response is rethrown. Returns the time of the
 * transaction if it was committed. Throws `StoreUnavailable` (busy) if it was not, `OutcomeUnknown` if no look-up was
 * answered.
 */
async function resolveCommit(runtime: DurableRuntime, failure: unknown) {
  if (!(failure instanceof CommitUnanswered)) throw failure;
  const deadlineMs = runtime.clock.monotonicMs() + runtime.patienceMs;
  const { slot, marker } = failure.mark;
  runtime.slots.retire(slot);
  for (;;) {
    const committedAt = await lookUp(runtime, failure.mark).catch(passUnknown);
    if (committedAt instanceof Date) {
      runtime.slots.acknowledged(slot, marker, runtime.clock.monotonicMs());
      return committedAt;
    }
    // The database answers and the transaction was not committed, so a retry may succeed.
    if (committedAt === null) throw new StoreUnavailable(NOT_COMMITTED, { cause: failure, busy: true });
    if (runtime.connections.closing || runtime.clock.monotonicMs() >= deadlineMs) {
      runtime.slots.doubts.set(slot, marker);
      throw new OutcomeUnknown(failure.message, { cause: failure });
    }
    await runtime.clock.sleep(PAUSE_MS);
  }
}

/** Looks up again commits whose outcome stayed unknown: now each is either found, or its slot is closed for good. */
export async function settleDoubts(runtime: DurableRuntime): Promise<void> {
  for (const [slot, marker] of [...runtime.slots.doubts]) {
    await lookUp(runtime, { slot, marker }).catch((error) => {
      throw new StoreUnavailable("an earlier commit's unknown outcome cannot be looked up yet", { cause: error });
    });
    runtime.slots.doubts.delete(slot);
  }
}

/** A look-up that failed proves nothing about the commit. */
function passUnknown(error: unknown): "unanswered" {
  if (error instanceof OutcomeUnknown) throw error;
  return "unanswered";
}

/**
 * Looks up a commit in one round trip. Two would not be safe: the server's limit on idle time, which may have ended the
 * transaction itself, could also end the look-up between them. The history is checked only afterwards, because closing
 * a slot in another history does no harm.
 */
async function lookUp(runtime: DurableRuntime, { slot, marker }: Mark) {
  return runtime.connections.use(async (session) => {
    const { floor } = runtime.history;
    const [, [opened], [kept], tag] = await session.together(() =>
      Promise.all([
        session.begin(BEGIN),
        session.run(openTransaction(...openingValues(runtime, 1))),
        session.run(closeSlot(runtime.slots.storeId, slot, marker)),
        session.control("COMMIT"),
      ]),
    );
    refuseOtherHistory(runtime, opened as Opened, floor);
    if (tag !== "COMMIT") throw new StoreUnavailable("the database rolled the transaction back");
    return kept?.marker === marker ? kept.writtenAt : null;
  }, runtime.limits.transactionMs);
}

/** Throws if the database's history has changed: another history proves nothing about a commit in this one. */
function refuseOtherHistory({ history }: DurableRuntime, opened: Opened, floor: Floor) {
  try {
    history.verify(opened, floor);
  } catch (error) {
    throw new OutcomeUnknown("the database changed its history behind a commit", { cause: error });
  }
}
