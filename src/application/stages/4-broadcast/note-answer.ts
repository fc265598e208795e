/**
 * Stage 4, after a send: what the node said, and when to ask again.
 *
 * Reads: the answer. Writes: nothing itself; the moves it plans are committed by its caller. Invariant I7: an unknown
 * answer decides nothing. A crash before they are committed leaves TRACKING/PENDING, sent again by the next owner.
 */
import { isTaken, type SubmitAnswer, type SubmitResult } from "../../../domain/answers.ts";
import { sendableAttempts } from "../../../domain/attempts.ts";
import { type BackoffRule, backoffMs } from "../../../domain/backoff.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { RECEIPT_OWED, resubmitEveryMs, type Tracked } from "../../lane/tracked.ts";
import { type LearnPorts, learn } from "./learn.ts";

export interface Answered {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly result: SubmitResult;
}

/** How soon each answer is asked again. What waits for others (funds, market, lower nonces) need not hurry. */
const ASK_AGAIN: Readonly<Record<Exclude<SubmitAnswer, "accepted" | "alreadyKnown">, BackoffRule>> = {
  unknown: { firstMs: 250, mostMs: 30_000 },
  nonceTooHigh: { firstMs: 250, mostMs: 5_000 },
  nonceConsumed: { firstMs: 1_000, mostMs: 60_000 },
  underpriced: { firstMs: 2_000, mostMs: 60_000 },
  insufficientFunds: { firstMs: 2_000, mostMs: 60_000 },
  rejected: { firstMs: 5_000, mostMs: 300_000 },
};

/** Notes one answer in memory; returns what the database must be told. */
export function note(ports: LearnPorts, context: ChainContext, work: Answered): readonly Planned[] {
  const { lane, tx, result } = work;
  report(ports, work);
  tx.claimed = false;
  if (tx.receipt !== null) return [];
  const nowMs = ports.clock.monotonicMs();
  tx.answer = result.answer;
  learn(ports, work);
  if (result.gasCap !== undefined) context.gasLimits.learn(result.gasCap, gasAsked(tx));
  if (isTaken(result.answer)) {
    tx.failures = 0;
    tx.rawTransaction = null;
    tx.nextSendAtMs = nextSend(context, tx, nowMs);
    if (tx.nonce !== lane.headOfLine()) lane.futureTaken();
    else if (lane.takesHeadAlone) context.lookSoon();
    return planTaken(tx);
  }
  tx.failures++;
  const rule = ASK_AGAIN[result.answer as keyof typeof ASK_AGAIN];
  tx.nextSendAtMs = nowMs + backoffMs(rule, tx.failures, ports.entropy.random());
  // Somebody's transaction stands at this nonce; whether it is one of ours, its receipt tells.
  if (result.answer === "nonceConsumed") tx.receiptCheckedAtMs = RECEIPT_OWED;
  if (result.answer === "insufficientFunds" || result.answer === "rejected") fallBack(tx);
  return planFailed(tx, `${result.answer}${result.detail === null ? "" : `: ${result.detail}`}`);
}

function gasAsked({ attempts, sendOrdinal }: Tracked): bigint {
  return attempts.find(({ ordinal }) => ordinal === sendOrdinal)?.gas ?? 0n;
}

/** What was signed for more cannot be had: what a node has taken before is kept alive instead. */
function fallBack(tx: Tracked): void {
  const taken = sendableAttempts(tx.attempts).find(({ ordinal }) => ordinal === tx.acceptedOrdinal);
  if (taken === undefined || taken.ordinal === tx.sendOrdinal) return;
  tx.sendOrdinal = taken.ordinal;
  tx.rawTransaction = null;
}

function nextSend({ settings }: ChainContext, { status }: Tracked, nowMs: number): number | null {
  const everyMs = resubmitEveryMs(settings.resubmitIntervalMs, status.state);
  return everyMs === null ? null : nowMs + everyMs;
}

function planTaken(tx: Tracked): readonly Planned[] {
  const accepted = { ordinal: tx.sendOrdinal as number };
  const isNews = (tx.acceptedOrdinal ?? 0) < accepted.ordinal || tx.lastError !== null;
  const isPending = tx.status.subState === "PENDING";
  tx.acceptedOrdinal = Math.max(tx.acceptedOrdinal ?? 0, accepted.ordinal);
  tx.lastError = null;
  // A stale one that a node knows is stale still; and only the chain or a repair leads out of STUCK.
  if (!isNews && !isPending) return [];
  return [plan(tx, tx.status.state === "STUCK" ? "resubmit" : "broadcast", { accepted, lastError: null })];
}

/** The same words again, but for the numbers in them, are not written again: an outage must not fill the history. */
function planFailed(tx: Tracked, lastError: string): readonly Planned[] {
  if (tx.lastError !== null && withoutNumbers(tx.lastError) === withoutNumbers(lastError)) return [];
  tx.lastError = lastError;
  return [plan(tx, "submitFailed", { lastError, reason: lastError })];
}

function withoutNumbers(text: string): string {
  return text.replace(/0x[0-9a-f]+|[0-9]+/gi, "#");
}

function report(ports: LearnPorts, { lane, tx, result }: Answered): void {
  const first = tx.submitAttempts === 1;
  ports.telemetry.emit({
    type: "submit.answered",
    lane: lane.lane,
    txId: tx.txId,
    nonce: tx.nonce,
    txHash: tx.attempts.find((attempt) => attempt.ordinal === tx.sendOrdinal)?.txHash ?? null,
    answer: result.answer,
    detail: result.detail,
    first,
    sinceCreatedMs: first ? ports.clock.now().getTime() - tx.createdAt.getTime() : null,
  });
}
