/**
 * Moves transactions through the table of domain/transitions.ts. Several steps of one transaction in one commit are
 * applied in order and written once, with every step in the history.
 */
import { leavesFrom, TRANSITIONS, type TransitionRule } from "../../../domain/transitions.ts";
import { BatchRefused, type TransitionItem } from "../../../ports/lane-store.ts";
import type { LanePlan, Move, Plan } from "./plan.ts";

export function planTransition(plan: Plan, lane: LanePlan, item: TransitionItem): "applied" | "conflict" {
  const move = plan.moves.get(item.txId);
  if (move === undefined || !belongs(move, lane) || !fits(move, item)) return "conflict";
  if (item.claim !== undefined && plan.isHeld(lane)) return "conflict";
  if (!changeNonce(plan, lane, { move, item })) return "conflict";
  recordStep(move, lane, item);
  countSettled(move, lane, item);
  addAttempt(move, item);
  claim(move, lane, item);
  if (item.identified !== undefined) {
    const { ordinal, txHash } = item.identified;
    move.identified = new Map(move.identified).set(ordinal, txHash);
  }
  if (item.change !== undefined) move.change = item.change;
  if (item.receipt !== undefined) move.receipt = item.receipt;
  if (item.lastError !== undefined) move.lastError = item.lastError;
  if (item.completion !== undefined) {
    const { tx_id: txId, request_id: requestId } = move.row;
    plan.completions.push({ ...item.completion, txId, lane, requestId, nonce: move.nonce });
  }
  move.state = item.to;
  move.subState = item.subState;
  move.lastEvent = item.event;
  move.moved = true;
  return "applied";
}

function belongs({ row }: Move, lane: LanePlan): boolean {
  return row.live && row.chain_id === lane.row.chain_id && row.signer === lane.row.signer;
}

/** The row stands where the item was planned: same state, a sub-state the table leaves from, the same one where it stays. */
function fits(move: Move, item: TransitionItem): boolean {
  const rule: TransitionRule = TRANSITIONS[item.event];
  if (move.state !== item.from) return false;
  if (rule.to === "same" && move.subState !== item.subState) return false;
  return leavesFrom(rule, move.subState);
}

/**
 * Down into a hole that is free, or given up: either way the nonce it had is a hole from now on. Requeued, it gets the
 * lane's next, and what it had is used up by somebody else. False: no such hole.
 */
function changeNonce(plan: Plan, lane: LanePlan, { move, item }: { move: Move; item: TransitionItem }): boolean {
  const { nonce } = move;
  if (item.event === "requeue") {
    move.nonce = lane.cursor;
    lane.cursor = (lane.cursor ?? 0) + 1;
    lane.givenBelow = lane.cursor;
    lane.changed = true;
    return true;
  }
  if (nonce === null || (item.nonce === undefined && item.event !== "giveUp")) return true;
  if (move.attemptCount > 0) throw new BatchRefused(`transaction ${item.txId} was signed at nonce ${nonce}`);
  const left = { nonce, since: new Date(0), reservationId: null };
  if (item.nonce === undefined) {
    plan.holes.leave(lane, { ...left, why: "givenUp", detail: `${item.txId} gave it up: ${item.reason ?? ""}` });
    move.nonce = null;
    return true;
  }
  if (item.nonce >= nonce || plan.holes.takeFree(lane, [item.nonce], 0) === null) return false;
  plan.holes.leave(lane, { ...left, why: "shiftedDown", detail: `${item.txId} moved down to ${item.nonce}` });
  move.nonce = item.nonce;
  return true;
}

/** An event that changes nothing but repeats the last one is counted on the last one's row. Another payload is no repeat. */
function recordStep(move: Move, lane: LanePlan, item: TransitionItem): void {
  const repeats =
    item.decision === undefined &&
    item.attempt === undefined &&
    move.lastEvent === item.event &&
    item.from === item.to &&
    move.state === item.to &&
    move.subState === item.subState;
  if (!repeats) move.historyCount++;
  const repeated = move.steps.at(-1)?.ordinal === move.historyCount ? move.steps.pop() : undefined;
  move.steps.push({
    tx_id: item.txId,
    ordinal: move.historyCount,
    chain_id: move.row.chain_id,
    event: item.event,
    from_state: item.from,
    state: item.to,
    sub_state: item.subState,
    node_id: lane.row.node_id,
    token: lane.row.token,
    reason: item.reason ?? null,
    actor: item.decision?.actor ?? null,
    audit: item.decision?.audit ?? null,
    count: (repeated?.count ?? 0) + 1,
  });
}

function countSettled(move: Move, lane: LanePlan, item: TransitionItem): void {
  const step = (state: string) => Number(item.to === state) - Number(move.state === state);
  lane.confirmed += step("CONFIRMED");
  lane.failed += step("FAILED_FINAL");
  if (item.to !== move.state && (step("CONFIRMED") !== 0 || step("FAILED_FINAL") !== 0)) lane.changed = true;
}

function addAttempt(move: Move, { attempt }: TransitionItem): void {
  if (attempt === undefined) return;
  if (attempt.ordinal !== move.attemptCount + 1) throw new BatchRefused(`attempt ${attempt.ordinal} is out of turn`);
  move.attemptCount++;
  move.attempts.push({ attempt, claimed: false });
}

/** Only what is stored may be sent: a claim on an attempt that does not exist is refused, here and by the database. */
function claim(move: Move, lane: LanePlan, item: TransitionItem): void {
  for (const ordinal of [item.claim?.ordinal, item.accepted?.ordinal, item.identified?.ordinal]) {
    if (ordinal !== undefined && (ordinal < 1 || ordinal > move.attemptCount)) {
      throw new BatchRefused(`transaction ${item.txId} has no attempt ${ordinal}`);
    }
  }
  if (item.accepted !== undefined) move.acceptedOrdinal = Math.max(move.acceptedOrdinal ?? 0, item.accepted.ordinal);
  if (item.claim === undefined) return;
  const { ordinal } = item.claim;
  move.claim = { token: lane.row.token, ordinal };
  move.claims++;
  const fresh = move.attempts.find(({ attempt }) => attempt.ordinal === ordinal);
  if (fresh !== undefined) fresh.claimed = true;
  else move.sent = new Set(move.sent).add(ordinal);
}
