/**
 * A hole is a nonce below the lane's cursor that nothing holds: no transaction that may be mined, no open reservation.
 * Everything above it waits. This file knows why there are holes, and how transactions that were never
 * signed move down into them.
 */

import type { Reservation } from "./reservations.ts";

export const HOLE_CAUSES = ["released", "givenUp", "shiftedDown", "expired"] as const;
export type HoleCause = (typeof HOLE_CAUSES)[number];

export interface Hole {
  readonly nonce: number;
  readonly why: HoleCause;
  /** In words, for people. */
  readonly detail: string;
  readonly since: Date;
  /** Whose reservation left it behind. */
  readonly reservationId: string | null;
  /** Of a reservation that expired: whose it was, and how long it was kept. */
  readonly expired?: Pick<Reservation, "owner" | "ttlMs">;
}

/**
 * An endpoint said that another program had used this nonce, and the lane skipped it; but it is unused. The endpoint lied,
 * or a reorg removed the foreign transaction. Nothing of ours was ever signed for it.
 */
export function skippedHole(nonce: number, since: Date): Hole {
  const detail = "the chain was said to have passed it, and has not";
  return { nonce, why: "givenUp", detail, since, reservationId: null };
}

/**
 * Free for the next transaction. An expired reservation's nonce is not: its caller may have signed something for it. The
 * hole policy closes it, and whichever transaction is mined is reported.
 */
export function isFree({ why }: Pick<Hole, "why">): boolean {
  return why !== "expired";
}

/** What stands at a nonce of the lane. */
export interface Holder {
  readonly txId: string;
  readonly nonce: number;
  /** We sign it, none of its payloads was ever claimed, and no caller was given a hash of it. */
  readonly movable: boolean;
}

export interface NonceMove {
  readonly txId: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Shift-down: whatever is movable takes the lowest free nonce below it, all together and in order, and leaves its own
 * behind. A holder that cannot move uses up what was free below it: no transaction overtakes a claimed one.
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

function moveInto(slots: number[], { txId, nonce }: Holder, moves: NonceMove[]): void {
  const to = slots.shift();
  if (to === undefined) return;
  moves.push({ txId, from: nonce, to });
  slots.push(nonce);
}
