/** What must be read behind the locks for reservations and holes; most commits are about neither, and read nothing. */
import type { Lane } from "../../../domain/lane.ts";
import type { LaneWrite } from "../../../ports/lane-store.ts";

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
}

export function nonceKeysOf(writes: readonly LaneWrite[]): NonceKeys {
  return {
    holes: writes.filter(aboutHoles).map(({ fence }) => fence.lane),
    reservations: [...new Set(writes.flatMap(reservationIdOf))].sort(),
    requests: [...new Set(writes.flatMap((write) => (write.kind === "reserve" ? (write.requestId ?? []) : [])))],
    open: writes.filter(({ kind }) => kind === "expire").map(({ fence }) => fence.lane),
    bound: writes.filter(({ kind }) => kind === "realign").map(({ fence }) => fence.lane),
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
      return write.kind === "bind" || write.kind === "closeHoles" || write.kind === "realign";
  }
}

function reservationIdOf(write: LaneWrite): readonly string[] {
  if (write.kind === "release") return [write.reservationId];
  return write.kind === "bind" && write.reservation !== undefined ? [write.reservation.reservationId] : [];
}
