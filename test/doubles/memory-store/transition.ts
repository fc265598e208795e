import { type Fence, type Hash, laneKey } from "../../../src/domain/lane.ts";
import { isSettled, leavesFrom, TRANSITIONS, type TransitionRule } from "../../../src/domain/transitions.ts";
import { BatchRefused, type NewCompletion, type TransitionItem } from "../../../src/ports/lane-store.ts";
import { isHeld, type Work } from "./commit.ts";
import { changedNonce } from "./nonces.ts";
import { refuseIllegal, refuseNul } from "./refusals.ts";
import { hashKey, type LaneRow, type StoredAttempt, sameLane, type TransactionRow } from "./state.ts";

export function applyTransition(work: Work, fence: Fence, item: TransitionItem): "applied" | "conflict" {
  const row = work.state.transactions.get(item.txId);
  if (row === undefined || !row.live || !sameLane(row.lane, fence.lane) || !fits(row, item)) return "conflict";
  const lane = work.state.lanes.get(laneKey(fence.lane)) as LaneRow;
  if (item.claim !== undefined && isHeld(work.state, lane)) return "conflict";
  refuseIllegal(item);
  refuseNul(item.reason, item.lastError);
  const settles = isSettled(item.to);
  const nonce = changedNonce(work, row, item);
  if (nonce === null) return "conflict";
  countSettled(work, row, item);
  work.log.assign(row, {
    ...nonce,
    ...attempts(work, row, item),
    history: history(work, { row, item, fence }),
    state: item.to,
    subState: item.subState,
    lastEvent: item.event,
    updatedAt: work.now,
    confirmedAt: item.to === "CONFIRMED" ? work.now : settles ? row.confirmedAt : null,
    ...(item.change === undefined ? {} : { change: item.change }),
    ...(item.receipt === undefined ? {} : { receipt: item.receipt }),
    ...(item.lastError === undefined ? {} : { lastError: item.lastError }),
  });
  claim(work, { row, item, fence });
  identify(work, row, item);
  if (item.completion !== undefined) appendCompletion(work, row, item.completion);
  return "applied";
}

/** The row stands where the item was planned: same state, a sub-state the table leaves from, the same one where it stays. */
function fits(row: TransactionRow, item: TransitionItem): boolean {
  const rule: TransitionRule = TRANSITIONS[item.event];
  if (row.state !== item.from) return false;
  if (rule.to === "same" && row.subState !== item.subState) return false;
  return leavesFrom(rule, row.subState);
}

function attempts({ state, log, now }: Work, row: TransactionRow, item: TransitionItem): Partial<TransactionRow> {
  const { attempt } = item;
  if (attempt === undefined) return {};
  if (attempt.ordinal !== row.attempts.length + 1) throw new BatchRefused(`attempt ${attempt.ordinal} is out of turn`);
  if (attempt.txHash !== null) claimHash({ state, log, now }, row, attempt.txHash);
  return { attempts: [...row.attempts, { ...attempt, createdAt: now, firstSentAt: null }] };
}

function claimHash({ state, log }: Work, row: TransactionRow, txHash: Hash): void {
  const key = hashKey(row.lane.chainId, txHash);
  if (state.hashes.has(key)) throw new BatchRefused(`${txHash} belongs to another attempt`);
  log.set(state.hashes, key, row);
}

/** What a node made of an attempt that it signed itself; a hash that is known never changes. */
function identify(work: Work, row: TransactionRow, { identified }: TransitionItem): void {
  if (identified === undefined) return;
  const { ordinal, txHash } = identified;
  const attempt = row.attempts[ordinal - 1];
  if (attempt?.nodeSigned !== true || (attempt.txHash ?? txHash) !== txHash) {
    throw new BatchRefused(`attempt ${ordinal} of ${row.txId} cannot be identified`);
  }
  if (attempt.txHash === null) claimHash(work, row, txHash);
  const attempts = row.attempts.map((each) => (each.ordinal === ordinal ? { ...each, txHash } : each));
  work.log.assign(row, { attempts });
}

function claim(
  { log, now }: Work,
  { row, item, fence }: { row: TransactionRow; item: TransitionItem; fence: Fence },
): void {
  if (row.state === "TRACKING" && row.attempts.length === 0) throw new BatchRefused("tracked, but never signed");
  for (const ordinal of [item.claim?.ordinal, item.accepted?.ordinal]) {
    if (ordinal !== undefined && (ordinal < 1 || ordinal > row.attempts.length)) {
      throw new BatchRefused(`there is no attempt ${ordinal}`);
    }
  }
  if (item.accepted !== undefined) {
    log.assign(row, { acceptedOrdinal: Math.max(row.acceptedOrdinal ?? 0, item.accepted.ordinal) });
  }
  if (item.claim === undefined) return;
  const { ordinal } = item.claim;
  const sent = (attempt: StoredAttempt) =>
    attempt.ordinal === ordinal ? (attempt.firstSentAt ?? now) : attempt.firstSentAt;
  log.assign(row, {
    claim: { token: fence.token, ordinal },
    submitAttempts: row.submitAttempts + 1,
    lastSubmittedAt: now,
    attempts: row.attempts.map((attempt) => ({ ...attempt, firstSentAt: sent(attempt) })),
  });
}

function history(
  { state, now }: Work,
  { row, item, fence }: { row: TransactionRow; item: TransitionItem; fence: Fence },
): TransactionRow["history"] {
  const last = row.history.at(-1);
  const nodeId = state.instances.get(fence.instanceId)?.nodeId ?? null;
  const decision = item.decision === undefined ? {} : { decision: item.decision };
  const seen = { nodeId, token: fence.token, reason: item.reason ?? null, ...decision, lastAt: now };
  const repeats =
    last !== undefined &&
    item.decision === undefined &&
    item.attempt === undefined &&
    last.event === item.event &&
    item.from === item.to &&
    last.state === item.to &&
    last.subState === item.subState;
  if (repeats) return [...row.history.slice(0, -1), { ...last, ...seen, count: last.count + 1 }];
  const { event, from, to, subState } = item;
  return [
    ...row.history,
    { ordinal: row.history.length + 1, event, fromState: from, state: to, subState, count: 1, firstAt: now, ...seen },
  ];
}

function countSettled({ state, log }: Work, row: TransactionRow, item: TransitionItem): void {
  const lane = state.lanes.get(laneKey(row.lane)) as LaneRow;
  const step = (of: "CONFIRMED" | "FAILED_FINAL") => Number(item.to === of) - Number(row.state === of);
  log.assign(lane, { confirmed: lane.confirmed + step("CONFIRMED"), failed: lane.failed + step("FAILED_FINAL") });
}

export function appendCompletion({ state, log, now }: Work, row: TransactionRow, completion: NewCompletion): void {
  const seq = state.feed.lastSeq + 1;
  log.assign(state.feed, { lastSeq: seq });
  const { txId, lane, requestId, nonce } = row;
  log.push(state.completions, { seq, epoch: state.feed.epoch, txId, lane, requestId, nonce, ...completion, at: now });
}
