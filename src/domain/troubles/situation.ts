import type { FinalityRule } from "../chain/finality.ts";
import type { UnconfirmedRefusal } from "../chain/unconfirmed-refusal.ts";
import type { Kill } from "../cluster/kills.ts";
import type { Ceilings } from "../fees/ceilings.ts";
import type { Scope } from "../keys/principal.ts";
import type { Hash } from "../lane.ts";
import type { Approval, LedgerTransaction, TransactionDetails } from "../ledger/index.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Attempt, LaneTransaction } from "../transaction/transaction.ts";
import type { CauseCode, HelpCode } from "./table.ts";
import type { Away, SignerAbsence } from "./words.ts";

/** All facts that the explanation of a transaction is based on, as read at one time. A fact that is unknown is null. */
export interface Situation {
  readonly now: Date;
  readonly transaction: ExplainedTransaction;
  readonly lane: ExplainedLane;
  readonly chain: ExplainedChain;
}

/**
 * The transaction to explain. `lastError`: name of the node's response (domain/chain/answers.ts), a colon, the node's
 * own words.
 */
export interface ExplainedTransaction
  extends Pick<LedgerTransaction, "txId" | "nonce" | "state" | "subState">,
    Omit<TransactionDetails, "lostSightAt"> {
  readonly value: bigint;
  readonly gas: bigint | null;
  readonly attempts: readonly Attempt[];
  /** Reason for the transaction's state, from its last step. */
  readonly reason: string | null;
  readonly since: Date;
  /**
   * `forbidden`: the policy rule that forbids a higher price. `forbiddenCancel`: the policy rule that forbids a cancel.
   * Each is null if no rule forbids it.
   */
  readonly forbidden: Forbidden | null;
  readonly forbiddenCancel: Forbidden | null;
  /**
   * Set while the transaction waits for approval: the rule that requires the approval, when the wait expires, and the
   * owner of the transaction.
   */
  readonly awaiting: (Pick<Approval, "rule" | "expiresAt"> & { readonly owner: string | null }) | null;
  /** True if the transaction's receipt was withdrawn after a reorg, and there is no new one. */
  readonly withdrawn: boolean;
  /**
   * The caller's deadline; null if there is none. `expiredAt`: since when the transaction is being cancelled because
   * the deadline passed; null if it is not.
   */
  readonly validUntil: Date | null;
  readonly expiredAt: Date | null;
  /** The operator's hold on the transaction, with its actor and reason; null: the transaction is not on hold. */
  readonly held: Held | null;
  /**
   * The last operator action on the transaction, except a hold; null if there was none, or if the transaction is mined
   * or final.
   */
  readonly asked: Asked | null;
  /**
   * A refusal of the transaction that is not confirmed yet, by other endpoints or by the same one at a later block, as
   * far as the queried node knows; null: none.
   */
  readonly refusal: Pick<UnconfirmedRefusal, "reason" | "firstBlock" | "waitsFor" | "since"> | null;
}

export interface Held extends Away {
  readonly actor: string;
}

export interface Asked {
  readonly action: string;
  readonly by: string;
  readonly at: Date;
}

export interface ExplainedLane {
  /** Signer's address with checksum, for people. */
  readonly signer: string;
  /** The kill in force for the lane's signer. */
  readonly killed: Kill | null;
  readonly suspended: boolean;
  /** Actor and reason of the lane's suspension. */
  readonly suspendedFor: string | null;
  readonly owner: { readonly nodeId: string; readonly expiresAt: Date } | null;
  /** Set if the key holder of the lane's signer cannot sign at present, as far as the queried node knows. */
  readonly signerAway: SignerAbsence | null;
  /** Since when the lane has no owner, and why; null if it has one, or may only be between two owners. */
  readonly unowned: Away | null;
  /**
   * The transaction that blocks this one: the one at the nonce that the chain expects next or, if that one needs no
   * help, one on hold between the two. Null: none is known.
   */
  readonly head: (Pick<LaneTransaction, "txId" | "nonce" | "state"> & { readonly held: boolean }) | null;
  /**
   * The nonce that the chain expects next, if no transaction of the lane has it: a nonce gap or a reserved nonce.
   * Otherwise null.
   */
  readonly hole: ExplainedHole | null;
  /** Number of the lane's given nonces above this transaction's nonce. */
  readonly behind: number;
}

export interface ExplainedHole {
  readonly nonce: number;
  /** Why no transaction has the nonce, if the cause is recorded. */
  readonly detail: string | null;
  /** True if the nonce is reserved for a caller that signs itself. */
  readonly reserved: boolean;
  /**
   * How the nonce gap gets filled. "action": by an operator's action on `txId`, the lane's lowest open transaction.
   * "itself": automatically. "chainNode": only through the RPC node, which holds the key.
   */
  readonly filling: { readonly by: "action"; readonly txId: string } | { readonly by: "itself" | "chainNode" };
  /** The policy rule that forbids filling the nonce gap. */
  readonly forbidden: Forbidden | null;
}

export interface ExplainedChain {
  readonly chainId: number;
  /** False if the transaction's chain is not configured on the queried node. */
  readonly known: boolean;
  readonly reachable: boolean;
  readonly unreachableSince: Date | null;
  readonly minedCount: number | null;
  readonly head: number | null;
  readonly balance: bigint | null;
  readonly baseFee: bigint | null;
  /**
   * Number of the block since which every base fee was above the transaction's fee cap. Null if the newest base fee is
   * not above it, or if that began before the blocks that were read.
   */
  readonly dearSinceBlock: number | null;
  /** True if balance, transaction count and prices come from an earlier read and may be outdated. */
  readonly remembered?: boolean;
  /** True if the node's mempool holds a payload of the transaction; null if the node does not report it. */
  readonly pooled: boolean | null;
  readonly finality: FinalityRule;
  readonly confirmations: number;
  readonly inFlightWindow: number;
  /** Number of resends after which an accepted transaction becomes STUCK; 0: only its age decides. */
  readonly stuckAfterResubmits: number;
  /** Ceilings of prices on the chain; null if the chain is not configured. */
  readonly ceilings: Ceilings | null;
  /**
   * Set if endpoints contradict each other about the block of the receipt, or if one has not responded: then no outcome
   * is decided. Before there is a receipt: set if they contradict each other about the gas price.
   */
  readonly disputed: Disputed | null;
  /** Endpoints that may get private transactions. */
  readonly privateEndpoints: readonly string[];
  /** Time of the last block, if the endpoints answer and no block has come for unusually long; else null. */
  readonly stalledSince: Date | null;
  /** Set if the endpoint serves a chain other than the lane's: then no outcome is decided by its responses. */
  readonly doubted: string | null;
}

export interface Disputed {
  readonly code: "RPC_DISAGREES" | "RPC_BEHIND";
  readonly answers: readonly string[];
  readonly since: Date | null;
}

export interface Explanation {
  /** Text that names the trouble, what waits because of it, and what helps. It is complete without the other fields. */
  readonly summary: string;
  /** Causes that keep the transaction from its outcome, the decisive one first. */
  readonly causes: readonly Cause[];
  /**
   * The blocking nonce. `txId` is absent if no transaction has the nonce, or if the transaction may belong to another
   * API key.
   */
  readonly blockedBy?: { readonly txId?: string; readonly nonce: number };
  /** Remedies that help now, most useful first. */
  readonly help: readonly { readonly code: HelpCode; readonly text: string }[];
  /** Requests to this API that perform the remedies. */
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

/** One complete API request: sent unchanged, it is accepted now. The operator may write a better reason. */
export interface OfferedAction {
  readonly action: (typeof OFFERED_ACTIONS)[number];
  /** Code of the remedy that the request performs. */
  readonly code: HelpCode;
  /** Label of the request, for a button. */
  readonly label: string;
  readonly method: "POST" | "DELETE";
  readonly path: string;
  readonly body: Readonly<Record<string, string | number | boolean>> & { readonly reason: string };
  /** Scope required for the request. The API key that made a transaction may cancel it with `submit`. */
  readonly scope: Scope;
}

export interface Cause {
  readonly code: CauseCode;
  readonly text: string;
  readonly since?: Date;
  readonly data?: Readonly<Record<string, string | number | Hash | null>>;
}
