/**
 * Finds out what became of a COMMIT that got no answer. The lanes are locked first, so the transaction that held them
 * is over; then its number tells. Only an answer counts: without one in time the outcome stays unknown.
 */
import type { Lane } from "../../domain/lane.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";
import { chainIds, signers } from "./commit/lookup.ts";
import { lockLanesByKey } from "./statements/lock-lanes-by-key.ts";
import { readTransactionStatus } from "./statements/read-transaction-status.ts";
import { type CommitUnanswered, open, type WriteRuntime } from "./write-transaction.ts";

const PAUSE_MS = 50;

export interface Unanswered {
  readonly failure: CommitUnanswered;
  readonly lanes: readonly Lane[];
  readonly patienceMs: number;
}

/** Returns where it was committed; throws `StoreUnavailable` where it was not, `OutcomeUnknown` where nobody can say. */
export async function resolveCommit(runtime: WriteRuntime, { failure, lanes, patienceMs }: Unanswered): Promise<void> {
  const deadlineMs = runtime.clock.monotonicMs() + patienceMs;
  for (;;) {
    const status = await lookUp(runtime, failure.xid, lanes).catch(passUnknown);
    if (status === "committed") return;
    if (status === "aborted") throw new StoreUnavailable("the server ended before COMMIT", { cause: failure });
    if (status === null) throw new OutcomeUnknown(`transaction ${failure.xid} is forgotten`, { cause: failure });
    if (runtime.clock.monotonicMs() >= deadlineMs) throw new OutcomeUnknown(failure.message, { cause: failure });
    await runtime.clock.sleep(PAUSE_MS);
  }
}

/** A look-up that failed has said nothing. */
function passUnknown(error: unknown): "unanswered" {
  if (error instanceof OutcomeUnknown) throw error;
  return "unanswered";
}

async function lookUp({ connections, ...runtime }: WriteRuntime, xid: string, lanes: readonly Lane[]) {
  return connections.use(async (session) => {
    const { found } = await open({ connections, ...runtime }, session, {
      statements: 2,
      waits: 1,
      find: async (run) => {
        const keys = lanes.map(({ chainId, signer }) => ({ chain_id: chainId, signer }));
        const [, rows] = await Promise.all([
          run(lockLanesByKey, [JSON.stringify(keys), chainIds(lanes), signers(lanes)]),
          run(readTransactionStatus, [xid]),
        ]);
        return rows[0]?.status ?? null;
      },
      // Numbers of another history mean nothing here.
      verify: ({ history }, floor) => {
        try {
          runtime.history.verify(history, floor);
        } catch (error) {
          throw new OutcomeUnknown(`the database changed its history behind transaction ${xid}`, { cause: error });
        }
      },
    });
    await session.control("ROLLBACK");
    return found;
  }, runtime.limits.transactionMs);
}
