/**
 * Runs the statements of the first commits without any row, in transactions that are rolled back. So their connections
 * are open, and their statements parsed and planned, before the first caller comes: a connection takes several round
 * trips and a password hash, a statement its parse and plan, for each connection anew.
 *
 * Writes nothing: a statement without rows changes none and gets no transaction number. It locks no row, so a process
 * that stalls in between delays nobody.
 */
import { randomUUID } from "node:crypto";
import type { Session } from "../session/connections.ts";
import type { ObservedHistory } from "../session/known-history.ts";
import { BEGIN } from "../session/opening.ts";
import { openingValues } from "../session/write-transaction.ts";
import { insertAttempts } from "../statements/attempt.ts";
import { writeHistory } from "../statements/history.ts";
import { lockLanes, proveLanes, updateLanes } from "../statements/lane.ts";
import { openKnown, openTransaction } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";
import { insertTransactions, readTransactions, updateTransactions } from "../statements/transaction.ts";
import type { CommitRuntime } from "./commit.ts";

/** Rehearses on this many connections at once, so that each of them is another one. */
export async function rehearse(runtime: CommitRuntime, connections: number): Promise<void> {
  const known = runtime.history.standing;
  // The statements of a commit in one round trip compare the history; before a registration, it is not known.
  if (known === null) return;
  const one = (session: Session) => rehearseOn(runtime, session, known);
  const all = Array.from({ length: connections }, () => runtime.connections.use(one, runtime.limits.transactionMs));
  await Promise.all(all);
}

async function rehearseOn(runtime: CommitRuntime, session: Session, known: ObservedHistory) {
  const { systemIdentifier, timeline, epoch, walPosition } = known;
  const marker = randomUUID();
  const limits = openingValues(runtime, 1);
  const commands = [
    openKnown(...limits, marker, systemIdentifier, timeline, epoch, walPosition),
    openTransaction(...limits),
    ...[lockLanes([]), proveLanes([], marker), updateLanes([], marker), insertTransactions([], marker)],
    ...[readTransactions([], [], []), updateTransactions([]), insertAttempts([]), writeHistory([])],
  ].map(withoutRows);
  await session.together(() => Promise.all([session.begin(BEGIN), session.all(commands), session.control("ROLLBACK")]));
}

/** A list parameter that is empty for all rows is null; a statement counts the rows by the length of its first list. */
function withoutRows({ name, sql, values }: Command): Command {
  return { name, sql, values: values.map((value) => value ?? []) };
}
