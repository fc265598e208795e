import type { CreatedTransaction } from "../contract/create.ts";
import type { NonceReservation, ReserveNonce } from "../contract/nonces.ts";

const NEVER_SENT = Symbol("never sent");

/** What became of a reserved nonce: bytes to hand in, the hash of what was sent, or `neverSent()`. */
export type NonceUse = { readonly rawTransaction: string } | { readonly txHash: string } | typeof NEVER_SENT;

/** The caller's word that nothing was signed with the nonce, so that the next transaction may have it. */
export function neverSent(): NonceUse {
  return NEVER_SENT;
}

export interface NonceCalls {
  reserveNonce(lane: ReserveNonce): Promise<Pick<NonceReservation, "reservationId" | "nonce">>;
  submitReserved(reservationId: string, rawTransaction: string): Promise<CreatedTransaction>;
  markUsed(reservationId: string, txHash: string): Promise<CreatedTransaction>;
  releaseNonce(reservationId: string): Promise<unknown>;
}

export type UsesNonce = (reserved: { readonly nonce: number; readonly reservationId: string }) => Promise<NonceUse>;

/**
 * Reserves a nonce, lets the callback use it, and reports what it did. A callback that throws releases nothing: it may
 * have signed and even sent, so time to live and the lane's policy decide. Null where nothing was sent.
 */
export async function withNonce(calls: NonceCalls, lane: ReserveNonce, callback: UsesNonce) {
  const { reservationId, nonce } = await calls.reserveNonce(lane);
  const use = await callback({ nonce, reservationId });
  if (typeof use === "object" && "rawTransaction" in use)
    return calls.submitReserved(reservationId, use.rawTransaction);
  if (typeof use === "object" && "txHash" in use) return calls.markUsed(reservationId, use.txHash);
  if (use !== NEVER_SENT) throw new TypeError("withNonce: return { rawTransaction }, { txHash } or neverSent()");
  await calls.releaseNonce(reservationId);
  return null;
}
