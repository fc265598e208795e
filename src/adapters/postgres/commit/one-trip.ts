/**
 * Allocation in one round trip. All that it needs to know of a lane is its cursor, and this process wrote that last: it
 * plans from memory and sends everything at once, COMMIT included. What is otherwise decided between two round trips the
 * server proves, under the lanes' locks: the history of the database (`openKnown`), the terms and cursors of the lanes
 * (`advanceLanes`) and, by its unique index, that no request id exists. A proof that fails ends the transaction with
 * nothing done, and the commit goes the usual way, which finds out why and tells it.
 *
 * Writes: allocations alone. Invariants: I1–I5, as commit.ts. A crash here leaves nothing, or all of it.
 */
import type { AllocateWrite, Committed, LaneWrite, LedgerOutcome, WriteOutcome } from "../../../ports/lane-store.ts";
import { type DurableRuntime, durablyAtOnce } from "../session/durably.ts";
import type { ObservedHistory } from "../session/known-history.ts";
import type { Opened } from "../session/write-transaction.ts";
import { advanceLane, advanceLanes, type LockedLaneRow } from "../statements/lane.ts";
import type { Command } from "../statements/statement.ts";
import { insertion } from "./commands.ts";
import { NOTHING_FOUND } from "./lookup.ts";
import { needsOf } from "./needs.ts";
import { type LanePlan, Plan } from "./plan.ts";
import type { RememberedLanes } from "./remembered-lanes.ts";

export interface OneTripRuntime extends DurableRuntime {
  readonly lanes: RememberedLanes;
}

/** Null: nothing is committed, and the usual way is to be taken. */
export async function commitInOneTrip(
  runtime: OneTripRuntime,
  writes: readonly LaneWrite[],
): Promise<Committed | null> {
  const known = runtime.history.standing;
  if (known === null || !writes.every(isPlainAllocation)) return null;
  const rows = writes.map(({ fence }) => runtime.lanes.recall(fence));
  if (!rows.every((row) => row !== null)) return null;
  const plan = new Plan({ ...NOTHING_FOUND, lanes: rows }, known.epoch);
  // Nothing was looked up: no request id is taken to exist, and the unique index proves it.
  const lanes = plan.load(writes, writes.map(needsOf));
  const now = runtime.clock.now();
  const outcomes = writes.map((write, index) => plan.judge(lanes[index] as LanePlan, write, now));
  const opened = await commitPlan(runtime, plan, known);
  if (opened === "refused") return null;
  const at = opened?.now ?? now;
  return {
    outcomes: outcomes.map((outcome) => dated(outcome, at)),
    changes: plan.changes().map((each) => ({ ...each, changes: each.changes.map((change) => ({ ...change, at })) })),
  };
}

/** Of a lane as it was left, in the order of `advanceLane` and `advanceLanes`. */
const COLUMNS = [
  "chain_id",
  "signer",
  "owner_instance",
  "token",
  "next_nonce",
  "suspended_by",
  "reconciled_epoch",
] as const satisfies readonly (keyof LockedLaneRow)[];

function isPlainAllocation(write: LaneWrite): write is AllocateWrite {
  if (write.kind !== "allocate" || (write.fill ?? []).length > 0) return false;
  return write.items.every(({ intakeId, mayExist }) => intakeId === undefined && mayExist !== true);
}

/** Its rows have the time of the server's transaction, which comes with the answer. */
function dated(outcome: LedgerOutcome, createdAt: Date): WriteOutcome {
  if (outcome.status !== "allocated") return outcome;
  return { ...outcome, items: outcome.items.map((item) => (item.fate === "created" ? { ...item, createdAt } : item)) };
}

/** What was found at the opening; null where a look-up told that it is committed. */
async function commitPlan(
  runtime: OneTripRuntime,
  plan: Plan,
  known: ObservedHistory,
): Promise<Opened | null | "refused"> {
  const lanes = [...plan.lanes.values()];
  // Whoever is held, or repeats another of the same batch, needs no guess to be told so.
  if (plan.allocations.length === 0 || lanes.some((lane) => lane.left() === lane.row)) return "refused";
  const { history } = runtime;
  const { floor } = history;
  const commandsFor = (marker: string) => [advance(lanes, marker), insertion(plan.allocations, marker)];
  const sent = await durablyAtOnce(runtime, { known, commandsFor }).catch((error) => {
    runtime.lanes.wasWrong(lanes);
    throw error;
  });
  if (sent === "refused" || sent.opened === null) runtime.lanes.wasWrong(lanes);
  if (sent === "refused") return sent;
  if (sent.opened !== null) history.noteCommitted(sent.opened.history, floor);
  runtime.lanes.wasRight(lanes);
  return sent.opened;
}

function advance(lanes: readonly LanePlan[], marker: string): Command {
  const columns = [
    ...COLUMNS.map((column) => lanes.map(({ row }) => row[column])),
    lanes.map(({ ledger }) => ledger.cursor),
    lanes.map(({ live }) => live?.ALLOCATED ?? 0),
  ];
  if (lanes.length > 1) return { statement: advanceLanes, values: [...columns, lanes.length, marker] };
  return { statement: advanceLane, values: [...columns.flat(), marker] };
}
