/**
 * State changes of a transaction within one commit. The transaction's row is written once, with the state after the
 * last change.
 */
import type { Hash } from "../../../domain/lane.ts";
import type { Moved, QueuedChange } from "../../../domain/ledger/index.ts";
import type { Receipt, SignedAttempt } from "../../../domain/transaction/transaction.ts";
import { isSettled } from "../../../domain/transaction/transitions.ts";
import type { HistoryRow } from "../statements/history.ts";
import type { CurrentRow } from "../statements/transaction.ts";
import type { LanePlan } from "./plan.ts";

/** The needed members of a transaction's row, as it was before this commit, or as this commit inserted it. */
export type Before = Pick<CurrentRow, "txId" | "state" | "nonce" | "steps" | "allocatedBy" | "allocatedUnder"> & {
  readonly isNew?: true;
};

/** A history step to be written. Its times are set when it is written. */
export interface HistoryStep extends Omit<HistoryRow, "firstAt" | "lastAt"> {
  readonly txId: string;
  readonly chainId: number;
  /** Time of the step; absent means the time of the database transaction. */
  readonly at?: string;
}

/**
 * Shared empty list. Most transactions of a commit have, for example, no new attempts; a new list for each would be
 * garbage.
 */
const NONE: readonly never[] = [];

export class Move {
  readonly lane: LanePlan;
  readonly before: Before;
  /** The transaction's last step in this commit, which determines the new state of its row. */
  after: Moved;
  /** History steps in order. A repeat replaces the last step and raises its count. */
  readonly steps: HistoryStep[] = [];
  attempts: readonly { readonly attempt: SignedAttempt; readonly claimed: boolean }[] = NONE;
  /** Ordinals of attempts that were stored by an earlier commit and may be sent from this commit on. */
  sent: readonly number[] = NONE;
  identified: readonly { readonly ordinal: number; readonly txHash: Hash }[] = NONE;
  /** Ordinal of the attempt for which this commit last stored the right to send it (a claim); null if there is none. */
  claimed: number | null = null;
  claims = 0;
  /** New receipt; null deletes the stored one, undefined leaves it unchanged. */
  receipt: Receipt | null | undefined = undefined;
  lastError: string | null | undefined = undefined;
  change: QueuedChange | undefined = undefined;
  /** True if the transaction is put on hold, false if it is released; null if neither. */
  holds: boolean | null = null;
  /** True if the transaction is cancelled because its deadline passed. */
  expires = false;
  /** True if the transaction may be sent to public endpoints from now on. */
  discloses = false;

  constructor(lane: LanePlan, before: Before, first: Moved) {
    this.lane = lane;
    this.before = before;
    this.after = first;
    this.add(first);
  }

  add(moved: Moved): void {
    const { item } = moved;
    // When a transaction gets an outcome, its hold ends, even if the outcome is withdrawn in the same commit.
    if (this.steps.length > 0 && isSettled(this.after.item.to)) this.holds = false;
    this.after = moved;
    this.record(moved);
    if (item.attempt !== undefined) this.attempts = [...this.attempts, { attempt: item.attempt, claimed: false }];
    if (item.claim !== undefined) this.claim(item.claim.ordinal);
    if (item.identified !== undefined) this.identified = [...this.identified, item.identified];
    if (item.receipt !== undefined) this.receipt = item.receipt;
    if (item.lastError !== undefined) this.lastError = item.lastError;
    if (item.change !== undefined) this.change = item.change;
    if (item.event === "hold" || item.event === "unhold") this.holds = item.event === "hold";
    if (item.expires === true) this.expires = true;
    if (item.disclosed === true) this.discloses = true;
  }

  private record({ item, step }: Moved) {
    const { nodeId, token, chainId } = this.lane.row;
    const repeated = this.steps.at(-1)?.ordinal === step ? this.steps.pop() : undefined;
    this.steps.push({
      txId: item.txId,
      ordinal: step,
      chainId,
      event: item.event,
      fromState: item.from,
      state: item.to,
      subState: item.subState,
      nodeId,
      token,
      reason: item.reason ?? null,
      actor: item.decision?.actor ?? null,
      audit: item.decision?.audit ?? null,
      count: (repeated?.count ?? 0) + 1,
    });
  }

  private claim(ordinal: number) {
    this.claimed = ordinal;
    this.claims++;
    const isNew = this.attempts.some(({ attempt }) => attempt.ordinal === ordinal);
    if (!isNew) this.sent = [...this.sent.filter((each) => each !== ordinal), ordinal];
    else
      this.attempts = this.attempts.map((each) =>
        each.attempt.ordinal === ordinal ? { ...each, claimed: true } : each,
      );
  }
}
