import type { ForeignUse } from "../cluster/notices.ts";
import type { SignatureRecord, SignatureState } from "../messages/record.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Charge } from "../policy/charges.ts";
import type { MessageUse } from "../policy/message-rules.ts";
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
 * lane's owner applies them to its copy in memory. They do not name the writer (node, token): checking the writer is
 * not part of the ledger.
 */
export type Change =
  /**
   * The lane's next nonce (`cursor`) is set. It also rises, without this change, when `allocated`, `reserved` or
   * `moved` gives this nonce or a higher one.
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
  /**
   * An intent that waited for approval was approved. It stays in the intake table and gets its nonce like any other
   * intent there.
   */
  | { readonly kind: "approved"; readonly intake: WaitingIntent; readonly result: ApprovalResult; readonly at: Date }
  /** An operator puts an intent of the intake table on hold, or releases it (`result.event`). */
  | { readonly kind: "held"; readonly intake: WaitingIntent; readonly result: ApprovalResult; readonly at: Date }
  | { readonly kind: "aliased"; readonly intakeId: number; readonly of: string }
  /** A settled transaction is no longer watched for reorgs. `state`: its outcome. `block`: the block that mined it. */
  | ({ readonly kind: "unwatched"; readonly block: number } & Watched)
  | { readonly kind: "holeLeft"; readonly hole: Hole }
  | { readonly kind: "holeClosed"; readonly nonce: number }
  | { readonly kind: "reserved"; readonly reservation: Reservation }
  /** `from`: state of the reservation before the change. */
  | { readonly kind: "reservationSettled"; readonly reservation: Reservation; readonly from: Reservation["state"] }
  /** The lane put a placeholder at the nonce of an expired reservation, without an operator's action. */
  | { readonly kind: "repaired"; readonly txId: string; readonly at: Date }
  /** The signer's key was used by a transaction that Fencepost did not send. */
  | ({ readonly kind: "usedElsewhere"; readonly at: Date } & ForeignUse)
  /** `owner`: name of the API key that created the transaction; null if no key was required. */
  | {
      readonly kind: "completed";
      readonly completion: Completion;
      readonly owner: string | null;
      readonly at: Date;
    }
  | Charged
  /** A requested signature is kept, and changed by a step; `from`: its state before. */
  | { readonly kind: "messageKept"; readonly record: SignatureRecord }
  | { readonly kind: "messageChanged"; readonly record: SignatureRecord; readonly from: SignatureState }
  /** `use`: signatures and amounts that a rule of the signer's policy has counted, this one included. */
  | { readonly kind: "messageCounted"; readonly rule: string; readonly use: MessageUse };

/** An amount counted against the limits of the signer and of the API key that the transaction belongs to. */
export interface Charged {
  readonly kind: "charged";
  readonly txId: string;
  readonly owner: string | null;
  readonly charge: Charge;
  /** True if the amount is counted for the API key even if it exceeds the key's limits. */
  readonly pastKeyLimits?: true;
}

/** A transaction was created and has its nonce. */
export interface Allocated {
  readonly kind: "allocated";
  readonly intent: PreparedIntent;
  readonly nonce: number;
  /**
   * Row of the intake table that the transaction came from; null if it did not come from there. The row is now
   * consumed, and the transaction's history begins with the row's history.
   */
  readonly intake: WaitingIntent | null;
  readonly at: Date;
}

/**
 * A transaction changed by one step of the transition table. The step's data (attempt, receipt, right to send, …) is in
 * `item`.
 */
export interface Moved {
  readonly kind: "moved";
  readonly item: TransitionItem;
  /** This field and the next three have the transaction's values after the step. */
  readonly nonce: number | null;
  readonly live: boolean;
  readonly attemptCount: number;
  readonly acceptedOrdinal: number | null;
  /**
   * Number of the step's row in the transaction's history. `repeats`: true if the row already existed, and this step
   * only increases its repeat count.
   */
  readonly step: number;
  readonly repeats: boolean;
  readonly at: Date;
}

/** An intent must be approved: it waits in the intake table. It owns its request id, but has no nonce yet. */
export interface Awaits {
  readonly kind: "awaits";
  readonly intent: PreparedIntent;
  /**
   * The intent's existing row in the intake table, which stays there; null if the intent did not come from that table.
   */
  readonly intake: WaitingIntent | null;
  readonly approval: Approval;
  readonly detail: string;
  readonly at: Date;
}

/**
 * An intent of the intake table is refused without a nonce. It keeps its request id, except in two cases: another
 * transaction owns the id, or the intent was refused because it reused the id.
 */
export interface Refused {
  readonly kind: "refused";
  readonly intake: WaitingIntent;
  readonly result: Extract<IntakeResult, { readonly result: "refused" }> | EndedResult;
  readonly at: Date;
}

/** Result of a decision that ends an intent which waits in the intake table. */
export type EndedResult = ApprovalResult<Exclude<IntakeEvent, "approve" | "hold" | "unhold">>;

/**
 * An intent of the intake table ends as if it had never been requested: its sender gets the reason of the refusal, and
 * no transaction is stored.
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
