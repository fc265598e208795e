/**
 * The part of a lane's ledger that its owner has in memory: the lane's own row, and every nonce below the lane's next
 * nonce that has no transaction. It is read when the lane is acquired, and changes only by acknowledged commits, in
 * their order. No write is accepted or refused on the basis of this copy.
 */
import type { Hole } from "../nonces/holes.ts";
import type { Change } from "./changes.ts";
import type { Ledger } from "./ledger.ts";
import { Part } from "./part.ts";

/** The lane's own row, and the nonces below the lane's next nonce that no transaction has. */
export type KeptLedger = Pick<Ledger, "cursor" | "suspendedBy" | "reconciled" | "holes" | "reserved">;

/** The part of a lane, as read from the store, that the owner keeps in memory. */
export interface LoadedLane extends Pick<KeptLedger, "cursor" | "suspendedBy" | "reconciled"> {
  /** Nonce gaps ("holes"), lowest nonce first. */
  readonly holes: readonly Hole[];
  /** Open reservations. */
  readonly reservations: readonly { readonly reservationId: string; readonly nonce: number }[];
}

export function keptOf({ cursor, suspendedBy, reconciled, holes, reservations }: LoadedLane): KeptLedger {
  const reserved = reservations.map(({ nonce, reservationId }) => [nonce, reservationId] as const);
  return {
    cursor,
    suspendedBy,
    reconciled,
    holes: Part.of(
      "hole",
      ALL,
      holes.map((hole) => [hole.nonce, hole]),
    ),
    reserved: Part.of("reservation of nonce", ALL, reserved),
  };
}

const ALL = { kind: "all" } as const;

/** Applies changes in the order in which they were committed. */
export function foldKept(kept: KeptLedger, changes: readonly Change[]): KeptLedger {
  const folded = { ...kept };
  for (const change of changes) foldStanding(folded, change);
  return folded;
}

export type Own<T> = { -readonly [Name in keyof T]: T[Name] };

/** Applies one change to the lane's row, its nonce gaps and its reservations. */
export function foldStanding(standing: Own<KeptLedger>, change: Change): void {
  switch (change.kind) {
    case "cursor":
      standing.cursor = change.cursor;
      break;
    case "suspension":
      standing.suspendedBy = change.suspendedBy;
      break;
    case "reconciliation":
      standing.reconciled = true;
      break;
    case "allocated":
    case "moved":
      giveNonce(standing, change.nonce);
      break;
    default:
      foldNonces(standing, change);
  }
}

function foldNonces(standing: Own<KeptLedger>, change: Change) {
  const { holes, reserved } = standing;
  if (change.kind === "holeLeft") standing.holes = holes.add(change.hole.nonce, change.hole);
  if (change.kind === "holeClosed") standing.holes = holes.delete(change.nonce);
  if (change.kind === "reserved") {
    const { nonce, reservationId } = change.reservation;
    giveNonce(standing, nonce);
    standing.reserved = reserved.add(nonce, reservationId);
  }
  if (change.kind === "reservationSettled") {
    const { nonce, reservationId } = change.reservation;
    // Delete the entry only if it is this reservation's. An expired reservation may be settled again when its nonce gap
    // is closed: its own entry is gone by then, and the nonce may belong to another.
    if (reserved.atHand(nonce) === reservationId) standing.reserved = reserved.delete(nonce);
  }
}

/** Raises the lane's next nonce above a nonce that is given. */
function giveNonce(standing: Own<KeptLedger>, nonce: number | null) {
  if (nonce !== null) standing.cursor = Math.max(standing.cursor ?? 0, nonce + 1);
}
