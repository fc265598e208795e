import { type Lane, laneKey } from "../../../src/domain/lane.ts";
import type { Intent } from "../../../src/domain/transaction.ts";
import {
  type AllocateFate,
  type AllocateWrite,
  BatchRefused,
  type ExistingTransaction,
  type NewTransaction,
  type WriteOutcome,
} from "../../../src/ports/lane-store.ts";
import { isHeld, type Work } from "./commit.ts";
import { giveNonce } from "./nonces.ts";
import { refuseNul } from "./refusals.ts";
import { type LaneRow, nonceKey, requestKey, type TransactionRow } from "./state.ts";

export function allocate(work: Work, lane: LaneRow, write: AllocateWrite): WriteOutcome {
  const items = write.items.map((item): AllocateFate => {
    const twin = existing(work, lane.lane, item);
    if (twin !== undefined) {
      return {
        fate: "duplicate",
        existing: existingTransaction(twin),
        samePayload: twin.fingerprint === item.intent.fingerprint,
      };
    }
    if (isHeld(work.state, lane)) return { fate: "held" };
    const given = giveNonce(work, lane, write);
    if (given === null) return { fate: "noCursor" };
    const { nonce, recycled } = given;
    const { createdAt } = insertAllocated(work, { item, nonce, write });
    return { fate: "created", nonce, createdAt, ...(recycled ? { recycled } : {}) };
  });
  return { status: "allocated", items, cursor: lane.cursor ?? 0 };
}

export function existingTransaction(row: TransactionRow): ExistingTransaction {
  const { txId, lane, requestId, nonce, state, fingerprint } = row;
  return { txId, lane, requestId, nonce, state, fingerprint };
}

/** By request id; an intent from the intake table also by its own id, which a repeated allocation would bring again. */
function existing(
  { state }: Work,
  lane: Lane,
  { intent, intakeId, mayExist }: NewTransaction,
): TransactionRow | undefined {
  const byRequest = intent.requestId === null ? undefined : state.requests.get(requestKey(lane, intent.requestId));
  const named = intakeId !== undefined || mayExist === true;
  return byRequest ?? (named ? state.transactions.get(intent.txId) : undefined);
}

export function insertAllocated(
  work: Work,
  { item, nonce, write }: { item: NewTransaction; nonce: number; write: Pick<AllocateWrite, "fence"> },
): TransactionRow {
  const { intent, intakeId } = item;
  const { state, log, now } = work;
  const accepted = intakeId === undefined ? null : consume(work, intakeId, intent);
  const base = { fromState: null, subState: null, nodeId: null, token: null, reason: null, count: 1 } as const;
  const nodeId = state.instances.get(write.fence.instanceId)?.nodeId ?? null;
  const history: TransactionRow["history"] = [
    ...(accepted === null
      ? []
      : [{ ...base, ordinal: 1, event: "accept", state: "CREATED", firstAt: accepted, lastAt: accepted } as const]),
    {
      ...base,
      ordinal: accepted === null ? 1 : 2,
      event: "allocate",
      fromState: accepted === null ? null : "CREATED",
      state: "ALLOCATED",
      nodeId,
      token: write.fence.token,
      firstAt: now,
      lastAt: now,
    },
  ];
  const row = newRow(intent, {
    nonce,
    gas: intent.gas,
    state: "ALLOCATED",
    lastEvent: "allocate",
    history,
    createdAt: accepted ?? now,
    updatedAt: now,
  });
  if (state.nonces.has(nonceKey(row.lane, nonce))) throw new BatchRefused(`nonce ${nonce} is taken`);
  log.set(state.nonces, nonceKey(row.lane, nonce), row);
  insertRow(work, row);
  return row;
}

/** When the caller wrote it. The row there is over in the same transaction. */
function consume({ state, log }: Work, intakeId: number, intent: Intent): Date {
  const entry = state.intake.get(intakeId);
  if (entry === undefined || entry.intent.txId !== intent.txId || entry.aliasOf !== null) {
    throw new BatchRefused(`intake row ${intakeId} is not waiting`);
  }
  log.delete(state.intake, intakeId);
  return entry.createdAt;
}

type Changing = Pick<TransactionRow, "state" | "lastEvent" | "history" | "createdAt" | "updatedAt"> &
  Partial<TransactionRow>;

export function newRow(intent: Intent, changing: Changing): TransactionRow {
  return {
    txId: intent.txId,
    lane: { chainId: intent.lane.chainId, signer: intent.lane.signer },
    requestId: intent.requestId,
    ownsRequest: true,
    nonce: null,
    payload: intent.payload,
    gas: null,
    metadata: intent.metadata,
    fingerprint: intent.fingerprint,
    subState: null,
    live: true,
    attempts: [],
    receipt: null,
    claim: null,
    acceptedOrdinal: null,
    submitAttempts: 0,
    lastSubmittedAt: null,
    lastError: null,
    confirmedAt: null,
    ...changing,
  };
}

export function insertRow({ state, log }: Work, row: TransactionRow): void {
  refuseNul(row.requestId, row.metadata === null ? null : JSON.stringify(row.metadata));
  if (row.requestId !== null && [...row.requestId].length > 255) throw new BatchRefused("the request id is too long");
  if (state.transactions.has(row.txId)) throw new BatchRefused(`transaction ${row.txId} exists`);
  log.set(state.transactions, row.txId, row);
  if (row.requestId !== null && row.ownsRequest) log.set(state.requests, requestKey(row.lane, row.requestId), row);
  if (!row.live) return;
  const key = laneKey(row.lane);
  if (!state.live.has(key)) state.live.set(key, new Map());
  log.set(state.live.get(key) as Map<string, TransactionRow>, row.txId, row);
}
