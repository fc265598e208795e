/**
 * Stage 4, after a send: what the node said, when to ask again, and what the answer says about the lane and about what
 * stands in the way.
 *
 * Reads: the answer. Writes: nothing itself; the moves it plans are committed by its caller, and an alert is raised where
 * an operator should know. Invariant I7: an unknown answer decides nothing. A crash before they are committed leaves
 * TRACKING/PENDING, sent again by the next owner, whose first send finds out again what memory has lost.
 */

import { isTaken, type SubmitResult } from "../../../domain/chain/answers.ts";
import { futureRefused, futureTaken, paid, paymentFailed } from "../../../domain/pace/lane-pace.ts";
import { refused, sentAfresh, spent, taken, turnedTo } from "../../../domain/pace/transaction-pace.ts";
import { afterInterval } from "../../../domain/pace/when.ts";
import { sendableAttempts } from "../../../domain/transaction/attempts.ts";
import type { AlertCode } from "../../../domain/troubles/alerts.ts";
import type { TransitionItem } from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { establish, happened, isRefusedForGood, resubmitEveryMs, type Tracked } from "../../lane/tracked.ts";

/** Notes what follows for the pace of the lane and of the transaction. */
export function note(ports: LanePorts, context: ChainContext, work: Answered): void {
  const { lane, tx, result } = work;
  report(ports, work);
  if (tx.receipt !== null) {
    happened(tx, spent);
    return;
  }
  const { answer } = result;
  const nowMs = ports.clock.monotonicMs();
  if (isTaken(answer)) {
    const everyMs = resubmitEveryMs(context.settings.resubmitIntervalMs, tx.status.state);
    const block = context.follower.head?.number ?? 0;
    happened(tx, taken, answer, afterInterval(nowMs, everyMs), { block, ms: nowMs });
    learn(ports, work);
    if (tx.nonce !== lane.headOfLine()) happened(lane, futureTaken);
    else if (lane.pace.window.kind === "closed") context.lookSoon();
    return;
  }
  happened(tx, refused, answer, { nowMs, random: ports.entropy.random() });
  learn(ports, work);
  if (result.gasCap !== undefined) context.gasLimits.learn(result.gasCap, gasAsked(tx));
  if (answer === "insufficientFunds" || answer === "rejected") fallBack(tx);
}

/** What the database must be told of an answer. `identified`: the node that signed has also said what it made. */
export function planAnswer(
  { tx, result: { answer, detail } }: Answered,
  identified?: TransitionItem["identified"],
): readonly Planned[] {
  if (tx.receipt !== null) return [];
  const named = identified === undefined ? {} : { identified };
  return isTaken(answer)
    ? planTaken(tx, named)
    : planFailed(tx, `${answer}${detail === null ? "" : `: ${detail}`}`, named);
}

function gasAsked({ attempts, pace }: Tracked) {
  return attempts.find(({ ordinal }) => ordinal === pace.sendOrdinal)?.gas ?? 0n;
}

/** What was signed for more cannot be had: what a node has taken before is kept alive instead. */
function fallBack(tx: Tracked) {
  const known = sendableAttempts(tx.attempts).find(({ ordinal }) => ordinal === tx.acceptedOrdinal);
  if (known !== undefined) happened(tx, turnedTo, known.ordinal);
}

type Named = Pick<TransitionItem, "identified">;

function planTaken(tx: Tracked, named: Named) {
  const accepted = { ordinal: tx.pace.sendOrdinal as number };
  const isFirst = (tx.acceptedOrdinal ?? 0) < accepted.ordinal;
  const isNews = isFirst || tx.lastError !== null || named.identified !== undefined;
  // A stale one that a node knows is stale still; and only the chain or a repair leads out of STUCK.
  if (!isNews && tx.status.subState !== "PENDING") return [];
  return [plan(tx, tx.status.state === "STUCK" ? "resubmit" : "broadcast", { accepted, lastError: null, ...named })];
}

/** The same words again, but for the numbers in them, are not written again: an outage must not fill the history. */
function planFailed(tx: Tracked, lastError: string, named: Named) {
  const isHeard = tx.lastError !== null && withoutNumbers(tx.lastError) === withoutNumbers(lastError);
  if (isHeard && named.identified === undefined) return [];
  return [plan(tx, "submitFailed", { lastError, reason: lastError, ...named })];
}

function withoutNumbers(text: string) {
  return text.replace(/0x[0-9a-f]+|[0-9]+/gi, "#");
}

function report(ports: LanePorts, { lane, tx, result }: Answered) {
  const first = tx.submitAttempts === 1;
  ports.telemetry.emit({
    type: "submit.answered",
    lane: lane.lane,
    txId: tx.txId,
    nonce: tx.nonce,
    txHash: tx.attempts.find((attempt) => attempt.ordinal === tx.pace.sendOrdinal)?.txHash ?? null,
    answer: result.answer,
    detail: result.detail,
    first,
    sinceCreatedMs: first ? Math.max(0, ports.clock.now().getTime() - tx.createdAt.getTime()) : null,
  });
}

export interface Answered {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly result: SubmitResult;
}

function learn(ports: LanePorts, answered: Answered) {
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
function learnPoverty(ports: LanePorts, answered: Answered) {
  const { lane, tx, result } = answered;
  const since = ports.clock.now();
  establish(tx, "INSUFFICIENT_FUNDS", { text: wordsOf(result), since });
  if (lane.pace.unpaidSince !== null) return;
  happened(lane, paymentFailed, since);
  alert(ports, answered, "INSUFFICIENT_FUNDS");
}

function learnRejection(ports: LanePorts, answered: Answered) {
  const { tx, result } = answered;
  if (!isRefusedForGood(tx)) return;
  const isNew = establish(tx, "REFUSED_FOR_GOOD", { text: wordsOf(result), since: ports.clock.now() });
  if (isNew) alert(ports, answered, "TX_REFUSED");
}

/** What stands before it is not at the node, whatever was said when it was sent: it goes first, then this one again. */
function learnNoFuture(ports: LanePorts, lane: OwnedLane, tx: Tracked) {
  happened(lane, futureRefused, { nowMs: ports.clock.monotonicMs(), random: ports.entropy.random() });
  for (const lower of lane.unmined.values()) {
    const { answer } = lower.pace;
    if (lower.nonce < tx.nonce && answer !== null && isTaken(answer)) happened(lower, sentAfresh);
  }
}

function wordsOf({ detail, answer }: SubmitResult) {
  return detail ?? answer;
}

function alert({ telemetry }: LanePorts, { lane, tx, result }: Answered, code: AlertCode) {
  const message = `nonce ${tx.nonce} of ${lane.lane.signer} waits: ${wordsOf(result)}`;
  telemetry.emit({ type: "alert", severity: "ERROR", code, message, lane: lane.lane, txId: tx.txId });
}
