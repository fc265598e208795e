/**
 * Stage 4: sends bytes that are stored and claimed, in nonce order, and notes what the node said.
 *
 * Reads: the lane's tracked transactions. Writes: the answer (TRACKING/BROADCAST, or the error in the node's words).
 * Invariants: I6 (only claimed bytes), I7 (an unknown answer decides nothing; it is asked again, with back-off).
 * A crash after sending leaves TRACKING/PENDING: the next owner looks for a receipt, claims again, and sends again.
 */
import { isTaken, type SubmitAnswer, type SubmitResult } from "../../../domain/answers.ts";
import { sendableAttempts } from "../../../domain/attempts.ts";
import { type BackoffRule, backoffMs } from "../../../domain/backoff.ts";
import type { Hash, Hex } from "../../../domain/lane.ts";
import type { Entropy } from "../../../ports/entropy.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { claimAgain, type ResubmitPorts, resubmitEveryMs } from "../../detours/resubmit.ts";
import { commitPlanned, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { RECEIPT_OWED, type Tracked } from "../../lane/tracked.ts";
import { learn } from "./learn.ts";

export interface BroadcastPorts extends ResubmitPorts {
  readonly entropy: Entropy;
  readonly lease: { mayAct(): boolean };
}

const AT_ONCE = 100;

/** How soon each answer is asked again. What waits for others (funds, market, lower nonces) need not hurry. */
const ASK_AGAIN: Readonly<Record<Exclude<SubmitAnswer, "accepted" | "alreadyKnown">, BackoffRule>> = {
  unknown: { firstMs: 250, mostMs: 30_000 },
  nonceTooHigh: { firstMs: 250, mostMs: 5_000 },
  nonceConsumed: { firstMs: 1_000, mostMs: 60_000 },
  underpriced: { firstMs: 2_000, mostMs: 60_000 },
  insufficientFunds: { firstMs: 2_000, mostMs: 60_000 },
  rejected: { firstMs: 5_000, mostMs: 300_000 },
};

/** Sends what is due. Returns when nothing is, or nothing may be sent now. */
export async function broadcast(ports: BroadcastPorts, context: ChainContext, lane: OwnedLane): Promise<void> {
  while (!lane.stopped && !lane.held && ports.lease.mayAct()) {
    const due = lane.toSend(ports.clock.monotonicMs(), AT_ONCE);
    if (due.length === 0) return;
    for (const tx of due) tx.sending = true;
    try {
      if (!(await sendAll(ports, context, { lane, due }))) return;
    } finally {
      for (const tx of due) tx.sending = false;
    }
  }
}

async function sendAll(
  ports: BroadcastPorts,
  context: ChainContext,
  work: { readonly lane: OwnedLane; readonly due: readonly Tracked[] },
): Promise<boolean> {
  const { lane, due } = work;
  if (!(await claimAgain(ports, lane, due)) || lane.stopped || !ports.lease.mayAct()) return false;
  // Mined or withdrawn while the claim was committed: what is left is sent, in the order it was due.
  const sendable = due.filter((tx) => tx.receipt === null && tx.rawTransaction !== null);
  const results = await context.chain.submit(sendable.map((tx) => tx.rawTransaction as Hex));
  await ports.failpoint("broadcast.sent");
  if (lane.stopped) return false;
  const planned = sendable.flatMap((tx, index) =>
    note(ports, context, { lane, tx, result: results[index] as SubmitResult }),
  );
  if (planned.length > 0) void commitAnswers(ports, lane, planned);
  return true;
}

/** The next send need not wait for this: order within the lane is the writer's, and a failure reloads the lane. */
async function commitAnswers(ports: BroadcastPorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  if (await commitPlanned(ports, lane, planned)) await ports.failpoint("broadcast.committed");
}

function note(
  ports: BroadcastPorts,
  context: ChainContext,
  work: { readonly lane: OwnedLane; readonly tx: Tracked; readonly result: SubmitResult },
): readonly Planned[] {
  const { lane, tx, result } = work;
  report(ports, work);
  tx.claimed = false;
  if (tx.receipt !== null) return [];
  const nowMs = ports.clock.monotonicMs();
  tx.answer = result.answer;
  learn(ports, work);
  if (isTaken(result.answer)) {
    tx.failures = 0;
    tx.rawTransaction = null;
    tx.nextSendAtMs = nextSend(context, tx, nowMs);
    if (tx.nonce !== lane.headOfLine()) lane.futureTaken();
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

function report(
  ports: BroadcastPorts,
  { lane, tx, result }: { readonly lane: OwnedLane; readonly tx: Tracked; readonly result: SubmitResult },
): void {
  const first = tx.submitAttempts === 1;
  ports.telemetry.emit({
    type: "submit.answered",
    lane: lane.lane,
    txId: tx.txId,
    nonce: tx.nonce,
    txHash: tx.attempts.find((attempt) => attempt.ordinal === tx.sendOrdinal)?.txHash as Hash,
    answer: result.answer,
    detail: result.detail,
    first,
    sinceCreatedMs: first ? ports.clock.now().getTime() - tx.createdAt.getTime() : null,
  });
}
