/**
 * Converts the rows that a commit has read to each lane's ledger, before the writes are decided. The ledger is partial:
 * only the rows that the writes concern (needs.ts) are loaded. A row that was looked up and not found is known to be
 * missing. About any other row the ledger knows nothing (domain/ledger/part.ts).
 */

import { grouped } from "../../../domain/grouped.ts";
import { type Lane, type LaneKey, laneKey } from "../../../domain/lane.ts";
import {
  actionKeyOf,
  bareLedger,
  begunTransaction,
  type Guard,
  type Ledger,
  type LedgerTransaction,
  nothingUsed,
  Part,
  type WaitingIntent,
} from "../../../domain/ledger/index.ts";
import { poolKey } from "../../../domain/nonces/pool.ts";
import type { Policies } from "../../../domain/policy/policy.ts";
import { laneOf, withLane } from "../rows/columns.ts";
import type { LockedLaneRow } from "../statements/lane.ts";
import type { UnwatchableRow } from "../statements/transaction.ts";
import type { Found } from "./lookup.ts";
import type { Needs } from "./needs.ts";
import { chargeOf, groupByTransaction, holeOf, ledgerAttempt, reservationOf, useOf } from "./rows.ts";
import { messageUseOf, signatureOf } from "./signature-rows.ts";
import { inLane, inMessages, inPool, requestOf, spentIn } from "./spent-requests.ts";

const ALL = { kind: "all" } as const;

/** Key of a pool's request id, with the chain. */
function chainPoolKey(chainId: number, pool: string, requestId: string | null) {
  return `${chainId}:${poolKey(pool, requestId ?? "")}`;
}

function indexed(found: Found) {
  const { transactions = [], intake = [], unwatchable = [], requests = [], awaited = [], attempts = [] } = found;
  const { openReservations = [], reservations = [], pooled = [], charges = [] } = found;
  return {
    transactions: new Map(transactions.map((row) => [row.txId, row])),
    intake: new Map(intake.map((row) => [row.intakeId, row])),
    /**
     * Settled transactions whose watch for reorgs may end in this commit, by lane; at most one page (`UNWATCH_PAGE`).
     * The rest is left to a later commit.
     */
    unwatchable: grouped(unwatchable, laneKey),
    // If a transaction and an intent that waits for approval have the same request id, the transaction takes
    // precedence. This happens if a node without policies has allocated a nonce to the request.
    requests: new Map([...awaited, ...requests].map((row) => [`${laneKey(row)}:${row.requestId}`, row])),
    awaited: new Map(awaited.map((row) => [row.txId, row])),
    pooled: new Map(pooled.map(({ pool, ...row }) => [chainPoolKey(row.chainId, pool, row.requestId), withLane(row)])),
    spent: spentIn(found.spent),
    attempts: groupByTransaction(attempts),
    charges: groupByTransaction(charges),
    reservations: [...openReservations, ...reservations].map(reservationOf),
  };
}

export class Loader {
  readonly rows: ReturnType<typeof indexed>;
  private readonly found: Found;
  private readonly epoch: number;
  private readonly unguarded: Guard | null;

  /** `epoch`: the feed's epoch, as read by this commit, or as remembered if the commit is made in one round trip. */
  constructor(found: Found, epoch: number, policies: Policies | null) {
    this.found = found;
    this.epoch = epoch;
    this.unguarded = policies === null ? null : nothingUsed(policies);
    this.rows = indexed(found);
  }

  /** Ledger with the data of the lane's own row only. */
  bare(row: LockedLaneRow): Ledger {
    const { nextNonce: cursor, suspendedBy, reconciledEpoch, departedBelow } = row;
    const reconciled = reconciledEpoch >= this.epoch;
    return bareLedger(laneOf(row), { cursor, suspendedBy, departedBelow, reconciled, guard: this.unguarded });
  }

  /**
   * Adds to the ledger the rows that a write of this commit needs. Done for all writes before the first write is
   * decided.
   */
  load(ledger: Ledger, needs: Needs): Ledger {
    const key = laneKey(ledger.lane);
    const { watchedThrough, reservations, reservedAs } = needs;
    let loaded = this.withRows(ledger, key, needs);
    if (watchedThrough !== undefined) loaded = this.withWatched(loaded, key, watchedThrough);
    if (needs.mayHaveLost) loaded = { ...loaded, mayHaveLost: this.found.history?.[0]?.mayHaveLost ?? false };
    if (reservations !== undefined || reservedAs !== undefined) loaded = this.withReservations(loaded, key, needs);
    if (needs.openReservations) loaded = this.withOpenReservations(loaded, key);
    loaded = this.withMessages(this.withNonces(loaded, key, needs), key, needs);
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
          this.rows.pooled.get(chainPoolKey(chainId, each.pool, each.requestId)) ??
            this.rows.spent(inPool({ chainId, ...each })),
        ]),
      ),
      transactions: ledger.transactions.with(transactions.map((id) => [id, this.transaction(key, id)])),
      requests: ledger.requests.with(requests.map((id) => [id, this.owner(ledger.lane, id)])),
      intake: ledger.intake.with(intake.map((id) => [id, this.waiting(key, id)])),
    };
  }

  private transaction(key: LaneKey, txId: string): LedgerTransaction | null {
    const row = this.rows.transactions.get(txId);
    if (row === undefined) return this.awaiting(key, txId);
    if (laneKey(row) !== key) return null;
    // Build the object as one literal: spreading the row took a hundred times as long, for each transaction of each
    // commit.
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
      attempts: this.found.naming?.has(txId) ? (this.rows.attempts.get(txId) ?? []).map(ledgerAttempt) : undefined,
      details: undefined,
    };
  }

  private awaiting(key: LaneKey, txId: string): LedgerTransaction | null {
    const row = this.rows.awaited.get(txId);
    if (row === undefined || laneKey(row) !== key) return null;
    return { ...begunTransaction(row, "await", { steps: 2, details: undefined }), attempts: undefined };
  }

  private owner(lane: Lane, requestId: string) {
    const row = this.rows.requests.get(`${laneKey(lane)}:${requestId}`);
    return row === undefined ? this.rows.spent(inLane(requestOf(lane, requestId))) : withLane(row);
  }

  private waiting(key: LaneKey, intakeId: number): WaitingIntent | null {
    const row = this.rows.intake.get(intakeId);
    if (row === undefined || row.aliasOf !== null || laneKey(row) !== key) return null;
    const { txId, requestId, owner, fingerprint, createdAt: acceptedAt, awaits, expiresAt, approved, unanswered } = row;
    const approval = awaits === null || expiresAt === null ? null : { rule: awaits, expiresAt, approved };
    const known = { intakeId, txId, requestId, owner, fingerprint, acceptedAt, approval, holds: row.holds, unanswered };
    return { ...known, ...(row.validUntil && { validUntil: row.validUntil }), ...(row.held && { held: true }) };
  }

  private withWatched(ledger: Ledger, key: LaneKey, through: number): Ledger {
    const { cover } = ledger.watched;
    const known = cover.kind === "through" ? Math.max(cover.key, through) : through;
    const blocks = grouped(this.rows.unwatchable.get(key) ?? [], (row) => row.blockNumber);
    const watched = ({ txId, nonce, state }: UnwatchableRow) => ({ txId, nonce, state });
    const rows = [...blocks].map(([block, all]) => [block, all.map(watched)] as const);
    return { ...ledger, watched: ledger.watched.covering({ kind: "through", key: known }, rows) };
  }

  private withReservations(ledger: Ledger, key: LaneKey, { reservations = [], reservedAs = [] }: Needs): Ledger {
    const own = this.rows.reservations.filter(({ lane }) => laneKey(lane) === key);
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
    const open = this.rows.reservations.filter(({ lane, state }) => state === "RESERVED" && laneKey(lane) === key);
    const nonces = open.map(({ nonce, reservationId }) => [nonce, reservationId] as const);
    return {
      ...ledger,
      reservations: ledger.reservations.with(open.map((each) => [each.reservationId, each])),
      reserved: ledger.reserved.covering(ALL, nonces),
    };
  }

  private withNonces(ledger: Ledger, key: LaneKey, needs: Needs) {
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
    if (needs.actionKeys?.length) {
      const kept = new Map(own(found.actionKeys).map((row) => [actionKeyOf(row), row.fingerprint]));
      const actionKeys = needs.actionKeys.map(actionKeyOf).map((each) => [each, kept.get(each) ?? null] as const);
      loaded = { ...loaded, actionKeys: loaded.actionKeys.with(actionKeys) };
    }
    return loaded;
  }

  private withMessages(ledger: Ledger, key: LaneKey, { messages, messageUse }: Needs): Ledger {
    if (messages === undefined && messageUse !== true) return ledger;
    const own = <Row extends Lane>(rows: readonly Row[] = []) => rows.filter((row) => laneKey(row) === key);
    const stored = new Map(own(this.found.messages).map((row) => [row.requestId, signatureOf(row)]));
    const spent = (requestId: string) => this.rows.spent(inMessages(requestOf(ledger.lane, requestId)));
    const used = own(this.found.messageUse).map((row) => [row.rule, messageUseOf(row)] as const);
    return {
      ...ledger,
      messages: ledger.messages.with((messages ?? []).map((id) => [id, stored.get(id) ?? spent(id)])),
      messageUse: ledger.messageUse.covering(ALL, used),
    };
  }

  private withLimits(ledger: Ledger, key: LaneKey, { charged }: NonNullable<Needs["limits"]>) {
    const { guard } = ledger;
    const row = this.found.laneUse?.find((each) => laneKey(each) === key);
    if (guard === null || row === undefined) return ledger;
    const counted = charged.map((txId) => [txId, (this.rows.charges.get(txId) ?? []).map(chargeOf)] as const);
    return { ...ledger, guard: { ...guard, use: useOf(row), charges: guard.charges.with(counted) } };
  }

  /** Used amounts of the API keys' limits on a chain. Only the keys that the writes concern were read. */
  keyUse(chainId: number): Guard["keyUse"] {
    const rows = (this.found.keyUse ?? []).filter((row) => row.chainId === chainId);
    const used = rows.map((row) => [row.owner, useOf(row)] as const);
    return Part.of("use of key", ALL, used);
  }

  /**
   * Adds to the ledger the highest nonce of any transaction (sent or not) or unreleased reservation. No nonce above it
   * is in use, and the lane's next nonce (its cursor) does not go below it. If the holder of that nonce gives it up in
   * this commit, the cursor is lowered only when it is next set from the chain.
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
