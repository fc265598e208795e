import type { ForeignUse } from "../cluster/notices.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Charge } from "../policy/charges.ts";
import type { Problem } from "../text/refusal.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { PreparedIntent } from "../transaction/transaction.ts";
import type { Approval, WaitingIntent, Watched } from "./ledger.ts";
import type {
  ApprovalResult,
  IntakeEvent,
  IntakeResult,
  LaneDecision,
  NewCompletion,
  OrderKey,
  SuspendedBy,
  TransitionItem,
} from "./writes.ts";

/**
 * Changes of a lane by a write: plain data, in the order of events, all of which a store must persist and the lane's
 * owner folds into its memory. The writer (node, token) belongs to the fence, not to the ledger.
 */
export type Change =
  /** How far nonces are given. A nonce above it that is given (`allocated`, `reserved`, `moved`) raises it as well. */
  | { readonly kind: "cursor"; readonly cursor: number }
  | { readonly kind: "suspension"; readonly suspendedBy: SuspendedBy | null }
  | { readonly kind: "reconciliation" }
  /** An operator's action was carried out under this key. */
  | { readonly kind: "ordered"; readonly order: OrderKey }
  | { readonly kind: "decision"; readonly decision: LaneDecision; readonly at: Date }
  | Allocated
  | Moved
  | Refused
  | Declined
  | Awaits
  /** It was approved: it gets its nonce like any other intent of the intake table. */
  | { readonly kind: "approved"; readonly intake: WaitingIntent; readonly result: ApprovalResult; readonly at: Date }
  /** An operator holds it, or releases it (`result.event`). */
  | { readonly kind: "held"; readonly intake: WaitingIntent; readonly result: ApprovalResult; readonly at: Date }
  | { readonly kind: "aliased"; readonly intakeId: number; readonly of: string }
  /** Settled as `state` says, mined in `block`: past its watch. */
  | ({ readonly kind: "unwatched"; readonly block: number } & Watched)
  | { readonly kind: "holeLeft"; readonly hole: Hole }
  | { readonly kind: "holeClosed"; readonly nonce: number }
  | { readonly kind: "reserved"; readonly reservation: Reservation }
  /** `from`: what it was before. */
  | { readonly kind: "reservationSettled"; readonly reservation: Reservation; readonly from: Reservation["state"] }
  /** The lane put a placeholder at the nonce of an expired reservation by itself. */
  | { readonly kind: "repaired"; readonly txId: string; readonly at: Date }
  /** The key was used by a transaction that was not sent from here. */
  | ({ readonly kind: "usedElsewhere"; readonly at: Date } & ForeignUse)
  | { readonly kind: "completed"; readonly completion: Completion; readonly at: Date }
  | Charged;

/** Counted against the limits of the signer, and of the API key that the transaction belongs to. */
export interface Charged {
  readonly kind: "charged";
  readonly txId: string;
  readonly owner: string | null;
  readonly charge: Charge;
  /** Counted for the key whatever room it has. */
  readonly pastKeyLimits?: true;
}

/** A transaction begins, with its nonce. */
export interface Allocated {
  readonly kind: "allocated";
  readonly intent: PreparedIntent;
  readonly nonce: number;
  /** Set if it came through the intake table: that row is over, and its history begins there. */
  readonly intake: WaitingIntent | null;
  readonly at: Date;
}

/** A transaction took one step. The step's data (attempt, receipt, claim, …) is in the item. */
export interface Moved {
  readonly kind: "moved";
  readonly item: TransitionItem;
  /** Values of the transaction from now on: this one and the next three. */
  readonly nonce: number | null;
  readonly live: boolean;
  readonly attemptCount: number;
  readonly acceptedOrdinal: number | null;
  /** The row of its history, and whether that row existed before: then it counts repeats. */
  readonly step: number;
  readonly repeats: boolean;
  readonly at: Date;
}

/** An intent waits in the intake table until it is approved. It owns its request id, and has no nonce. */
export interface Awaits {
  readonly kind: "awaits";
  readonly intent: PreparedIntent;
  /** Set if it came through the intake table: that row waits. */
  readonly intake: WaitingIntent | null;
  readonly approval: Approval;
  readonly detail: string;
  readonly at: Date;
}

/** An intent of the intake table ends without a nonce. It owns its request id, unless another does, or it was reused. */
export interface Refused {
  readonly kind: "refused";
  readonly intake: WaitingIntent;
  readonly result: Extract<IntakeResult, { readonly result: "refused" }> | EndedResult;
  readonly at: Date;
}

/** The decision about an intent, if that ends it. */
export type EndedResult = ApprovalResult<Exclude<IntakeEvent, "approve" | "hold" | "unhold">>;

/**
 * An intent of the intake table ends as if it had never been requested: its sender gets the reason, and nothing else is
 * kept.
 */
export interface Declined {
  readonly kind: "declined";
  readonly intake: WaitingIntent;
  readonly problem: Problem;
}

/** One line of the feed, without its number. */
export interface Completion extends NewCompletion {
  readonly txId: string;
  readonly requestId: string | null;
  readonly nonce: number | null;
}
