import { reviseConfirmations } from "../../../src/domain/confirmations.ts";
import { type Fence, laneKey } from "../../../src/domain/lane.ts";
import { isSettled } from "../../../src/domain/transitions.ts";
import type {
  AlignWrite,
  ConfirmationsWrite,
  LaneWrite,
  UnwatchWrite,
  WriteOutcome,
} from "../../../src/ports/lane-store.ts";
import { allocate } from "./allocate.ts";
import { applyNonceWrite, realign } from "./nonces.ts";
import { settleIntake } from "./settle-intake.ts";
import { type DatabaseState, isAlive, type LaneRow } from "./state.ts";
import { applyTransition } from "./transition.ts";
import { UndoLog } from "./undo-log.ts";

/** One database transaction of the double: what it needs to read and change the state, and to take changes back. */
export interface Work {
  readonly state: DatabaseState;
  readonly log: UndoLog;
  readonly now: Date;
}

export function commitWrites(state: DatabaseState, writes: readonly LaneWrite[], now: Date): readonly WriteOutcome[] {
  const work: Work = { state, log: new UndoLog(), now };
  try {
    return writes.map((write) => (holds(state, write.fence, now) ? apply(work, write) : { status: "fenced" }));
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

function apply(work: Work, write: LaneWrite): WriteOutcome {
  const lane = work.state.lanes.get(laneKey(write.fence.lane)) as LaneRow;
  keepDecision(work, lane, write);
  switch (write.kind) {
    case "allocate":
      return allocate(work, lane, write);
    case "align":
      return align(work, lane, write);
    case "reconcile":
      return reconcile(work, lane, write.floor);
    case "realign":
      return realign(work, lane, write.floor);
    case "identify":
      if (!work.state.geneses.has(lane.lane.chainId)) {
        work.log.set(work.state.geneses, lane.lane.chainId, write.genesisHash);
      }
      return { status: "done" };
    case "suspend":
      work.log.assign(lane, { suspendedBy: write.suspended ? (lane.suspendedBy ?? "OPERATOR") : null });
      return { status: "done" };
    case "transition":
      return { status: "applied", items: write.items.map((item) => applyTransition(work, write.fence, item)) };
    case "unwatch":
      return unwatch(work, write);
    case "confirmations":
      return confirm(work, write);
    case "settleIntake":
      for (const fate of write.fates) settleIntake(work, write.fence, fate);
      return { status: "done" };
    default:
      return applyNonceWrite(work, lane, write);
  }
}

/** The database's history changed, and the lane has not been reconciled since or waits for an operator. */
export function isHeld({ feed }: DatabaseState, lane: LaneRow): boolean {
  return lane.reconciledEpoch < feed.epoch || lane.suspendedBy === "HISTORY";
}

function reconcile({ state, log }: Work, lane: LaneRow, floor: number): WriteOutcome {
  const isNews = lane.reconciledEpoch < state.feed.epoch;
  const isLost = isNews && state.epochMayHaveLost && lane.cursor === null && floor > 0;
  const cursor = Math.max(lane.cursor ?? floor, floor);
  const suspendedBy = isLost ? "HISTORY" : lane.suspendedBy;
  log.assign(lane, { cursor, suspendedBy, reconciledEpoch: state.feed.epoch });
  return { status: "reconciled", cursor, suspendedBy };
}

function keepDecision({ state, log, now }: Work, lane: LaneRow, write: LaneWrite): void {
  if ((write.kind !== "suspend" && write.kind !== "realign") || write.decision === undefined) return;
  const { instanceId, token } = write.fence;
  const nodeId = state.instances.get(instanceId)?.nodeId ?? null;
  log.assign(lane, { decisions: [{ ...write.decision, nodeId, token, at: now }, ...lane.decisions] });
}

function align({ log }: Work, lane: LaneRow, write: AlignWrite): WriteOutcome {
  const cursor = Math.max(lane.cursor ?? write.floor, write.floor);
  log.assign(lane, { cursor });
  return { status: "aligned", cursor };
}

function unwatch({ state, log }: Work, write: UnwatchWrite): WriteOutcome {
  const live = state.live.get(laneKey(write.fence.lane)) ?? new Map();
  for (const row of [...live.values()]) {
    if (!isSettled(row.state) || row.receipt === null || row.receipt.blockNumber > write.throughBlock) continue;
    log.assign(row, { live: false });
    log.delete(live, row.txId);
  }
  return { status: "done" };
}

function confirm({ state, log }: Work, write: ConfirmationsWrite): WriteOutcome {
  const { chainId } = write.fence.lane;
  if (!state.confirmations.has(chainId)) state.confirmations.set(chainId, new Map());
  const stored = state.confirmations.get(chainId) ?? new Map();
  const list = [...stored].map(([number, hash]) => ({ number, hash })).sort((a, b) => a.number - b.number);
  const change = reviseConfirmations(list, write.blocks);
  for (const { number } of list) {
    const replaced = change.kind === "replace" && number >= change.fromNumber;
    if (replaced || number < write.pruneBelow) log.delete(stored, number);
  }
  for (const block of change.kind === "same" ? [] : change.blocks) {
    if (block.number >= write.pruneBelow) log.set(stored, block.number, block.hash);
  }
  return { status: "confirmations", newFork: change.kind === "replace" };
}
