import type { SubmitAnswer } from "../domain/chain/answers.ts";
import type { Hash } from "../domain/lane.ts";
import type { Checksummed } from "../domain/text/checksum.ts";
import type { Fees } from "../domain/transaction/fees.ts";
import type { AlertSeverity } from "../domain/troubles/table.ts";
import type { TransactionRecord } from "./query-store.ts";

export const STUCK_ACTIONS = ["NOOP", "CANCEL", "REPLACE", "PLACEHOLDER"] as const;
export type StuckAction = (typeof STUCK_ACTIONS)[number];

/** Reason why the stuck hook is called now. */
export type StuckTrigger =
  | "headAge"
  | "oldestAge"
  | "pendingDepth"
  | "maxAttempts"
  | "resubmits"
  | "rejected"
  | "operator";

/**
 * All facts about the stuck transaction, as plain JSON, so that a hook in a module and a hook behind HTTP get the same
 * facts.
 */
export interface StuckContext
  extends Pick<TransactionRecord, "txId" | "requestId" | "state" | "subState" | "lastError" | "metadata"> {
  readonly trigger: StuckTrigger;
  readonly chainId: number;
  readonly signer: Checksummed;
  readonly nonce: number;
  readonly attempts: readonly StuckAttempt[];
  /** Number of sends, counting all attempts and their resends. */
  readonly submitAttempts: number;
  /** Last response of a node, as one of a fixed list of names; null if none has responded. */
  readonly lastErrorClass: SubmitAnswer | null;
  readonly ageSeconds: number;
  /** Number of the lane's transactions that are not mined. */
  readonly queueDepth: number;
  readonly headOfLine: boolean;
}

export interface StuckAttempt {
  readonly ordinal: number;
  readonly kind: string;
  /** Hash of the attempt; null if an RPC node signs it and has not returned the hash. */
  readonly txHash: Hash | null;
  readonly gas: `${bigint}`;
  readonly type: Fees["type"];
  readonly gasPrice?: `${bigint}`;
  readonly maxFeePerGas?: `${bigint}`;
  readonly maxPriorityFeePerGas?: `${bigint}`;
  readonly firstSentAt: string | null;
}

/**
 * Decision of the stuck hook. CANCEL and PLACEHOLDER use the nonce for an empty transaction; REPLACE uses it for
 * another payload or price.
 */
export interface StuckDecision {
  readonly action: StuckAction;
  readonly reason: string;
  /** For REPLACE: a payload as in POST /tx. Without it, the current payload is signed at another price. */
  readonly payload?: unknown;
  /** With `payload`: true if call data to an address without code is intended. */
  readonly allowNoCode?: unknown;
  /** Fees of the new attempt. Absent: the chain's current price, and at least enough to replace the current attempt. */
  readonly fees?: unknown;
  /** For REPLACE: bytes that the hook itself signed, for this signer, chain and nonce. */
  readonly rawTransaction?: unknown;
  /**
   * The node's next step after the action. `track`: continue as usual. `stuck`: report STUCK. `manual`: leave the transaction to
   * people; the hook is not called again.
   */
  readonly then?: "track" | "stuck" | "manual";
  /** If set, an alert of this severity is raised with the reason. */
  readonly severity?: AlertSeverity;
  /** Audit data, stored in the history with the decision. */
  readonly audit?: Readonly<Record<string, unknown>>;
}

/** Decides what to do with a stuck transaction. The lane's owner then carries the decision out. */
export interface StuckResolutionHook {
  /** Decides about one stuck transaction; a decision that is wrong or late changes nothing. */
  decide(context: StuckContext): StuckDecision | Promise<StuckDecision>;
}
