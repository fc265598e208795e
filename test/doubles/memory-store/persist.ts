import { timesOf } from "../../../src/domain/cluster/notices.ts";
import type { Fence, Hash } from "../../../src/domain/lane.ts";
import type {
  Allocated,
  Awaits,
  Change,
  Completion,
  Declined,
  Moved,
  Refused,
  WaitingIntent,
} from "../../../src/domain/ledger/index.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import { TRANSITIONS } from "../../../src/domain/transaction/transitions.ts";
import { BatchRefused, type Decision, type LaneDecision } from "../../../src/ports/lane-store.ts";
import type { HistoryRecord } from "../../../src/ports/query-store.ts";
import type { Work } from "./commit.ts";
import { occurred } from "./notices.ts";
import { keepChoice } from "./pools.ts";
import { type Document, hashKey, type LaneRow, rowOf, type TransactionRow } from "./state.ts";

/**
 * Stores what a ledger does not contain: payloads, histories, bytes, decisions, the feed. It also refuses what only
 * PostgreSQL's constraints would refuse: ids and hashes that exist on any lane, and text that PostgreSQL cannot store.
 */
export function persist(work: Work, fence: Fence, change: Change): void {
  const { state, log } = work;
  if (change.kind === "allocated") insertAllocated(work, fence, change);
  keepChoice(work, fence.lane, change);
  if (change.kind === "moved") updateMoved(work, fence, change);
  if (change.kind === "refused") insertRefused(work, fence, change);
  if (change.kind === "declined") decline(work, change);
  if (change.kind === "awaits") keepWaiting(work, fence, change);
  if (change.kind === "approved") approve(work, fence, change);
  if (change.kind === "held") hold(work, fence, change);
  if (change.kind === "unwatched") keep(work, fence, { txId: change.txId, document: rowFor(work, change.txId) });
  if (change.kind === "aliased") alias(work, change.intakeId, change.of);
  if (change.kind === "messageKept") refuseNul(change.record.requestId, JSON.stringify(change.record.message));
  if (change.kind === "messageChanged") refuseNul(change.record.decision?.reason);
  if (change.kind === "reserved") refuseNul(change.reservation.requestId);
  if (change.kind === "reconciliation") log.assign(laneOf(work, fence), { reconciledEpoch: state.feed.epoch });
  if (change.kind === "completed") appendCompletion(work, fence, change.completion);
  if (change.kind === "decision") keepDecision(work, fence, change.decision);
  if (change.kind === "usedElsewhere") keepUse(work, fence, change);
}

function keepUse(
  { state, log }: Work,
  { lane }: Fence,
  { kind: _, ...use }: Extract<Change, { kind: "usedElsewhere" }>,
) {
  const what = { kind: "EXTERNAL_KEY_USE", lane, nodeId: null, times: timesOf(use), evidence: use } as const;
  const notice = occurred(state, what);
  log.set(state.notices, notice.noticeId, { notice, actionKey: null });
}

function laneOf({ state }: Work, { lane }: Fence): LaneRow {
  return state.lane(lane) as LaneRow;
}

function alias({ state, log }: Work, intakeId: number, of: string): void {
  const entry = state.intake.get(intakeId);
  if (entry !== undefined) log.set(state.intake, intakeId, { ...entry, aliasOf: of });
}

function decline({ state, log }: Work, { intake, problem }: Declined): void {
  log.set(state.declined, intake.txId, problem);
  log.delete(state.intake, intake.intakeId);
}

const NOTHING = { fromState: null, subState: null, nodeId: null, token: null, reason: null, count: 1 } as const;

function byWhom({ state }: Work, { instanceId, token }: Fence) {
  return { nodeId: state.instances.get(instanceId)?.nodeId ?? null, token };
}

function accepted(at: Date): HistoryRecord {
  return { ...NOTHING, ordinal: 1, event: "accept", state: "CREATED", firstAt: at, lastAt: at };
}

/** The history of an intake row so far; if it has none, only its acceptance. */
function stepsTaken({ state }: Work, { intakeId, acceptedAt }: WaitingIntent): readonly HistoryRecord[] {
  const history = state.intake.get(intakeId)?.history ?? [];
  return history.length === 0 ? [accepted(acceptedAt)] : history;
}

function keepWaiting(work: Work, fence: Fence, { intent, intake, approval, detail, at }: Awaits): void {
  const { state, log } = work;
  refuseNul(intent.requestId, intent.metadata === null ? null : JSON.stringify(intent.metadata));
  const taken = intake === null ? [accepted(at)] : stepsTaken(work, intake);
  const step = { ordinal: taken.length + 1, event: "await", reason: detail, firstAt: at, lastAt: at } as const;
  const to = { fromState: "CREATED", state: "CREATED", subState: "AWAITING_APPROVAL" } as const;
  const history = [...taken, { ...NOTHING, ...byWhom(work, fence), ...step, ...to }];
  const intakeId = intake?.intakeId ?? ++state.lastIntakeId;
  const { gas: _, gasCost: __, pool: ___, ...kept } = intent;
  const entry = state.intake.get(intakeId) ?? { intakeId, intent: kept, createdAt: at, aliasOf: null };
  log.set(state.intake, intakeId, { ...entry, approval, history, unanswered: false });
}

function approve(work: Work, fence: Fence, { intake, result, at }: Extract<Change, { kind: "approved" }>): void {
  const { state, log } = work;
  refuseNul(result.reason);
  const entry = state.intake.get(intake.intakeId);
  if (entry?.approval == null) throw new Error(`intake row ${intake.intakeId} does not wait for approval`);
  const decision = result.decision === null ? {} : { decision: shown(result.decision) };
  const ordinal = entry.history.length + 1;
  const step = { ordinal, event: "approve", reason: result.reason, firstAt: at, lastAt: at, ...decision } as const;
  const to = { fromState: "CREATED", state: "CREATED" } as const;
  const history = [...entry.history, { ...NOTHING, ...byWhom(work, fence), ...step, ...to }];
  log.set(state.intake, intake.intakeId, { ...entry, approval: { ...entry.approval, approved: true }, history });
}

function hold(work: Work, fence: Fence, { intake, result, at }: Extract<Change, { kind: "held" }>): void {
  const { state, log } = work;
  refuseNul(result.reason);
  const entry = state.intake.get(intake.intakeId);
  if (entry === undefined) throw new Error(`intake row ${intake.intakeId} is gone`);
  const taken = stepsTaken(work, intake);
  const decision = result.decision === null ? {} : { decision: result.decision };
  const { event, reason } = result;
  const subState = entry.approval?.approved === false ? ("AWAITING_APPROVAL" as const) : null;
  const step = { ordinal: taken.length + 1, event, reason, firstAt: at, lastAt: at, ...decision };
  const to = { fromState: "CREATED", state: "CREATED", subState } as const;
  const history = [...taken, { ...NOTHING, ...byWhom(work, fence), ...step, ...to }];
  const { heldSince: _, ...rest } = entry;
  const holds = (entry.holds ?? 0) + 1;
  log.set(state.intake, intake.intakeId, { ...rest, history, holds, ...(event === "hold" && { heldSince: at }) });
}

function insertAllocated(work: Work, fence: Fence, { intent, intake, at }: Allocated): void {
  const first = intake === null ? [] : stepsTaken(work, intake);
  const history: readonly HistoryRecord[] = [
    ...first,
    {
      ...{ ...NOTHING, ...byWhom(work, fence), ordinal: first.length + 1, firstAt: at, lastAt: at },
      ...{ event: "allocate", fromState: intake === null ? null : "CREATED", state: "ALLOCATED" },
    },
  ];
  insert(work, fence, { intent, gas: intent.gas, history, updatedAt: at });
  if (intake !== null) work.log.delete(work.state.intake, intake.intakeId);
}

function insertRefused(work: Work, fence: Fence, { intake, result, at }: Refused): void {
  const { state, log } = work;
  refuseNul(result.reason);
  const entry = state.intake.get(intake.intakeId);
  if (entry === undefined) throw new Error(`intake row ${intake.intakeId} is gone`);
  const { event, reason } = result;
  const taken = stepsTaken(work, intake);
  const history: readonly HistoryRecord[] = [
    ...taken,
    {
      ...{ ...NOTHING, ...byWhom(work, fence), ordinal: taken.length + 1, event, reason, firstAt: at, lastAt: at },
      ...{ fromState: "CREATED", ...TRANSITIONS[event].to },
      ...(result.result === "decided" && result.decision !== null && { decision: shown(result.decision) }),
    },
  ];
  insert(work, fence, { intent: entry.intent, gas: null, history, updatedAt: at });
  log.delete(state.intake, intake.intakeId);
  count(work, fence, { confirmed: 0, failed: 1 });
}

function insert(
  work: Work,
  fence: Fence,
  { intent, ...more }: { readonly intent: Intent } & Pick<Document, "gas" | "history" | "updatedAt">,
): void {
  const { txId, lane, requestId, payload, metadata } = intent;
  refuseNul(requestId, metadata === null ? null : JSON.stringify(metadata));
  if (requestId !== null && [...requestId].length > 255) throw new BatchRefused("the request id is too long");
  if (work.state.transactions.has(txId)) throw new BatchRefused(`transaction ${txId} exists`);
  const { chainId, signer } = lane;
  const pinned = intent.exactNonce !== undefined;
  const fresh = { change: undefined, bytes: [], claim: null, confirmedAt: null, pinned };
  keep(work, fence, { txId, document: { lane: { chainId, signer }, payload, metadata, ...fresh, ...more } });
}

/** Stores the row of a transaction: its document, and its present state in the ledger. */
function keep(
  work: Work,
  fence: Fence,
  { txId, document }: { readonly txId: string; readonly document: Document },
): void {
  const tx = laneOf(work, fence).ledger.transactions.get(txId);
  if (tx !== null) work.log.set(work.state.transactions, txId, rowOf(tx, document));
}

function rowFor({ state }: Work, txId: string): TransactionRow {
  const row = state.transactions.get(txId);
  if (row === undefined) throw new Error(`there is no row of ${txId}`);
  return row;
}

function updateMoved(work: Work, fence: Fence, change: Moved): void {
  const { item, at } = change;
  const row = rowFor(work, item.txId);
  refuseNul(item.reason, item.lastError);
  const { attempt, claim, identified } = item;
  if (attempt !== undefined) claimHash(work, fence, { ...item, ...attempt });
  if (identified !== undefined) claimHash(work, fence, { ...item, ...identified });
  const document: Document = {
    ...row,
    history: historyAfter(work, fence, { change, history: row.history }),
    bytes:
      attempt === undefined ? row.bytes : [...row.bytes, { rawTransaction: attempt.rawTransaction, createdAt: at }],
    claim: claim === undefined ? row.claim : { token: fence.token, ordinal: claim.ordinal },
    updatedAt: at,
    confirmedAt: item.to === "CONFIRMED" ? at : null,
    change: item.change ?? row.change,
  };
  keep(work, fence, { txId: item.txId, document });
  const step = (of: "CONFIRMED" | "FAILED_FINAL") => Number(item.to === of) - Number(item.from === of);
  count(work, fence, { confirmed: step("CONFIRMED"), failed: step("FAILED_FINAL") });
}

/**
 * A transaction hash belongs to only one attempt on the whole chain. Assigning a hash to the same attempt again changes
 * nothing.
 */
function claimHash(
  { state, log }: Work,
  { lane }: Fence,
  { txId, ordinal, txHash }: { readonly txId: string; readonly ordinal: number; readonly txHash: Hash | null },
): void {
  if (txHash === null) return;
  const key = hashKey(lane.chainId, txHash);
  const known = state.hashes.get(key);
  if (known !== undefined && (known.txId !== txId || known.ordinal !== ordinal)) {
    throw new BatchRefused(`${txHash} belongs to another attempt`);
  }
  log.set(state.hashes, key, { txId, ordinal });
}

function historyAfter(
  work: Work,
  fence: Fence,
  { change, history }: { readonly change: Moved; readonly history: readonly HistoryRecord[] },
): readonly HistoryRecord[] {
  const { item, step, repeats, at } = change;
  const decision = item.decision === undefined ? {} : { decision: shown(item.decision) };
  const seen = { ...byWhom(work, fence), reason: item.reason ?? null, ...decision, lastAt: at };
  const last = history.at(-1);
  if (repeats && last !== undefined) return [...history.slice(0, -1), { ...last, ...seen, count: last.count + 1 }];
  const { event, from: fromState, to, subState } = item;
  return [...history, { ordinal: step, event, fromState, state: to, subState, count: 1, firstAt: at, ...seen }];
}

/** Returns a decision without the idempotency key of its action, which the ledger stores. */
function shown({ actor, audit }: Decision): Decision {
  return { actor, audit };
}

function count(work: Work, fence: Fence, by: Pick<LaneRow, "confirmed" | "failed">): void {
  const lane = laneOf(work, fence);
  work.log.assign(lane, { confirmed: lane.confirmed + by.confirmed, failed: lane.failed + by.failed });
}

function keepDecision(work: Work, fence: Fence, decision: LaneDecision): void {
  const lane = laneOf(work, fence);
  const { action, actor, reason } = decision;
  const kept = { action, actor, reason, ...byWhom(work, fence), at: work.now };
  work.log.assign(lane, { decisions: [kept, ...lane.decisions] });
}

function appendCompletion({ state, log, now }: Work, { lane }: Fence, completion: Completion): void {
  const seq = state.feed.lastSeq + 1;
  log.assign(state.feed, { lastSeq: seq });
  log.push(state.completions, { seq, epoch: state.feed.epoch, lane, ...completion, at: now });
}

/** PostgreSQL cannot store NUL, neither in text nor in jsonb. */
function refuseNul(...texts: readonly (string | null | undefined)[]): void {
  for (const text of texts) {
    if (text?.includes("\0") || text?.includes("\\u0000")) throw new BatchRefused("NUL cannot be stored");
  }
}
