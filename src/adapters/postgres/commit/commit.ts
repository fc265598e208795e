/**
 * LaneStore.commit: one database transaction for many writes of many lanes.
 *
 * Reads: the lanes (locked), request ids, transactions, intake rows and blocks that the writes are about.
 * Writes: everything of lane data. Invariants: I1–I5, I8 (ARCHITECTURE.md).
 * A crash here leaves nothing, or all of it: see write-transaction.ts.
 */
import { laneKey } from "../../../domain/lane.ts";
import type { LaneWrite, WriteOutcome } from "../../../ports/lane-store.ts";
import { durably } from "../session/durably.ts";
import type { Opened } from "../session/write-transaction.ts";
import { planAllocation } from "./allocate.ts";
import { commandsOf } from "./commands.ts";
import { planConfirmations } from "./confirmations.ts";
import { planIntakeFate } from "./intake-fates.ts";
import { lookupFor, UNWATCH_PAGE } from "./lookup.ts";
import { planNonces } from "./nonces.ts";
import { commitInOneTrip, type OneTripRuntime } from "./one-trip.ts";
import { type LanePlan, Plan } from "./plan.ts";
import { planRealignment } from "./realign.ts";
import { planReconciliation, planSuspension } from "./reconcile.ts";
import { planTransition } from "./transitions.ts";

export async function commitWrites(
  runtime: OneTripRuntime,
  writes: readonly LaneWrite[],
): Promise<readonly WriteOutcome[]> {
  const allocated = await commitInOneTrip(runtime, writes);
  if (allocated !== null) return allocated;
  const { result, unfinished } = await commitOnce(runtime, writes);
  const left = new Set(await letGoOfTheRest(runtime, unfinished));
  return result.map((outcome, index) => (left.has(writes[index] as LaneWrite) ? { status: "unfinished" } : outcome));
}

interface Committed {
  readonly result: readonly WriteOutcome[];
  /** Lanes with more to let go than one commit does. */
  readonly unfinished: readonly LaneWrite[];
}

async function commitOnce(runtime: OneTripRuntime, writes: readonly LaneWrite[]): Promise<Committed> {
  const { plan, ...committed } = await durably(runtime, {
    ...lookupFor(writes),
    verify: ({ history }, floor) => runtime.history.verify(history, floor),
    decide: (found, opened) => {
      const plan = new Plan(found, opened.history.epoch);
      const result = writes.map((write) => planWrite(plan, write, opened));
      const unfinished = writes.filter((write) => hasMore(plan, write));
      const rollback = result.every(({ status }) => status === "fenced");
      return { commands: commandsOf(plan), result: { result, unfinished, plan }, rollback };
    },
  });
  runtime.lanes.remember(plan.lanes.values());
  return committed;
}

function hasMore(plan: Plan, write: LaneWrite): boolean {
  if (write.kind !== "unwatch" || plan.held(write.fence) === null) return false;
  return (plan.unwatchable.get(laneKey(write.fence.lane)) ?? []).length >= UNWATCH_PAGE;
}

/** What is left over where this fails. The batch itself is committed by then: no failure may be reported as all of its writes'. */
async function letGoOfTheRest(
  runtime: OneTripRuntime,
  unfinished: readonly LaneWrite[],
): Promise<readonly LaneWrite[]> {
  let rest = unfinished;
  try {
    while (rest.length > 0) rest = (await commitOnce(runtime, rest)).unfinished;
  } catch {
    return rest;
  }
  return [];
}

function planWrite(plan: Plan, write: LaneWrite, opened: Opened): WriteOutcome {
  const lane = plan.held(write.fence);
  if (lane === null) return { status: "fenced" };
  const decision = write.kind === "suspend" || write.kind === "realign" ? write.decision : undefined;
  if (decision !== undefined) plan.laneDecisions.push({ ...decision, lane });
  return planHeld(plan, lane, { write, opened });
}

function planHeld(plan: Plan, lane: LanePlan, { write, opened }: { write: LaneWrite; opened: Opened }): WriteOutcome {
  switch (write.kind) {
    case "allocate":
      return planAllocation(plan, lane, { write, now: opened.now });
    case "align":
      return planAlignment(lane, write.floor);
    case "reconcile":
      return planReconciliation(plan, lane, write.floor);
    case "realign":
      return planRealignment(plan, lane, write);
    case "identify":
      plan.geneses.set(lane.row.chain_id, write.genesisHash);
      return { status: "done" };
    case "suspend":
      return planSuspension(lane, write.suspended);
    case "transition":
      return { status: "applied", items: write.items.map((item) => planTransition(plan, lane, item)) };
    case "unwatch":
      for (const row of plan.unwatchable.get(laneKey(write.fence.lane)) ?? []) plan.unwatched.set(row.tx_id, row);
      return { status: "done" };
    case "confirmations":
      return planConfirmations(plan, write);
    case "settleIntake":
      for (const fate of write.fates) planIntakeFate(plan, lane, fate);
      return { status: "done" };
    default:
      return planNonces(plan, lane, { write, now: opened.now });
  }
}

/** Raises, never lowers. */
function planAlignment(lane: LanePlan, floor: number): WriteOutcome {
  const cursor = Math.max(lane.cursor ?? floor, floor);
  lane.changed ||= cursor !== lane.cursor;
  lane.cursor = cursor;
  return { status: "aligned", cursor };
}
