/** Converts database rows to the domain's types. */
import { grouped } from "../../../domain/grouped.ts";
import type { LedgerAttempt } from "../../../domain/ledger/index.ts";
import type { Hole } from "../../../domain/nonces/holes.ts";
import type { Charge } from "../../../domain/policy/charges.ts";
import { UNUSED, type Use } from "../../../domain/policy/use.ts";
import { LONGEST_TTL_MS, type Reservation } from "../../../domain/transaction/reservations.ts";
import type { Attempt, Receipt } from "../../../domain/transaction/transaction.ts";
import { StoreUnavailable } from "../../../ports/lane-store.ts";
import type { AttemptRecord, HistoryRecord } from "../../../ports/query-store.ts";
import { feesOf, withLane } from "../rows/columns.ts";
import { withoutNulls } from "../rows/transaction-fields.ts";
import type { AttemptRow } from "../statements/attempt.ts";
import type { HoleRow } from "../statements/hole.ts";
import type { ChargeRow, UseColumns } from "../statements/policy.ts";
import type { ReceiptRow } from "../statements/receipt.ts";
import type { ReservationRow } from "../statements/reservation.ts";
import type { TimeColumns } from "../statements/transaction.ts";

/**
 * First history step of an intent from the intake table: the caller inserted the row, so the step has no node and no
 * history row.
 */
export const ACCEPTED = {
  ordinal: 1,
  event: "accept",
  fromState: null,
  state: "CREATED",
  subState: null,
  nodeId: null,
  token: null,
  reason: null,
  count: 1,
} as const satisfies Partial<HistoryRecord>;

/**
 * Converts the time columns of a row for the lane's owner, who needs only flags: `held` (put on hold by an operator)
 * and `expired` (the deadline has ended the transaction).
 */
export function timed<Row extends TimeColumns>({ validUntil, heldSince, expiredAt, ...row }: Row) {
  return {
    ...row,
    ...(validUntil !== null && { validUntil }),
    ...(heldSince !== null && { held: true as const }),
    ...(expiredAt !== null && { expired: true as const }),
  };
}

export function attemptOf(row: AttemptRow): Attempt {
  return {
    ordinal: row.ordinal,
    kind: row.kind,
    txHash: row.txHash,
    gas: row.gas,
    fees: feesOf(row),
    ...(row.isForeign ? { foreign: true as const } : {}),
    ...(row.nodeSigned ? { nodeSigned: true as const } : {}),
    ...(row.isPrivate ? { private: true as const } : {}),
  };
}

export function ledgerAttempt(row: AttemptRow): LedgerAttempt {
  return { ...attemptOf(row), firstSentAt: row.firstSentAt };
}

export function attemptRecord(row: AttemptRow): AttemptRecord {
  return { ...ledgerAttempt(row), createdAt: row.createdAt };
}

export function holeOf({ chainId, signer, owner, ttlMs, ...hole }: HoleRow): Hole {
  return hole.why === "expired" ? { ...hole, expired: { owner, ttlMs: ttlMs ?? LONGEST_TTL_MS } } : hole;
}

/** Converts a reservation as stored; `reservationAt` decides whether it has expired. */
export function reservationOf({ askedAt, leftMs, ...row }: ReservationRow): Reservation {
  return withLane(row);
}

export function receiptsOf(rows: readonly ReceiptRow[]): ReadonlyMap<string, Receipt> {
  return new Map(rows.map(({ txId, ...receipt }) => [txId, withoutNulls(receipt, "besideGas", "besideGasUnsure")]));
}

/** Converts a row about the use of limits. Without a row, nothing was ever counted. */
export function useOf(row: UseColumns | undefined): Use {
  if (row === undefined || row.useHour === null) return UNUSED;
  const { useHour, hourValue, hourCost, dayValue, dayCost } = row;
  const amounts = (value: bigint | null, cost: bigint | null) => ({ value: value ?? 0n, cost: cost ?? 0n });
  return { hourMs: useHour.getTime(), hour: amounts(hourValue, hourCost), day: amounts(dayValue, dayCost) };
}

export function chargeOf({ txId, countedIn, ...charge }: ChargeRow): Charge {
  return { ...charge, hourMs: countedIn.getTime() };
}

export function groupByTransaction<Row extends { readonly txId: string }>(
  rows: readonly Row[],
): ReadonlyMap<string, readonly Row[]> {
  return grouped(rows, (row) => row.txId);
}

/** Returns the row of a statement that always returns exactly one. */
export function only<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new StoreUnavailable("the database did not return the requested row");
  return row;
}
