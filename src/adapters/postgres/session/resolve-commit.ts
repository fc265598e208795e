/**
 * Finds out what became of a COMMIT that got no answer. The transaction holds the lock of its marker's row, so the look-up
 * waits for it. If the marker is there, it is committed. If not, the slot is closed: a transaction whose bytes are still on
 * their way to the server, as one that left in a single write may be, then fails there. Without an answer in time the
 * outcome stays unknown.
 */
import { OutcomeUnknown, StoreUnavailable } from "../../../ports/lane-store.ts";
import { closeSlot } from "../statements/commit-marker.ts";
import { type OpenedRow, openTransaction } from "../statements/session.ts";
import type { Mark } from "./commit-slots.ts";
import type { DurableRuntime } from "./durably.ts";
import type { Floor } from "./known-history.ts";
import { BEGIN } from "./opening.ts";
import { CommitUnanswered, type Opened, openedOf, openingValues } from "./write-transaction.ts";

const PAUSE_MS = 50;
const NOT_COMMITTED = "the connection ended before COMMIT";

/** `failure` of a transaction: any other than a COMMIT without an answer is thrown on. Returns the time of the transaction where it was committed; throws `StoreUnavailable` (busy) where it was not, `OutcomeUnknown` where no look-up was answered. */
export async function resolveCommit(runtime: DurableRuntime, failure: unknown): Promise<Date> {
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
    // It answers, and nothing was kept: the same again may well succeed.
    if (committedAt === null) throw new StoreUnavailable(NOT_COMMITTED, { cause: failure, busy: true });
    if (runtime.connections.closing || runtime.clock.monotonicMs() >= deadlineMs) {
      runtime.slots.doubts.set(slot, marker);
      throw new OutcomeUnknown(failure.message, { cause: failure });
    }
    await runtime.clock.sleep(PAUSE_MS);
  }
}

/** Looks once more for commits whose outcome stayed unknown: by now each is there, or its slot is closed for good. */
export async function settleDoubts(runtime: DurableRuntime): Promise<void> {
  for (const [slot, marker] of [...runtime.slots.doubts]) {
    await lookUp(runtime, { slot, marker }).catch((error) => {
      throw new StoreUnavailable("a commit without an answer cannot be looked up yet", { cause: error });
    });
    runtime.slots.doubts.delete(slot);
  }
}

/** A look-up that failed has said nothing. */
function passUnknown(error: unknown): "unanswered" {
  if (error instanceof OutcomeUnknown) throw error;
  return "unanswered";
}

/**
 * One round trip: a look-up that waited between two would be ended by the very limit that may have ended what it looks
 * for. Closing a slot in another history does no harm, so the history is judged afterwards.
 */
async function lookUp(runtime: DurableRuntime, { slot, marker }: Mark): Promise<Date | null> {
  return runtime.connections.use(async (session) => {
    const { floor } = runtime.history;
    const [, rows, found, tag] = await session.together(() =>
      Promise.all([
        session.begin(BEGIN),
        session.run(openTransaction, openingValues(runtime, { waits: 1 })),
        session.run(closeSlot, [runtime.slots.storeId, slot, marker]),
        session.control("COMMIT"),
      ]),
    );
    refuseOtherHistory(runtime, openedOf(rows[0] as OpenedRow), floor);
    if (tag !== "COMMIT") throw new StoreUnavailable("the server rolled back");
    const [kept] = found;
    return kept?.marker === marker ? kept.writtenAt : null;
  }, runtime.limits.transactionMs);
}

/** What another history holds says nothing about this one. */
function refuseOtherHistory({ history }: DurableRuntime, opened: Opened, floor: Floor): void {
  try {
    history.verify(opened.history, floor);
  } catch (error) {
    throw new OutcomeUnknown("the database changed its history behind a commit", { cause: error });
  }
}
