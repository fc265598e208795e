import type { AlertSeverity } from "../domain/alerts.ts";
import type { SubmitAnswer } from "../domain/answers.ts";
import type { TransactionRecord } from "./query-store.ts";

export const STUCK_ACTIONS = ["NOOP", "CANCEL", "REPLACE", "PLACEHOLDER"] as const;
export type StuckAction = (typeof STUCK_ACTIONS)[number];

/** Why the hook is asked now. */
export type StuckTrigger =
  | "headAge"
  | "oldestAge"
  | "pendingDepth"
  | "maxAttempts"
  | "resubmits"
  | "rejected"
  | "operator";

/** Everything that is known of the transaction; plain JSON, so that a module and an endpoint see the same. */
export interface StuckContext
  extends Pick<TransactionRecord, "txId" | "requestId" | "state" | "subState" | "lastError" | "metadata"> {
  readonly trigger: StuckTrigger;
  readonly chainId: number;
  readonly signer: string;
  readonly nonce: number;
  readonly attempts: readonly StuckAttempt[];
  /** How often something of it was sent: every attempt, and every repeat of one. */
  readonly submitAttempts: number;
  /** What a node last said, from the closed list of answers; null where none has answered. */
  readonly lastErrorClass: SubmitAnswer | null;
  readonly ageSeconds: number;
  /** Transactions of the lane that are not mined. */
  readonly queueDepth: number;
  readonly headOfLine: boolean;
}

export interface StuckAttempt {
  readonly ordinal: number;
  readonly kind: string;
  /** Null: a node signs it, and has not said which transaction that made. */
  readonly txHash: string | null;
  readonly gas: string;
  readonly type: string;
  readonly gasPrice?: string;
  readonly maxFeePerGas?: string;
  readonly maxPriorityFeePerGas?: string;
  readonly firstSentAt: string | null;
}

/** What is to be done. CANCEL and PLACEHOLDER use the nonce up with nothing, REPLACE with another payload or price. */
export interface StuckDecision {
  readonly action: StuckAction;
  readonly reason: string;
  /** REPLACE: as in POST /tx. Without it, the payload that stands is signed at another price. */
  readonly payload?: unknown;
  /** With `payload`: call data to an address without code is meant. */
  readonly allowNoCode?: unknown;
  /** Absent: the market's, and enough to replace what stands. */
  readonly fees?: unknown;
  /** REPLACE: signed by the hook itself, for this signer, chain and nonce. */
  readonly rawTransaction?: unknown;
  /** `track` goes on as usual, `stuck` reports it as STUCK, `manual` leaves it to people: the hook is not asked again. */
  readonly then?: "track" | "stuck" | "manual";
  /** Set: an alert of this severity is raised with the reason. */
  readonly severity?: AlertSeverity;
  /** Kept in the history with the decision. */
  readonly audit?: Readonly<Record<string, unknown>>;
}

/** Decides what becomes of a transaction that is stuck. It only decides: every effect is Fencepost's, under its fence. */
export interface StuckResolutionHook {
  decide(context: StuckContext): StuckDecision | Promise<StuckDecision>;
}
