/**
 * The part of a lane's ledger that its owner keeps in memory: the lane's own row, and every nonce below the cursor that no
 * transaction holds. It is read when the lane is taken and comes to stand differently only by the changes of commits that
 * the database acknowledged, in their order. A write is never judged by it.
 */
import type { Hole } from "../nonces/holes.ts";
import type { Change } from "./changes.ts";
import { foldStanding, type Standing } from "./fold-standing.ts";
import { Part } from "./part.ts";

export type KeptLedger = Standing;

/** What a store read of a lane, as far as the owner keeps it. */
export interface LoadedLane extends Pick<Standing, "cursor" | "suspendedBy" | "reconciled"> {
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
