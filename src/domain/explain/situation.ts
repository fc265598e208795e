import type { Ceilings } from "../ceilings.ts";
import type { FinalityRule } from "../finality.ts";
import type { Kill } from "../kills.ts";
import type { Hash } from "../lane.ts";
import type { Approval, LedgerTransaction, TransactionDetails } from "../ledger/index.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Scope } from "../principal.ts";
import type { Attempt, LaneTransaction } from "../transaction.ts";
import type { UnconfirmedRefusal } from "../unconfirmed-refusal.ts";

/** Everything an explanation is drawn from: facts of one moment, each null where it is unknown. */
export interface Situation {
  readonly now: Date;
  readonly transaction: ExplainedTransaction;
  readonly lane: ExplainedLane;
  readonly chain: ExplainedChain;
}

/** `lastError`: the node's answer by its name (domain/answers.ts), a colon, its own words. */
export interface ExplainedTransaction
  extends Pick<LedgerTransaction, "txId" | "nonce" | "state" | "subState">,
    Omit<TransactionDetails, "lostSightAt"> {
  readonly value: bigint;
  readonly gas: bigint | null;
  readonly attempts: readonly Attempt[];
  readonly updatedAt: Date;
  /** Why it is where it is, as the last step that led here says. */
  readonly reason: string | null;
  readonly since: Date;
  /** The rule of a policy that keeps it from being offered for more, and the one that keeps it from being cancelled. */
  readonly forbidden: Forbidden | null;
  readonly forbiddenCancel: Forbidden | null;
  /** While it waits for approval: by which rule, until when, and whose it is. */
  readonly awaiting: (Pick<Approval, "rule" | "expiresAt"> & { readonly owner: string | null }) | null;
  /** Its receipt was withdrawn, and none has come since. */
  readonly withdrawn: boolean;
  /** Its caller's word, and since when it is being cancelled because of that; null: not given, and not yet. */
  readonly validUntil: Date | null;
  readonly expiredAt: Date | null;
  /** Who holds it back, and why; null: nobody does. */
  readonly held: Held | null;
  /** An endpoint refuses it, and that is not confirmed yet, as far as the node that was asked knows. */
  readonly refusal: Pick<UnconfirmedRefusal, "reason" | "firstBlock" | "waitsFor" | "since"> | null;
}

export interface Held {
  readonly since: Date;
  readonly actor: string;
  readonly reason: string;
}

export interface ExplainedLane {
  /** As it is shown to people. */
  readonly signer: string;
  /** The order to stop that is in force for its signer. */
  readonly killed: Kill | null;
  readonly suspended: boolean;
  /** Who suspended it, and why. */
  readonly suspendedFor: string | null;
  readonly owner: { readonly nodeId: string; readonly expiresAt: Date } | null;
  /** Nothing is signed for it now, as far as the node that was asked knows. */
  readonly signerAway: { readonly since: Date; readonly reason: string } | null;
  /** What it waits for: what stands at the nonce that the chain wants next, or is held back below it. */
  readonly head: (Pick<LaneTransaction, "txId" | "nonce" | "state"> & { readonly held: boolean }) | null;
  /** The chain wants this nonce next, and no transaction of the lane holds it. */
  readonly hole: ExplainedHole | null;
  /** How many nonces were given after this one's. */
  readonly behind: number;
}

export interface ExplainedHole {
  readonly nonce: number;
  /** Why nothing holds it, as far as that is kept. */
  readonly detail: string | null;
  /** It is kept for a caller that signs itself. */
  readonly reserved: boolean;
  /** Who fills it: an order about the head of the lane, this one; a loop, by itself; the chain node, which holds the key. */
  readonly filling: { readonly by: "order"; readonly txId: string } | { readonly by: "itself" | "chainNode" };
  /** The rule of a policy that keeps everybody from filling it. */
  readonly forbidden: Forbidden | null;
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
  /** So often what a node took is sent again before it is called stuck; 0: age alone decides. */
  readonly stuckAfterResubmits: number;
  /** The most that may be offered there; null where the chain is not configured. */
  readonly ceilings: Ceilings | null;
  /** What its endpoints say of the block of its receipt cannot all be true, or one has not said it: it decides nothing. Without a receipt: of the price of gas. */
  readonly disputed: Disputed | null;
  /** Endpoints that alone are given what is private. */
  readonly privateEndpoints: readonly string[];
  /** The chain behind the URL is not the one the lane knows: nothing is decided. */
  readonly doubted: string | null;
}

export interface Disputed {
  readonly code: "RPC_DISAGREES" | "RPC_BEHIND";
  readonly answers: readonly string[];
  readonly since: Date | null;
}

export interface Explanation {
  /** What is wrong, what that holds up, and what helps: for somebody who reads nothing else. */
  readonly summary: string;
  /** What decides first. */
  readonly causes: readonly Cause[];
  /** Without its id where nothing holds the nonce, or the transaction may be another key's business. */
  readonly blockedBy?: { readonly txId?: string; readonly nonce: number };
  /** What helps now, most useful first. */
  readonly help: readonly { readonly code: HelpCode; readonly text: string }[];
  /** Of that, what can be done by a request to this API. */
  readonly actions: readonly OfferedAction[];
}

export const OFFERED_ACTIONS = [
  "resubmit",
  "reprice",
  "cancel",
  "resolve",
  "approve",
  "reject",
  "resume",
  "resumeLane",
  "endKill",
] as const;

/** One request, complete: sent as it stands here, it is accepted now. Its reason may be put in better words. */
export interface OfferedAction {
  readonly action: (typeof OFFERED_ACTIONS)[number];
  /** The help that it is. */
  readonly code: HelpCode;
  /** For a button. */
  readonly label: string;
  readonly method: "POST" | "DELETE";
  readonly path: string;
  readonly body: Readonly<Record<string, string | number | boolean>> & { readonly reason: string };
  /** What the API key needs; the one that made a transaction may cancel it with `submit`. */
  readonly scope: Scope;
}

export interface Cause {
  readonly code: CauseCode;
  readonly text: string;
  readonly since?: Date;
  readonly data?: Readonly<Record<string, string | number | Hash | null>>;
}

/** What would help; its words, and what is sent for it, are in advice.ts. */
export const HELP_CODES = [
  "WAIT",
  "LOOK_AT_BLOCKER",
  "END_KILL",
  "RESUME_LANE",
  "RESUME_TRANSACTION",
  "START_A_NODE",
  "CHECK_RPC",
  "CHECK_SIGNER",
  "FUND_SIGNER",
  "REPRICE",
  "RAISE_CEILING",
  "APPROVE",
  "RAISE_LIMIT",
  "RESUBMIT",
  "DISCLOSE",
  "CANCEL",
  "REPLACE",
  "FILL_HOLE",
  "USE_NONCE_ELSEWHERE",
  "USE_RESERVATION",
  "SEND_ANEW",
  "PROTECT_KEY",
] as const;
export type HelpCode = (typeof HELP_CODES)[number];

/** Every cause, and what may help where it is the one that decides, best first; possible.ts says what of it helps now. */
export const HELPS = {
  CONFIRMED: [],
  REPLACED: [],
  REVERTED: ["SEND_ANEW"],
  CANCELLED: [],
  NONCE_CONSUMED_EXTERNALLY: ["PROTECT_KEY", "SEND_ANEW"],
  REJECTED: ["SEND_ANEW"],
  REQUEST_ID_REUSED: ["SEND_ANEW"],
  EXPIRED: ["SEND_ANEW"],
  AWAITING_APPROVAL: ["APPROVE", "CANCEL"],
  HELD: ["RESUME_TRANSACTION", "CANCEL"],
  EXPIRES: [],
  EXPIRING: [],
  REFUSAL_UNCONFIRMED: ["CHECK_RPC"],
  WAITING_FOR_ALLOCATION: [],
  WAITING_FOR_WINDOW: [],
  WAITING_FOR_SIGNATURE: [],
  WAITING_FOR_SEND: [],
  WAITING_FOR_BLOCK: [],
  WAITING_FOR_CONFIRMATIONS: [],
  WAITING_FOR_FINALITY_TAG: [],
  WAITING_BEHIND: ["LOOK_AT_BLOCKER"],
  HOLE_BELOW: ["FILL_HOLE", "USE_NONCE_ELSEWHERE", "RAISE_LIMIT", "CHECK_SIGNER"],
  RESERVED_BELOW: ["USE_RESERVATION"],
  KILLED: ["END_KILL"],
  LANE_SUSPENDED: ["RESUME_LANE"],
  LANE_UNOWNED: ["START_A_NODE"],
  OWNER_SILENT: ["START_A_NODE"],
  CHAIN_UNKNOWN: ["START_A_NODE"],
  CHAIN_UNREACHABLE: ["CHECK_RPC"],
  CHAIN_DOUBTED: ["CHECK_RPC"],
  SIGNER_AWAY: ["CHECK_SIGNER"],
  RPC_DISAGREES: ["CHECK_RPC"],
  RPC_BEHIND: ["CHECK_RPC"],
  FEE_BELOW_BASE_FEE: ["REPRICE", "CANCEL", "USE_NONCE_ELSEWHERE"],
  FEE_CEILING_REACHED: ["REPRICE", "RAISE_CEILING", "CANCEL"],
  POLICY_LIMIT_REACHED: ["RAISE_LIMIT", "CANCEL"],
  UNDERPRICED: ["REPRICE", "CANCEL"],
  INSUFFICIENT_FUNDS: ["FUND_SIGNER", "CANCEL"],
  NODE_REFUSED: ["REPLACE", "CANCEL"],
  NODE_WANTS_LOWER_NONCE: [],
  NODE_DID_NOT_ANSWER: ["CHECK_RPC"],
  SENT_PRIVATELY: ["DISCLOSE"],
  NOT_IN_POOL: ["RESUBMIT"],
  NONCE_CONSUMED: [],
  NONCE_USED_BY_OTHERS: ["PROTECT_KEY"],
  SUBMIT_RESULT_UNKNOWN: [],
  REORGED: [],
  RESENT_OFTEN: ["REPRICE", "CHECK_RPC", "CANCEL"],
  STUCK: ["RESUBMIT", "REPRICE", "CHECK_RPC", "CANCEL", "USE_NONCE_ELSEWHERE"],
} as const satisfies Readonly<Record<string, readonly HelpCode[]>>;
export type CauseCode = keyof typeof HELPS;
export const CAUSE_CODES = Object.keys(HELPS) as CauseCode[];
