import { randomUUID } from "node:crypto";
import type { Command } from "../statements/statement.ts";
import type { ObservedHistory } from "./known-history.ts";
import { resolveCommit } from "./resolve-commit.ts";
import {
  CommitUnanswered,
  commitAtOnce,
  type Opened,
  type WriteRuntime,
  type WriteTransaction,
  writeTransaction,
} from "./write-transaction.ts";

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

export interface KnownWrite {
  /** Taken before anything is sent. */
  readonly known: ObservedHistory;
  readonly commandsFor: (marker: string) => readonly Command[];
}

/**
 * The same in one round trip, where the history is known and nothing has to be looked up first: the commands carry what
 * they expect, and the server refuses where it is not so. "refused": nothing is committed, and the way in two round trips
 * finds out why. `opened` is null where COMMIT got no answer and a look-up found the commit.
 */
export async function durablyAtOnce(
  runtime: DurableRuntime,
  { known, commandsFor }: KnownWrite,
  slot = runtime.slots.take(),
): Promise<{ readonly opened: Opened | null } | "refused"> {
  const { slots, clock } = runtime;
  const mark = { slot, marker: randomUUID() };
  try {
    const opened = await commitAtOnce(runtime, { mark, known, commands: commandsFor(mark.marker) });
    return opened === null ? "refused" : { opened };
  } catch (error) {
    if (!(error instanceof CommitUnanswered)) throw error;
    await resolveCommit(runtime, error);
    slots.acknowledged(error.slot, error.marker, clock.monotonicMs());
    return { opened: null };
  } finally {
    slots.give(slot);
  }
}
