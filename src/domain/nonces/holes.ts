/**
 * A hole is a nonce below the lane's cursor with no transaction that may be mined and no open reservation. Everything
 * above it waits. This file has the causes of holes, and how never-signed transactions move down into them.
 */

import type { Reservation } from "../transaction/reservations.ts";

export const HOLE_CAUSES = ["released", "givenUp", "shiftedDown", "expired"] as const;
export type HoleCause = (typeof HOLE_CAUSES)[number];

export interface Hole {
  readonly nonce: number;
  readonly why: HoleCause;
  /** Text for people. */
  readonly detail: string;
  readonly since: Date;
  /** Whose reservation left the hole. */
  readonly reservationId: string | null;
  /** For an expired reservation: its owner, and how long it lasted. */
  readonly expired?: Pick<Reservation, "owner" | "ttlMs">;
}

/**
 * An endpoint reported that another program had used this nonce, and the lane skipped it; but it is unused. The
 * endpoint was wrong, or a reorg removed the foreign transaction. Nothing was ever signed here for it.
 */
export function skippedHole(nonce: number, since: Date): Hole {
  const detail = "the chain was said to have passed it, and has not";
  return { nonce, why: "givenUp", detail, since, reservationId: null };
}

/**
 * Free for the next transaction. The nonce of an expired reservation is not: its caller may have signed for it. The
 * hole policy closes it, and the transaction that is mined is reported.
 */
export function isFree({ why }: Pick<Hole, "why">): boolean {
  return why !== "expired";
}

/** State of a nonce of the lane. */
export interface Holder {
  readonly txId: string;
  readonly nonce: number;
  /** This node signs it, none of its payloads was ever claimed, and no caller has its hash. */
  readonly movable: boolean;
}

export interface NonceMove {
  readonly txId: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Moves every movable transaction to the lowest free nonce below it, all together and in order. A transaction that
 * cannot move blocks the free nonces below it: nothing overtakes a claimed transaction.
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
