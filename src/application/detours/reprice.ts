/**
 * Detour: prices of further attempts. A transaction that pays less than recent blocks accepted, or that a node called
 * underpriced, is signed again at the same nonce for a higher price. A transaction whose gas limit is above what the
 * chain accepts is signed again with less gas (`lowerGas`). A payload that an operator or the hook requested gets the
 * fees that they named, if those are enough, else the price for the next block (`changePrice`).
 *
 * Reads: the fee market, the newest blocks, the bytes of the newest payload; for less gas the caller's payload and a
 * new estimate. Writes: another attempt (another-attempt.ts). Invariants: I3 (same nonce, same receiver, value and
 * data), I6; new fees exceed all fees that a node has accepted, and never the ceiling. A crash has the effects
 * described in another-attempt.ts; the next owner sends the newest attempt, judges it by the response, and learns the
 * gas limit anew.
 */

import { FencepostError, invalid } from "../../domain/errors.ts";
import { actionPrice } from "../../domain/fees/action-price.ts";
import {
  bounded,
  type Content,
  feeLimit,
  limitInWords,
  overCeiling,
  refuseOverCeiling,
  repricingLimit,
} from "../../domain/fees/ceilings.ts";
import { nextStep, PASSED_OVER } from "../../domain/fees/climbing.ts";
import { withMargin } from "../../domain/fees/gas.ts";
import {
  covers,
  higher,
  highestOffer,
  leastReplacement,
  type RepricingView,
  reprice,
} from "../../domain/fees/repricing.ts";
import { signerAwaited } from "../../domain/pace/lane-pace.ts";
import { gasJudged, isPassedOver, turnedTo } from "../../domain/pace/transaction-pace.ts";
import { attemptToSend, isSendable, repricedKind, sendableAttempts } from "../../domain/transaction/attempts.ts";
import {
  baseFeeNow,
  type FeeMarket,
  type Fees,
  type FeeWishes,
  feeCap,
  larger,
  priceFirstAttempt,
  smaller,
} from "../../domain/transaction/fees.ts";
import { unlessSilent } from "../../ports/chain.ts";
import { SigningRefused, unlessAway } from "../../ports/signer.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import { simulateWithin } from "../chain/gas-needed.ts";
import type { LaneWork } from "../chain/work-ports.ts";
import type { Working } from "../lane/activity.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { hold } from "../lane/lane-writer.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { decodedNewest, happened, rebuildable, type Tracked } from "../lane/tracked.ts";
import { type AnotherPayload, signAnother } from "./another-attempt.ts";

interface Work extends LaneWork {
  readonly tx: Tracked;
}

/**
 * Codes of the reasons why a transaction could not be repriced. They are removed once it needs no higher price any
 * more.
 */
const WANTING_MORE = ["CANNOT_RESIGN", "MAX_ATTEMPTS_REACHED", "POLICY_LIMIT_REACHED"] as const;

/**
 * Reprices a transaction whose fees are too low. Returns "signed" if another attempt was signed and will be sent,
 * "kept" if the newest attempt is to be resent unchanged.
 */
export async function repriceIfBelow(work: Work): Promise<"signed" | "kept"> {
  const { context, lane, tx } = work;
  const { repricing: strategy, maxAttempts } = context.settings;
  if (strategy === null) return "kept";
  // The current fee market; null if the chain does not return it. Then the transaction's fees are neither raised nor
  // reported as too low.
  const market = await lane.term.during(unlessSilent(context.feeMarket(), null));
  const view = market && viewOf(work, market);
  if (view === null) return "kept";
  const limit = await lane.term.during(limitOf(work, view));
  const verdict = reprice(strategy, view, limit.most);
  if (verdict.verdict === "ceiling" || (verdict.verdict === "reprice" && verdict.reached))
    keptBy(work, "FEE_CEILING_REACHED", `its fee has reached ${limitInWords(limit)}, and more is wanted`);
  else tx.facts.delete("FEE_CEILING_REACHED");
  // Keep the recorded reasons if the transaction has expired: it also needs a cancel, and the same reasons may prevent
  // that.
  const wantsMore = verdict.verdict !== "keep" || lane.pace.overdue.has(tx.txId);
  if (!wantsMore) for (const code of WANTING_MORE) tx.facts.delete(code);
  if (verdict.verdict !== "reprice") return "kept";
  // An attempt with the same fees was signed before, and was refused for another reason (insufficient funds, for
  // example). Resend its bytes instead of signing again.
  const known = sendableAttempts(tx.attempts).find(({ fees }) => covers(fees, verdict.fees));
  if (known !== undefined) {
    happened(tx, turnedTo, known.ordinal);
    return "kept";
  }
  const signed = tx.attempts.length;
  if (maxAttempts === 0 || signed < maxAttempts) return signAt(work, verdict.fees);
  return keptBy(work, "MAX_ATTEMPTS_REACHED", `${signed} payloads were signed for it, which is all that is allowed`);
}

function keptBy({ ports, lane, tx }: Work, code: Parameters<typeof hold>[3]["code"], text: string) {
  hold(ports, lane, tx, { code, text });
  return "kept" as const;
}

/**
 * Inputs of a repricing decision. New fees must exceed those of every attempt that a node accepted or refused as
 * underpriced, replaced payloads included, because a pool may still hold any of them.
 */
function viewOf({ ports, context, tx }: Work, market: FeeMarket): RepricingView | null {
  const ours = tx.attempts.filter(({ kind, foreign }) => kind !== "external" && foreign !== true);
  const refused = tx.pace.answer === "underpriced";
  const through = Math.max(tx.acceptedOrdinal ?? 0, refused ? (tx.pace.sendOrdinal ?? 0) : 0);
  const standing = highestOffer(ours.filter(({ ordinal }) => ordinal <= through));
  const first = ours[0]?.fees;
  if (standing === null || first === undefined) return null;
  const isShort = refused || isPassed(context, tx, ports.clock.monotonicMs());
  const step = isShort ? nextStep(standing, market) : null;
  return { first, standing, refused, market, attempts: tx.attempts.length, ...(step === null ? {} : { step }) };
}

/** True if enough new blocks have arrived since a node accepted the transaction, and none of them contains it. */
export function isPassed({ follower }: ChainContext, { pace }: Tracked, ms: number): boolean {
  return isPassedOver(pace, { block: follower.head?.number ?? 0, ms }, PASSED_OVER);
}

/**
 * Price limit of a repricing. The transaction's value matters only if a cost ceiling is set; if not, its bytes need not
 * be read.
 */
async function limitOf({ ports, context: { ceilings }, tx }: Work, { first, step }: RepricingView) {
  const newest = sendableAttempts(tx.attempts).at(-1);
  const standing = ceilings.cost === null ? null : await decodedNewest(ports, tx);
  const content = { gas: newest?.gas ?? 0n, value: standing?.unsigned.value ?? 0n };
  // If an endpoint reported too low a market, the first price is too low to derive the limit from. Then the next price
  // step is used instead, if it is higher.
  return repricingLimit(ceilings, content, step === undefined ? first : higher(first, step));
}

async function signAt(work: Work, fees: Fees) {
  const { lane, tx } = work;
  const payload = await lane.term.during(payloadAt(work, fees));
  if (payload === null) return keptBy(work, "CANNOT_RESIGN", "its payload cannot be signed again here");
  const result = tx.receipt === null ? await signOrNot(work, payload) : "mined";
  if (result instanceof SigningRefused)
    return keptBy(work, "CANNOT_RESIGN", `the signer refused another price: ${result.message}`);
  if (typeof result !== "string") return keptBy(work, "POLICY_LIMIT_REACHED", `${result.detail} (${result.rule})`);
  tx.facts.delete("POLICY_LIMIT_REACHED");
  return result === "committed" ? "signed" : "kept";
}

/**
 * Signs another attempt. If the signer is unavailable or refuses, the lane need not be reloaded: the newest attempt is
 * sent unchanged.
 */
function signOrNot({ ports, lane, tx }: Work, payload: AnotherPayload) {
  return unlessAway(signAnother(ports, lane, tx, payload), "away").catch((error: unknown) => {
    if (error instanceof SigningRefused) return error;
    throw error;
  });
}

/** Content of the newest payload; null if it has fields that cannot be signed here. */
async function newestContent({ ports, tx }: Work) {
  const decoded = await decodedNewest(ports, tx);
  return decoded && rebuildable(decoded);
}

/** The newest payload at another price; the new attempt of a cancel is a cancel, too. */
async function payloadAt(work: Work, fees: Fees): Promise<AnotherPayload | null> {
  const { context, tx } = work;
  const over = tx.attempts.length;
  const content = await newestContent(work);
  if (content === null) return null;
  const unsigned = bounded(context.ceilings, { ...content, fees });
  const reason = tx.pace.answer === "underpriced" ? "a node called it underpriced" : "the last blocks took more";
  const kind = repricedKind(tx.attempts);
  return { kind, unsigned, over, about: kind === "placeholder" ? kind : "cost", reason };
}

/**
 * Handles payloads that were refused because their gas limit exceeds the chain's cap per transaction, which was not
 * known when they were signed. If the gas that a payload really needs is below the cap, the same payload is signed
 * again with less gas. If the caller set the gas, or the need is above the cap, it stays unchanged and the hole policy
 * decides.
 */
export function lowerGas(ports: LanePorts, context: ChainContext, lane: OwnedLane): Working {
  if (context.gasLimits.cap === null || signerAwaited(lane.pace, ports.clock.monotonicMs()) !== null) return null;
  const waiting = [...lane.unmined.values()].filter((each) => awaitsLessGas(context, each));
  return waiting.length === 0 ? null : lowerEach({ ports, context, lane }, waiting);
}

async function lowerEach(work: LaneWork, waiting: readonly Tracked[]) {
  for (const tx of waiting) {
    if (work.lane.held) return;
    // If the chain does not answer, nothing is decided; the transaction is checked again later.
    await unlessSilent(lowerOne({ ...work, tx }), null);
  }
}

/**
 * True if all endpoints refused the transaction because its gas limit is above the chain's cap, and the gas that it
 * really needs was not computed since.
 */
export function awaitsLessGas({ gasLimits, settings }: ChainContext, tx: Tracked): boolean {
  const { cap } = gasLimits;
  if (cap === null || tx.pace.answer !== "rejected" || tx.acceptedOrdinal !== null) return false;
  if (tx.pace.inHand || tx.held) return false;
  if (tx.pace.gasJudgedAt === tx.pace.rejections || tx.receipt !== null) return false;
  if (settings.maxAttempts !== 0 && tx.attempts.length >= settings.maxAttempts) return false;
  const newest = attemptToSend(tx.attempts);
  if (newest === null || newest.nodeSigned === true || newest.gas <= cap) return false;
  // Lower the gas only once: an endpoint that names a lower cap each time would cause endless signing.
  return repricedKind(tx.attempts) === "reprice" && tx.attempts.every(({ gas }) => gas <= newest.gas);
}

async function lowerOne(work: Work) {
  const { context, lane, tx } = work;
  const { rejections } = tx.pace;
  const over = tx.attempts.length;
  const unsigned = await lane.term.during(withLessGas(work));
  if (tx.attempts.length !== over || tx.pace.rejections !== rejections) return;
  happened(tx, gasJudged, rejections);
  if (unsigned === null) return;
  const reason = `the chain takes no more than ${context.gasLimits.cap} gas in one transaction`;
  const result = await signOrNot(work, { kind: "reprice", unsigned, over, about: "cost", reason });
  // If the signer is unavailable, the payload with less gas is not signed: check the transaction again once the signer
  // is back.
  if (result === "away") happened(tx, gasJudged, null);
}

/**
 * The payload with a lower gas limit; null if the caller set the gas, if the call needs more than the chain's cap, or
 * if a ceiling is now below its price.
 */
async function withLessGas(work: Work) {
  const { ports, context, lane, tx } = work;
  const [stored] = await ports.store.loadPayloads([tx.txId]);
  if (stored === undefined || stored.payload.gas !== undefined) return null;
  const unsigned = await newestContent(work);
  if (unsigned === null) return null;
  const { to, data, value, accessList } = unsigned;
  const simulation = await simulateWithin(context, { from: lane.lane.signer, to, data, value, accessList });
  if (simulation.outcome !== "ok") return null;
  const gas = withMargin(simulation.gas, { to, data }, context.gasLimits.most?.gas ?? null);
  const isAllowed = feeCap(unsigned.fees) <= feeLimit(context.ceilings, { gas, value }).most;
  return isAllowed ? bounded(context.ceilings, { ...unsigned, gas }) : null;
}

interface Pricing {
  readonly wishes: FeeWishes;
  readonly costs: Content;
  /**
   * True if no person waits for the response who could name a price. Then, if the market's price is not confirmed, the
   * maximum allowed price is offered, and the lane's loop adjusts it to the market later.
   */
  readonly unattended: boolean;
}

export async function changePrice(context: ChainContext, tx: Tracked, pricing: Pricing): Promise<Fees> {
  const { wishes, costs } = pricing;
  const { ceilings } = context;
  refuseOverCeiling(ceilings, costs, wishes);
  const isCapped = wishes.gasPrice !== undefined || wishes.maxFeePerGas !== undefined;
  if (nothingStands(tx) && isCapped) return (await context.price(wishes, costs)).fees;
  const first = tx.attempts.find(isSendable);
  // If only the hash of the current transaction is known, and not its fees, use the price of a first attempt. A node
  // that holds a more expensive transaction refuses this one as underpriced.
  if (first === undefined && Object.keys(wishes).length === 0) return (await context.price({}, costs)).fees;
  const standing = nothingStands(tx) ? null : standingOffer(tx);
  const least = standing && leastReplacement(standing);
  const limit = feeLimit(ceilings, costs);
  if (least !== null && feeCap(least) > limit.most) throw overCeiling(ceilings, costs, feeCap(least), limit);
  if (standing !== null && (first === undefined || isCapped)) return wished(context, standing, pricing);
  const fees = await marketPrice(context, tx, pricing, standing);
  return tippedAsWished(fees, wishes.maxPriorityFeePerGas, least);
}

/** The price for the next block, at most the price limit of a repricing. */
async function marketPrice(
  context: ChainContext,
  { txId, attempts }: Tracked,
  pricing: Pricing,
  standing: Fees | null,
) {
  const { costs, unattended, wishes } = pricing;
  const { ceilings } = context;
  const market = await context.feeMarket();
  const seenBaseFees = context.seenBaseFees(market);
  const relative = repricingLimit(ceilings, costs, attempts.find(isSendable)?.fees as Fees);
  const limits = { relative: relative.most, absolute: feeLimit(ceilings, costs).most };
  const usual = standing ?? priceFirstAttempt(market, {}, null);
  const like = inEnvelope(typeOf(usual, wishes));
  const price = actionPrice({ like, standing, market, seenBaseFees }, limits);
  if (price.verdict === "offer") return price.fees;
  if (price.verdict === "unconfirmed" && unattended && price.allowed !== null) return price.allowed;
  const bound = limitInWords(relative);
  if (price.verdict === "tooDear")
    throw refused(txId, `needs at least ${price.least} wei per gas, which exceeds ${bound}`);
  const what = `${inWords(price.needed)}, which exceeds ${bound}`;
  const said = baseFeeNow(market);
  // On a chain with base fees the next block confirms or refutes the market, so the action can be repeated then. On a
  // chain without base fees the market is never confirmed.
  if (said === undefined) throw refused(txId, `would need ${what}, but only one endpoint reports such a price`);
  const newest = seenBaseFees.at(-1);
  const blocks =
    newest === undefined ? "no block was followed yet" : `the newest block that was followed had ${newest}`;
  const detail = `an endpoint says that gas costs ${said} wei, and ${blocks}: nothing was changed. Repeat this once the next block is there, or give the fees (${what})`;
  throw new FencepostError("UNAVAILABLE", detail, { txId, baseFeePerGas: `${said}`, retryAfterSeconds: 1 });
}

function inEnvelope(type: Fees["type"]): Fees {
  return type === "eip1559" ? { type, maxFeePerGas: 0n, maxPriorityFeePerGas: 0n } : { type, gasPrice: 0n };
}

/** Applies the tip that the operator or hook set. If that raises the tip, the maximum fee rises by the difference. */
function tippedAsWished(fees: Fees, tip: bigint | undefined, least: Fees | null) {
  if (tip === undefined || fees.type !== "eip1559") return fees;
  const more = larger(tip - fees.maxPriorityFeePerGas, 0n);
  const tipped = { ...fees, maxFeePerGas: fees.maxFeePerGas + more, maxPriorityFeePerGas: tip };
  if (least === null || covers(tipped, least)) return tipped;
  throw tooLittle("maxPriorityFeePerGas", least);
}

function refused(txId: string, why: string) {
  return new FencepostError("CONFLICT", `transaction ${txId} ${why}: set the fees in the request`, { txId });
}

/**
 * True if no node ever accepted any attempt and the last response was a refusal, so there are no fees to exceed.
 * Without this rule, fees that the signer cannot pay could only be replaced by higher ones. If a pool holds an attempt
 * after all, it answers "underpriced", and from then on that attempt's fees must be exceeded.
 */
function nothingStands({ acceptedOrdinal, pace: { answer } }: Tracked) {
  return acceptedOrdinal === null && (answer === "insufficientFunds" || answer === "rejected");
}

/**
 * The highest fees that a pool may hold: those of the highest accepted attempt, or of a higher attempt whose response
 * was unclear.
 */
export function standingOffer({ attempts, acceptedOrdinal, pace: { answer } }: Tracked): Fees {
  const own = attempts.filter(isSendable);
  const isOpen = acceptedOrdinal === null || answer === null || answer === "unknown" || answer === "underpriced";
  const standing = isOpen ? own : own.filter(({ ordinal }) => ordinal <= acceptedOrdinal);
  return (highestOffer(standing) ?? attempts[0]?.fees) as Fees;
}

/**
 * Price named by an operator or hook: it may exceed what the lane's loop would offer, up to the ceilings, but must be
 * high enough to replace the current payload.
 */
async function wished(context: ChainContext, standing: Fees, { wishes, costs }: Pricing) {
  const least = leastReplacement(standing);
  const { fees: asked } = await context.price({ ...wishes, type: typeOf(standing, wishes) }, costs);
  const fees = wishes.maxPriorityFeePerGas === undefined ? withTip(asked, least) : asked;
  if (covers(fees, least)) return fees;
  const isCap = wishes.maxFeePerGas !== undefined && feeCap(fees) < feeCap(least);
  const field = fees.type !== "eip1559" ? "gasPrice" : isCap ? "maxFeePerGas" : "maxPriorityFeePerGas";
  throw tooLittle(field, least);
}

function tooLittle(field: string, least: Fees) {
  return invalid(field, `is too low: nodes accept a replacement only with at least ${inWords(least)}`);
}

/**
 * Transaction type of the new attempt: the requested type, else the type to which the named fee fields belong, else the
 * current type.
 */
function typeOf({ type }: Fees, wishes: FeeWishes) {
  if (wishes.type !== undefined) return wishes.type;
  if (wishes.gasPrice !== undefined) return type === "eip1559" ? "legacy" : type;
  return wishes.maxFeePerGas === undefined && wishes.maxPriorityFeePerGas === undefined ? type : "eip1559";
}

function withTip(fees: Fees, least: Fees) {
  if (fees.type !== "eip1559" || least.type !== "eip1559") return fees;
  const tip = larger(fees.maxPriorityFeePerGas, least.maxPriorityFeePerGas);
  return { ...fees, maxPriorityFeePerGas: smaller(tip, fees.maxFeePerGas) };
}

export function inWords(fees: Fees): string {
  if (fees.type !== "eip1559") return `gasPrice ${fees.gasPrice}`;
  return `maxFeePerGas ${fees.maxFeePerGas} and maxPriorityFeePerGas ${fees.maxPriorityFeePerGas}`;
}
