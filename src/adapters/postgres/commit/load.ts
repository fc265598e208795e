/**
 * Between the two halves of a commit: from the rows that were found to a part of each lane's ledger. Loaded is what the
 * writes are about (needs.ts), and nothing else: what was looked for and not found is known to be missing, whatever was
 * not looked for is not known (domain/ledger/part.ts).
 */

import { grouped } from "../../../domain/grouped.ts";
import { type LaneKey, laneKey } from "../../../domain/lane.ts";
import {
  bareLedger,
  type Ledger,
  type LedgerAttempt,
  type LedgerTransaction,
  type WaitingIntent,
  type Watched,
} from "../../../domain/ledger/index.ts";
import type { Reservation } from "../../../domain/reservations.ts";
import type { State, SubState, TransitionEvent } from "../../../domain/transitions.ts";
import { laneOf, prefixed } from "../columns.ts";
import { attemptOf, existingOf, groupByTransaction, holeOf, reservationOf } from "../rows.ts";
import type { AttemptRow } from "../statements/attempt.ts";
import type { IntakeRow } from "../statements/intake.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { CurrentRow, UnwatchableRow } from "../statements/transaction.ts";
import type { Found } from "./lookup.ts";
import type { Needs } from "./needs.ts";

export class Loader {
  readonly transactions: ReadonlyMap<string, CurrentRow>;
  readonly intake: ReadonlyMap<number, IntakeRow>;
  /** What is past its watch, by lane: a page of it at most (`UNWATCH_PAGE`). The rest is left to a commit of its own. */
  readonly unwatchable: ReadonlyMap<LaneKey, readonly UnwatchableRow[]>;
  private readonly found: Found;
  private readonly epoch: number;
  private readonly requests: ReadonlyMap<string, Found["requests"][number]>;
  private readonly attempts: ReadonlyMap<string, Found["attempts"]>;
  private readonly reservations: readonly Reservation[];

  /** `epoch`: of the feed, as the transaction found it. */
  constructor(found: Found, epoch: number) {
    this.found = found;
    this.epoch = epoch;
    this.transactions = new Map(found.transactions.map((row) => [row.tx_id, row]));
    this.intake = new Map(found.intake.map((row) => [row.intake_id, row]));
    this.unwatchable = grouped(found.unwatchable, keyOf);
    this.requests = new Map(found.requests.map((row) => [`${keyOf(row)}:${row.request_id}`, row]));
    this.attempts = groupByTransaction(found.attempts);
    const open = found.openReservations.map((row) => ({ ...row, state: "RESERVED", tx_id: null }));
    this.reservations = [...open, ...found.reservations].map(reservationOf);
  }

  /** A lane's own row. */
  bare(row: LockedLaneRow): Ledger {
    const { next_nonce: cursor, suspended_by: suspendedBy, reconciled_epoch } = row;
    return bareLedger(laneOf(row), { cursor, suspendedBy, reconciled: reconciled_epoch >= this.epoch });
  }

  /** The ledger with what a write of this commit needs. Loaded for all of them before the first is judged. */
  load(ledger: Ledger, needs: Needs): Ledger {
    const key = laneKey(ledger.lane);
    const { watchedThrough, mayHaveLost, nonces, reservations, reservedAs, holes, openReservations, boundNonce } =
      needs;
    let loaded = this.withRows(ledger, key, needs);
    if (watchedThrough !== null) loaded = this.withWatched(loaded, key, watchedThrough);
    if (mayHaveLost) loaded = { ...loaded, mayHaveLost: this.found.history[0]?.may_have_lost ?? false };
    if (reservations.length + reservedAs.length > 0) loaded = this.withReservations(loaded, key, needs);
    if (openReservations) loaded = this.withOpenReservations(loaded, key);
    if (holes) loaded = this.withHoles(loaded, key);
    if (nonces.length > 0) loaded = this.withNonces(loaded, key, nonces);
    return boundNonce ? this.withBoundNonce(loaded, key) : loaded;
  }

  private withRows(ledger: Ledger, key: LaneKey, { transactions, requests, intake }: Needs): Ledger {
    return {
      ...ledger,
      transactions: ledger.transactions.with(transactions.map((id) => [id, this.transaction(key, id)])),
      requests: ledger.requests.with(requests.map((id) => [id, this.owner(key, id)])),
      intake: ledger.intake.with(intake.map((id) => [id, this.waiting(key, id)])),
    };
  }

  private transaction(key: LaneKey, txId: string): LedgerTransaction | null {
    const row = this.transactions.get(txId);
    if (row === undefined || keyOf(row) !== key) return null;
    return {
      txId,
      requestId: row.request_id,
      nonce: row.nonce,
      live: row.live,
      state: row.state as State,
      subState: row.sub_state as SubState | null,
      lastEvent: row.last_event as TransitionEvent,
      steps: row.history_count,
      attemptCount: row.attempt_count,
      acceptedOrdinal: row.accepted_ordinal,
      minedIn: this.found.watching.has(txId) ? row.block_number : undefined,
      fingerprint: row.fingerprint === "" ? undefined : prefixed(row.fingerprint),
      attempts: this.found.naming.has(txId) ? (this.attempts.get(txId) ?? []).map(ledgerAttempt) : undefined,
      details: undefined,
    };
  }

  private owner(key: LaneKey, requestId: string) {
    const row = this.requests.get(`${key}:${requestId}`);
    return row === undefined ? null : existingOf(row);
  }

  private waiting(key: LaneKey, intakeId: number): WaitingIntent | null {
    const row = this.intake.get(intakeId);
    if (row === undefined || row.alias_of !== null || keyOf(row) !== key) return null;
    const { tx_id: txId, request_id: requestId, created_at: acceptedAt } = row;
    return { intakeId, txId, requestId, fingerprint: prefixed(row.fingerprint), acceptedAt };
  }

  private withWatched(ledger: Ledger, key: LaneKey, through: number): Ledger {
    const { cover } = ledger.watched;
    const known = cover.kind === "through" ? Math.max(cover.key, through) : through;
    const blocks = grouped(this.unwatchable.get(key) ?? [], (row) => row.block_number);
    const rows = [...blocks].map(([block, all]) => [block, all.map(watchedOf)] as const);
    return { ...ledger, watched: ledger.watched.covering({ kind: "through", key: known }, rows) };
  }

  private withReservations(ledger: Ledger, key: LaneKey, { reservations, reservedAs }: Needs): Ledger {
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
    return {
      ...ledger,
      reservations: ledger.reservations.with(open.map((each) => [each.reservationId, each])),
      reserved: ledger.reserved.covering(
        { kind: "all" },
        open.map((each) => [each.nonce, each.reservationId]),
      ),
    };
  }

  private withHoles(ledger: Ledger, key: LaneKey): Ledger {
    const rows = this.found.holes.filter((row) => keyOf(row) === key);
    return {
      ...ledger,
      holes: ledger.holes.covering(
        { kind: "all" },
        rows.map((row) => [row.nonce, holeOf(row)]),
      ),
    };
  }

  private withNonces(ledger: Ledger, key: LaneKey, nonces: readonly number[]): Ledger {
    const own = this.found.heldNonces.filter((row) => keyOf(row) === key);
    const holders = new Map(own.map((row) => [row.nonce, row.tx_id]));
    return { ...ledger, nonces: ledger.nonces.with(nonces.map((nonce) => [nonce, holders.get(nonce) ?? null])) };
  }

  /**
   * Above the highest nonce that may have left, be it a transaction's or a caller's, there is nothing of either. Below it the
   * cursor does not go, also where what stood there leaves in the same commit: the next realign lowers it then.
   */
  private withBoundNonce(ledger: Ledger, key: LaneKey): Ledger {
    const endedThrough = this.found.bound.find((row) => keyOf(row) === key)?.nonce ?? null;
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

function keyOf(row: Parameters<typeof laneOf>[0]): LaneKey {
  return laneKey(laneOf(row));
}

function ledgerAttempt(row: AttemptRow): LedgerAttempt {
  return { ...attemptOf(row), firstSentAt: row.first_sent_at };
}

function watchedOf({ tx_id: txId, nonce, state }: UnwatchableRow): Watched {
  return { txId, nonce, state: state as State };
}
