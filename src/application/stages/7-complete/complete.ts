/**
 * Stage 7: persists the outcome and its place in the feed together, in one fenced transaction whose last statement
 * updates the feed's counter.
 *
 * Reads: nothing more. Writes: final state, history, completion, and the receipt if it differs from the stored one.
 * Invariant I8: one completion for each time that a transaction enters a final state; commit order = sequence order. A
 * crash before the commit leaves TRACKING/MINED, decided again by the next owner; after it, everything is written.
 */

import { NOTHING_PAID, type Paid } from "../../../domain/policy/charges.ts";
import { feeCap } from "../../../domain/transaction/fees.ts";
import type { Attempt, Receipt } from "../../../domain/transaction/transaction.ts";
import type { TransitionEvent } from "../../../domain/transaction/transitions.ts";
import type { TrackedRecord } from "../../../ports/lane-store.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { quietly } from "../../lane/term.ts";

export interface Correction {
  /** The receipt that the decision is based on. */
  readonly receipt: Receipt;
  /** How the stored receipt was wrong. "false": the stored one would have led to another outcome. */
  readonly stored: keyof typeof REASONS;
}

const REASONS = {
  false: "the receipt that was found first was false, and is replaced by the one that could be settled",
  imprecise: "the price that was paid is what could be settled of it",
} as const;

/** Facts that the endpoints agreed on and that differ from those recorded when the transaction was found mined. */
export interface Findings {
  /** Receipts that differ from the ones in the database. */
  readonly corrected: ReadonlyMap<Tracked, Correction>;
  /**
   * True if the mined transaction is another program's. Has entries only for transactions whose contents the endpoints
   * agreed on.
   */
  readonly foreign: ReadonlyMap<Tracked, boolean>;
}

/**
 * Commits the outcomes of settled transactions, with their evidence. The finality pass does not wait for this commit:
 * the lane's later writes follow it in order, and a failure reloads the lane.
 */
export function complete(
  ports: LanePorts,
  lane: OwnedLane,
  settled: readonly Tracked[],
  { corrected, foreign }: Findings,
): void {
  const planned = settled.map((tx) => {
    lane.settle(tx);
    const correction = corrected.get(tx);
    const receipt = correction?.receipt ?? tx.receipt;
    const mined = minedOf(tx, receipt, foreign.get(tx));
    const outcome = outcomeOf(tx, mined, receipt);
    const reasons = [expiryNote(tx, outcome), correction === undefined ? null : REASONS[correction.stored]];
    const reason = reasons.filter((each) => each !== null).join("; ");
    const paid = paidFor(mined, receipt);
    const measured = mined === null ? {} : { measured: { createdAt: tx.createdAt, offered: feeCap(mined.fees) } };
    const details = reason === "" ? { paid, ...measured } : { reason, paid, ...measured };
    return plan(tx, outcome, correction === undefined ? details : { receipt: correction.receipt, ...details });
  });
  const report = () => {
    ports.feedGrew();
    return ports.failpoint("complete.committed");
  };
  const writing = quietly(commitPlanned(ports, lane, planned).then(report));
  lane.outcomes.add(writing, (error) => lane.term.readAgain(String(error)));
}

/**
 * The mined attempt. Whether it is another program's follows from the contents that the endpoints agree on, or else
 * from the stored attempt.
 */
function minedOf(
  { attempts }: Pick<Tracked, "attempts">,
  receipt: Receipt | null,
  isForeign: boolean | undefined,
): MinedAttempt | null {
  const mined = attempts.find((attempt) => attempt.txHash === receipt?.txHash);
  return mined === undefined ? null : { ...mined, isForeign: isForeign ?? mined.foreign === true };
}

type MinedAttempt = Attempt & { readonly isForeign: boolean };

/** The amount that a settled transaction's outcome has counted as paid, for a reorg that withdraws the outcome. */
export function paidBefore(record: Pick<TrackedRecord, "subState" | "attempts" | "receipt">): Paid {
  if (record.subState === "NONCE_CONSUMED_EXTERNALLY") return NOTHING_PAID;
  return paidFor(minedOf(record, record.receipt, undefined), record.receipt);
}

/** The amount that was paid; policies count it from here on instead of the maximum cost. */
function paidFor(mined: MinedAttempt | null, receipt: Receipt | null): Paid {
  if (mined === null || mined.isForeign || receipt === null) return NOTHING_PAID;
  const { gasUsed, effectiveGasPrice, besideGas = 0n, besideGasUnsure } = receipt;
  const gasCost = gasUsed * (effectiveGasPrice ?? feeCap(mined.fees)) + besideGas;
  const paid = { ordinal: mined.ordinal, gasCost, succeeded: receipt.status === "success" };
  return besideGasUnsure === true ? { ...paid, unsure: true } : paid;
}

/** Note, added to the outcome, about the cancel that was sent because `validUntil` had passed. */
function expiryNote({ expired, validUntil }: Tracked, outcome: TransitionEvent) {
  if (!expired) return null;
  const over = `its validUntil, ${validUntil?.toISOString()}, was over`;
  if (outcome === "confirmExpiry") return `${over}: a transaction without effect was mined at its nonce`;
  return `${over}, but it was too late to expire: its cancel was not the one that was mined`;
}

/** The outcome. It depends on whose payload was mined and, if it is the caller's, on whether it succeeded. */
function outcomeOf({ expired }: Tracked, mined: MinedAttempt | null, receipt: Receipt | null): TransitionEvent {
  if (mined?.isForeign) return "loseNonce";
  if (mined?.kind === "cancel" || mined?.kind === "placeholder") return expired ? "confirmExpiry" : "confirmCancel";
  if (receipt?.status === "reverted") return "revert";
  return mined?.kind === "replace" ? "confirmReplacement" : "confirm";
}
