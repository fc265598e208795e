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
import type { Away } from "./words.ts";

/** Everything an explanation is drawn from: facts of one moment, each null if it is unknown. */
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
  /** The reason for its state, from the last step. */
  readonly reason: string | null;
  readonly since: Date;
  /** The rule of a policy that keeps it from being offered for more, and the one that keeps it from being cancelled. */
  readonly forbidden: Forbidden | null;
  readonly forbiddenCancel: Forbidden | null;
  /**
   * While the transaction waits for approval: the rule that requires it, when it expires, and the owner of the
   * transaction.
   */
  readonly awaiting: (Pick<Approval, "rule" | "expiresAt"> & { readonly owner: string | null }) | null;
  /** True: the transaction's receipt was withdrawn, and there is no new one. */
  readonly withdrawn: boolean;
  /** Its caller's word, and since when it is being cancelled because of that; null: not given, and not yet. */
  readonly validUntil: Date | null;
  readonly expiredAt: Date | null;
  /** The hold in force, with its actor and reason; null: not held. */
  readonly held: Held | null;
  /** The last action that was taken about it, except a hold; null: none was, or it is over. */
  readonly asked: Asked | null;
  /** An endpoint refuses it, and that is not confirmed yet, as far as the node that was asked knows. */
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
  /** Address with checksum, for people. */
  readonly signer: string;
  /** The order to stop that is in force for its signer. */
  readonly killed: Kill | null;
  readonly suspended: boolean;
  /** Actor and reason of the lane's suspension. */
  readonly suspendedFor: string | null;
  readonly owner: { readonly nodeId: string; readonly expiresAt: Date } | null;
  /** Nothing is signed for it now, as far as the node that was asked knows. */
  readonly signerAway: Away | null;
  /** Its obstacle: the holder of the nonce that the chain wants next, or a held transaction below it. */
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
  /** True: the nonce is reserved for a caller that signs itself. */
  readonly reserved: boolean;
  /**
   * What fills the nonce. "order": an action on `txId`, the head of the lane. "itself": a loop. "chainNode": the chain
   * node, which holds the key.
   */
  readonly filling: { readonly by: "order"; readonly txId: string } | { readonly by: "itself" | "chainNode" };
  /** The policy rule that forbids filling it. */
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
  /** Figures are those of the last read, not of this moment. */
  readonly remembered?: boolean;
  /** True if the node's pool holds a payload of the transaction; null if the node does not report it. */
  readonly pooled: boolean | null;
  readonly finality: FinalityRule;
  readonly confirmations: number;
  readonly inFlightWindow: number;
  /** How often an accepted transaction is sent again before it is called stuck; 0: age alone decides. */
  readonly stuckAfterResubmits: number;
  /** The highest offer there; null if the chain is not configured. */
  readonly ceilings: Ceilings | null;
  /**
   * Endpoints contradict each other about the block of the receipt, or one has not answered: nothing is decided then. Without a
   * receipt, they contradict each other about the price of gas.
   */
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
  /** The trouble, what waits behind it, and what helps: for a reader of nothing else. */
  readonly summary: string;
  /** The decisive cause. */
  readonly causes: readonly Cause[];
  /** Without its id if nothing holds the nonce, or the transaction may belong to another key. */
  readonly blockedBy?: { readonly txId?: string; readonly nonce: number };
  /** Remedies for now, most useful first. */
  readonly help: readonly { readonly code: HelpCode; readonly text: string }[];
  /** The remedies that a request to this API performs. */
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

/** One complete request: sent unchanged, it is accepted now. Its reason may be put in better words. */
export interface OfferedAction {
  readonly action: (typeof OFFERED_ACTIONS)[number];
  /** The help that it is. */
  readonly code: HelpCode;
  /** For a button. */
  readonly label: string;
  readonly method: "POST" | "DELETE";
  readonly path: string;
  readonly body: Readonly<Record<string, string | number | boolean>> & { readonly reason: string };
  /** Required scope; the key that made a transaction may cancel it with `submit`. */
  readonly scope: Scope;
}

export interface Cause {
  readonly code: CauseCode;
  readonly text: string;
  readonly since?: Date;
  readonly data?: Readonly<Record<string, string | number | Hash | null>>;
}
