/**
 * Between the two halves of a commit: from the rows that were found to a part of each lane's ledger. Loaded is what the
 * writes are about (needs.ts), and nothing else. A row that was looked for and not found is known to be missing; about a
 * row that was not looked for, the part cannot tell (domain/ledger/part.ts).
 */

import { grouped } from "../../../domain/grouped.ts";
import { type Lane, type LaneKey, laneKey } from "../../../domain/lane.ts";
import {
  bareLedger,
  begunTransaction,
  type Guard,
  type Ledger,
  type LedgerTransaction,
  nothingUsed,
  orderKeyOf,
  Part,
  type WaitingIntent,
} from "../../../domain/ledger/index.ts";
import { poolKey } from "../../../domain/nonces/pool.ts";
import type { Policies } from "../../../domain/policy/policy.ts";
import type { Reservation } from "../../../domain/transaction/reservations.ts";
import type { ExistingTransaction } from "../../../ports/lane-store.ts";
import { type Flat, laneOf, withLane } from "../rows/columns.ts";
import type { AttemptRow } from "../statements/attempt.ts";
import type { IntakeRow } from "../statements/intake.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { ChargeRow } from "../statements/policy.ts";
import type { CurrentRow, UnwatchableRow } from "../statements/transaction.ts";
import type { Found } from "./lookup.ts";
import type { Needs } from "./needs.ts";
import { chargeOf, groupByTransaction, holeOf, ledgerAttempt, reservationOf, useOf } from "./rows.ts";
import { inLane, inPool, requestOf, SpentRequests } from "./spent-requests.ts";

const ALL = { kind: "all" } as const;

/** A request id of a pool, on whichever chain. */
export function chainPoolKey(
  chainId: number,
  { pool, requestId }: { readonly pool: string; readonly requestId: string | null },
): string {
  return `${chainId}:${poolKey(pool, requestId ?? "")}`;
}

export class Loader {
  readonly transactions: ReadonlyMap<string, CurrentRow>;
  readonly intake: ReadonlyMap<number, IntakeRow>;
  /** What is past its watch, by lane: a page of it at most (`UNWATCH_PAGE`). The rest is left to a commit of its own. */
  readonly unwatchable: ReadonlyMap<LaneKey, readonly UnwatchableRow[]>;
  private readonly found: Found;
  private readonly epoch: number;
  private readonly unguarded: Guard | null;
  private readonly requests: ReadonlyMap<string, Flat<ExistingTransaction>>;
  /** By id. */
  private readonly awaited: ReadonlyMap<string, Flat<ExistingTransaction>>;
  private readonly pooled: ReadonlyMap<string, ExistingTransaction>;
  private readonly spent: SpentRequests;
  private readonly attempts: ReadonlyMap<string, readonly AttemptRow[]>;
  private readonly charges: ReadonlyMap<string, readonly ChargeRow[]>;
  private readonly reservations: readonly Reservation[];

  /** `epoch`: of the feed, as the transaction found it. */
  constructor(found: Found, epoch: number, policies: Policies | null) {
    this.found = found;
    this.epoch = epoch;
    this.unguarded = policies === null ? null : nothingUsed(policies);
    const { transactions = [], intake = [], unwatchable = [], requests = [], attempts = [] } = found;
    const { openReservations = [], reservations = [] } = found;
    this.transactions = new Map(transactions.map((row) => [row.txId, row]));
    this.intake = new Map(intake.map((row) => [row.intakeId, row]));
    this.unwatchable = grouped(unwatchable, laneKey);
    // A transaction wins over what waits for approval: a node without policies gave it its nonce.
    const owners = [...(found.awaited ?? []), ...requests];
    this.requests = new Map(owners.map((row) => [`${laneKey(row)}:${row.requestId}`, row]));
    this.awaited = new Map(found.awaited?.map((row) => [row.txId, row]));
    this.pooled = new Map(
      found.pooled?.map(({ pool, ...row }) => [chainPoolKey(row.chainId, { ...row, pool }), withLane(row)]),
    );
    this.spent = new SpentRequests(found.spent);
    this.attempts = groupByTransaction(attempts);
    this.charges = groupByTransaction(found.charges ?? []);
    this.reservations = [...openReservations, ...reservations].map(reservationOf);
  }

  /** A lane's own row. */
  bare(row: LockedLaneRow): Ledger {
    const { nextNonce: cursor, suspendedBy, reconciledEpoch, departedBelow } = row;
    const reconciled = reconciledEpoch >= this.epoch;
    return bareLedger(laneOf(row), { cursor, suspendedBy, departedBelow, reconciled, guard: this.unguarded });
  }

  /** The ledger with what a write of this commit needs. Loaded for all of them before the first is judged. */
  load(ledger: Ledger, needs: Needs): Ledger {
    const key = laneKey(ledger.lane);
    const { watchedThrough, reservations, reservedAs } = needs;
    let loaded = this.withRows(ledger, key, needs);
    if (watchedThrough !== undefined) loaded = this.withWatched(loaded, key, watchedThrough);
    if (needs.mayHaveLost) loaded = { ...loaded, mayHaveLost: this.found.history?.[0]?.mayHaveLost ?? false };
    if (reservations !== undefined || reservedAs !== undefined) loaded = this.withReservations(loaded, key, needs);
    if (needs.openReservations) loaded = this.withOpenReservations(loaded, key);
    loaded = this.withNonces(loaded, key, needs);
    if (needs.limits !== undefined) loaded = this.withLimits(loaded, key, needs.limits);
    return needs.boundNonce ? this.withBoundNonce(loaded, key) : loaded;
  }

  private withRows(ledger: Ledger, key: LaneKey, needs: Needs): Ledger {
    const { transactions = [], requests = [], intake = [], pooled = [] } = needs;
    const { chainId } = ledger.lane;
    return {
      ...ledger,
      pooled: ledger.pooled.with(
        pooled.map((each) => [
          poolKey(each.pool, each.requestId),
          this.pooled.get(chainPoolKey(chainId, each)) ?? this.spent.of(inPool({ chainId, ...each })),
        ]),
      ),
      transactions: ledger.transactions.with(transactions.map((id) => [id, this.transaction(key, id)])),
      requests: ledger.requests.with(requests.map((id) => [id, this.owner(ledger.lane, id)])),
      intake: ledger.intake.with(intake.map((id) => [id, this.waiting(key, id)])),
    };
  }

  private transaction(key: LaneKey, txId: string): LedgerTransaction | null {
    const row = this.transactions.get(txId);
    if (row === undefined) return this.awaiting(key, txId);
    if (laneKey(row) !== key) return null;
    // One literal: spread from the row, it took a hundred times as long, for each transaction of each commit.
    return {
      txId,
      requestId: row.requestId,
      owner: row.owner,
      nonce: row.nonce,
      live: row.live,
      state: row.state,
      subState: row.subState,
      lastEvent: row.lastEvent,
      steps: row.steps,
      attemptCount: row.attemptCount,
      pinned: row.pinned,
      acceptedOrdinal: row.acceptedOrdinal,
      validUntil: row.validUntil,
      heldSince: row.heldSince,
      expiredAt: row.expiredAt,
      minedIn: this.found.watching?.has(txId) ? row.minedIn : undefined,
      fingerprint: row.fingerprint ?? undefined,
      attempts: this.found.naming?.has(txId) ? (this.attempts.get(txId) ?? []).map(ledgerAttempt) : undefined,
      details: undefined,
    };
  }

  private awaiting(key: LaneKey, txId: string): LedgerTransaction | null {
    const row = this.awaited.get(txId);
    if (row === undefined || laneKey(row) !== key) return null;
    return { ...begunTransaction(row, "await", { steps: 2, details: undefined }), attempts: undefined };
  }

  private owner(lane: Lane, requestId: string) {
    const row = this.requests.get(`${laneKey(lane)}:${requestId}`);
    return row === undefined ? this.spent.of(inLane(requestOf(lane, requestId))) : withLane(row);
  }

  private waiting(key: LaneKey, intakeId: number): WaitingIntent | null {
    const row = this.intake.get(intakeId);
    if (row === undefined || row.aliasOf !== null || laneKey(row) !== key) return null;
    const { txId, requestId, owner, fingerprint, createdAt: acceptedAt, awaits, expiresAt, approved, unanswered } = row;
    const approval = awaits === null || expiresAt === null ? null : { rule: awaits, expiresAt, approved };
    const known = { intakeId, txId, requestId, owner, fingerprint, acceptedAt, approval, holds: row.holds, unanswered };
    return { ...known, ...(row.validUntil && { validUntil: row.validUntil }), ...(row.held && { held: true }) };
  }

  private withWatched(ledger: Ledger, key: LaneKey, through: number): Ledger {
    const { cover } = ledger.watched;
    const known = cover.kind === "through" ? Math.max(cover.key, through) : through;
    const blocks = grouped(this.unwatchable.get(key) ?? [], (row) => row.blockNumber);
    const watched = ({ txId, nonce, state }: UnwatchableRow) => ({ txId, nonce, state });
    const rows = [...blocks].map(([block, all]) => [block, all.map(watched)] as const);
    return { ...ledger, watched: ledger.watched.covering({ kind: "through", key: known }, rows) };
  }

  private withReservations(ledger: Ledger, key: LaneKey, { reservations = [], reservedAs = [] }: Needs): Ledger {
    const own = this.reservations.filter(({ lane }) => laneKey(lane) === key);
    const byId = (id: string) => own.find(({ reservationId }) => reservationId === id) ?? null;
    const named = reservedAs.map((name) => [name, own.find(({ requestId }) => requestId === name) ?? null] as const);
    return {
      ...ledger,
      reservations: ledger.reservations
        .with(reservations.map((id) => [id, byId(id)]))
        .with(named.flatMap(([, each]) => (each === null ? [] : [[each.reservationId, each]]))),
      reservedAs: ledger.reservedAs.with(named.map(([name, each]) => [name, each?.reservationId ?? null])),
    };
  }

  private withOpenReservations(ledger: Ledger, key: LaneKey): Ledger {
    const open = this.reservations.filter(({ lane, state }) => state === "RESERVED" && laneKey(lane) === key);
    const nonces = open.map(({ nonce, reservationId }) => [nonce, reservationId] as const);
    return {
      ...ledger,
      reservations: ledger.reservations.with(open.map((each) => [each.reservationId, each])),
      reserved: ledger.reserved.covering(ALL, nonces),
    };
  }

  private withNonces(ledger: Ledger, key: LaneKey, needs: Needs): Ledger {
    const own = <Row extends Lane>(rows: readonly Row[] = []) => rows.filter((row) => laneKey(row) === key);
    const { found } = this;
    let loaded = ledger;
    if (needs.holes) {
      const holes = own(found.holes).map((row) => [row.nonce, holeOf(row)] as const);
      loaded = { ...loaded, holes: loaded.holes.covering(ALL, holes) };
    }
    if (needs.fixed) {
      const fixed = own(found.fixed).map(({ nonce, txId }) => [nonce, txId] as const);
      loaded = { ...loaded, fixed: loaded.fixed.covering(ALL, fixed) };
    }
    if (needs.epochFloor) loaded = { ...loaded, epochFloor: own(found.epochFloors)[0]?.floor ?? 0 };
    if (needs.repairs) loaded = { ...loaded, repairs: own(found.repairs).map(({ repairedAt }) => repairedAt) };
    if (needs.nonces !== undefined) {
      const holders = new Map(own(found.heldNonces).map((row) => [row.nonce, row.txId]));
      const nonces = needs.nonces.map((nonce) => [nonce, holders.get(nonce) ?? null] as const);
      loaded = { ...loaded, nonces: loaded.nonces.with(nonces) };
    }
    if (needs.orders?.length) {
      const kept = new Map(own(found.orders).map((row) => [orderKeyOf(row), row.fingerprint]));
      const orders = needs.orders.map(orderKeyOf).map((each) => [each, kept.get(each) ?? null] as const);
      loaded = { ...loaded, orders: loaded.orders.with(orders) };
    }
    return loaded;
  }

  private withLimits(ledger: Ledger, key: LaneKey, { charged }: NonNullable<Needs["limits"]>): Ledger {
    const { guard } = ledger;
    const row = this.found.laneUse?.find((each) => laneKey(each) === key);
    if (guard === null || row === undefined) return ledger;
    const counted = charged.map((txId) => [txId, (this.charges.get(txId) ?? []).map(chargeOf)] as const);
    return { ...ledger, guard: { ...guard, use: useOf(row), charges: guard.charges.with(counted) } };
  }

  /** What keys have used on a chain, of those that were asked for; others are asked about by no write. */
  keyUse(chainId: number): Guard["keyUse"] {
    const rows = (this.found.keyUse ?? []).filter((row) => row.chainId === chainId);
    const used = rows.map((row) => [row.owner, useOf(row)] as const);
    return Part.of("use of key", ALL, used);
  }

  /**
   * Above the highest nonce that may have left, be it a transaction's or a caller's, there is nothing of either. Below it the
   * cursor does not go, also where what stood there leaves in the same commit: the next realign lowers it then.
   */
  private withBoundNonce(ledger: Ledger, key: LaneKey): Ledger {
    const endedThrough = this.found.bound?.find((row) => laneKey(row) === key)?.nonce ?? null;
    const above = { kind: "from", key: (endedThrough ?? -1) + 1 } as const;
    const { nonces, reserved } = ledger;
    return {
      ...ledger,
      endedThrough,
      nonces: nonces.covering(above, []),
      reserved: reserved.cover.kind === "all" ? reserved : reserved.covering(above, []),
    };
  }
}
