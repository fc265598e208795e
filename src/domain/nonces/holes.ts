/**
 * A hole is a nonce gap: a nonce below the lane's next nonce with no transaction that may be mined and no open
 * reservation. Every transaction above it waits. This file has the causes of holes, and how never-signed transactions
 * move down into them.
 */

import type { Reservation } from "../transaction/reservations.ts";

export const HOLE_CAUSES = ["released", "givenUp", "shiftedDown", "expired"] as const;
export type HoleCause = (typeof HOLE_CAUSES)[number];

export interface Hole {
  readonly nonce: number;
  readonly why: HoleCause;
  /** Description of the cause of the nonce gap, for people. */
  readonly detail: string;
  readonly since: Date;
  /** Id of the reservation that left the nonce gap; null if none did. */
  readonly reservationId: string | null;
  /** For a nonce gap left by an expired reservation: the owner and the duration of the reservation. */
  readonly expired?: Pick<Reservation, "owner" | "ttlMs">;
}

/**
 * A nonce gap that the lane left by skipping a nonce. An endpoint had reported that another program had used the nonce,
 * but it is unused: the endpoint was wrong, or a reorg removed the other program's transaction. Fencepost never signed
 * anything for the nonce.
 */
export function skippedHole(nonce: number, since: Date): Hole {
  const detail = "the chain was said to have passed it, and has not";
  return { nonce, why: "givenUp", detail, since, reservationId: null };
}

/**
 * True if the nonce gap may be given to the next transaction. False for a gap left by an expired reservation, because
 * its caller may have signed for the nonce. Such a gap is closed by its own configured policy, and the transaction that
 * is mined there is reported.
 */
export function isFree({ why }: Pick<Hole, "why">): boolean {
  return why !== "expired";
}

/** A transaction that has a nonce of the lane. */
export interface Holder {
  readonly txId: string;
  readonly nonce: number;
  /**
   * True if the transaction may get another nonce: it was certainly never signed, and its caller did not choose its
   * nonce (ledger/may-move.ts).
   */
  readonly movable: boolean;
}

export interface NonceMove {
  readonly txId: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Moves every movable transaction to the lowest free nonce below it, all together and in order. No transaction moves
 * below one that cannot move, so none overtakes a transaction that may have been sent.
 */
export function planShiftDown(free: readonly number[], holders: readonly Holder[]): readonly NonceMove[] {
  const taken = holders.map((holder) => ({ nonce: holder.nonce, holder }));
  const steps = [...free.map((nonce) => ({ nonce, holder: null })), ...taken];
  const moves: NonceMove[] = [];
  let slots: number[] = [];
  for (const { nonce, holder } of steps.sort((a, b) => a.nonce - b.nonce)) {
    if (holder?.movable === false) slots = [];
    else if (holder === null) slots.push(nonce);
    else moveInto(slots, holder, moves);
  }
  return moves;
}

function moveInto(slots: number[], { txId, nonce }: Holder, moves: NonceMove[]) {
  const to = slots.shift();
  if (to === undefined) return;
  moves.push({ txId, from: nonce, to });
  slots.push(nonce);
}
