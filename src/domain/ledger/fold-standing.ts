import type { Change } from "./changes.ts";
import type { Ledger } from "./ledger.ts";

/** The lane's own row, and the nonces below its cursor that no transaction holds. */
export type Standing = Pick<Ledger, "cursor" | "suspendedBy" | "reconciled" | "holes" | "reserved">;

export type Own<T> = { -readonly [Name in keyof T]: T[Name] };

/** What a change, of whichever kind, does to these. */
export function foldStanding(standing: Own<Standing>, change: Change): void {
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

function foldNonces(standing: Own<Standing>, change: Change) {
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
function giveNonce(standing: Own<Standing>, nonce: number | null) {
  if (nonce !== null) standing.cursor = Math.max(standing.cursor ?? 0, nonce + 1);
}
