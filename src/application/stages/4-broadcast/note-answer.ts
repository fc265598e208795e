/**
 * Stage 4, after a send: records the node's answer, when to send again, and what the answer means for the lane. A node
 * that signs with a key of its own may have signed although its answer was lost. The nonce may then have a transaction
 * whose hash is unknown (the "gray zone"). That transaction is looked up by sender and nonce: on chain if the count has
 * passed the nonce, else in the node's pool. If its contents equal ours, it is ours. If they differ, another program
 * used the key. If nothing is found for the whole timeout, ours is sent anew at the same nonce, so that at most one of
 * the two is mined.
 *
 * Reads: the answer; for an unknown hash the chain by sender and nonce, and payloads. Writes: `planAnswer` plans moves
 * that its caller commits; for an unknown hash UNKNOWN_SUBMIT_RESULT, then the hash, another program's attempt with its
 * receipt, or PENDING again. Invariant I7: neither an unknown answer nor a failed look-up decides anything. A crash
 * leaves TRACKING/PENDING, which the next owner sends again; or UNKNOWN_SUBMIT_RESULT, or PENDING without a hash: then
 * the next owner repeats the look-up, and its timeout counts from the time when the answer was lost.
 */
import { isTaken, type SubmitResult } from "../../../domain/chain/answers.ts";
import type { Hash } from "../../../domain/lane.ts";
import { futureRefused, futureTaken, paid, paymentFailed } from "../../../domain/pace/lane-pace.ts";
import {
  refused,
  searchBegun,
  searched,
  sentAfresh,
  sightGivenUp,
  sightLost,
  sightRegained,
  spent,
  taken,
  turnedTo,
} from "../../../domain/pace/transaction-pace.ts";
import { afterInterval } from "../../../domain/pace/when.ts";
import { sendableAttempts } from "../../../domain/transaction/attempts.ts";
import type { Attempt } from "../../../domain/transaction/transaction.ts";
import type { AlertCode } from "../../../domain/troubles/table.ts";
import { type ChainTransaction, unlessSilent } from "../../../ports/chain.ts";
import type { StoredPayload, TransitionItem } from "../../../ports/lane-store.ts";
import type { GrayZoneResult } from "../../../ports/telemetry.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { findSent, type SentQuery } from "../../chain/find-sent.ts";
import type { LaneWork } from "../../chain/work-ports.ts";
import type { Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { establish, happened, isRefusedForGood, resubmitEveryMs, type Tracked } from "../../lane/tracked.ts";
import { type Mined, mineForeign, saysTheSame } from "../5-receipt/receipt.ts";

/** Applies the node's answer: decides when the transaction, and the others of its lane, are sent next. */
export function note(work: Answered): void {
  const { ports, context, lane, tx, result } = work;
  report(work);
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
    learn(work);
    if (tx.nonce !== lane.headOfLine()) happened(lane, futureTaken);
    else if (lane.pace.window.kind === "closed") context.lookSoon();
    return;
  }
  happened(tx, refused, answer, { nowMs, random: ports.entropy.random() });
  learn(work);
  if (result.gasCap !== undefined) context.gasLimits.learn(result.gasCap, toSend(tx)?.gas ?? 0n);
  if (answer === "insufficientFunds" || answer === "rejected") fallBack(tx);
}

/**
 * The state changes to write for the node's answer. `identified`: the attempt's hash, if the node that signed it has
 * reported it.
 */
export function planAnswer({ tx, result }: Answered, identified?: TransitionItem["identified"]): readonly Planned[] {
  if (tx.receipt !== null) return [];
  const named = identified === undefined ? {} : { identified };
  return isTaken(result.answer) ? planTaken(tx, named) : planFailed(tx, inWords(result), named);
}

export function inWords({ answer, detail }: SubmitResult): string {
  return detail === null ? answer : `${answer}: ${detail}`;
}

/** The attempt that is to be sent, or was sent last. */
export function toSend({ attempts, pace }: Tracked): Attempt | undefined {
  return attempts.find(({ ordinal }) => ordinal === pace.sendOrdinal);
}

/**
 * Called if a node refused the attempt for lack of funds or as invalid: if a node accepted an earlier attempt, for
 * example at a lower price, that one is sent from now on.
 */
function fallBack(tx: Tracked) {
  const known = sendableAttempts(tx.attempts).find(({ ordinal }) => ordinal === tx.acceptedOrdinal);
  if (known !== undefined) happened(tx, turnedTo, known.ordinal);
}

type Named = Pick<TransitionItem, "identified">;

function planTaken(tx: Tracked, named: Named) {
  const accepted = { ordinal: tx.pace.sendOrdinal as number };
  const isFirst = (tx.acceptedOrdinal ?? 0) < accepted.ordinal;
  const isNews = isFirst || tx.lastError !== null || named.identified !== undefined;
  // A transaction that is marked as stale (not mined in time) stays marked if a node answers that it already has the
  // bytes. A STUCK transaction stays STUCK until the chain or a repair changes it.
  if (!isNews && tx.status.subState !== "PENDING") return [];
  return [plan(tx, tx.status.state === "STUCK" ? "resubmit" : "broadcast", { accepted, lastError: null, ...named })];
}

/**
 * An error that repeats the last one, apart from numbers in it, is not written again: an outage must not fill the
 * history.
 */
function planFailed(tx: Tracked, lastError: string, named: Named) {
  const isRepeatedError = tx.lastError !== null && withoutNumbers(tx.lastError) === withoutNumbers(lastError);
  if (isRepeatedError && named.identified === undefined) return [];
  return [plan(tx, "submitFailed", { lastError, reason: lastError, ...named })];
}

function withoutNumbers(text: string) {
  return text.replace(/0x[0-9a-f]+|[0-9]+/gi, "#");
}

function report({ ports, lane, tx, result: { answer, detail } }: Answered) {
  const { txId, nonce } = tx;
  const txHash = toSend(tx)?.txHash ?? null;
  const first = tx.submitAttempts === 1;
  const sinceCreatedMs = first ? Math.max(0, ports.clock.now().getTime() - tx.createdAt.getTime()) : null;
  const event = { lane: lane.lane, txId, nonce, txHash, answer, detail, first, sinceCreatedMs };
  ports.telemetry.emit({ type: "submit.answered", ...event });
}

export interface Answered extends LaneWork {
  readonly tx: Tracked;
  readonly result: SubmitResult;
}

function learn(answered: Answered) {
  const { ports, lane, tx, result } = answered;
  if (isTaken(result.answer)) {
    tx.facts.delete("INSUFFICIENT_FUNDS");
    tx.facts.delete("REFUSED_FOR_GOOD");
    happened(lane, paid);
    return;
  }
  const text = result.detail ?? result.answer;
  const since = ports.clock.now();
  if (result.answer === "rejected" && isRefusedForGood(tx)) {
    if (establish(tx, "REFUSED_FOR_GOOD", { text, since })) alert(answered, "TX_REFUSED", text);
  }
  if (result.answer === "insufficientFunds") {
    establish(tx, "INSUFFICIENT_FUNDS", { text, since });
    // Alert once per lane while funds are missing: all later transactions wait for the same funds, and continue by
    // themselves when the funds arrive.
    if (lane.pace.unpaidSince !== null) return;
    happened(lane, paymentFailed, since);
    alert(answered, "INSUFFICIENT_FUNDS", text);
  }
  if (result.answer === "nonceTooHigh") learnNoFuture(answered);
}

/** The node lacks transactions with lower nonces, although it accepted them: resend those first, then this one. */
function learnNoFuture({ ports, lane, tx }: Answered) {
  happened(lane, futureRefused, { nowMs: ports.clock.monotonicMs(), random: ports.entropy.random() });
  for (const lower of lane.unmined.values()) {
    const { answer } = lower.pace;
    if (lower.nonce < tx.nonce && answer !== null && isTaken(answer)) happened(lower, sentAfresh);
  }
}

function alert({ ports, lane, tx }: Answered, code: AlertCode, why: string) {
  const message = `nonce ${tx.nonce} of ${lane.lane.signer} waits: ${why}`;
  ports.telemetry.emit({ type: "alert", severity: "ERROR", code, message, lane: lane.lane, txId: tx.txId });
}

/** True if a node may have signed and sent the payload, but its hash is not known. */
export function isOutOfSight({ status, attempts, pace }: Tracked): boolean {
  const unnamed = attempts.some(({ txHash, foreign }) => txHash === null && foreign !== true);
  return unnamed && !pace.claimed && (status.subState === "UNKNOWN_SUBMIT_RESULT" || status.state === "STUCK");
}

/** Called when the answer to a send did not arrive, or named no transaction. */
export async function loseSight(work: LaneWork, tx: Tracked, why: string): Promise<void> {
  happened(tx, sightLost, work.ports.clock.monotonicMs());
  const { state, subState } = tx.status;
  const isLost = state === "TRACKING" && subState !== "UNKNOWN_SUBMIT_RESULT";
  const planned = plan(tx, isLost ? "loseSight" : "submitFailed", { lastError: why, reason: why });
  await commitPlanned(work.ports, work.lane, [planned]);
  reportSight(work, tx, "entered", why);
}

/** Looks for all transactions of the lane whose hash is unknown and for which it is time to search again. */
export function searchGrayZone(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const nowMs = ports.clock.monotonicMs();
  const due: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (tx.receipt !== null || !isOutOfSight(tx) || tx.pace.inHand) continue;
    if (searchOf(ports, tx).nextMs <= nowMs) due.push(tx);
  }
  due.sort((a, b) => a.nonce - b.nonce);
  return due.length === 0 ? null : unlessSilent(searchEach({ ports, context, lane }, due), undefined);
}

async function searchEach(work: LaneWork, due: readonly Tracked[]) {
  const { ports, context, lane } = work;
  const { signer } = lane.lane;
  const payloads = await lane.term.during(ports.store.loadPayloads(due.map(({ txId }) => txId)));
  const { count } = await lane.term.during(context.counts.mined(signer, { atMostMs: 0 }));
  const seen = new Map<number, ChainTransaction>();
  for (const [index, tx] of due.entries()) {
    const found = await lane.term.during(look(context, { signer, nonce: tx.nonce, seen }, count));
    await conclude(work, tx, found, payloads[index] as StoredPayload);
  }
}

/** The search may have been begun by an earlier owner: the database has its start time. */
function searchOf({ clock }: LanePorts, tx: Tracked) {
  if (tx.pace.search !== null) return tx.pace.search;
  const nowMs = clock.monotonicMs();
  const ageMs = tx.lostSightAt === null ? 0 : Math.max(0, clock.now().getTime() - tx.lostSightAt.getTime());
  const begun = { sinceMs: nowMs - ageMs, nextMs: nowMs };
  happened(tx, searchBegun, begun);
  return begun;
}

/** "absent": the nonce is not used on chain, and no transaction for it was found in the pool. */
type Found = Mined | { readonly kind: "pooled"; readonly transaction: ChainTransaction } | "absent" | "unseen";

async function look(context: ChainContext, wanted: SentQuery, count: number): Promise<Found> {
  const { signer, nonce } = wanted;
  if (count > nonce) {
    const sent = await findSent(context, wanted);
    return sent.kind === "mined" ? sent : "unseen";
  }
  const { chain } = context;
  const direct = await chain.transactionBySenderAndNonce(signer, nonce);
  if (direct !== "unsupported" && direct !== null) return { kind: "pooled", transaction: direct };
  const [hash = null] = (await chain.pooled(signer, [nonce])) ?? [];
  const transaction = hash === null ? null : await chain.transaction(hash);
  return transaction === null ? "absent" : { kind: "pooled", transaction };
}

async function conclude(work: LaneWork, tx: Tracked, found: Found, payload: StoredPayload) {
  const { ports, context, lane } = work;
  const { grayZoneIntervalMs, grayZoneTimeoutMs } = context.settings;
  const nowMs = ports.clock.monotonicMs();
  const search = searchOf(ports, tx);
  happened(tx, searched, nowMs + (grayZoneIntervalMs ?? grayZoneTimeoutMs));
  if (tx.receipt !== null || !isOutOfSight(tx) || found === "unseen") return;
  if (found !== "absent" && saysTheSame(payload, found.transaction)) {
    await adopt(work, tx, found.transaction.txHash);
  } else if (found !== "absent" && found.kind === "mined") {
    await commitPlanned(ports, lane, [mineForeign(work, tx, found)]);
    reportSight(work, tx, "foreign", found.transaction.txHash);
  } else if (nowMs - search.sinceMs >= grayZoneTimeoutMs) await sendAnew(work, tx);
}

/** The transaction found is ours. From here on its hash is known, and its receipt is found like any other's. */
async function adopt(work: LaneWork, tx: Tracked, txHash: Hash) {
  const { ports, lane } = work;
  const ordinal = tx.pace.sendOrdinal as number;
  happened(tx, sightRegained);
  const change = { identified: { ordinal, txHash }, accepted: { ordinal }, lastError: null };
  const reason = `found by sender and nonce: ${txHash}`;
  const planned = plan(tx, tx.status.state === "STUCK" ? "resubmit" : "adopt", { ...change, reason });
  lane.follow(tx);
  await commitPlanned(ports, lane, [planned]);
  reportSight(work, tx, "adopted", txHash);
  lane.broadcasting?.kick();
}

async function sendAnew(work: LaneWork, tx: Tracked) {
  const { ports, lane } = work;
  happened(tx, sightGivenUp);
  const reason = "its nonce is still free after the whole timeout: sent anew";
  if (tx.status.state !== "STUCK") await commitPlanned(ports, lane, [plan(tx, "sendAnew", { reason })]);
  reportSight(work, tx, "sentAnew", reason);
  lane.broadcasting?.kick();
}

const SIGHT_ALERTS: Readonly<Record<GrayZoneResult, AlertCode>> = {
  entered: "GRAY_ZONE_ENTERED",
  adopted: "GRAY_ZONE_LEFT",
  foreign: "GRAY_ZONE_LEFT",
  sentAnew: "GRAY_ZONE_TIMED_OUT",
};

function reportSight({ ports, lane: { lane } }: LaneWork, tx: Tracked, result: GrayZoneResult, detail: string) {
  const { txId, nonce } = tx;
  ports.telemetry.emit({ type: "gray.zone", lane, txId, nonce, result });
  const message = `what a node made of nonce ${nonce} of ${lane.signer}: ${result} (${detail})`;
  const severity = result === "sentAnew" ? "ERROR" : "WARNING";
  ports.telemetry.emit({ type: "alert", severity, code: SIGHT_ALERTS[result], message, lane, txId });
}
