import type { LaneWrite } from "../../../ports/lane-store.ts";

/** What of its lane a write is about: read behind the lane's lock, and loaded into its ledger, before it is judged. */
export interface Needs {
  readonly transactions: readonly string[];
  /** Those of them whose payload may be compared with another, and those of which an attempt is named. */
  readonly compared: readonly string[];
  readonly attempts: readonly string[];
  readonly requests: readonly string[];
  readonly intake: readonly number[];
  readonly reservations: readonly string[];
  /** The caller's names of reservations. */
  readonly reservedAs: readonly string[];
  /** Nonces of which it matters whether a transaction has them. */
  readonly nonces: readonly number[];
  /** Settled transactions that were mined up to this block. */
  readonly watchedThrough: number | null;
  readonly holes: boolean;
  readonly openReservations: boolean;
  /** The highest nonce that may have left. */
  readonly boundNonce: boolean;
  readonly mayHaveLost: boolean;
}

const NOTHING: Needs = {
  ...{ transactions: [], compared: [], attempts: [], requests: [], intake: [] },
  ...{ reservations: [], reservedAs: [], nonces: [], watchedThrough: null },
  ...{ holes: false, openReservations: false, boundNonce: false, mayHaveLost: false },
};

export function needsOf(write: LaneWrite): Needs {
  switch (write.kind) {
    case "allocate": {
      // What a repeated allocation would bring again: from the intake table, or told twice.
      const repeated = write.items.filter(({ intakeId, mayExist }) => intakeId !== undefined || mayExist === true);
      const ids = repeated.map(({ intent }) => intent.txId);
      const requests = write.items.flatMap(({ intent }) => intent.requestId ?? []);
      const intake = repeated.flatMap(({ intakeId }) => intakeId ?? []);
      return { ...NOTHING, transactions: ids, compared: ids, requests, intake, holes: fills(write) };
    }
    case "transition": {
      const { items } = write;
      return {
        ...NOTHING,
        transactions: items.map(({ txId }) => txId),
        attempts: items.flatMap(({ txId, identified }) => (identified === undefined ? [] : txId)),
        holes: items.some(({ nonce }) => nonce !== undefined),
      };
    }
    case "settleIntake":
      return { ...NOTHING, intake: write.fates.map(({ intakeId }) => intakeId) };
    case "unwatch":
      return { ...NOTHING, watchedThrough: write.throughBlock };
    case "reconcile":
      return { ...NOTHING, mayHaveLost: true };
    case "realign":
      return { ...NOTHING, holes: true, boundNonce: true };
    default:
      return needsOfNonces(write);
  }
}

function needsOfNonces(write: LaneWrite): Needs {
  switch (write.kind) {
    case "reserve": {
      const named = write.requestId === null ? [] : [write.requestId];
      return { ...NOTHING, requests: named, reservedAs: named, holes: fills(write) };
    }
    case "release":
      return { ...NOTHING, reservations: [write.reservationId] };
    case "expire":
      return { ...NOTHING, openReservations: true };
    case "bind": {
      const { intent, reservation } = write;
      const requests = intent.requestId === null ? [] : [intent.requestId];
      const reservations = reservation === undefined ? [] : [reservation.reservationId];
      return { ...NOTHING, requests, reservations, holes: true };
    }
    case "closeHoles":
      return { ...NOTHING, holes: true };
    case "findSkipped": {
      const { from, below } = write;
      const nonces = Array.from({ length: Math.max(0, below - from) }, (_, index) => from + index);
      return { ...NOTHING, nonces, holes: true, openReservations: true };
    }
    default:
      return NOTHING;
  }
}

function fills({ fill = [] }: { readonly fill?: readonly number[] }): boolean {
  return fill.length > 0;
}
