import type { Ceilings } from "../ceilings.ts";
import type { FinalityRule } from "../finality.ts";
import type { Kill } from "../kills.ts";
import type { Hash } from "../lane.ts";
import type { Approval, LedgerTransaction, TransactionDetails } from "../ledger/index.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Attempt, LaneTransaction } from "../transaction.ts";

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
  /** The rule of a policy that keeps it from being offered for more. */
  readonly forbidden: Forbidden | null;
  /** While it waits for approval: by which rule, until when, and whose it is. */
  readonly awaiting: (Pick<Approval, "rule" | "expiresAt"> & { readonly owner: string | null }) | null;
  /** Its receipt was withdrawn, and none has come since. */
  readonly withdrawn: boolean;
  /** Its caller's word, and since when it is being cancelled because of that; null: not given, and not yet. */
  readonly validUntil: Date | null;
  readonly expiredAt: Date | null;
  /** Who holds it back, and why; null: nobody does. */
  readonly held: Held | null;
}

export interface Held {
  readonly since: Date;
  readonly actor: string;
  readonly reason: string;
}

export interface ExplainedLane {
  /** The order to stop that is in force for its signer. */
  readonly killed: Kill | null;
  readonly suspended: boolean;
  readonly owner: { readonly nodeId: string; readonly expiresAt: Date } | null;
  /** Nothing is signed for it now, as far as the node that was asked knows. */
  readonly signerAway: { readonly since: Date; readonly reason: string } | null;
  /** What stands at the nonce that the chain wants next, where it is not this one. */
  readonly head: (Pick<LaneTransaction, "txId" | "nonce" | "state"> & { readonly held: boolean }) | null;
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
  /** Without its id where the transaction may be another key's business. */
  readonly blockedBy?: { readonly txId?: string; readonly nonce: number };
  readonly help: readonly { readonly code: HelpCode; readonly text: string }[];
}

export interface Cause {
  readonly code: CauseCode;
  readonly text: string;
  readonly since?: Date;
  readonly data?: Readonly<Record<string, string | number | Hash | null>>;
}

/** What would help, in words. */
export const HELP = {
  WAIT: "nothing needs to be done: it goes on by itself",
  LOOK_AT_BLOCKER: "look at the transaction it waits for; whatever helps that one helps all behind it",
  END_KILL:
    "find out why it was ordered; then end the order with a key that has `admin` (DELETE /api/v1/kill, or DELETE /api/v1/signers/{signer}/kill)",
  RESUME_LANE: "resume the lane (POST /api/v1/signers/{signer}/resume)",
  RESUME_TRANSACTION: "let it go on (POST /api/v1/tx/{txId}/resume), or cancel it",
  START_A_NODE: "start a node that holds this signer's key and reaches its chain",
  CHECK_RPC: "check the chain's endpoints; several can be configured, and failing ones are passed over",
  CHECK_SIGNER: "check the service that holds this signer's key, and what this node may do there",
  FUND_SIGNER: "send funds to the signer; it goes on by itself once they are there",
  REPRICE: "offer more (POST /api/v1/tx/{txId}/reprice)",
  RAISE_CEILING:
    "raise the ceiling that is named (FENCEPOST_MAX_FEE_GWEI, FENCEPOST_MAX_GAS_COST_WEI or FENCEPOST_MAX_COST_WEI), or wait until the market is below it",
  APPROVE:
    "have it approved or rejected by a key with `approve` that did not make it (POST /api/v1/tx/{txId}/approve or reject); its maker may cancel it",
  RAISE_LIMIT: "raise the limit that is named in the policies, or wait until the next hour or day begins",
  RESUBMIT: "send the stored bytes again now (POST /api/v1/tx/{txId}/resubmit)",
  CANCEL: "give it up safely (POST /api/v1/tx/{txId}/cancel): its nonce is used without effect",
  REPLACE: "replace what it does (POST /api/v1/tx/{txId}/replace)",
  FILL_HOLE:
    'resolve the head of the lane with { "action": "PLACEHOLDER" } (POST /api/v1/tx/{txId}/resolve), or set FENCEPOST_HOLE_POLICY=heal; a nonce that was given back is filled by the next transaction too',
  USE_RESERVATION:
    "let the caller that reserved the nonce hand in what it signed, name its hash, or release it (POST /api/v1/nonces/{id}/submit, used or release)",
  SEND_ANEW: "send it again under a new request id, once you know why it was refused",
  PROTECT_KEY: "find out who else signs with this key: two users of one key race for its nonces",
} as const;
export type HelpCode = keyof typeof HELP;
export const HELP_CODES = Object.keys(HELP) as HelpCode[];

/** Every cause, and what helps where it is one. */
export const HELPS = {
  CONFIRMED: [],
  REPLACED: [],
  REVERTED: ["SEND_ANEW"],
  CANCELLED: [],
  NONCE_CONSUMED_EXTERNALLY: ["PROTECT_KEY", "SEND_ANEW"],
  REJECTED: ["SEND_ANEW"],
  REQUEST_ID_REUSED: ["SEND_ANEW"],
  EXPIRED: ["SEND_ANEW"],
  AWAITING_APPROVAL: ["APPROVE"],
  HELD: ["RESUME_TRANSACTION"],
  EXPIRES: [],
  EXPIRING: [],
  WAITING_FOR_ALLOCATION: [],
  WAITING_FOR_WINDOW: [],
  WAITING_FOR_SIGNATURE: [],
  WAITING_FOR_SEND: [],
  WAITING_FOR_BLOCK: [],
  WAITING_FOR_CONFIRMATIONS: [],
  WAITING_FOR_FINALITY_TAG: [],
  WAITING_BEHIND: ["LOOK_AT_BLOCKER"],
  HOLE_BELOW: ["FILL_HOLE"],
  RESERVED_BELOW: ["USE_RESERVATION"],
  KILLED: ["END_KILL"],
  LANE_SUSPENDED: ["RESUME_LANE"],
  LANE_UNOWNED: ["START_A_NODE"],
  OWNER_SILENT: ["WAIT", "START_A_NODE"],
  CHAIN_UNKNOWN: ["START_A_NODE"],
  CHAIN_UNREACHABLE: ["CHECK_RPC"],
  CHAIN_DOUBTED: ["CHECK_RPC"],
  SIGNER_AWAY: ["CHECK_SIGNER"],
  RPC_DISAGREES: ["CHECK_RPC"],
  RPC_BEHIND: ["CHECK_RPC"],
  FEE_BELOW_BASE_FEE: ["REPRICE", "CANCEL"],
  FEE_CEILING_REACHED: ["RAISE_CEILING", "CANCEL"],
  POLICY_LIMIT_REACHED: ["RAISE_LIMIT", "CANCEL"],
  UNDERPRICED: ["REPRICE"],
  INSUFFICIENT_FUNDS: ["FUND_SIGNER", "CANCEL"],
  NODE_REFUSED: ["REPLACE", "CANCEL"],
  NODE_WANTS_LOWER_NONCE: [],
  NODE_DID_NOT_ANSWER: ["CHECK_RPC"],
  NOT_IN_POOL: ["RESUBMIT", "REPRICE"],
  NONCE_CONSUMED: [],
  NONCE_USED_BY_OTHERS: ["PROTECT_KEY"],
  SUBMIT_RESULT_UNKNOWN: [],
  REORGED: [],
  STUCK: ["RESUBMIT", "REPRICE", "CANCEL"],
} as const satisfies Readonly<Record<string, readonly HelpCode[]>>;
export type CauseCode = keyof typeof HELPS;
export const CAUSE_CODES = Object.keys(HELPS) as CauseCode[];
