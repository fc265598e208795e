/**
 * Allocation in one round trip. All that it needs to know of a lane is its cursor, and this process wrote that last: it
 * plans from memory and sends everything at once, COMMIT included. What is otherwise decided between two round trips the
 * server proves, under the lanes' locks: the history of the database (`openKnown`), the terms and cursors of the lanes
 * (`advanceLanes`) and, by its unique index, that no request id exists. A proof that fails ends the transaction with
 * nothing done, and the commit goes the usual way, which finds out why and tells it.
 *
 * Writes: allocations alone. Invariants: I1–I5, as commit.ts. A crash here leaves nothing, or all of it.
 */
import type { AllocateWrite, LaneWrite, WriteOutcome } from "../../../ports/lane-store.ts";
import { type DurableRuntime, durablyAtOnce } from "../session/durably.ts";
import type { ObservedHistory } from "../session/known-history.ts";
import { advanceLane, advanceLanes, type LockedLaneRow } from "../statements/lane.ts";
import type { Command } from "../statements/statement.ts";
import { planAllocation } from "./allocate.ts";
import { insertion } from "./commands.ts";
import { liveChangesOf } from "./live-counts.ts";
import { type LanePlan, Plan } from "./plan.ts";
import type { RememberedLanes } from "./remembered-lanes.ts";

export interface OneTripRuntime extends DurableRuntime {
  readonly lanes: RememberedLanes;
}

/** Null: nothing is committed, and the usual way is to be taken. */
export async function commitInOneTrip(
  runtime: OneTripRuntime,
  writes: readonly LaneWrite[],
): Promise<readonly WriteOutcome[] | null> {
  const known = runtime.history.standing;
  if (known === null || !writes.every(isPlainAllocation)) return null;
  const rows = writes.map(({ fence }) => runtime.lanes.recall(fence));
  if (!rows.every((row) => row !== null)) return null;
  const plan = new Plan({ ...NOTHING_FOUND, lanes: rows }, known.epoch);
  // Told by the server with its answer; until then nobody looks.
  const now = runtime.clock.now();
  const outcomes = writes.map((write) => planAllocation(plan, plan.held(write.fence) as LanePlan, { write, now }));
  return (await commitPlan(runtime, plan, { known, now })) ? outcomes : null;
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

const NO_NONCES = { holes: [], reservations: [], openReservations: [], bound: [], heldNonces: [] };
const NO_ROWS = { requests: [], transactions: [], intake: [], unwatchable: [], history: [], ...NO_NONCES };
const NOTHING_FOUND = { ...NO_ROWS, blocks: new Map() };

function isPlainAllocation(write: LaneWrite): write is AllocateWrite {
  if (write.kind !== "allocate" || (write.fill ?? []).length > 0) return false;
  return write.items.every(({ intakeId, mayExist }) => intakeId === undefined && mayExist !== true);
}

async function commitPlan(
  runtime: OneTripRuntime,
  plan: Plan,
  { known, now }: { readonly known: ObservedHistory; readonly now: Date },
): Promise<boolean> {
  const lanes = [...plan.lanes.values()];
  // Whoever is held, or repeats another of the same batch, needs no guess to be told so.
  if (plan.allocations.length === 0 || lanes.some((lane) => !lane.changed)) return false;
  const { history } = runtime;
  const { floor } = history;
  const commandsFor = (marker: string) => [advance(plan, lanes, marker), insertion(plan.allocations, marker)];
  const sent = await durablyAtOnce(runtime, { known, commandsFor }).catch((error) => {
    runtime.lanes.wasWrong(lanes);
    throw error;
  });
  if (sent === "refused" || sent.opened === null) runtime.lanes.wasWrong(lanes);
  if (sent === "refused") return false;
  if (sent.opened !== null) {
    now.setTime(sent.opened.now.getTime());
    history.noteCommitted(sent.opened.history, floor);
  }
  runtime.lanes.wasRight(lanes);
  return true;
}

function advance(plan: Plan, lanes: readonly LanePlan[], marker: string): Command {
  const live = liveChangesOf(plan, []);
  const columns = [
    ...COLUMNS.map((column) => lanes.map(({ row }) => row[column])),
    lanes.map(({ cursor }) => cursor),
    lanes.map(({ key }) => live.get(key)?.ALLOCATED ?? 0),
  ];
  if (lanes.length > 1) return { statement: advanceLanes, values: [...columns, lanes.length, marker] };
  return { statement: advanceLane, values: [...columns.flat(), marker] };
}
