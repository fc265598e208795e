import type { ForeignUse } from "../cluster/notices.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Charge } from "../policy/charges.ts";
import type { Problem } from "../text/refusal.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { PreparedIntent } from "../transaction/transaction.ts";
import type { Approval, WaitingIntent, Watched } from "./ledger.ts";
import type {
  ActionKey,
  ApprovalResult,
  IntakeEvent,
  IntakeResult,
  LaneDecision,
  NewCompletion,
  SuspendedBy,
  TransitionItem,
} from "./writes.ts";

/**
 * Changes of a lane that a write causes: plain data, in the order of events. A store must persist all of them, and the
 * lane's owner folds them into its memory. The writer (node, token) belongs to the fence, not to the ledger.
 */
export type Change =
  /**
   * The lane's cursor: all nonces below it were given. Giving a nonce above it (`allocated`, `reserved`, `moved`)
   * raises the cursor as well.
   */
  | { readonly kind: "cursor"; readonly cursor: number }
  | { readonly kind: "suspension"; readonly suspendedBy: SuspendedBy | null }
  | { readonly kind: "reconciliation" }
  /** An operator's action was carried out under this idempotency key. */
  | { readonly kind: "carriedOut"; readonly actionKey: ActionKey }
  | { readonly kind: "decision"; readonly decision: LaneDecision; readonly at: Date }
  | Allocated
  | Moved
  | Refused
  | Declined
  | Awaits
  /** An intent that waited for approval was approved: it gets its nonce like any other intent of the intake table. */
  | { readonly kind: "approved"; readonly intake: WaitingIntent; readonly result: ApprovalResult; readonly at: Date }
  /** An operator holds an intent that waits for approval, or releases it (`result.event`). */
  | { readonly kind: "held"; readonly intake: WaitingIntent; readonly result: ApprovalResult; readonly at: Date }
  | { readonly kind: "aliased"; readonly intakeId: number; readonly of: string }
  /** A transaction settled as `state`, mined in `block`, is no longer watched for reorgs. */
  | ({ readonly kind: "unwatched"; readonly block: number } & Watched)
  | { readonly kind: "holeLeft"; readonly hole: Hole }
  | { readonly kind: "holeClosed"; readonly nonce: number }
  | { readonly kind: "reserved"; readonly reservation: Reservation }
  /** `from`: state of the reservation before the change. */
  | { readonly kind: "reservationSettled"; readonly reservation: Reservation; readonly from: Reservation["state"] }
  /** The lane itself put a placeholder at the nonce of an expired reservation. */
  | { readonly kind: "repaired"; readonly txId: string; readonly at: Date }
  /** The signer's key was used by a transaction that Fencepost did not send. */
  | ({ readonly kind: "usedElsewhere"; readonly at: Date } & ForeignUse)
  | { readonly kind: "completed"; readonly completion: Completion; readonly at: Date }
  | Charged;

/** An amount counted against the limits of the signer and of the API key that the transaction belongs to. */
export interface Charged {
  readonly kind: "charged";
  readonly txId: string;
  readonly owner: string | null;
  readonly charge: Charge;
  /** Set if the amount is counted for the API key even if it exceeds the key's limits. */
  readonly pastKeyLimits?: true;
}

/** A new transaction with its nonce. */
export interface Allocated {
  readonly kind: "allocated";
  readonly intent: PreparedIntent;
  readonly nonce: number;
  /**
   * Row of the intake table that the transaction came from; null if it did not come from there. The row is done, and
   * the transaction's history begins with it.
   */
  readonly intake: WaitingIntent | null;
  readonly at: Date;
}

/** A transaction took one step. The step's data (attempt, receipt, claim, …) is in the item. */
export interface Moved {
  readonly kind: "moved";
  readonly item: TransitionItem;
  /** Values of the transaction after the step. This applies to `nonce` and the next three fields. */
  readonly nonce: number | null;
  readonly live: boolean;
  readonly attemptCount: number;
  readonly acceptedOrdinal: number | null;
  /** Number of the history row of this step. `repeats`: that row existed before, and only counts one more repeat. */
  readonly step: number;
  readonly repeats: boolean;
  readonly at: Date;
}

/** An intent waits in the intake table until it is approved. The intent owns its request id and has no nonce yet. */
export interface Awaits {
  readonly kind: "awaits";
  readonly intent: PreparedIntent;
  /** Row of the intake table that keeps waiting; null if the intent did not come from that table. */
  readonly intake: WaitingIntent | null;
  readonly approval: Approval;
  readonly detail: string;
  readonly at: Date;
}

/**
 * An intent of the intake table ends without a nonce. It still owns its request id, unless another transaction owns the
 * id or the refusal is that the id was reused.
 */
export interface Refused {
  readonly kind: "refused";
  readonly intake: WaitingIntent;
  readonly result: Extract<IntakeResult, { readonly result: "refused" }> | EndedResult;
  readonly at: Date;
}

/** Result of a decision that ends a waiting intent. */
export type EndedResult = ApprovalResult<Exclude<IntakeEvent, "approve" | "hold" | "unhold">>;

/**
 * An intent of the intake table ends as if it had never been requested: its sender gets the reason, and nothing else is
 * stored.
 */
export interface Declined {
  readonly kind: "declined";
  readonly intake: WaitingIntent;
  readonly problem: Problem;
}

/** One entry of the feed of completions, without its sequence number. */
export interface Completion extends NewCompletion {
  readonly txId: string;
  readonly requestId: string | null;
  readonly nonce: number | null;
}
