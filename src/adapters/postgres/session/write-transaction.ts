/**
 * How a write to the database is begun, proved and ended. Start to read here.
 *
 * Three things can go wrong, and each round trip excludes what it can. Another node may have taken the lane. The server
 * that answers may not be the one that acknowledged our commits: a promoted standby, a restored backup. And the
 * connection may end at any byte, also between COMMIT and its answer.
 *
 * First round trip: BEGIN, the opening statement, our marker, the locks and the look-ups, in one write (connections.ts,
 * pipeline.ts). Its answers prove
 * - that the time limits are set. If this process stalls now, the server ends the transaction within a third of the
 *   lease, so a takeover need not wait for it (limits.ts).
 * - that the database still has the history we know: system identifier, timeline, WAL position, epoch of the feed
 *   (opening.ts, known-history.ts). If not, nothing is written until this node registers again, which judges what may
 *   have been lost (judge-history.ts).
 * - that we hold the lanes: their rows are locked and carry our fence. Until the transaction ends no other node can take
 *   or write them, so what the look-ups found of them stays true.
 *
 * Between the two, the write is decided in memory. A crash here leaves nothing: the server rolls back when the connection
 * ends or its timers run out.
 *
 * Second round trip: what was decided, with COMMIT in the same write. The tag "COMMIT" proves that it is durable; the tag
 * "ROLLBACK", or an error on a connection that lives, that nothing is (errors.ts). No answer proves neither.
 *
 * Third, only then: the marker is looked up (durably.ts). Each transaction writes a random marker into
 * a row that no other uses meanwhile, its slot (commit-slots.ts), and holds that row's lock until it ends. So the look-up waits for the
 * transaction. If it then finds the marker, the transaction is committed. If not, it closes the slot, and a COMMIT that
 * is still on its way to the server fails there. If the look-up gets no answer either, the caller hears `OutcomeUnknown`,
 * never a guess.
 *
 * One round trip instead of two, where this process foresees what the first would find (commitAtOnce): the write carries
 * what it expects, and the server compares, behind the same locks, and ends the transaction where it finds something else.
 *
 * Not transactions, but sessions that last: LISTEN and the session lock have a connection of their own
 * (direct-session.ts).
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../../ports/clock.ts";
import { HistoryChanged, StoreUnavailable } from "../../../ports/lane-store.ts";
import { markCommit } from "../statements/commit-marker.ts";
import { limitWaits, type OpenedRow, openKnown, openTransaction } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";
import type { CommitSlots, Mark } from "./commit-slots.ts";
import type { Connections, Run, Session } from "./connections.ts";
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

export interface Opened {
  readonly now: Date;
  readonly history: ObservedHistory;
}

export interface Decision<Result> {
  readonly commands: readonly Command[];
  readonly result: Result;
  /** Nothing is to be kept: ROLLBACK instead of COMMIT. */
  readonly rollback?: boolean;
}

export interface WriteTransaction<Found, Result> {
  /** How many statements `find` sends, and how many of the first wait for locks: time is divided among them. */
  readonly statements: number;
  readonly waits: number;
  /** Less than the usual wait for each of those. */
  readonly waitAtMostMs?: number;
  /** Sends its statements before its first await. They run after the limits are set, in order. */
  find(run: Run): Promise<Found>;
  /** Else it must be the one that is known. */
  readonly anyHistory?: true;
  decide(found: Found, opened: Opened): Decision<Result>;
}

/** The connection ended after COMMIT was written: only the database can say what became of it. */
export class CommitUnanswered extends Error {
  readonly mark: Mark;

  constructor(mark: Mark, cause: unknown) {
    super("the connection ended without an answer to COMMIT", { cause });
    this.name = "CommitUnanswered";
    this.mark = mark;
  }
}

export async function writeTransaction<Found, Result>(
  runtime: WriteRuntime,
  transaction: WriteTransaction<Found, Result>,
  slot: number,
): Promise<Result> {
  const mark: Mark = { slot, marker: randomUUID() };
  const marked = marking(runtime, transaction, mark);
  return using(runtime, async (session) => {
    const { found, opened } = await open(runtime, session, marked).catch((error) =>
      giveUp(session, session.reachedDeadline ? error : asLostBeforeCommit(error)),
    );
    const deciding = async () => transaction.decide(found, opened);
    const decision = await deciding().catch((error) => giveUp(session, error));
    if (decision.rollback === true) {
      // There is nothing to keep: where the server has ended the transaction before it heard of this, it is the same.
      await session.control("ROLLBACK").catch(() => undefined);
      return decision.result;
    }
    await commit(runtime, session, { commands: decision.commands, mark });
    runtime.slots.acknowledged(slot, mark.marker, runtime.clock.monotonicMs());
    return decision.result;
  });
}

/** On a connection of its own, for as long as a transaction may take. */
async function using<T>({ connections, limits }: WriteRuntime, work: (session: Session) => Promise<T>): Promise<T> {
  try {
    return await connections.use(work, limits.transactionMs);
  } catch (error) {
    throw error instanceof CommitUnanswered ? error : asStoreError(error);
  }
}

/** The same transaction, with the marker written before anything else: its row is held as long as the transaction is. */
function marking<Found>({ slots }: WriteRuntime, transaction: Opening<Found>, mark: Mark): Opening<Found> {
  return {
    ...transaction,
    statements: transaction.statements + 1,
    waits: transaction.waits + 1,
    find: async (run) => {
      const marked = run(markCommit, [slots.storeId, mark.slot, mark.marker, null]);
      const [, found] = await Promise.all([marked, transaction.find(run)]);
      return found;
    },
  };
}

type Opening<Found> = Omit<WriteTransaction<Found, unknown>, "decide">;

async function open<Found>(
  runtime: WriteRuntime,
  session: Session,
  transaction: Opening<Found>,
): Promise<{ found: Found; opened: Opened }> {
  const { floor } = runtime.history;
  const [, rows, found] = await session.together(() =>
    Promise.all([
      session.begin(BEGIN),
      session.run(openTransaction, openingValues(runtime, transaction)),
      transaction.find(limited(runtime, session, transaction)),
    ]),
  );
  const opened = openedOf(rows[0] as OpenedRow);
  if (transaction.anyHistory !== true) runtime.history.verify(opened.history, floor);
  return { found, opened };
}

export function openingValues(
  { limits, serverVersion }: WriteRuntime,
  { waits, waitAtMostMs = Number.POSITIVE_INFINITY }: Pick<Opening<unknown>, "waits" | "waitAtMostMs">,
) {
  const usual = limits.waiting(waits);
  const [statementMs, lockMs] = [usual.statementMs, usual.lockMs].map((ms) => Math.min(ms, waitAtMostMs));
  const whole = hasTransactionTimeout(serverVersion) ? "transaction_timeout" : "fencepost.transaction_timeout";
  return [statementMs, lockMs, limits.idleMs, whole, limits.transactionMs].map(String);
}

/** Sends statements as they are asked for; behind the last one that waits for locks, the time for the others. */
function limited({ limits }: WriteRuntime, session: Session, { statements, waits }: Opening<unknown>): Run {
  const rest = limits.reading(statements - waits);
  let sent = 0;
  return (statement, values) => {
    const answer = session.run(statement, values);
    // It fails only where a statement before it has. It is not awaited: else the error of the statement that ran out of
    // time would be read after the errors of those it took down, which do not say why.
    if (++sent === waits && rest !== null) session.send(limiting(rest)).catch(() => undefined);
    return answer;
  };
}

function limiting({ statementMs, lockMs }: StatementLimits): Command {
  return { statement: limitWaits, values: [String(statementMs), String(lockMs)] };
}

/** The lanes are let go before the error travels on. A server with another history may be the wrong one: ask anew. */
async function giveUp(session: Session, error: unknown): Promise<never> {
  if (session.isInTransaction) await session.control("ROLLBACK").catch(() => undefined);
  if (error instanceof HistoryChanged) session.destroy();
  throw error;
}

async function commit(
  { limits, slots }: WriteRuntime,
  session: Session,
  { commands, mark }: { commands: readonly Command[]; mark: Mark },
): Promise<void> {
  const { endedBy } = session;
  // The server did not wait for the second round trip. COMMIT has not left, so nothing is committed.
  if (endedBy !== null) throw new StoreUnavailable(endedBy.message, { cause: endedBy, busy: true });
  const first = limiting(limits.writing(commands.length + 1));
  slots.sent(mark.slot, mark.marker);
  const sent = session.together(() => {
    if (commands.length === 0) return [session.control("COMMIT")];
    return [...[first, ...commands].map((command) => session.send(command)), session.control("COMMIT")];
  });
  assertCommitted(await Promise.allSettled(sent), mark);
}

/** Throws unless the last answer says that the transaction is committed. */
function assertCommitted(answers: readonly PromiseSettledResult<unknown>[], mark: Mark): void {
  const failure = answers.find((answer) => answer.status === "rejected");
  if (failure !== undefined) {
    if (answers.some((answer) => answer.status === "rejected" && provesAbort(answer.reason))) throw failure.reason;
    throw new CommitUnanswered(mark, failure.reason);
  }
  const tag = answers.at(-1);
  // A COMMIT behind a failed statement is answered without an error: by what it did.
  if (tag?.status !== "fulfilled" || tag.value !== "COMMIT") throw new StoreUnavailable("the server rolled back");
}

export interface WholeTransaction {
  readonly mark: Mark;
  /** Taken before anything is sent. */
  readonly known: ObservedHistory;
  /** Statements that end a transaction that is not open (`require_open`), or whose lanes are not as planned for. */
  readonly commands: readonly Command[];
}

/**
 * A whole transaction in one write. What would be decided between two round trips the server proves: the history in
 * the opening statement, the rest in the commands. Null: it said that nothing is committed.
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

async function sendAtOnce(
  runtime: WriteRuntime,
  session: Session,
  { mark, known, commands }: WholeTransaction,
): Promise<Opened | null> {
  const { systemIdentifier, timeline, epoch, walPosition } = known;
  const limits = openingValues(runtime, { waits: commands.length + 2 });
  const identity = [systemIdentifier, timeline, epoch, String(walPosition)];
  const answers = await Promise.allSettled(
    session.together(() => [
      session.begin(BEGIN),
      session.run(openKnown, [...limits, mark.marker, ...identity]),
      session.run(markCommit, [runtime.slots.storeId, mark.slot, mark.marker, mark.marker]),
      ...commands.map((command) => session.send(command)),
      session.control("COMMIT"),
    ]),
  );
  if (answers.some((answer) => answer.status === "rejected" && provesAbort(answer.reason))) return null;
  assertCommitted(answers, mark);
  const [, opening] = answers as readonly PromiseFulfilledResult<readonly OpenedRow[]>[];
  return openedOf(opening?.value[0] as OpenedRow);
}

export function openedOf({ now, systemIdentifier, timeline, walPosition, epoch, synchronous }: OpenedRow): Opened {
  return { now, history: { systemIdentifier, timeline, walPosition, epoch, synchronous } };
}
