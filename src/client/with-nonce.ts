import type { NonceReservation, ReserveNonce } from "../contract/calls/nonces.ts";
import type { CreatedTransaction } from "../contract/schemas/create.ts";
import type { CallOptions } from "./deadline.ts";

const NEVER_SENT = Symbol("never sent");

/** Outcome of a reserved nonce: bytes to submit, the hash of what was sent, or `neverSent()`. */
export type NonceUse = { readonly rawTransaction: string } | { readonly txHash: string } | typeof NEVER_SENT;

/** The caller's word that nothing was signed with the nonce, so that the next transaction may have it. */
export function neverSent(): NonceUse {
  return NEVER_SENT;
}

export type UsesNonce = (reserved: { readonly nonce: number; readonly reservationId: string }) => Promise<NonceUse>;

export interface NonceCalls {
  /** Keeps a nonce for you to sign with. Without a requestId it gets a UUID as one. */
  reserveNonce(lane: ReserveNonce, options?: CallOptions): Promise<NonceReservation>;
  reservation(reservationId: string, options?: CallOptions): Promise<NonceReservation>;
  submitReserved(reservationId: string, rawTransaction: string, options?: CallOptions): Promise<CreatedTransaction>;
  markUsed(reservationId: string, txHash: string, options?: CallOptions): Promise<CreatedTransaction>;
  /** Only if nothing was signed with it. */
  releaseNonce(reservationId: string, options?: CallOptions): Promise<NonceReservation>;
  /**
   * Reserves a nonce, lets the callback use it, and reports its outcome. The callback returns `{ rawTransaction }`, `{
   * txHash }` or `neverSent()`; if it throws, nothing is released. Null if nothing was sent.
   */
  withNonce(lane: ReserveNonce, callback: UsesNonce): Promise<CreatedTransaction | null>;
}

export const NONCE_PATHS = {
  reserveNonce: { at: "post /nonces", expects: "nonce", named: true },
  reservation: { at: "get /nonces/{reservationId}" },
  // Twice is CONFLICT: after silence the caller looks at the reservation.
  submitReserved: { at: "post /nonces/{reservationId}/submit", body: "rawTransaction", once: true },
  markUsed: { at: "post /nonces/{reservationId}/used", body: "txHash", once: true },
  releaseNonce: { at: "post /nonces/{reservationId}/release", body: "none", once: true },
} as const;

/** A callback that throws releases nothing: it may have signed and even sent, so time to live and the lane's policy decide. */
export async function withNonce(calls: Omit<NonceCalls, "withNonce">, lane: ReserveNonce, callback: UsesNonce) {
  const { reservationId, nonce } = await calls.reserveNonce(lane);
  const use = await callback({ nonce, reservationId });
  if (typeof use === "object" && "rawTransaction" in use)
    return calls.submitReserved(reservationId, use.rawTransaction);
  if (typeof use === "object" && "txHash" in use) return calls.markUsed(reservationId, use.txHash);
  if (use !== NEVER_SENT) throw new TypeError("withNonce: return { rawTransaction }, { txHash } or neverSent()");
  await calls.releaseNonce(reservationId);
  return null;
}
