import type { Fence, Hex } from "../lane.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { PreparedIntent, SignedAttempt } from "../transaction/transaction.ts";

/** What every write carries: what it is, and the proof that the lane is its writer's. */
export interface Fenced<Kind extends string> {
  readonly kind: Kind;
  readonly fence: Fence;
}

/** What a write says about the nonces that it wants. */
export interface WantedNonces {
  /** The proven chain count; null where none is known (then the lane must already have a cursor). */
  readonly floor: number | null;
  /** Free holes that may be taken, lowest first; which of them still are is judged behind the lane's lock. */
  readonly fill?: readonly number[];
}

/** An operator's order, by the key that its giver named it with: what was carried out under it is not carried out again. */
export interface OrderKey {
  /** The id of the transaction that it is addressed to; empty: the lane itself. */
  readonly subject: string;
  readonly key: string;
  /** Of its words: a repeat has the same ones. */
  readonly fingerprint: Hex;
}

/** Who or what decided a step, for the audit. */
export interface Decision {
  /** `operator:<key name>`, `hook`, `policy`. */
  readonly actor: string;
  /** Whatever the decider wants to be found again: action, ticket, severity. */
  readonly audit: Readonly<Record<string, unknown>> | null;
  /** Where its giver named it; in one step of those that carry it out. */
  readonly order?: OrderKey;
}

/** Writes about nonces that no ordinary create brought: reservations and holes. Fenced like every other. */
export type NonceWrite = ReserveWrite | ReleaseWrite | ExpireWrite | BindWrite | CloseHolesWrite | FindSkippedWrite;

/** Keeps a nonce for a caller: a free one first, else from max(cursor, floor). A repeat of the request id gets its own again. */
export interface ReserveWrite extends Fenced<"reserve">, WantedNonces {
  readonly reservationId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  readonly ttlMs: number;
  /** How many nonces of the lane one key may keep from others at a time. */
  readonly most: number;
}

/** The caller's word that nothing was signed: the nonce is free. */
export interface ReleaseWrite extends Fenced<"release"> {
  readonly reservationId: string;
}

/** Every open reservation of the lane that is past by the database's clock ends, and leaves a hole. */
export type ExpireWrite = Fenced<"expire">;

/**
 * A reserved nonce, or a hole, gets its transaction: inserted, signed and, where there are bytes, claimed in one step.
 * There is no moment in which it is allocated and somebody else could sign it.
 */
export interface BindWrite extends Fenced<"bind"> {
  readonly nonce: number;
  /**
   * The reservation it fulfils, open or expired and its nonce still a hole; or the expired one that left the hole which a
   * placeholder takes. Without either the nonce must be a hole.
   */
  readonly reservation?:
    | { readonly reservationId: string; readonly becomes: "SUBMITTED" | "USED" }
    | { readonly reservationId: string; readonly becomes: "EXPIRED"; readonly mostPerHour?: number };
  /**
   * Instead: a caller signed it for a nonce that it chose. Taken at an open reservation of that caller's, or as the next nonce
   * of the lane above everything; nowhere else.
   */
  readonly chosen?: Pick<WantedNonces, "floor">;
  readonly intent: PreparedIntent;
  readonly attempt: SignedAttempt;
  readonly reason: string;
  readonly decision?: Decision;
}

/** Somebody else's transactions stand at these nonces, too deep to be taken back: they are no holes any more. */
export interface CloseHolesWrite extends Fenced<"closeHoles"> {
  readonly nonces: readonly number[];
}

/**
 * The cursor went over these nonces because the chain was said to have passed them, and it has not: from `from` on, below
 * `below` and the cursor, whatever neither a transaction nor a reservation nor a hole has is a hole from now on.
 */
export interface FindSkippedWrite extends Fenced<"findSkipped"> {
  readonly from: number;
  readonly below: number;
}

export type NonceOutcome =
  | { readonly status: "reserved"; readonly fate: ReserveFate; readonly cursor: number }
  | { readonly status: "released"; readonly fate: SettleFate; readonly hole: Hole | null }
  | { readonly status: "expired"; readonly holes: readonly Hole[] }
  | { readonly status: "skipped"; readonly holes: readonly Hole[] }
  | {
      readonly status: "bound";
      readonly fate: SettleFate;
      readonly createdAt: Date;
      readonly requestId: string | null;
      /** Where the fate is "forbidden". */
      readonly forbidden?: Forbidden;
      /** Where a chosen nonce is in "conflict": the one that would have been taken. */
      readonly next?: number | null;
    };

export type ReserveFate =
  | { readonly fate: "created"; readonly reservation: Reservation; readonly recycled: boolean }
  | { readonly fate: "existing"; readonly reservation: Reservation }
  /** The request id belongs to a transaction. */
  | { readonly fate: "requestTaken"; readonly txId: string; readonly owner: string | null }
  /** The request id belonged to a transaction that is kept no more. */
  | { readonly fate: "spent" }
  /** The key keeps as many nonces of the lane from others as it may. */
  | { readonly fate: "tooMany" }
  | { readonly fate: "noCursor" };

/**
 * "conflict": it was settled before, or the nonce is no hole any more. "limited": the lane repaired as many expired
 * reservations in this hour as it may. "held": the lane has not been compared with the chain since the database's history
 * changed. "forbidden": by a policy. Nothing was done in any of them.
 */
export type SettleFate = "settled" | "conflict" | "limited" | "held" | "forbidden";
