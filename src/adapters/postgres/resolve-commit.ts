/**
 * Finds out what became of a COMMIT that got no answer. The transaction's marker is in a row that it had locked; whoever
 * gets that row finds the marker, or closes the slot: a transaction whose bytes are still on their way to the server, as
 * one that left in a single write may be, then ends there. Only an answer counts: without one in time the outcome stays
 * unknown.
 */
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";
import type { Mark } from "./commit-slots.ts";
import type { DurableRuntime } from "./durably.ts";
import { closeSlot } from "./statements/close-slot.ts";
import { type CommitUnanswered, open } from "./write-transaction.ts";

const PAUSE_MS = 50;
const NOT_COMMITTED = "the connection ended before COMMIT";

/** Returns where it was committed; throws `StoreUnavailable` (busy) where it was not, `OutcomeUnknown` where nobody can say. */
export async function resolveCommit(runtime: DurableRuntime, failure: CommitUnanswered): Promise<void> {
  const deadlineMs = runtime.clock.monotonicMs() + runtime.patienceMs;
  runtime.slots.retire(failure.slot);
  for (;;) {
    const committed = await lookUp(runtime, failure).catch(passUnknown);
    if (committed === true) return;
    // It answers, and nothing was kept: the same again may well succeed.
    if (committed === false) throw new StoreUnavailable(NOT_COMMITTED, { cause: failure, busy: true });
    if (runtime.connections.closing || runtime.clock.monotonicMs() >= deadlineMs) {
      runtime.slots.doubts.set(failure.slot, failure.marker);
      throw new OutcomeUnknown(failure.message, { cause: failure });
    }
    await runtime.clock.sleep(PAUSE_MS);
  }
}

/** Whatever this process once could say nothing about has happened by now, or never will. */
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

async function lookUp(runtime: DurableRuntime, { slot, marker }: Mark): Promise<boolean> {
  return runtime.connections.use(async (session) => {
    const { found } = await open(runtime, session, {
      statements: 1,
      waits: 1,
      find: (run) => run(closeSlot, [runtime.slots.storeId, slot, marker]),
      // What another history holds says nothing about this one.
      verify: ({ history }, floor) => {
        try {
          runtime.history.verify(history, floor);
        } catch (error) {
          throw new OutcomeUnknown("the database changed its history behind a commit", { cause: error });
        }
      },
    });
    if ((await session.control("COMMIT")) !== "COMMIT") throw new StoreUnavailable("the server rolled back");
    return found[0]?.marker === marker;
  }, runtime.limits.transactionMs);
}
