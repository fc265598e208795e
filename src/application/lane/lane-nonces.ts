import type { KeptLedger } from "../../domain/ledger/index.ts";
import { type Hole, isFree } from "../../domain/nonces/holes.ts";
import { LONGEST_TTL_MS } from "../../domain/transaction/reservations.ts";
import type { OpenReservation } from "../../ports/lane-store.ts";

/** When a reservation is past, by the clock of this process; the database alone says whether it is. */
interface Expiry {
  /** Remaining time of the reservation when this term learned of it. */
  readonly leftMs: number;
  /** Monotonic: when it is worth asking. Null: no look has come yet. */
  readonly dueMs: number | null;
}

/** Free nonces that are offered to one batch, at most. */
const OFFERED = 200;

/** A nonce that the database did not yet call past is asked about again after this long: two clocks are never one. */
const ASK_AGAIN_MS = 250;

/** The nonces of a lane that no transaction holds, kept for a caller or held by nothing: as the ledger has them. */
export class LaneNonces {
  private readonly ledger;
  /** Comparisons of the cursor with the chain that are under way, by the failures of batches before them. */
  readonly comparing = new Map<number, Promise<number | null>>();
  /** Reservations by nonce. */
  private readonly expiries: Map<number, Expiry>;

  constructor(ledger: () => KeptLedger, reservations: readonly OpenReservation[]) {
    this.ledger = ledger;
    this.expiries = new Map(reservations.map(({ nonce, leftMs }) => [nonce, { leftMs, dueMs: null }]));
  }

  /** True if there is no hole: every nonce that was given out has a holder. */
  get isWhole(): boolean {
    return this.ledger().holes.size === 0;
  }

  /** Ascending. */
  get holes(): readonly Hole[] {
    return this.ledger()
      .holes.every()
      .map(([, hole]) => hole);
  }

  /** How many nonces are kept for callers. */
  get reserved(): number {
    return this.ledger().reserved.size;
  }

  /** Free for the next transaction, lowest first, and not below what the chain may have passed. */
  free(lowest: number): readonly number[] {
    if (this.isWhole) return [];
    const fitting = this.holes.filter((hole) => isFree(hole) && hole.nonce >= lowest);
    return fitting.slice(0, OFFERED).map(({ nonce }) => nonce);
  }

  lowestReserved(): number | null {
    for (const [nonce] of this.ledger().reserved.known()) return nonce;
    return null;
  }

  /** True if the nonce is reserved, or known to be a hole. */
  holds(nonce: number): boolean {
    const { holes, reserved } = this.ledger();
    return holes.get(nonce) !== null || reserved.get(nonce) !== null;
  }

  hasHoleBelow(nonce: number): boolean {
    if (this.isWhole) return false;
    const [lowest] = this.holes;
    return lowest !== undefined && lowest.nonce < nonce;
  }

  /** How long a nonce is kept for a caller, from now on. */
  keptFor(nonce: number, leftMs: number): void {
    this.expiries.set(nonce, { leftMs, dueMs: null });
  }

  /** True if some reservation may have expired. The first check of a reservation starts its clock. */
  isDue(nowMs: number): boolean {
    if (this.reserved === 0) return false;
    let due = false;
    for (const [nonce] of this.ledger().reserved.known()) {
      const { leftMs, dueMs } = this.expiries.get(nonce) ?? { leftMs: 0, dueMs: null };
      // More time may be left than a reservation lasts if the database's clock was set back.
      const atMs = dueMs ?? nowMs + Math.min(Math.max(0, leftMs), LONGEST_TTL_MS);
      if (dueMs === null) this.expiries.set(nonce, { leftMs, dueMs: atMs });
      due ||= atMs <= nowMs;
    }
    return due;
  }

  /** The database was asked: those that seemed past, and are reserved still, have a little longer. */
  askedAt(nowMs: number): void {
    const { reserved } = this.ledger();
    for (const [nonce, { leftMs, dueMs }] of this.expiries) {
      if (reserved.get(nonce) === null) this.expiries.delete(nonce);
      else if (dueMs !== null && dueMs <= nowMs) this.expiries.set(nonce, { leftMs, dueMs: nowMs + ASK_AGAIN_MS });
    }
  }
}
