/**
 * Detour: a transaction that offers less than the last blocks took, or that a node called underpriced, is signed again
 * at the same nonce, for more; one that asks for more gas than the chain takes, with less (lowerGas).
 *
 * Reads: the fee market, the bytes of its newest payload; for less gas the caller's payload and a new estimate. Writes:
 * another attempt (another-attempt.ts). Invariants: I3 (same nonce, same receiver, value and data), I6; an offer rises over
 * everything a node has taken, and never above the ceiling. A crash leaves what another-attempt.ts leaves; the next owner
 * sends the newest attempt, judges it by its answer, and learns the gas limit anew.
 */

import {
  type Bounded,
  bounded,
  type FeeLimit,
  feeLimit,
  limitInWords,
  repricingLimit,
} from "../../domain/fees/ceilings.ts";
import { nextStep, PASSED_OVER } from "../../domain/fees/climbing.ts";
import { withMargin } from "../../domain/fees/gas.ts";
import {
  covers,
  higher,
  highestOffer,
  type Repricing,
  type RepricingView,
  reprice,
} from "../../domain/fees/repricing.ts";
import type { Address } from "../../domain/lane.ts";
import { signerAwaited } from "../../domain/pace/lane-pace.ts";
import { gasJudged, isPassedOver, turnedTo } from "../../domain/pace/transaction-pace.ts";
import { attemptToSend, repricedKind, sendableAttempts } from "../../domain/transaction/attempts.ts";
import { type FeeMarket, type Fees, feeCap } from "../../domain/transaction/fees.ts";
import type { Attempt } from "../../domain/transaction/transaction.ts";
import { unlessSilent } from "../../ports/chain.ts";
import { SigningRefused, unlessAway } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { simulateWithin } from "../chain/gas-needed.ts";
import type { Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { hold } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { decodedNewest, happened, rebuildable, type Tracked } from "../lane/tracked.ts";
import { type AnotherPayload, signAnother } from "./another-attempt.ts";

/** "signed": another attempt is on its way. "kept": what stands is to be sent again as it is. */
export type RepriceFate = "signed" | "kept";

interface Work {
  readonly context: ChainContext;
  readonly lane: OwnedLane;
  readonly tx: Tracked;
}

/** What keeps a transaction from another price is over where none is wanted any more. */
const WANTING_MORE = ["CANNOT_RESIGN", "MAX_ATTEMPTS_REACHED", "POLICY_LIMIT_REACHED"] as const;

export async function repriceIfBelow(ports: LanePorts, work: Work): Promise<RepriceFate> {
  const strategy = work.context.settings.repricing;
  if (strategy === null) return "kept";
  // Null: the chain cannot say what blocks take now, so nothing is said about this offer either.
  const market = await work.lane.term.during(unlessSilent(work.context.feeMarket(), null));
  const view = market && viewOf(ports, work, market);
  if (view === null) return "kept";
  const limit = await work.lane.term.during(limitOf(ports, work, view));
  const verdict = reprice(strategy, view, limit.most);
  noteCeiling(ports, work, verdict, limit);
  // One that is past its time wants a cancel besides, for which the same may be said.
  const wantsMore = verdict.verdict !== "keep" || work.lane.pace.overdue.has(work.tx.txId);
  if (!wantsMore) for (const code of WANTING_MORE) work.tx.facts.delete(code);
  if (verdict.verdict !== "reprice") return "kept";
  const known = sendableAttempts(work.tx.attempts).find(({ fees }) => covers(fees, verdict.fees));
  if (known !== undefined) return sendKnown(work.tx, known);
  return maySign(ports, work) ? signAt(ports, work, verdict.fees) : "kept";
}

/** What was taken, or refused for its price, is what a new offer must beat, superseded payloads included: a pool may hold them. */
function viewOf({ clock }: LanePorts, { context, tx }: Work, market: FeeMarket): RepricingView | null {
  const ours = tx.attempts.filter(({ kind, foreign }) => kind !== "external" && foreign !== true);
  const refused = tx.pace.answer === "underpriced";
  const through = Math.max(tx.acceptedOrdinal ?? 0, refused ? (tx.pace.sendOrdinal ?? 0) : 0);
  const standing = highestOffer(ours.filter(({ ordinal }) => ordinal <= through));
  const first = ours[0]?.fees;
  if (standing === null || first === undefined) return null;
  const isShort = refused || isPassed(context, tx, clock.monotonicMs());
  const step = isShort ? nextStep(standing, market) : null;
  return { first, standing, refused, market, attempts: tx.attempts.length, ...(step === null ? {} : { step }) };
}

/** Blocks came since a node took it, and none of them has it. */
export function isPassed({ follower }: ChainContext, { pace }: Tracked, ms: number): boolean {
  return isPassedOver(pace, { block: follower.head?.number ?? 0, ms }, PASSED_OVER);
}

/** What the payload moves counts only where somebody bounds it: else its bytes need not be read for this. */
async function limitOf(ports: LanePorts, { context, tx }: Work, { first, step }: RepricingView): Promise<FeeLimit> {
  const { ceilings } = context;
  const newest = sendableAttempts(tx.attempts).at(-1);
  const standing = ceilings.cost === null ? null : await decodedNewest(ports, tx);
  const content = { gas: newest?.gas ?? 0n, value: standing?.unsigned.value ?? 0n };
  // A first price by an endpoint that lied low bounds nothing: the steps to the other's market do.
  return repricingLimit(ceilings, content, step === undefined ? first : higher(first, step));
}

function noteCeiling(ports: LanePorts, { lane, tx }: Work, verdict: Repricing, limit: FeeLimit): void {
  if (verdict.verdict === "ceiling" || (verdict.verdict === "reprice" && verdict.reached)) {
    const text = `its fee has reached ${limitInWords(limit)}, and more is wanted`;
    hold(ports, lane, tx, { code: "FEE_CEILING_REACHED", text });
  } else tx.facts.delete("FEE_CEILING_REACHED");
}

/** The same offer was signed before and not taken for another reason (funds, say): those very bytes, not others like them. */
function sendKnown(tx: Tracked, { ordinal }: Attempt): RepriceFate {
  happened(tx, turnedTo, ordinal);
  return "kept";
}

function maySign(ports: LanePorts, { context, lane, tx }: Work): boolean {
  const { maxAttempts } = context.settings;
  if (maxAttempts === 0 || tx.attempts.length < maxAttempts) return true;
  const text = `${tx.attempts.length} payloads were signed for it, which is all that is allowed`;
  hold(ports, lane, tx, { code: "MAX_ATTEMPTS_REACHED", text });
  return false;
}

async function signAt(ports: LanePorts, { context, lane, tx }: Work, fees: Fees): Promise<RepriceFate> {
  const payload = await lane.term.during(payloadAt(ports, { context, lane, tx }, fees));
  if (payload === null) {
    hold(ports, lane, tx, { code: "CANNOT_RESIGN", text: "its payload cannot be signed again here" });
    return "kept";
  }
  const fate = tx.receipt === null ? await signOrNot(ports, lane, tx, payload) : "mined";
  if (fate instanceof SigningRefused) {
    hold(ports, lane, tx, { code: "CANNOT_RESIGN", text: `the signer refused another price: ${fate.message}` });
    return "kept";
  }
  if (typeof fate === "string") {
    tx.facts.delete("POLICY_LIMIT_REACHED");
    return fate === "committed" ? "signed" : "kept";
  }
  hold(ports, lane, tx, { code: "POLICY_LIMIT_REACHED", text: `${fate.detail} (${fate.rule})` });
  return "kept";
}

/** A signer that is away, or says no, is no reason to read the lane again: what stands is sent as it is. */
function signOrNot(ports: LanePorts, lane: OwnedLane, tx: Tracked, payload: AnotherPayload) {
  return unlessAway(signAnother(ports, lane, tx, payload), "away").catch((error: unknown) => {
    if (error instanceof SigningRefused) return error;
    throw error;
  });
}

/** The newest payload at another price: a cancel stays a cancel. Null: it says more than can be signed here. */
async function payloadAt(ports: LanePorts, { context, tx }: Work, fees: Fees): Promise<AnotherPayload | null> {
  const over = tx.attempts.length;
  const decoded = await decodedNewest(ports, tx);
  const content = decoded === null ? null : rebuildable(decoded);
  if (content === null) return null;
  const unsigned = bounded(context.ceilings, { ...content, fees });
  const reason = tx.pace.answer === "underpriced" ? "a node called it underpriced" : "the last blocks took more";
  const kind = repricedKind(tx.attempts);
  return { kind, unsigned, over, about: kind === "placeholder" ? kind : "cost", reason };
}

/**
 * A payload was refused because it asks for more gas than the chain takes in one transaction, a limit that was not known
 * when it was signed. What it needs may still fit: then the same payload is signed again with less. Gas that the caller
 * named is the caller's: it is left as it is, and the hole policy decides. So is what does not fit.
 */
export function lowerGas(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  if (context.gasLimits.cap === null || signerAwaited(lane.pace, ports.clock.monotonicMs()) !== null) return null;
  const waiting = [...lane.unmined.values()].filter((each) => awaitsLessGas(context, each));
  return waiting.length === 0 ? null : lowerEach(ports, context, lane, waiting);
}

async function lowerEach(
  ports: LanePorts,
  context: ChainContext,
  lane: OwnedLane,
  waiting: readonly Tracked[],
): Promise<void> {
  for (const tx of waiting) {
    if (lane.held) return;
    // Where nothing was found out, nothing is decided: it is looked at again.
    await unlessSilent(lowerOne(ports, context, lane, tx), null);
  }
}

/** Refused for a gas limit above the chain's cap, by everybody, and what it really needs was not looked at since. */
export function awaitsLessGas({ gasLimits, settings }: ChainContext, tx: Tracked): boolean {
  const { cap } = gasLimits;
  if (cap === null || tx.pace.answer !== "rejected" || tx.acceptedOrdinal !== null) return false;
  if (tx.pace.inHand || tx.held) return false;
  if (tx.pace.gasJudgedAt === tx.pace.rejections || tx.receipt !== null) return false;
  if (settings.maxAttempts !== 0 && tx.attempts.length >= settings.maxAttempts) return false;
  const newest = attemptToSend(tx.attempts);
  if (newest === null || newest.nodeSigned === true || newest.gas <= cap) return false;
  // Once: an endpoint that names less each time would have payloads signed without end.
  return repricedKind(tx.attempts) === "reprice" && tx.attempts.every(({ gas }) => gas <= newest.gas);
}

async function lowerOne(ports: LanePorts, context: ChainContext, lane: OwnedLane, tx: Tracked): Promise<void> {
  const { rejections } = tx.pace;
  const over = tx.attempts.length;
  const unsigned = await lane.term.during(withLessGas(ports, context, lane.lane.signer, tx));
  if (tx.attempts.length !== over || tx.pace.rejections !== rejections) return;
  happened(tx, gasJudged, rejections);
  if (unsigned === null) return;
  const reason = `the chain takes no more than ${context.gasLimits.cap} gas in one transaction`;
  const payload: AnotherPayload = { kind: "reprice", unsigned, over, about: "cost", reason };
  const fate = await signOrNot(ports, lane, tx, payload);
  // A signer that is away decides nothing about gas: judged again once it is back.
  if (fate === "away") happened(tx, gasJudged, null);
}

/** Null: the caller named the gas, what it needs does not fit, or a ceiling was lowered below its price since. */
async function withLessGas(
  ports: LanePorts,
  context: ChainContext,
  from: Address,
  tx: Tracked,
): Promise<Bounded | null> {
  const [stored] = await ports.store.loadPayloads([tx.txId]);
  if (stored === undefined || stored.payload.gas !== undefined) return null;
  const decoded = await decodedNewest(ports, tx);
  const unsigned = decoded === null ? null : rebuildable(decoded);
  if (unsigned === null) return null;
  const { to, data, value, accessList } = unsigned;
  const simulation = await simulateWithin(context, { from, to, data, value, accessList });
  if (simulation.outcome !== "ok") return null;
  const gas = withMargin(simulation.gas, { to, data }, context.gasLimits.most?.gas ?? null);
  const isAllowed = feeCap(unsigned.fees) <= feeLimit(context.ceilings, { gas, value }).most;
  return isAllowed ? bounded(context.ceilings, { ...unsigned, gas }) : null;
}
