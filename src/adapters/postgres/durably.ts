import { resolveCommit } from "./resolve-commit.ts";
import { CommitUnanswered, type WriteRuntime, type WriteTransaction, writeTransaction } from "./write-transaction.ts";

export interface DurableRuntime extends WriteRuntime {
  /** How long to ask what became of a COMMIT without an answer. */
  readonly patienceMs: number;
}

/** A write whose COMMIT got no answer is looked up before anything is said about it. */
export async function durably<Found, Result>(
  runtime: DurableRuntime,
  transaction: WriteTransaction<Found, Result>,
  slot = runtime.slots.take(),
): Promise<Result> {
  let decided: { readonly result: Result } | null = null;
  const remembering: WriteTransaction<Found, Result> = {
    ...transaction,
    decide: (found, opened) => {
      const decision = transaction.decide(found, opened);
      decided = decision;
      return decision;
    },
  };
  try {
    return await writeTransaction(runtime, remembering, slot);
  } catch (error) {
    if (!(error instanceof CommitUnanswered) || decided === null) throw error;
    await resolveCommit(runtime, error);
    runtime.slots.acknowledged(slot, error.marker, runtime.clock.monotonicMs());
    return (decided as { readonly result: Result }).result;
  } finally {
    runtime.slots.give(slot);
  }
}
