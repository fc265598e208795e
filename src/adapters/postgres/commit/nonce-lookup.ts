/** What must be read behind the locks for reservations and holes; most commits are about neither, and read nothing. */
import type { Lane } from "../../../domain/lane.ts";
import type { LaneWrite } from "../../../ports/lane-store.ts";
import type { FindSkippedWrite } from "../../../ports/nonce-writes.ts";

export interface NonceKeys {
  /** Lanes whose holes matter. */
  readonly holes: readonly Lane[];
  readonly reservations: readonly string[];
  /** The caller's names of reservations. */
  readonly requests: readonly string[];
  /** Lanes whose open reservations matter. */
  readonly open: readonly Lane[];
  /** Lanes of which it matters what may have left. */
  readonly bound: readonly Lane[];
  /** Ranges of nonces of which it matters whether a transaction has them. */
  readonly skipped: readonly FindSkippedWrite[];
}

export function nonceKeysOf(writes: readonly LaneWrite[]): NonceKeys {
  return {
    holes: writes.filter(aboutHoles).map(({ fence }) => fence.lane),
    reservations: [...new Set(writes.flatMap(reservationIdOf))].sort(),
    requests: [...new Set(writes.flatMap((write) => (write.kind === "reserve" ? (write.requestId ?? []) : [])))],
    open: writes.filter(({ kind }) => kind === "expire" || kind === "findSkipped").map(({ fence }) => fence.lane),
    bound: writes.filter(({ kind }) => kind === "realign").map(({ fence }) => fence.lane),
    skipped: writes.filter((write) => write.kind === "findSkipped"),
  };
}

function aboutHoles(write: LaneWrite): boolean {
  switch (write.kind) {
    case "allocate":
    case "reserve":
      return (write.fill ?? []).length > 0;
    case "transition":
      return write.items.some(({ nonce }) => nonce !== undefined);
    default:
      return ["bind", "closeHoles", "realign", "findSkipped"].includes(write.kind);
  }
}

function reservationIdOf(write: LaneWrite): readonly string[] {
  if (write.kind === "release") return [write.reservationId];
  return write.kind === "bind" && write.reservation !== undefined ? [write.reservation.reservationId] : [];
}
