/**
 * How a write to the database is begun, verified and ended. Start to read here.
 *
 * Three things can go wrong, and each round trip excludes those that it can. Another node may have taken the lane. The
 * server that answers may not be the one that acknowledged our commits: a promoted standby, a restored backup. And the
 * connection may end at any byte, even between COMMIT and its response.
 *
 * First round trip: BEGIN, the opening statement, our marker, the locks and the look-ups, in one write (connections.ts,
 * pipeline.ts). Its responses prove
 * - that the time limits are set. If this process stalls now, the server ends the transaction within a third of the
 *   lease, so a takeover need not wait for it (limits.ts).
 * - that the database still has the history we know: system identifier, timeline, WAL position, epoch of the feed
 *   (opening.ts, known-history.ts). If not, nothing is written until this node registers again, which determines what
 * may
 *   have been lost (judge-history.ts).
 * - that we hold the lanes: their rows are locked and carry our fence. Until the transaction ends no other node can
 * take
 *   or write them, so the results of the look-ups stay true.
 *
 * Between the two round trips, the write is decided in memory. A crash here leaves nothing: the server rolls back when
 * the connection ends or its timers run out.
 *
 * Second round trip: the decided statements, with COMMIT in the same write. The tag "COMMIT" proves that they are
 * durable. The tag "ROLLBACK", or an error on a live connection, proves that none is (errors.ts). A missing response
 * proves neither.
 *
 * Third round trip, only if there was no response: the marker is looked up (durably.ts). Each transaction writes a
 * random marker into a row that no other uses meanwhile, its slot (commit-slots.ts), and holds that row's lock until it
 * ends. So the look-up waits for the transaction. If the look-up then finds the marker, the transaction is committed.
 * If not, it closes the slot, and a COMMIT that is still on its way to the server fails there. If the look-up gets no
 * response either, the caller gets `OutcomeUnknown`, never a guess.
 *
 * One round trip instead of two, if this process can predict the responses of the first (commitAtOnce): the write
 * carries the expected values. The server compares them, under the same locks, and ends the transaction if they differ.
 *
 * LISTEN and the session lock are no transactions, but lasting sessions with a connection of their own
 * (direct-session.ts).
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../../ports/clock.ts";
import { HistoryChanged, StoreUnavailable } from "../../../ports/lane-store.ts";
import { markCommit } from "../statements/commit-marker.ts";
import { limitWaits, type Opened, openKnown, openTransaction } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";
import type { CommitSlots, Mark } from "./commit-slots.ts";
import type { Answers, Connections, Session } from "./connections.ts";
import { asLostBeforeCommit, asStoreError, provesAbort } from "./errors.ts";
import type { KnownHistory, ObservedHistory } from "./known-history.ts";
import { hasTransactionTimeout, type Limits, type StatementLimits } from "./limits.ts";
import { BEGIN } from "./opening.ts";

export interface WriteRuntime {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly history: KnownHistory;
  readonly limits: Limits;
  readonly serverVersion: number;
  readonly slots: CommitSlots;
}

export interface Decision<Result> {
  /** Statements to commit; null to roll back instead. */
  readonly commands: readonly Command[] | null;
  readonly result: Result;
}

export interface WriteTransaction<Commands extends readonly Command[], Result> {
  /** Statements that are sent first to wait for locks; their results are not needed. */
  readonly locks?: readonly Command[];
  readonly find: Commands;
  /**
   * Number of statements at the start of `find` that also wait for locks. The waiting time is divided among all
   * statements that wait.
   */
  readonly waits?: number;
  /** Limit on each lock wait; set only if it must be shorter than usual. */
  readonly waitAtMostMs?: number;
  /** True if the write is allowed even if the database's history is not the known one. */
  readonly anyHistory?: true;
  decide(found: Answers<Commands>, opened: Opened): Decision<Result>;
}

/** The connection ended after COMMIT was sent: only the database can show whether it was executed. */
export class CommitUnanswered extends Error {
  readonly mark: Mark;

  constructor(mark: Mark, cause: unknown) {
    super("the connection ended without an answer to COMMIT", { cause });
    this.name = "CommitUnanswered";
    this.mark = mark;
  }
}

export async function writeTransaction<const Commands extends readonly Command[], Result>(
  runtime: WriteRuntime,
  transaction: WriteTransaction<Commands, Result>,
  slot: number,
): Promise<Result> {
  const mark: Mark = { slot, marker: randomUUID() };
  return using(runtime, async (session) => {
    const { found, opened } = await open(runtime, session, transaction, mark).catch((error) =>
      giveUp(session, session.reachedDeadline ? error : asLostBeforeCommit(error)),
    );
    const deciding = async () => transaction.decide(found, opened);
    const { commands, result } = await deciding().catch((error) => giveUp(session, error));
    if (commands === null) {
      // Ignore an error of ROLLBACK: nothing is to be committed, and the server may already have ended the transaction.
      await session.control("ROLLBACK").catch(() => undefined);
      return result;
    }
    await commit(runtime, session, { commands, mark });
    runtime.slots.acknowledged(slot, mark.marker, runtime.clock.monotonicMs());
    return result;
  });
}

/** Runs `work` on a separate connection, for at most the time limit of a transaction. */
async function using<T>({ connections, limits }: WriteRuntime, work: (session: Session) => Promise<T>) {
  try {
    return await connections.use(work, limits.transactionMs);
  } catch (error) {
    throw error instanceof CommitUnanswered ? error : asStoreError(error);
  }
}

type Opening<Commands extends readonly Command[]> = Omit<WriteTransaction<Commands, unknown>, "decide">;

/**
 * Opens a transaction. Its marker is written before anything else, so that the marker's row is locked as long as the
 * transaction lasts.
 */
async function open<const Commands extends readonly Command[]>(
  runtime: WriteRuntime,
  session: Session,
  { locks = [], find, waits = 0, waitAtMostMs, anyHistory }: Opening<Commands>,
  { slot, marker }: Mark,
) {
  const { floor } = runtime.history;
  const rest = runtime.limits.reading(find.length - waits);
  const [, [opened], , , locked, read] = await session.together(() => {
    const sent = [
      session.begin(BEGIN),
      session.run(openTransaction(...openingValues(runtime, 1 + locks.length + waits, waitAtMostMs))),
      session.run(markCommit(runtime.slots.storeId, slot, marker, null)),
      session.all(locks),
      session.all(find.slice(0, waits)),
    ] as const;
    // The statement that sets the limits fails only if an earlier statement failed. It is not awaited, so that the
    // error of the earlier statement is reported.
    if (rest !== null) session.run(limiting(rest)).catch(() => undefined);
    return Promise.all([...sent, session.all(find.slice(waits))]);
  });
  if (opened === undefined) throw new StoreUnavailable("the database did not return the row of the opened transaction");
  if (anyHistory !== true) runtime.history.verify(opened, floor);
  return { found: [...locked, ...read] as unknown as Answers<Commands>, opened };
}

export function openingValues(
  { limits, serverVersion }: WriteRuntime,
  waits: number,
  waitAtMostMs = Number.POSITIVE_INFINITY,
): readonly unknown[] {
  const { statementMs, lockMs } = limits.waiting(waits);
  const whole = hasTransactionTimeout(serverVersion) ? "transaction_timeout" : "fencepost.transaction_timeout";
  const waiting = [statementMs, lockMs].map((ms) => Math.min(ms, waitAtMostMs));
  return [...waiting, limits.idleMs, whole, limits.transactionMs];
}

function limiting({ statementMs, lockMs }: StatementLimits) {
  return limitWaits(statementMs, lockMs);
}

/**
 * Rolls back before the error is thrown, so that the lanes are unlocked. If the history changed, the connection may
 * lead to the wrong server, so it is destroyed.
 */
async function giveUp(session: Session, error: unknown): Promise<never> {
  if (session.isInTransaction) await session.control("ROLLBACK").catch(() => undefined);
  if (error instanceof HistoryChanged) session.destroy();
  throw error;
}

async function commit(
  { limits, slots }: WriteRuntime,
  session: Session,
  { commands, mark }: { commands: readonly Command[]; mark: Mark },
) {
  const { endedBy } = session;
  // The server ended the connection before the second round trip. COMMIT was not sent, so nothing is committed.
  if (endedBy !== null) throw new StoreUnavailable(endedBy.message, { cause: endedBy, busy: true });
  const first = limiting(limits.writing(commands.length + 1));
  slots.sent(mark.slot, mark.marker);
  const sent = session.together(() => {
    if (commands.length === 0) return [session.control("COMMIT")];
    return [...[first, ...commands].map((command) => session.run(command)), session.control("COMMIT")];
  });
  assertCommitted(await Promise.allSettled(sent), mark);
}

/** Throws unless the last response proves that the transaction is committed. */
function assertCommitted(answers: readonly PromiseSettledResult<unknown>[], mark: Mark) {
  const failure = answers.find((answer) => answer.status === "rejected");
  if (failure !== undefined) {
    if (answers.some((answer) => answer.status === "rejected" && provesAbort(answer.reason))) throw failure.reason;
    throw new CommitUnanswered(mark, failure.reason);
  }
  const tag = answers.at(-1);
  // COMMIT after a failed statement returns no error, but the tag ROLLBACK.
  if (tag?.status !== "fulfilled" || tag.value !== "COMMIT")
    throw new StoreUnavailable("the database rolled the transaction back");
}

export interface WholeTransaction {
  readonly mark: Mark;
  /** The database's history as this process knows it, read before anything is sent. */
  readonly known: ObservedHistory;
  /**
   * Statements of the transaction. They fail if the transaction is not open (`require_open`), or if a lane differs from
   * the state that was planned with.
   */
  readonly commands: readonly Command[];
}

/**
 * Sends a whole transaction in one write. The server verifies what would otherwise be decided between two round trips:
 * the history in the opening statement, the rest in the commands. Null if the server reported that nothing is
 * committed.
 */
export async function commitAtOnce(runtime: WriteRuntime, whole: WholeTransaction): Promise<Opened | null> {
  const { slots, clock } = runtime;
  const { slot, marker } = whole.mark;
  return using(runtime, async (session) => {
    slots.sent(slot, marker);
    const opened = await sendAtOnce(runtime, session, whole);
    if (opened !== null) slots.acknowledged(slot, marker, clock.monotonicMs());
    return opened;
  });
}

async function sendAtOnce(runtime: WriteRuntime, session: Session, { mark, known, commands }: WholeTransaction) {
  const { systemIdentifier, timeline, epoch, walPosition } = known;
  const limits = openingValues(runtime, commands.length + 2);
  const answers = await Promise.allSettled(
    session.together(() => [
      session.begin(BEGIN),
      session.run(openKnown(...limits, mark.marker, systemIdentifier, timeline, epoch, walPosition)),
      session.run(markCommit(runtime.slots.storeId, mark.slot, mark.marker, mark.marker)),
      ...commands.map((command) => session.run(command)),
      session.control("COMMIT"),
    ]),
  );
  if (answers.some((answer) => answer.status === "rejected" && provesAbort(answer.reason))) return null;
  assertCommitted(answers, mark);
  const [, opening] = answers as readonly PromiseFulfilledResult<readonly Opened[]>[];
  return opening?.value[0] as Opened;
}
