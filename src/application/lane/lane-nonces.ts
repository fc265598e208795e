import { type Hole, isFree } from "../../domain/holes.ts";
import type { OpenReservation } from "../../ports/lane-store.ts";

interface Reserved {
  readonly nonce: number;
  /** What was left of it when this term learned of it; the database alone says whether it is past. */
  readonly leftMs: number;
  /** Monotonic: when it is worth asking. Null: nobody has looked yet. */
  readonly dueMs: number | null;
}

/** At most this many free nonces are offered to one batch. */
const OFFERED = 200;

/** A nonce that the database did not yet call past is asked about again after this long: two clocks are never one. */
const ASK_AGAIN_MS = 250;

/** The nonces of a lane that no transaction holds: kept for a caller, or held by nothing. As its owner remembers them. */
export class LaneNonces {
  private readonly byNonce: Map<number, Hole>;
  private readonly open: Map<string, Reserved>;

  constructor(holes: readonly Hole[], reservations: readonly OpenReservation[]) {
    this.byNonce = new Map(holes.map((hole) => [hole.nonce, hole]));
    this.open = new Map(
      reservations.map(({ reservationId, nonce, leftMs }) => [reservationId, { nonce, leftMs, dueMs: null }]),
    );
  }

  /** Whether every nonce that was given is held by something. */
  get isWhole(): boolean {
    return this.byNonce.size === 0;
  }

  /** Ascending. */
  get holes(): readonly Hole[] {
    return [...this.byNonce.values()].sort((a, b) => a.nonce - b.nonce);
  }

  /** How many nonces are kept for callers. */
  get reserved(): number {
    return this.open.size;
  }

  /** Free for the next transaction, lowest first, and not below what the chain may have passed. */
  free(lowest: number): readonly number[] {
    if (this.byNonce.size === 0) return [];
    const fitting = this.holes.filter((hole) => isFree(hole) && hole.nonce >= lowest);
    return fitting.slice(0, OFFERED).map(({ nonce }) => nonce);
  }

  lowestReserved(): number | null {
    let lowest: number | null = null;
    for (const { nonce } of this.open.values()) if (lowest === null || nonce < lowest) lowest = nonce;
    return lowest;
  }

  /** Whether it is kept for a caller, or known to be a hole. */
  holds(nonce: number): boolean {
    if (this.byNonce.has(nonce)) return true;
    for (const each of this.open.values()) if (each.nonce === nonce) return true;
    return false;
  }

  hasHoleBelow(nonce: number): boolean {
    for (const hole of this.byNonce.keys()) if (hole < nonce) return true;
    return false;
  }

  take(nonce: number): void {
    this.byNonce.delete(nonce);
  }

  leave(hole: Hole): void {
    this.byNonce.set(hole.nonce, hole);
  }

  reserve(reservationId: string, nonce: number, leftMs: number): void {
    this.open.set(reservationId, { nonce, leftMs, dueMs: null });
  }

  settle(reservationId: string): void {
    this.open.delete(reservationId);
  }

  /** Whether some reservation may be past by now. The first look at one starts its clock. */
  isDue(nowMs: number): boolean {
    if (this.open.size === 0) return false;
    let due = false;
    for (const [id, each] of this.open) {
      const dueMs = each.dueMs ?? nowMs + Math.max(0, each.leftMs);
      if (each.dueMs === null) this.open.set(id, { ...each, dueMs });
      due ||= dueMs <= nowMs;
    }
    return due;
  }

  /** The database was asked: these are holes now, and the others that seemed past have a little longer. */
  expired(holes: readonly Hole[], nowMs: number): void {
    for (const hole of holes) {
      this.leave(hole);
      if (hole.reservationId !== null) this.settle(hole.reservationId);
    }
    for (const [id, each] of this.open) {
      if (each.dueMs !== null && each.dueMs <= nowMs) this.open.set(id, { ...each, dueMs: nowMs + ASK_AGAIN_MS });
    }
  }
}
