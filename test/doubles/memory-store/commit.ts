import { reviseConfirmations } from "../../../src/domain/chain/confirmations.ts";
import { defined } from "../../../src/domain/defined.ts";
import { type Fence, type Lane, laneKey } from "../../../src/domain/lane.ts";
import {
  apply,
  type Change,
  type Guard,
  inOrder,
  type Ledger,
  type LedgerOutcome,
  type LedgerWrite,
  Part,
  type WaitingIntent,
} from "../../../src/domain/ledger/index.ts";
import type { Policies } from "../../../src/domain/policy/policy.ts";
import type {
  Committed,
  ConfirmationsWrite,
  LaneChanges,
  LaneWrite,
  WriteOutcome,
} from "../../../src/ports/lane-store.ts";
import { unusedGuard } from "../../support/whole-ledger.ts";
import { persist } from "./persist.ts";
import { pooledFor } from "./pools.ts";
import { type DatabaseState, isAlive, type LaneRow, sameLane } from "./state.ts";
import { UndoLog } from "./undo-log.ts";

/** A write that a commit applied, the lane's ledger that it found and left, and its outcome. */
export interface Applied {
  readonly before: Ledger;
  readonly after: Ledger;
  readonly write: LedgerWrite;
  readonly outcome: LedgerOutcome;
  readonly changes: readonly Change[];
  readonly at: Date;
  readonly policies: Policies | null;
}

/** One database transaction of the double: the state that it reads and changes, and the log for its rollback. */
export interface Work {
  readonly state: DatabaseState;
  readonly log: UndoLog;
  readonly now: Date;
  readonly policies: Policies | null;
  /** Changes to lanes so far, one entry per write. */
  readonly changes: LaneChanges[];
  readonly applied: Applied[];
}

export function commitWrites(
  state: DatabaseState,
  writes: readonly LaneWrite[],
  { now, policies }: Pick<Work, "now" | "policies">,
): Committed {
  const work: Work = { state, log: new UndoLog(), now, policies, changes: [], applied: [] };
  try {
    const outcomes: WriteOutcome[] = writes.map(() => ({ status: "fenced" }));
    for (const place of inOrder(writes)) {
      const write = writes[place] as LaneWrite;
      if (holds(state, write.fence, now)) outcomes[place] = outcomeOf(work, write);
    }
    for (const watch of state.watchers) watch(work.applied);
    return { outcomes, changes: work.changes };
  } catch (error) {
    work.log.rollback();
    throw error;
  }
}

export function holds(state: DatabaseState, fence: Fence, now: Date): boolean {
  const row = state.lanes.get(laneKey(fence.lane));
  if (row === undefined || row.owner !== fence.instanceId || row.token !== fence.token) return false;
  return isAlive(state.instances.get(fence.instanceId), now);
}

function outcomeOf(work: Work, write: LaneWrite): WriteOutcome {
  const { state, log } = work;
  const { chainId } = write.fence.lane;
  switch (write.kind) {
    case "identify":
      if (!state.geneses.has(chainId)) log.set(state.geneses, chainId, write.genesisHash);
      return { status: "done" };
    case "confirmations":
      return confirm(work, write);
    default:
      return applyWrite(work, write);
  }
}

function applyWrite(work: Work, write: LedgerWrite): WriteOutcome {
  const { state, log, now } = work;
  const lane = state.lane(write.fence.lane) as LaneRow;
  const before = readFor(state, write, work.policies);
  const { ledger, outcome, changes } = apply(before, write, now);
  work.applied.push({ before, after: ledger, write, outcome, changes, at: now, policies: work.policies });
  // Keep the policy charges that are already recorded, even if this node has no policies.
  log.assign(lane, { ledger: ledger.guard === null ? { ...ledger, guard: lane.ledger.guard } : ledger });
  if (ledger.guard !== null) log.set(state.keyUse, ledger.lane.chainId, ledger.guard.keyUse);
  for (const change of changes) persist(work, write.fence, change);
  if (changes.length > 0) work.changes.push({ lane: write.fence.lane, token: write.fence.token, changes });
  return outcome;
}

/** Everything that the ledger has to know for this write, as of now. */
export function readFor(state: DatabaseState, write: LedgerWrite, policies: Policies | null): Ledger {
  const loaded = loadedFor(state, state.lane(write.fence.lane) as LaneRow, write);
  return { ...loaded, guard: guardOf({ state, policies }, loaded) };
}

/**
 * Loads the lane's ledger, together with state that the lane's lock does not protect (the feed's epoch, the intake
 * table), as of this write.
 */
function loadedFor(state: DatabaseState, { ledger, lane, reconciledEpoch }: LaneRow, write: LedgerWrite): Ledger {
  const rows = intakeIdsOf(write).map((intakeId) => [intakeId, waiting(state, lane, intakeId)] as const);
  return {
    ...ledger,
    reconciled: reconciledEpoch >= state.feed.epoch,
    mayHaveLost: state.epochMayHaveLost,
    epochFloor: state.epochFloors.get(laneKey(lane)) ?? 0,
    intake: Part.of("intake row", { kind: "named" }, rows),
    pooled: pooledFor(state, lane, write),
  };
}

/** Adds the usage of API keys to the policy state of a lane, because that usage is stored outside the lanes. */
function guardOf({ policies, state }: Pick<Work, "policies" | "state">, { guard, lane }: Ledger): Guard | null {
  if (policies === null) return null;
  const { use, charges, keyUse } = guard ?? unusedGuard(policies);
  return { policies, use, charges, keyUse: state.keyUse.get(lane.chainId) ?? keyUse };
}

function intakeIdsOf(write: LedgerWrite): readonly number[] {
  if (write.kind === "settleIntake") return write.results.map(({ intakeId }) => intakeId);
  return write.kind === "allocate" ? write.items.flatMap(({ intakeId }) => intakeId ?? []) : [];
}

function waiting(state: DatabaseState, lane: Lane, intakeId: number): WaitingIntent | null {
  const entry = state.intake.get(intakeId);
  if (entry === undefined || entry.aliasOf !== null || !sameLane(entry.intent.lane, lane)) return null;
  const { txId, requestId, owner, fingerprint, validUntil } = entry.intent;
  const { createdAt: acceptedAt, approval, heldSince, holds, unanswered } = entry;
  const known = { intakeId, txId, requestId, owner, fingerprint, acceptedAt, approval, unanswered };
  return { ...known, ...defined({ validUntil, holds }), ...(heldSince !== undefined && { held: true }) };
}

function confirm({ state, log }: Work, write: ConfirmationsWrite): WriteOutcome {
  const { chainId } = write.fence.lane;
  const stored = [...(state.confirmations.get(chainId) ?? [])].map(([number, hash]) => ({ number, hash }));
  const change = reviseConfirmations(
    stored.sort((a, b) => a.number - b.number),
    write.blocks,
  );
  const kept = change.kind === "replace" ? stored.filter(({ number }) => number < change.fromNumber) : stored;
  const blocks = change.kind === "same" ? kept : [...kept, ...change.blocks];
  const needed = blocks.filter(({ number }) => number >= write.pruneBelow);
  log.set(state.confirmations, chainId, new Map(needed.map(({ number, hash }) => [number, hash])));
  return { status: "confirmations", newFork: change.kind === "replace" };
}
