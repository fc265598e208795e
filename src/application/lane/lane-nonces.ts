import type { KeptLedger } from "../../domain/ledger/index.ts";
import { type Hole, isFree } from "../../domain/nonces/holes.ts";
import { LONGEST_TTL_MS } from "../../domain/transaction/reservations.ts";
import type { OpenReservation } from "../../ports/lane-store.ts";

/** When a reservation probably expires, by this process's clock. Only the database decides whether it has expired. */
interface Expiry {
  /**
   * Remaining time of the reservation in ms when this node learned of it: when it loaded the lane or reserved the
   * nonce.
   */
  readonly leftMs: number;
  /** Monotonic time at which to ask the database; null before the first check. */
  readonly dueMs: number | null;
}

/** Maximum number of free nonces that may be given to the transactions of one batch. */
const OFFERED = 200;

/**
 * A reservation may be expired by this process's clock but not yet by the database's. Pause in ms before asking the
 * database again.
 */
const ASK_AGAIN_MS = 250;

/**
 * The nonces of a lane that no transaction holds: those reserved for a caller, and holes. Read from the lane's ledger
 * in memory.
 */
export class LaneNonces {
  private readonly ledger;
  /**
   * Comparisons of the lane's next nonce with the chain's count that are under way. Key: the number of batches that had
   * failed when the comparison began.
   */
  readonly comparing = new Map<number, Promise<number | null>>();
  /** Expiry times of the lane's reservations, by nonce. */
  private readonly expiries: Map<number, Expiry>;

  constructor(ledger: () => KeptLedger, reservations: readonly OpenReservation[]) {
    this.ledger = ledger;
    this.expiries = new Map(reservations.map(({ nonce, leftMs }) => [nonce, { leftMs, dueMs: null }]));
  }

  /** True if the lane has no hole: every allocated nonce has a transaction or a reservation. */
  get isWhole(): boolean {
    return this.ledger().holes.size === 0;
  }

  /** Holes of the lane in ascending order. */
  get holes(): readonly Hole[] {
    return this.ledger()
      .holes.every()
      .map(([, hole]) => hole);
  }

  /** Number of nonces reserved for callers. */
  get reserved(): number {
    return this.ledger().reserved.size;
  }

  /**
   * Holes that the next transactions may use, lowest first. Nonces below `lowest` are left out, because the chain may
   * have used them.
   */
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

  /** Records how long a nonce stays reserved for a caller, from now on. */
  keptFor(nonce: number, leftMs: number): void {
    this.expiries.set(nonce, { leftMs, dueMs: null });
  }

  /** True if some reservation may have expired. The first check of a reservation starts its timer. */
  isDue(nowMs: number): boolean {
    if (this.reserved === 0) return false;
    let due = false;
    for (const [nonce] of this.ledger().reserved.known()) {
      const { leftMs, dueMs } = this.expiries.get(nonce) ?? { leftMs: 0, dueMs: null };
      // If the database's clock was set back, the remaining time may exceed the longest reservation: limit it.
      const atMs = dueMs ?? nowMs + Math.min(Math.max(0, leftMs), LONGEST_TTL_MS);
      if (dueMs === null) this.expiries.set(nonce, { leftMs, dueMs: atMs });
      due ||= atMs <= nowMs;
    }
    return due;
  }

  /**
   * Called after the database expired reservations: those that seemed expired but are still reserved are checked again
   * a little later.
   */
  askedAt(nowMs: number): void {
    const { reserved } = this.ledger();
    for (const [nonce, { leftMs, dueMs }] of this.expiries) {
      if (reserved.get(nonce) === null) this.expiries.delete(nonce);
      else if (dueMs !== null && dueMs <= nowMs) this.expiries.set(nonce, { leftMs, dueMs: nowMs + ASK_AGAIN_MS });
    }
  }
}
