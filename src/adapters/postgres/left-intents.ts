/** IntakeStore on PostgreSQL: intents that a node leaves for the owner of their lane, and what becomes of them. */
import { errorFrom, type Problem, problemFrom } from "../../domain/refusal.ts";
import type { Became, IntakeStore } from "../../ports/intake-store.ts";
import { rowsOf } from "./columns.ts";
import type { Reading } from "./session/connections.ts";
import { type DurableRuntime, durably } from "./session/durably.ts";
import { asStoreError } from "./session/errors.ts";
import {
  acceptIntent,
  type LeftRow,
  leaveIntents,
  readDeclined,
  readLeft,
  readTaken,
  type TakenRow,
} from "./statements/left-intent.ts";
import { intentRow } from "./transaction-fields.ts";

export function leftIntentsIn(reading: Reading, leasing: DurableRuntime): IntakeStore {
  return {
    leave: (intents) =>
      durably(leasing, {
        statements: 0,
        waits: 0,
        find: async () => undefined,
        decide: () => ({
          commands: [
            {
              statement: leaveIntents,
              values: rowsOf(
                leaveIntents,
                intents.map((intent) => intentRow(intent)),
                intents.length,
              ),
            },
          ],
          result: undefined,
        }),
      }),
    async whatBecame(txIds) {
      const [left, taken, declined] = await reading.read((run) =>
        Promise.all([run(readLeft, [txIds]), run(readTaken, [txIds]), run(readDeclined, [txIds])]),
      );
      const rows = {
        left: new Map(left.map((row) => [row.txId, row])),
        taken: new Map(taken.map((row) => [row.txId, row])),
        declined: new Map(declined.map((row) => [row.txId, row.problem])),
      };
      return txIds.flatMap((leftAs) => becameOf(leftAs, rows) ?? []);
    },
    /**
     * Statements without BEGIN: each commits as it is read. A process that stood still between two round trips would
     * hold these rows, and the owner's next commit would wait for it.
     */
    async accept(txIds) {
      const accepted: string[] = [];
      try {
        await leasing.connections.use(async (session) => {
          for (const id of txIds) for (const { txId } of await session.run(acceptIntent, [id])) accepted.push(txId);
        });
        return accepted;
      } catch (error) {
        throw asStoreError(error);
      }
    },
  };
}

interface Rows {
  readonly left: ReadonlyMap<string, LeftRow>;
  readonly taken: ReadonlyMap<string, TakenRow>;
  readonly declined: ReadonlyMap<string, string>;
}

/** Null: there is nothing of it. What an alias names may itself wait for approval in the intake table. */
function becameOf(leftAs: string, { left, taken, declined }: Rows): Became | null {
  const problem = declined.get(leftAs);
  if (problem !== undefined) return { leftAs, kind: "declined", problem: read(problem) };
  const row = left.get(leftAs);
  const txId = row?.aliasOf ?? leftAs;
  const found = taken.get(txId);
  if (found !== undefined) return { leftAs, kind: "taken", ...found };
  if (row === undefined) return null;
  if (row.aliasOf === null && !row.awaits) return { leftAs, kind: "waiting" };
  return { leftAs, kind: "taken", txId, nonce: null, state: "CREATED", subState: null, lastError: null };
}

/** Null: written by a newer version, in words that this one does not know. */
function read(problem: string): Problem | null {
  const error = errorFrom(JSON.parse(problem));
  return error === null ? null : problemFrom(error);
}
