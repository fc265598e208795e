import { STATES, type State } from "../../../src/domain/transaction/transitions.ts";
import type { LaneOwner } from "../../../src/ports/lease-store.ts";
import type { Census } from "../../../src/ports/query-store.ts";
import { ownerOf } from "./leases.ts";
import { listLanesAfter } from "./queries.ts";
import { type DatabaseState, waitingIntake } from "./state.ts";

function isHeld(owner: LaneOwner | null, now: Date): boolean {
  return owner !== null && owner.expiresAt >= now;
}

export function census(state: DatabaseState, now: Date): Census {
  const states = Object.fromEntries(STATES.map((name) => [name, 0])) as Record<State, number>;
  const watched = { CONFIRMED: 0, FAILED_FINAL: 0 };
  const counts = { unownedLanes: 0, suspendedLanes: 0 };
  let oldest = Number.POSITIVE_INFINITY;
  states.CREATED = waitingIntake(state).length;
  const records = new Map(
    listLanesAfter(state, { after: null, limit: state.lanes.size }, now).map((each) => [each.lane, each]),
  );
  for (const row of state.lanes.values()) {
    const open = { ALLOCATED: 0, TRACKING: 0, STUCK: 0 };
    for (const [, txId] of row.ledger.live.every(0)) {
      const name = state.transactions.get(txId)?.state;
      if (name === "CONFIRMED" || name === "FAILED_FINAL") watched[name]++;
      else if (name !== undefined && name !== "CREATED") open[name]++;
    }
    for (const name of ["ALLOCATED", "TRACKING", "STUCK"] as const) states[name] += open[name];
    states.CONFIRMED += row.confirmed;
    states.FAILED_FINAL += row.failed;
    const isOpen = open.ALLOCATED + open.TRACKING + open.STUCK > 0;
    if (isOpen && !isHeld(ownerOf(state, row), now)) counts.unownedLanes++;
    if (row.suspendedBy !== null) counts.suspendedLanes++;
    oldest = Math.min(oldest, records.get(row.lane)?.oldestPendingAt?.getTime() ?? oldest);
  }
  const oldestPendingAgeMs = Number.isFinite(oldest) ? Math.max(0, now.getTime() - oldest) : null;
  return { states, watched, oldestPendingAgeMs, ...counts };
}
