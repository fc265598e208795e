import type { Ceilings } from "../ceilings.ts";
import type { FinalityRule } from "../finality.ts";
import type { Hash } from "../lane.ts";
import type { Attempt, Receipt } from "../transaction.ts";
import type { State, SubState } from "../transitions.ts";

/** Everything an explanation is drawn from: facts of one moment, each null where it is unknown. */
export interface Situation {
  readonly now: Date;
  readonly transaction: ExplainedTransaction;
  readonly lane: ExplainedLane;
  readonly chain: ExplainedChain;
}

export interface ExplainedTransaction {
  readonly txId: string;
  readonly nonce: number | null;
  readonly state: State;
  readonly subState: SubState | null;
  readonly value: bigint;
  readonly gas: bigint | null;
  readonly attempts: readonly Attempt[];
  readonly receipt: Receipt | null;
  /** The node's answer by its name (domain/answers.ts), a colon, its own words. */
  readonly lastError: string | null;
  readonly submitAttempts: number;
  readonly createdAt: Date;
  readonly lastSubmittedAt: Date | null;
  readonly updatedAt: Date;
  /** Why it is where it is, as the last step that led here says. */
  readonly reason: string | null;
  readonly since: Date;
  /** Its receipt was withdrawn, and none has come since. */
  readonly withdrawn: boolean;
}

export interface ExplainedLane {
  readonly suspended: boolean;
  readonly owner: { readonly nodeId: string; readonly expiresAt: Date } | null;
  /** What stands at the nonce that the chain wants next, where it is not this one. */
  readonly head: { readonly txId: string; readonly nonce: number; readonly state: State } | null;
  /** The chain wants this nonce next, and no transaction of the lane holds it. */
  readonly hole: number | null;
  /** Why nothing holds it, as far as that is kept. */
  readonly holeDetail: string | null;
  /** It is kept for a caller that signs itself. */
  readonly holeReserved: boolean;
}

export interface ExplainedChain {
  readonly chainId: number;
  /** False: the chain of this transaction is not configured on the node that was asked. */
  readonly known: boolean;
  readonly reachable: boolean;
  readonly unreachableSince: Date | null;
  readonly minedCount: number | null;
  readonly head: number | null;
  readonly balance: bigint | null;
  readonly baseFee: bigint | null;
  /** The first of the last blocks in a row that asked for more than the transaction's fee cap. */
  readonly dearSinceBlock: number | null;
  /** Whether the node's pool holds one of its payloads; null where the node cannot tell. */
  readonly pooled: boolean | null;
  readonly finality: FinalityRule;
  readonly confirmations: number;
  readonly inFlightWindow: number;
  /** The most that may be offered there; null where the chain is not configured. */
  readonly ceilings: Ceilings | null;
  /** What its endpoints say of the block of its receipt cannot all be true, or one has not said it: it decides nothing. */
  readonly disputed: Disputed | null;
  /** The chain behind the URL is not the one the lane knows: nothing is decided. */
  readonly doubted: string | null;
}

export interface Disputed {
  readonly code: "RPC_DISAGREES" | "RPC_BEHIND";
  readonly answers: readonly string[];
  readonly since: Date | null;
}

export interface Explanation {
  readonly summary: string;
  readonly causes: readonly Cause[];
  readonly blockedBy?: { readonly txId: string; readonly nonce: number };
  readonly help: readonly { readonly code: HelpCode; readonly text: string }[];
}

export interface Cause {
  readonly code: CauseCode;
  readonly text: string;
  readonly since?: Date;
  readonly data?: Readonly<Record<string, string | number | Hash | null>>;
}

export const CAUSE_CODES = [
  "CONFIRMED",
  "REPLACED",
  "REVERTED",
  "CANCELLED",
  "NONCE_CONSUMED_EXTERNALLY",
  "REJECTED",
  "REQUEST_ID_REUSED",
  "WAITING_FOR_ALLOCATION",
  "WAITING_FOR_WINDOW",
  "WAITING_FOR_SIGNATURE",
  "WAITING_FOR_SEND",
  "WAITING_FOR_BLOCK",
  "WAITING_FOR_CONFIRMATIONS",
  "WAITING_FOR_FINALITY_TAG",
  "WAITING_BEHIND",
  "HOLE_BELOW",
  "RESERVED_BELOW",
  "LANE_SUSPENDED",
  "LANE_UNOWNED",
  "OWNER_SILENT",
  "CHAIN_UNKNOWN",
  "CHAIN_UNREACHABLE",
  "CHAIN_DOUBTED",
  "RPC_DISAGREES",
  "RPC_BEHIND",
  "FEE_BELOW_BASE_FEE",
  "FEE_CEILING_REACHED",
  "UNDERPRICED",
  "INSUFFICIENT_FUNDS",
  "NODE_REFUSED",
  "NODE_WANTS_LOWER_NONCE",
  "NODE_DID_NOT_ANSWER",
  "NOT_IN_POOL",
  "NONCE_CONSUMED",
  "NONCE_USED_BY_OTHERS",
  "SUBMIT_RESULT_UNKNOWN",
  "REORGED",
  "STUCK",
] as const;
export type CauseCode = (typeof CAUSE_CODES)[number];

export const HELP_CODES = [
  "WAIT",
  "LOOK_AT_BLOCKER",
  "RESUME_LANE",
  "START_A_NODE",
  "CHECK_RPC",
  "FUND_SIGNER",
  "REPRICE",
  "RAISE_CEILING",
  "RESUBMIT",
  "CANCEL",
  "REPLACE",
  "FILL_HOLE",
  "USE_RESERVATION",
  "SEND_ANEW",
  "PROTECT_KEY",
] as const;
export type HelpCode = (typeof HELP_CODES)[number];
