import { randomUUID } from "node:crypto";
import type { Command } from "../statements/statement.ts";
import { resolveCommit } from "./resolve-commit.ts";
import {
  commitAtOnce,
  type Opened,
  type WholeTransaction,
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
    if (decided === null) throw error;
    await resolveCommit(runtime, error);
    return (decided as { readonly result: Result }).result;
  } finally {
    runtime.slots.give(slot);
  }
}

type KnownWrite = Pick<WholeTransaction, "known"> & { readonly commandsFor: (marker: string) => readonly Command[] };

/** What became known of a commit in one round trip. */
export interface CommittedAtOnce {
  /** The time of the transaction, which is that of its rows. */
  readonly at: Date;
  /** Null where COMMIT got no answer and a look-up found the commit. */
  readonly opened: Opened | null;
}

/**
 * The same in one round trip, where the history is known and what would be looked up is foreseen: the commands carry what
 * they expect, and the server refuses where it is not so. Null: nothing is committed, and the way in two round trips finds
 * out why.
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
    history.noteCommitted(opened.history, floor);
    return { at: opened.now, opened };
  } catch (error) {
    return { at: await resolveCommit(runtime, error), opened: null };
  } finally {
    slots.give(slot);
  }
}
