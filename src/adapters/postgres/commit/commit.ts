/**
 * LaneStore.commit: one database transaction for many writes of many lanes.
 *
 * Reads: the lanes (locked), request ids, transactions, intake rows and blocks that the writes are about.
 * Writes: everything of lane data. Invariants: I1–I5, I8 (ARCHITECTURE.md).
 * A crash here leaves nothing, or all of it: see write-transaction.ts.
 */
import { inOrder, type Moment } from "../../../domain/ledger/index.ts";
import type { Committed, LaneChanges, LaneWrite, WriteOutcome } from "../../../ports/lane-store.ts";
import { durably } from "../session/durably.ts";
import { commandsOf } from "./commands.ts";
import { planConfirmations } from "./confirmations.ts";
import { type Found, lookupFor, UNWATCH_PAGE } from "./lookup.ts";
import { commitInOneTrip, type OneTripRuntime } from "./one-trip.ts";
import { type LanePlan, Plan } from "./plan.ts";

export async function commitWrites(runtime: OneTripRuntime, writes: readonly LaneWrite[]): Promise<Committed> {
  const allocated = await commitInOneTrip(runtime, writes);
  if (allocated !== null) return allocated;
  const { outcomes, changes, unfinished } = await commitOnce(runtime, writes);
  const rest = await letGoOfTheRest(runtime, unfinished);
  const left = new Set(rest.unfinished);
  return {
    outcomes: outcomes.map((outcome, index) =>
      left.has(writes[index] as LaneWrite) ? { status: "unfinished" } : outcome,
    ),
    changes: [...changes, ...rest.changes],
  };
}

interface CommittedOnce extends Committed {
  /** Lanes with more to let go than one commit does. */
  readonly unfinished: readonly LaneWrite[];
}

async function commitOnce(runtime: OneTripRuntime, writes: readonly LaneWrite[]): Promise<CommittedOnce> {
  const lookup = lookupFor(writes);
  const { plan, ...committed } = await durably(runtime, {
    ...lookup,
    verify: ({ history }, floor) => runtime.history.verify(history, floor),
    decide: (found, { now, history }) => {
      const plan = new Plan(found, history.epoch);
      const lanes = plan.load(writes, lookup.needs);
      const outcomes = judge(plan, { writes, lanes }, { at: now, past: askedAt(found) ?? now });
      const unfinished = writes.filter(({ kind }, index) => kind === "unwatch" && hasMore(plan, lanes[index]));
      const rollback = outcomes.every(({ status }) => status === "fenced");
      return { commands: commandsOf(plan), result: { outcomes, unfinished, plan }, rollback };
    },
  });
  runtime.lanes.remember(plan.lanes.values());
  return { ...committed, changes: plan.changes() };
}

/** When reservations were read, by the database's clock: behind the wait for locks, which rows are dated before. */
function askedAt({ reservations, openReservations }: Found): Date | null {
  return [...reservations, ...openReservations].at(-1)?.asked_at ?? null;
}

interface HeldWrites {
  readonly writes: readonly LaneWrite[];
  /** Of each write; null: its term is over. */
  readonly lanes: readonly (LanePlan | null)[];
}

function judge(plan: Plan, { writes, lanes }: HeldWrites, moment: Moment): readonly WriteOutcome[] {
  const outcomes: WriteOutcome[] = writes.map(() => ({ status: "fenced" }));
  for (const place of inOrder(writes)) {
    const lane = lanes[place];
    if (lane) outcomes[place] = judgeHeld(plan, lane, { write: writes[place] as LaneWrite, moment });
  }
  return outcomes;
}

function judgeHeld(
  plan: Plan,
  lane: LanePlan,
  { write, moment }: { readonly write: LaneWrite; readonly moment: Moment },
): WriteOutcome {
  switch (write.kind) {
    case "identify":
      plan.geneses.set(lane.row.chain_id, write.genesisHash);
      return { status: "done" };
    case "confirmations":
      return planConfirmations(plan, write);
    default:
      return plan.judge(lane, write, moment);
  }
}

function hasMore(plan: Plan, lane: LanePlan | null | undefined): boolean {
  return lane !== null && lane !== undefined && plan.pastWatch(lane) >= UNWATCH_PAGE;
}

/** What is left over where this fails. The batch itself is committed by then: no failure may be reported as all of its writes'. */
async function letGoOfTheRest(
  runtime: OneTripRuntime,
  unfinished: readonly LaneWrite[],
): Promise<Omit<CommittedOnce, "outcomes">> {
  let rest = unfinished;
  const changes: LaneChanges[] = [];
  try {
    while (rest.length > 0) {
      const committed = await commitOnce(runtime, rest);
      changes.push(...committed.changes);
      rest = committed.unfinished;
    }
  } catch {
    return { unfinished: rest, changes };
  }
  return { unfinished: rest, changes };
}
