/**
 * The part of a lane's ledger that its owner keeps in memory: the lane's own row, and every nonce below the cursor that no
 * transaction holds. It is read when the lane is taken and comes to stand differently only by the changes of commits that
 * the database acknowledged, in their order. A write is never judged by it.
 */
import type { Hole } from "../nonces/holes.ts";
import type { Change } from "./changes.ts";
import type { Ledger } from "./ledger.ts";
import { Part } from "./part.ts";

/** The lane's own row, and the nonces below its cursor that no transaction holds. */
export type KeptLedger = Pick<Ledger, "cursor" | "suspendedBy" | "reconciled" | "holes" | "reserved">;

/** What a store read of a lane, as far as the owner keeps it. */
export interface LoadedLane extends Pick<KeptLedger, "cursor" | "suspendedBy" | "reconciled"> {
  /** Ascending by nonce. */
  readonly holes: readonly Hole[];
  /** Those that are open. */
  readonly reservations: readonly { readonly reservationId: string; readonly nonce: number }[];
}

export function keptOf({ cursor, suspendedBy, reconciled, holes, reservations }: LoadedLane): KeptLedger {
  const reserved = reservations.map(({ nonce, reservationId }) => [nonce, reservationId] as const);
  return {
    ...{ cursor, suspendedBy, reconciled },
    holes: Part.of(
      "hole",
      ALL,
      holes.map((hole) => [hole.nonce, hole]),
    ),
    reserved: Part.of("reservation of nonce", ALL, reserved),
  };
}

const ALL = { kind: "all" } as const;

/** In the order in which they were committed. */
export function foldKept(kept: KeptLedger, changes: readonly Change[]): KeptLedger {
  const folded = { ...kept };
  for (const change of changes) foldStanding(folded, change);
  return folded;
}

export type Own<T> = { -readonly [Name in keyof T]: T[Name] };

/** What a change, of whichever kind, does to these. */
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
    // An expired one may be settled once more, when its hole is closed: then somebody else may stand at its nonce.
    if (reserved.atHand(nonce) === reservationId) standing.reserved = reserved.delete(nonce);
  }
}

/** What was given lies below the cursor. */
function giveNonce(standing: Own<KeptLedger>, nonce: number | null) {
  if (nonce !== null) standing.cursor = Math.max(standing.cursor ?? 0, nonce + 1);
}
