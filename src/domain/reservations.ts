import type { Lane } from "./lane.ts";

export const RESERVATION_STATES = ["RESERVED", "SUBMITTED", "USED", "RELEASED", "EXPIRED"] as const;
export type ReservationState = (typeof RESERVATION_STATES)[number];

/** A nonce kept for a caller that signs itself. Belongs to the lane, not to the node that gave it. */
export interface Reservation {
  readonly reservationId: string;
  readonly lane: Lane;
  readonly nonce: number;
  readonly requestId: string | null;
  /** The name of the API key that reserved it; null where no key was asked for, or none is known. */
  readonly owner: string | null;
  readonly state: ReservationState;
  /** By the database's clock. */
  readonly expiresAt: Date;
  readonly ttlMs: number;
  /** What stands at the nonce: the caller's transaction, or what closed the hole that an expiry left. */
  readonly txId: string | null;
}

const HOUR_MS = 3_600_000;

/** Windows are whole hours of UTC, by the database's clock: two owners of a lane count in the same one. */
export function inSameHour(one: Date, other: Date): boolean {
  return Math.floor(one.getTime() / HOUR_MS) === Math.floor(other.getTime() / HOUR_MS);
}

export const LONGEST_TTL_MS = 10 * 60_000;
