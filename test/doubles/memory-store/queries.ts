import { defined } from "../../../src/domain/defined.ts";
import type { TransactionCost } from "../../../src/domain/figures/costs.ts";
import { isWithin } from "../../../src/domain/keys/principal.ts";
import { type Address, compareLanes, type Fence, type Hash, type Lane, laneKey } from "../../../src/domain/lane.ts";
import {
  isSpent,
  type Ledger,
  mayGiveUp,
  type PolicyUse,
  type RequestOwner,
} from "../../../src/domain/ledger/index.ts";
import { domainOf } from "../../../src/domain/messages/domain-of.ts";
import type { SignatureRecord } from "../../../src/domain/messages/record.ts";
import type { Hole } from "../../../src/domain/nonces/holes.ts";
import { standing } from "../../../src/domain/policy/charges.ts";
import { UNUSED, within } from "../../../src/domain/policy/use.ts";
import { feeCap } from "../../../src/domain/transaction/fees.ts";
import type { Attempt } from "../../../src/domain/transaction/transaction.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type {
  AllocatedRecord,
  ExistingTransaction,
  ExpiringRecord,
  IntakeRow,
  LaneSnapshot,
  OpenReservation,
  OpenTransaction,
  SpentRequest,
  TrackedRecord,
} from "../../../src/ports/lane-store.ts";
import type {
  CostFilter,
  CostPage,
  HistoryRecord,
  LaneFilter,
  LaneRecord,
  ListFilter,
  PolicyUsage,
  SignatureFilter,
  TransactionRecord,
} from "../../../src/ports/query-store.ts";
import { holds } from "./commit.ts";
import { ownerOf } from "./leases.ts";
import {
  type DatabaseState,
  type IntakeEntry,
  isDue,
  isOver,
  type LaneRow,
  type StoredAttempt,
  sameLane,
  type TransactionRow,
  waitingIntake,
} from "./state.ts";

export function loadLane(state: DatabaseState, fence: Fence, now: Date): LaneSnapshot | null {
  if (!holds(state, fence, now)) return null;
  const { ledger, reconciledEpoch } = state.lane(fence.lane) as LaneRow;
  const rows = liveRows(state, fence.lane);
  const blocks = new Map(
    rows.flatMap(({ state, receipt }) =>
      isSettled(state) && receipt !== null ? [[receipt.blockHash, receipt]] : [],
    ) as [Hash, { blockNumber: number }][],
  );
  return {
    cursor: ledger.cursor,
    suspendedBy: ledger.suspendedBy,
    reconciled: reconciledEpoch >= state.feed.epoch,
    epochFloor: state.epochFloors.get(laneKey(fence.lane)) ?? 0,
    genesisHash: state.geneses.get(fence.lane.chainId) ?? null,
    tracking: rows.filter((tx) => tx.state === "TRACKING" || tx.state === "STUCK").map(trackedRecord),
    allocated: rows.filter((tx) => tx.state === "ALLOCATED").length,
    watched: [...blocks]
      .map(([hash, { blockNumber }]) => ({ number: blockNumber, hash }))
      .sort((a, b) => a.number - b.number || (a.hash < b.hash ? -1 : 1)),
    holes: holesOf(ledger),
    reservations: openReservations(ledger, now),
  };
}

function holesOf(ledger: Ledger): readonly Hole[] {
  return ledger.holes.every().map(([, hole]) => hole);
}

function openReservations({ reserved, reservations }: Ledger, now: Date): readonly OpenReservation[] {
  const open = reserved.every().flatMap(([, reservationId]) => reservations.get(reservationId) ?? []);
  return open.map(({ reservationId, nonce, expiresAt }) => ({
    reservationId,
    nonce,
    leftMs: expiresAt.getTime() - now.getTime(),
  }));
}

export function loadAllocated(
  state: DatabaseState,
  lane: Lane,
  page: { fromNonce: number; limit: number },
): readonly AllocatedRecord[] {
  return liveRows(state, lane, page.fromNonce)
    .filter((row) => row.state === "ALLOCATED")
    .slice(0, page.limit)
    .map((row) => {
      const { txId, nonce, requestId, payload, gas, createdAt, change } = row;
      const { pinned } = row;
      return {
        txId,
        nonce: nonce as number,
        requestId,
        payload: change?.payload ?? payload,
        gas: change?.gas ?? (gas as bigint),
        createdAt,
        ...(change === undefined ? {} : { changedTo: change.kind }),
        ...mostCostOf(state, lane, txId),
        ...timeOf(row),
        ...(pinned && { pinned }),
      };
    });
}

/** The transaction's deadline, whether it expired, and whether an operator put it on hold. */
function timeOf({ validUntil, heldSince, expiredAt }: TransactionRow) {
  return {
    ...(validUntil !== null && { validUntil }),
    ...(heldSince !== null && { held: true as const }),
    ...(expiredAt !== null && { expired: true as const }),
  };
}

export function loadExpiring(
  state: DatabaseState,
  lane: Lane,
  { limit, now }: { readonly limit: number; readonly now: Date },
): readonly ExpiringRecord[] {
  const epochFloor = state.epochFloors.get(laneKey(lane)) ?? 0;
  const isExpiring = (row: TransactionRow) =>
    row.validUntil !== null && row.heldSince === null && row.expiredAt === null && row.subState !== "MINED";
  return liveRows(state, lane)
    .filter((row) => !isSettled(row.state) && isExpiring(row))
    .sort((a, b) => Number(a.validUntil) - Number(b.validUntil) || Number(a.nonce) - Number(b.nonce))
    .slice(0, limit)
    .map((row) => ({
      ...{ txId: row.txId, nonce: row.nonce as number, requestId: row.requestId, createdAt: row.createdAt },
      state: row.state as ExpiringRecord["state"],
      validUntil: row.validUntil as Date,
      leftMs: Number(row.validUntil) - now.getTime(),
      mayGiveUp: mayGiveUp({ ...(state.lane(lane) as LaneRow).ledger, epochFloor }, row),
    }));
}

function mostCostOf(state: DatabaseState, lane: Lane, txId: string) {
  const charges = state.lane(lane)?.ledger.guard?.charges.get(txId) ?? null;
  return charges === null ? {} : { mostCost: standing(charges).cost };
}

export function policyUse(
  state: DatabaseState,
  lane: Lane,
  of: { readonly txId?: string; readonly owner?: string; readonly at: Date },
): PolicyUse {
  const guard = state.lane(lane)?.ledger.guard;
  const { txId, at } = of;
  const owner = of.owner ?? (txId === undefined ? null : state.transactions.get(txId)?.owner) ?? null;
  return {
    ...{ lane, at, owner },
    signer: guard?.use ?? UNUSED,
    key: (owner === null ? null : state.keyUse.get(lane.chainId)?.get(owner)) ?? UNUSED,
    charges: (txId === undefined ? null : guard?.charges.get(txId)) ?? [],
  };
}

export function policyUsage(state: DatabaseState, at: Date): PolicyUsage {
  const signers = [...state.lanes.values()].flatMap(({ lane, ledger: { guard } }) => {
    return guard?.use === undefined || guard.use === UNUSED ? [] : [{ lane, use: within(guard.use, at) }];
  });
  const keys = [...state.keyUse].flatMap(([chainId, part]) =>
    part.every().map(([owner, use]) => ({ chainId, owner, use: within(use, at) })),
  );
  return {
    at,
    signers: signers.sort((a, b) => compareLanes(a.lane, b.lane)),
    keys: keys.sort((a, b) => (a.owner < b.owner ? -1 : 1)),
  };
}

export function openOf(state: DatabaseState, lane: Lane, owner: string): readonly OpenTransaction[] {
  return liveRows(state, lane)
    .filter((row) => !isSettled(row.state) && row.owner === owner)
    .map(({ txId, subState }) => ({ txId, isMined: subState === "MINED" }));
}

export function settledBelow(state: DatabaseState, lane: Lane): number {
  const ledger = state.lane(lane)?.ledger;
  const past = ledger?.nonces.every().findLast(([nonce]) => ledger.live.get(nonce) === null);
  return past === undefined ? 0 : past[0] + 1;
}

export function loadWatched(state: DatabaseState, lane: Lane, hashes: readonly Hash[]): readonly TrackedRecord[] {
  return liveRows(state, lane)
    .filter((row) => isSettled(row.state) && row.receipt !== null && hashes.includes(row.receipt.blockHash))
    .map(trackedRecord);
}

/** Finds what each request id belongs to: a transaction if there is one, otherwise the earliest waiting intake row. */
export function findByRequestIds(
  state: DatabaseState,
  lane: Lane,
  requestIds: readonly string[],
): readonly (ExistingTransaction | SpentRequest)[] {
  return [...new Set(requestIds)].flatMap((requestId): readonly (ExistingTransaction | SpentRequest)[] => {
    const existing = ownerOfRequest(state, lane, requestId);
    if (isSpent(existing)) return [{ spent: true as const, lane, requestId }];
    if (existing !== null) return [existing];
    const entry = waitingIntake(state).find(
      ({ intent, unanswered }) => !unanswered && intent.requestId === requestId && sameLane(intent.lane, lane),
    );
    if (entry === undefined) return [];
    const { txId, owner, fingerprint } = entry.intent;
    return [{ txId, lane, requestId, owner, nonce: null, state: "CREATED" as const, fingerprint }];
  });
}

export function hasIntake(state: DatabaseState, now: Date): boolean {
  return waitingIntake(state).some((entry) => isDue(entry, now));
}

export function ownerOfRequest(state: DatabaseState, lane: Lane, requestId: string): RequestOwner | null {
  return state.lane(lane)?.ledger.requests.get(requestId) ?? null;
}

export function loadIntake(
  state: DatabaseState,
  lanes: readonly Lane[],
  { limit, now, resting }: { readonly limit: number; readonly now: Date; readonly resting: readonly number[] },
): readonly IntakeRow[] {
  return waitingIntake(state)
    .filter((entry) => isDue(entry, now) && lanes.some((lane) => sameLane(lane, entry.intent.lane)))
    .filter(({ intakeId, intent }) => !resting.includes(intakeId) || isOver(intent, now))
    .slice(0, limit)
    .map(({ intakeId, intent, approval, unanswered }) => {
      if (isOver(intent, now)) return { intakeId, intent, lapsed: true, ...(unanswered && { unanswered }) };
      if (unanswered) return { intakeId, intent, unanswered };
      if (approval === null) return { intakeId, intent };
      if (approval.approved) return { intakeId, intent, approved: true };
      const { rule, expiresAt } = approval;
      return { intakeId, intent, expired: { rule, expiresAt } };
    });
}

export function findTransaction(state: DatabaseState, txId: string): TransactionRecord | null {
  const row = state.transactions.get(txId);
  if (row !== undefined) return transactionRecord(row);
  const entry = [...state.intake.values()].find(({ intent }) => intent.txId === txId);
  if (entry === undefined) return null;
  return entry.aliasOf === null ? createdRecord(entry) : findTransaction(state, entry.aliasOf);
}

export function listTransactions(state: DatabaseState, filter: ListFilter): readonly TransactionRecord[] {
  const records = [
    ...[...state.transactions.values()].filter((row) => hasHash(row, filter.txHash)).map(transactionRecord),
    ...(filter.txHash === undefined ? waitingIntake(state).map(createdRecord) : []),
  ];
  const sign = filter.order === "newest" ? -1 : 1;
  return records
    .filter((record) => matches(record, filter))
    .filter(({ txId }) => filter.after === undefined || compare(txId, filter.after) * sign > 0)
    .sort((a, b) => compare(a.txId, b.txId) * sign)
    .slice(0, filter.limit);
}

export function costsOf(state: DatabaseState, filter: CostFilter): CostPage {
  const records = listTransactions(state, { ...filter, limit: Number.POSITIVE_INFINITY });
  const page = records.filter(({ txId }) => state.transactions.has(txId)).slice(0, filter.limit);
  return {
    items: costsOfTransactions(
      state,
      page.map(({ txId }) => txId),
    ),
    next: page.length < filter.limit ? null : (page.at(-1)?.txId ?? null),
  };
}

export function costsOfTransactions(state: DatabaseState, txIds: readonly string[]): readonly TransactionCost[] {
  return txIds.flatMap((txId) => {
    const row = state.transactions.get(txId);
    return row === undefined ? [] : [costOf(row, transactionRecord(row))];
  });
}

function costOf(row: TransactionRow, record: TransactionRecord): TransactionCost {
  const { txId, lane, owner, state, createdAt, payload } = record;
  const receipt = isSettled(state) ? record.receipt : null;
  const mined = row.attempts.find(({ txHash, foreign }) => txHash === receipt?.txHash && foreign !== true);
  const cost = { txId, lane, owner, state, createdAt, receiver: payload.to, fees: 0n, value: 0n };
  if (mined === undefined || receipt === null) return cost;
  const { gasUsed, effectiveGasPrice, besideGas = 0n, status } = receipt;
  const fees = gasUsed * (effectiveGasPrice ?? feeCap(mined.fees)) + besideGas;
  const isNothing = status !== "success" || mined.kind === "cancel" || mined.kind === "placeholder";
  const value = isNothing ? 0n : payload.value;
  if (mined.kind !== "replace" || status !== "success") return { ...cost, fees, value };
  if (mined.rawTransaction !== null) return { ...cost, fees, value, replacement: mined.rawTransaction };
  const changed = row.change?.payload ?? payload;
  return { ...cost, fees, receiver: changed.to, value: changed.value };
}

export function historyOf(state: DatabaseState, txId: string): readonly HistoryRecord[] {
  const row = state.transactions.get(txId);
  if (row !== undefined) return row.history;
  const entry = [...state.intake.values()].find(({ intent }) => intent.txId === txId);
  if (entry === undefined) return [];
  if (entry.aliasOf !== null) return historyOf(state, entry.aliasOf);
  if (entry.history.length > 0) return entry.history;
  const nothing = { fromState: null, subState: null, nodeId: null, token: null, reason: null } as const;
  const at = entry.createdAt;
  return [{ ...nothing, ordinal: 1, event: "accept", state: "CREATED", count: 1, firstAt: at, lastAt: at }];
}

export function listLanes(state: DatabaseState, signer: Address, now: Date): readonly LaneRecord[] {
  return byKey(state)
    .filter((row) => row.lane.signer === signer)
    .map((row) => laneRecord(state, row, now));
}

export function listLanesAfter(
  state: DatabaseState,
  { after, limit, filter = {} }: { after: Lane | null; limit: number; filter?: LaneFilter },
  now: Date,
): readonly LaneRecord[] {
  return byKey(state)
    .filter((row) => after === null || compareKeys(row.lane, after) > 0)
    .map((row) => laneRecord(state, row, now))
    .filter((lane) => isAsked(state, lane, filter))
    .slice(0, limit);
}

function isAsked(
  state: DatabaseState,
  record: LaneRecord,
  { chainId, owner, needsAttention, within }: LaneFilter,
): boolean {
  const { lane, suspendedBy, stuck, holes } = record;
  const isHeld = liveRows(state, lane).some(({ heldSince }) => heldSince !== null);
  const isUnowned = record.owner === null && liveRows(state, lane).some((tx) => !isSettled(tx.state));
  return (
    (chainId === undefined || lane.chainId === chainId) &&
    (within === undefined || isWithin(within, lane)) &&
    (owner === undefined || record.owner?.nodeId === owner) &&
    (needsAttention !== true || suspendedBy !== null || stuck > 0 || holes.length > 0 || isHeld || isUnowned)
  );
}

function byKey(state: DatabaseState): readonly LaneRow[] {
  return [...state.lanes.values()].sort((a, b) => compareKeys(a.lane, b.lane));
}

function compareKeys(a: Lane, b: Lane): number {
  return compare(a.signer, b.signer) || a.chainId - b.chainId;
}

function laneRecord(state: DatabaseState, row: LaneRow, now: Date): LaneRecord {
  const open = liveRows(state, row.lane).filter((tx) => !isSettled(tx.state));
  const isWanted = ({ intent, approval }: IntakeEntry) =>
    sameLane(intent.lane, row.lane) && (approval === null || approval.approved);
  const waiting = waitingIntake(state).filter(isWanted);
  const pending = [...open.filter((tx) => tx.state !== "STUCK"), ...waiting];
  const head = open[0];
  const oldest = pending.reduce<Date | null>(
    (least, { createdAt }) => (least !== null && least < createdAt ? least : createdAt),
    null,
  );
  return {
    lane: row.lane,
    cursor: row.cursor,
    suspendedBy: row.suspendedBy,
    owner: ownerOf(state, row),
    token: row.token,
    acquiredAt: row.acquiredAt,
    pending: pending.length,
    confirmed: row.confirmed,
    failed: row.failed,
    stuck: open.length + waiting.length - pending.length,
    reserved: openReservations(row.ledger, now).filter(({ leftMs }) => leftMs > 0).length,
    holes: holesOf(row.ledger),
    oldestPendingAt: oldest,
    headOfLine:
      head === undefined
        ? null
        : {
            ...{ txId: head.txId, nonce: head.nonce as number, state: head.state, createdAt: head.createdAt },
            held: head.heldSince !== null,
          },
  };
}

function liveRows(state: DatabaseState, lane: Lane, fromNonce = 0): readonly TransactionRow[] {
  const live = state.lane(lane)?.ledger.live.every(fromNonce) ?? [];
  return live.flatMap(([, txId]) => state.transactions.get(txId) ?? []);
}

function bareAttempt({ rawTransaction: _, createdAt: __, firstSentAt: ___, ...attempt }: StoredAttempt): Attempt {
  return attempt;
}

function trackedRecord(row: TransactionRow): TrackedRecord {
  const { txId, state, subState, receipt, submitAttempts, createdAt, requestId } = row;
  const { lastSubmittedAt, acceptedOrdinal, lastError } = row;
  const attempts = row.attempts.map(bareAttempt);
  const firstSentAt = row.attempts[0]?.firstSentAt ?? null;
  const sent = {
    submitAttempts,
    firstSentAt,
    lastSubmittedAt,
    acceptedOrdinal,
    lastError,
    ...lostSight(row),
    ...timeOf(row),
  };
  return { txId, nonce: row.nonce as number, state, subState, attempts, receipt, createdAt, requestId, ...sent };
}

function lostSight({ state, subState, lostSightAt }: TransactionRow): Pick<TrackedRecord, "lostSightAt"> {
  const isLost = state === "STUCK" || subState === "UNKNOWN_SUBMIT_RESULT";
  return lostSightAt === null || !isLost ? {} : { lostSightAt };
}

function transactionRecord(row: TransactionRow): TransactionRecord {
  const { txId, lane, requestId, owner, nonce, state, subState, payload, gas, metadata, receipt, lastError } = row;
  const { submitAttempts, lastSubmittedAt, createdAt, updatedAt, confirmedAt, validUntil, heldSince, expiredAt } = row;
  const attempts = row.attempts.map(({ rawTransaction: _, ...attempt }) => attempt);
  return {
    ...{ txId, lane, requestId, owner, nonce, state, subState, payload, gas, metadata, attempts, receipt, lastError },
    ...{ submitAttempts, lastSubmittedAt, createdAt, updatedAt, confirmedAt },
    ...(validUntil !== null && { validUntil }),
    ...(heldSince !== null && { heldSince }),
    ...(expiredAt !== null && { expiredAt }),
  };
}

function createdRecord({ intakeId, intent, createdAt, approval, history, heldSince }: IntakeEntry): TransactionRecord {
  const { txId, lane, requestId, owner, payload, metadata, validUntil } = intent;
  const nothing = { nonce: null, gas: null, receipt: null, lastError: null } as const;
  const isAwaiting = approval !== null && !approval.approved;
  const never = { submitAttempts: 0, lastSubmittedAt: null, confirmedAt: null, attempts: [] } as const;
  return {
    txId,
    lane,
    requestId,
    owner,
    payload,
    metadata,
    state: "CREATED",
    subState: isAwaiting ? "AWAITING_APPROVAL" : null,
    createdAt,
    updatedAt: history.find(({ event }) => event === "approve")?.firstAt ?? createdAt,
    ...(isAwaiting && { awaiting: { intakeId, rule: approval.rule, expiresAt: approval.expiresAt } }),
    ...(approval?.approved && { approved: { intakeId } }),
    ...defined({ intakeId, validUntil, heldSince }),
    ...nothing,
    ...never,
  };
}

function hasHash(row: TransactionRow, txHash: Hash | undefined): boolean {
  return txHash === undefined || row.attempts.some((attempt) => attempt.txHash === txHash);
}

function matches(record: TransactionRecord, filter: ListFilter): boolean {
  return (
    (filter.within === undefined || isWithin(filter.within, record.lane)) &&
    (filter.chainId === undefined || record.lane.chainId === filter.chainId) &&
    (filter.signer === undefined || record.lane.signer === filter.signer) &&
    (filter.state === undefined || record.state === filter.state) &&
    (filter.requestId === undefined || record.requestId === filter.requestId) &&
    (filter.createdAfter === undefined || record.createdAt >= filter.createdAfter) &&
    (filter.createdBefore === undefined || record.createdAt < filter.createdBefore)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Marks these intents as accepted. Returns the intents that no owner had taken from the queue or declined before. */
export function acceptIntents(state: DatabaseState, txIds: readonly string[]): readonly string[] {
  const entries = waitingIntake(state).filter(({ intent, unanswered }) => unanswered && txIds.includes(intent.txId));
  for (const entry of entries) state.intake.set(entry.intakeId, { ...entry, unanswered: false });
  return entries.map(({ intent }) => intent.txId);
}

export function listSignatures(
  state: DatabaseState,
  { signer, chainId, owner, state: wanted, domain, within, after, limit }: SignatureFilter,
  now: Date,
): readonly SignatureRecord[] {
  return state
    .signatures()
    .filter((each) => signer === undefined || each.lane.signer === signer)
    .filter((each) => chainId === undefined || each.lane.chainId === chainId)
    .filter((each) => owner === undefined || each.owner === owner)
    .filter((each) => wanted === undefined || each.state === wanted)
    .filter(({ expiresAt }) => wanted !== "AWAITING_APPROVAL" || (expiresAt !== null && expiresAt > now))
    .filter(({ message }) => domain === undefined || domainOf(message) === domain)
    .filter((each) => within === undefined || isWithin(within, each.lane))
    .filter((each) => after === undefined || each.signatureId < after)
    .sort((a, b) => (a.signatureId < b.signatureId ? 1 : -1))
    .slice(0, limit);
}
