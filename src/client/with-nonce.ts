import type { NonceReservation, ReserveNonce } from "../contract/calls/nonces.ts";
import type { CreatedTransaction } from "../contract/schemas/create.ts";
import type { CallOptions } from "./deadline.ts";
import { invalidArgument } from "./error-classes.ts";
import type { Hash, Hex } from "./hex.ts";

const NEVER_SENT = Symbol("never sent");

/** How a reserved nonce was used: bytes to submit, the hash of a transaction that was sent, or `neverSent()`. */
export type NonceUse = { readonly rawTransaction: Hex } | { readonly txHash: Hash } | typeof NEVER_SENT;

/**
 * The caller declares that nothing was signed with the nonce, so that the next transaction may use it.
 *
 * @example
 * await fencepost.withNonce({ signer }, async ({ nonce }) => (await isNeeded(nonce) ? sign(nonce) : neverSent()));
 */
export function neverSent(): NonceUse {
  return NEVER_SENT;
}

export type UsesNonce = (reserved: { readonly nonce: number; readonly reservationId: string }) => Promise<NonceUse>;

export interface NonceCalls {
  /** Reserves a nonce for you to sign with. Without a requestId it gets a UUID as one. */
  reserveNonce(lane: ReserveNonce, options?: CallOptions): Promise<NonceReservation>;
  /** Reads a reservation. */
  reservation(reservationId: string, options?: CallOptions): Promise<NonceReservation>;
  /** Submits a transaction that you signed with a reserved nonce: it is stored, sent and followed. */
  submitReserved(reservationId: string, rawTransaction: Hex, options?: CallOptions): Promise<CreatedTransaction>;
  /** Reports a transaction that you sent yourself with a reserved nonce: it is followed by its hash. */
  markUsed(reservationId: string, txHash: Hash, options?: CallOptions): Promise<CreatedTransaction>;
  /** Releases a reserved nonce. Call this only if nothing was signed with it. */
  releaseNonce(reservationId: string, options?: CallOptions): Promise<NonceReservation>;
  /**
   * Reserves a nonce, runs the callback with it, and reports how it was used. The callback returns `{ rawTransaction
   * }`, `{ txHash }` or `neverSent()`; if it throws, nothing is released. Returns null if nothing was sent.
   */
  withNonce(lane: ReserveNonce, callback: UsesNonce): Promise<CreatedTransaction | null>;
}

export const NONCE_PATHS = {
  reserveNonce: { at: "post /nonces", expects: "nonce", named: true },
  reservation: { at: "get /nonces/{reservationId}" },
  // This call is not repeated, because a second call is a CONFLICT. If there was no answer, the caller reads the
  // reservation.
  submitReserved: { at: "post /nonces/{reservationId}/submit", body: "rawTransaction", once: true },
  markUsed: { at: "post /nonces/{reservationId}/used", body: "txHash", once: true },
  releaseNonce: { at: "post /nonces/{reservationId}/release", body: "none", once: true },
} as const;

/**
 * If the callback throws, the nonce is not released: the callback may have signed and even sent. Once the reservation
 * expires, the lane's policy decides.
 */
export async function withNonce(calls: Omit<NonceCalls, "withNonce">, lane: ReserveNonce, callback: UsesNonce) {
  const { reservationId, nonce } = await calls.reserveNonce(lane);
  const use = await callback({ nonce, reservationId });
  if (typeof use === "object" && "rawTransaction" in use)
    return calls.submitReserved(reservationId, use.rawTransaction);
  if (typeof use === "object" && "txHash" in use) return calls.markUsed(reservationId, use.txHash);
  if (use !== NEVER_SENT) throw invalidArgument("callback", "must return rawTransaction, txHash or neverSent()");
  await calls.releaseNonce(reservationId);
  return null;
}
