import type { Lane } from "../lane.ts";

export const RESERVATION_STATES = ["RESERVED", "SUBMITTED", "USED", "RELEASED", "EXPIRED"] as const;
export type ReservationState = (typeof RESERVATION_STATES)[number];

/** A nonce reserved for a caller that signs transactions itself. The reservation belongs to the lane, not to a node. */
export interface Reservation {
  readonly reservationId: string;
  readonly lane: Lane;
  readonly nonce: number;
  readonly requestId: string | null;
  /** Name of the API key that made the reservation; null if no key was required, or none is known. */
  readonly owner: string | null;
  readonly state: ReservationState;
  /** Time at which the reservation expires, by the database's clock. */
  readonly expiresAt: Date;
  readonly ttlMs: number;
  /** Id of the transaction at the nonce: the caller's, or, after an expiry, the one that filled the nonce gap. */
  readonly txId: string | null;
}

export const LONGEST_TTL_MS = 10 * 60_000;
