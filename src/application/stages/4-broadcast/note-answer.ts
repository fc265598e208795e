/**
 * Stage 4, after a send: notes what the node answered, when to ask again, and what the answer says about the lane. If a node signs with
 * a key of its own and its answer is lost (the gray zone), there may be a transaction at the nonce whose hash nobody knows. It is looked
 * for by sender and nonce: on chain if the count has passed the nonce, else in the node's pool. If it says what ours says, it is ours;
 * if not, another program used the key; if it is absent for the whole timeout, ours is sent anew, at the same nonce, so that at most one
 * of the two is mined.
 *
 * Reads: the answer; for the gray zone the chain by sender and nonce, and payloads. Writes: `planAnswer` plans moves that its caller
 * commits; the gray zone writes UNKNOWN_SUBMIT_RESULT, then the hash, a foreign attempt with its receipt, or PENDING again. Invariant I7:
 * neither an unknown answer nor a failed look decides anything. A crash leaves TRACKING/PENDING, sent again by the next owner, or
 * UNKNOWN_SUBMIT_RESULT, or PENDING without a hash: then the next owner looks again, and its patience counts from when sight was lost.
 */
import { isTaken, type SubmitResult } from "../../../domain/chain/answers.ts";
import type { Address, Hash } from "../../../domain/lane.ts";
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
import type { AlertCode } from "../../../domain/troubles/alerts.ts";
import { type ChainTransaction, unlessSilent } from "../../../ports/chain.ts";
import type { StoredPayload, TransitionItem } from "../../../ports/lane-store.ts";
import type { GrayZoneResult } from "../../../ports/telemetry.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { findSent, type SentQuery } from "../../chain/find-sent.ts";
import type { Working } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan } from "../../lane/lane-writer.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { establish, happened, isRefusedForGood, resubmitEveryMs, type Tracked } from "../../lane/tracked.ts";
import { type Mined, mineForeign, saysTheSame } from "../5-receipt/receipt.ts";

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

/** A payload that a node may have signed and sent, and whose hash is not known. */
export function isOutOfSight({ status, attempts, pace }: Tracked): boolean {
  const unnamed = attempts.some(({ txHash, foreign }) => txHash === null && foreign !== true);
  return unnamed && !pace.claimed && (status.subState === "UNKNOWN_SUBMIT_RESULT" || status.state === "STUCK");
}

/** The answer to a send did not arrive, or named no transaction. */
export async function loseSight(ports: LanePorts, lane: OwnedLane, tx: Tracked, why: string): Promise<void> {
  happened(tx, sightLost, ports.clock.monotonicMs());
  const { state, subState } = tx.status;
  const isLost = state === "TRACKING" && subState !== "UNKNOWN_SUBMIT_RESULT";
  const event = isLost ? "loseSight" : "submitFailed";
  await commitPlanned(ports, lane, [plan(tx, event, { lastError: why, reason: why })]);
  reportSight(ports, lane, { tx, result: "entered", detail: why });
}

/** Looks for everything of the lane that is out of sight and due. */
export function searchGrayZone(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  const nowMs = ports.clock.monotonicMs();
  const due: Tracked[] = [];
  for (const tx of lane.unmined.values()) {
    if (tx.receipt !== null || !isOutOfSight(tx) || tx.pace.inHand) continue;
    if (searchOf(ports, tx).nextMs <= nowMs) due.push(tx);
  }
  due.sort((a, b) => a.nonce - b.nonce);
  return due.length === 0 ? null : unlessSilent(searchEach(ports, context, lane, due), undefined);
}

async function searchEach(ports: LanePorts, context: ChainContext, lane: OwnedLane, due: readonly Tracked[]) {
  const payloads = await lane.term.during(ports.store.loadPayloads(due.map(({ txId }) => txId)));
  const { count } = await lane.term.during(context.counts.mined(lane.lane.signer, { atMostMs: 0 }));
  const seen = new Map<number, ChainTransaction>();
  for (const [index, tx] of due.entries()) {
    const found = await lane.term.during(look(context, { signer: lane.lane.signer, nonce: tx.nonce, seen }, count));
    await conclude(ports, context, { lane, tx, found, payload: payloads[index] as StoredPayload });
  }
}

/** Begun by this owner, or by one before it: the database says when. */
function searchOf({ clock }: LanePorts, tx: Tracked) {
  if (tx.pace.search !== null) return tx.pace.search;
  const nowMs = clock.monotonicMs();
  const ageMs = tx.lostSightAt === null ? 0 : Math.max(0, clock.now().getTime() - tx.lostSightAt.getTime());
  const begun = { sinceMs: nowMs - ageMs, nextMs: nowMs };
  happened(tx, searchBegun, begun);
  return begun;
}

type Found =
  | { readonly kind: "mined"; readonly transaction: ChainTransaction; readonly sent: Mined }
  | { readonly kind: "pooled"; readonly transaction: ChainTransaction }
  /** The nonce is free, as far as anybody can see. */
  | { readonly kind: "absent" }
  | { readonly kind: "unseen"; readonly detail: string };

async function look(context: ChainContext, wanted: SentQuery, count: number): Promise<Found> {
  if (count > wanted.nonce) {
    const sent = await findSent(context, wanted);
    if (sent.kind === "mined") return { kind: "mined", transaction: sent.transaction, sent };
    return { kind: "unseen", detail: sent.kind === "unseen" ? sent.detail : "no block that we follow shows it yet" };
  }
  const pooled = await inPool(context, wanted.signer, wanted.nonce);
  return pooled === null ? { kind: "absent" } : { kind: "pooled", transaction: pooled };
}

async function inPool({ chain }: ChainContext, signer: Address, nonce: number) {
  const direct = await chain.transactionBySenderAndNonce(signer, nonce);
  if (direct !== "unsupported" && direct !== null) return direct;
  const [hash = null] = (await chain.pooled(signer, [nonce])) ?? [];
  return hash === null ? null : chain.transaction(hash);
}

interface Conclusion {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly found: Found;
  readonly payload: StoredPayload;
}

async function conclude(ports: LanePorts, context: ChainContext, work: Conclusion) {
  const { lane, tx, found, payload } = work;
  const nowMs = ports.clock.monotonicMs();
  const search = searchOf(ports, tx);
  happened(tx, searched, nowMs + (context.settings.grayZoneIntervalMs ?? context.settings.grayZoneTimeoutMs));
  if (tx.receipt !== null || !isOutOfSight(tx)) return;
  if ((found.kind === "mined" || found.kind === "pooled") && saysTheSame(payload, found.transaction)) {
    await adopt(ports, lane, tx, found.transaction.txHash);
  } else if (found.kind === "mined") {
    await commitPlanned(ports, lane, [mineForeign(ports, lane, tx, found.sent)]);
    reportSight(ports, lane, { tx, result: "foreign", detail: found.transaction.txHash });
  } else if (nowMs - search.sinceMs >= context.settings.grayZoneTimeoutMs && found.kind !== "unseen") {
    await sendAnew(ports, lane, tx);
  }
}

/** Ours: tracked by its hash from here on, and its receipt found like any other's. */
async function adopt(ports: LanePorts, lane: OwnedLane, tx: Tracked, txHash: Hash) {
  const ordinal = tx.pace.sendOrdinal as number;
  happened(tx, sightRegained);
  const change = { identified: { ordinal, txHash }, accepted: { ordinal }, lastError: null };
  const reason = `found by sender and nonce: ${txHash}`;
  const event = tx.status.state === "STUCK" ? "resubmit" : "adopt";
  const planned = plan(tx, event, { ...change, reason });
  lane.follow(tx);
  await commitPlanned(ports, lane, [planned]);
  reportSight(ports, lane, { tx, result: "adopted", detail: txHash });
  lane.broadcasting?.kick();
}

async function sendAnew(ports: LanePorts, lane: OwnedLane, tx: Tracked) {
  happened(tx, sightGivenUp);
  const reason = "its nonce is still free after the whole timeout: sent anew";
  const planned: readonly Planned[] = tx.status.state === "STUCK" ? [] : [plan(tx, "sendAnew", { reason })];
  if (planned.length > 0) await commitPlanned(ports, lane, planned);
  reportSight(ports, lane, { tx, result: "sentAnew", detail: reason });
  lane.broadcasting?.kick();
}

const SAID: Readonly<Record<GrayZoneResult, { readonly code: AlertCode; readonly severity: "WARNING" | "ERROR" }>> = {
  entered: { code: "GRAY_ZONE_ENTERED", severity: "WARNING" },
  adopted: { code: "GRAY_ZONE_LEFT", severity: "WARNING" },
  foreign: { code: "GRAY_ZONE_LEFT", severity: "WARNING" },
  sentAnew: { code: "GRAY_ZONE_TIMED_OUT", severity: "ERROR" },
};

function reportSight(
  ports: LanePorts,
  lane: OwnedLane,
  { tx, result, detail }: { readonly tx: Tracked; readonly result: GrayZoneResult; readonly detail: string },
) {
  const { txId, nonce } = tx;
  ports.telemetry.emit({ type: "gray.zone", lane: lane.lane, txId, nonce, result });
  const message = `what a node made of nonce ${nonce} of ${lane.lane.signer}: ${result} (${detail})`;
  ports.telemetry.emit({ type: "alert", ...SAID[result], message, lane: lane.lane, txId });
}
