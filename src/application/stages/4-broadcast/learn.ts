/**
 * Stage 4, beside the transaction itself: what a node's answer says about the lane and about what stands in the way.
 *
 * Reads and writes memory alone, and raises an alert where an operator should know. A crash loses facts that the next
 * owner's first send finds out again.
 */
import type { AlertCode } from "../../../domain/alerts.ts";
import { isTaken, type SubmitResult } from "../../../domain/answers.ts";
import { futureRefused, paid, paymentFailed } from "../../../domain/pace/lane-pace.ts";
import { sentAfresh } from "../../../domain/pace/transaction-pace.ts";
import type { Ports } from "../../../ports/ports.ts";
import { happened } from "../../lane/happened.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { establish, isRefusedForGood, type Tracked } from "../../lane/tracked.ts";

export type LearnPorts = Pick<Ports, "clock" | "entropy" | "telemetry">;

export interface Answered {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly result: SubmitResult;
}

export function learn(ports: LearnPorts, answered: Answered): void {
  const { lane, tx, result } = answered;
  if (isTaken(result.answer)) {
    tx.facts.delete("INSUFFICIENT_FUNDS");
    tx.facts.delete("REFUSED_FOR_GOOD");
    happened(lane, paid);
  }
  if (result.answer === "rejected") learnRejection(ports, answered);
  if (result.answer === "insufficientFunds") learnPoverty(ports, answered);
  if (result.answer === "nonceTooHigh") learnNoFuture(ports, lane, tx);
}

/** Once per lane while it lasts: everything behind waits for the same money, and goes on by itself when it comes. */
function learnPoverty(ports: LearnPorts, answered: Answered): void {
  const { lane, tx, result } = answered;
  const since = ports.clock.now();
  establish(tx, "INSUFFICIENT_FUNDS", { text: wordsOf(result), since });
  if (lane.pace.unpaidSince !== null) return;
  happened(lane, paymentFailed, since);
  alert(ports, answered, "INSUFFICIENT_FUNDS");
}

function learnRejection(ports: LearnPorts, answered: Answered): void {
  const { tx, result } = answered;
  if (!isRefusedForGood(tx)) return;
  const isNew = establish(tx, "REFUSED_FOR_GOOD", { text: wordsOf(result), since: ports.clock.now() });
  if (isNew) alert(ports, answered, "TX_REFUSED");
}

/** What stands before it is not at the node, whatever was said when it was sent: it goes first, then this one again. */
function learnNoFuture(ports: LearnPorts, lane: OwnedLane, tx: Tracked): void {
  happened(lane, futureRefused, { nowMs: ports.clock.monotonicMs(), random: ports.entropy.random() });
  for (const lower of lane.unmined.values()) {
    const { answer } = lower.pace;
    if (lower.nonce < tx.nonce && answer !== null && isTaken(answer)) happened(lower, sentAfresh);
  }
}

function wordsOf({ detail, answer }: SubmitResult): string {
  return detail ?? answer;
}

function alert({ telemetry }: LearnPorts, { lane, tx, result }: Answered, code: AlertCode): void {
  const message = `nonce ${tx.nonce} of ${lane.lane.signer} waits: ${wordsOf(result)}`;
  telemetry.emit({ type: "alert", severity: "ERROR", code, message, lane: lane.lane, txId: tx.txId });
}
