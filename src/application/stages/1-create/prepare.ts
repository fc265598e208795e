/**
 * Stage 1, second half: all checks that are possible before a nonce is spent.
 *
 * Reads: the chain (estimate or simulation, price, balance). Writes: nothing. Invariant: a deterministic failure is
 * answered 422 and consumes nothing; a missing answer of the chain decides nothing (I7).
 *
 * A revert or a lack of funds is deterministic only if no unmined transaction of the lane precedes this one. Behind
 * pending ones a create is accepted if the caller set the gas, and refused with `dependsOnPending` otherwise. A crash
 * here leaves nothing behind.
 */

import { defined } from "../../../domain/defined.ts";
import { FencepostError, type RejectionReason, unavailable } from "../../../domain/errors.ts";
import { type Content, overCeiling, refuseOverCeiling } from "../../../domain/fees/ceilings.ts";
import { type GasLimit, gasOverLimit, intrinsicGas, lowerLimit, withMargin } from "../../../domain/fees/gas.ts";
import type { Lane } from "../../../domain/lane.ts";
import { type FeeMarket, feeCap, isFullyPriced, isHopelessCap } from "../../../domain/transaction/fees.ts";
import type { Intent, Payload, PreparedIntent } from "../../../domain/transaction/transaction.ts";
import { type Call, ChainUnavailable, type Prospect, type Simulation } from "../../../ports/chain.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { asAsked, confirmEstimate, simulateWithin, simulationWithCode, withinLimits } from "../../chain/gas-needed.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";

type Refusal = Exclude<Simulation, { outcome: "ok" }>;

const REASONS: Readonly<Record<Refusal["outcome"], RejectionReason>> = {
  revert: "REVERT",
  insufficientFunds: "INSUFFICIENT_FUNDS",
  gasTooLow: "GAS_TOO_LOW",
  gasOverBlock: "GAS_OVER_BLOCK",
};

/** The lane's current facts that preparation depends on. */
export interface Standing {
  /** True if an unmined transaction of the lane precedes this one. */
  readonly behindPending: boolean;
  /** True if the lane has a next nonce, so that it can allocate nonces while the chain is unreachable. */
  readonly laneKnown: boolean;
}

/**
 * True if this transaction needs a request of its own to the chain: an estimate, or a simulation if no unmined
 * transaction precedes it.
 */
export function asksChain({ payload }: Intent, { behindPending }: Pick<Standing, "behindPending">): boolean {
  return payload.gas === undefined || !behindPending;
}

/**
 * True if the caller set gas and fees, so that nothing is needed from the chain as long as an unmined transaction of
 * the lane precedes this one.
 */
export function isComplete({ payload }: Intent): boolean {
  return payload.gas !== undefined && isFullyPriced(payload);
}

interface Known {
  readonly lanes: { find(lane: Lane): OwnedLane | null };
  readonly chains: ReadonlyMap<number, ChainContext>;
}

/** True if the intent is complete, or if this node knows the lane and the market by which it can be prepared now. */
export function isSoonPrepared({ lanes, chains }: Known, intent: Intent): boolean {
  if (isComplete(intent)) return true;
  const behindPending = lanes.find(intent.lane)?.hasUnmined() ?? false;
  return !asksChain(intent, { behindPending }) && (chains.get(intent.lane.chainId)?.recentMarket() ?? null) !== null;
}

/** Prepares an intent without a call to the chain; null if a call is needed. */
export function prepareUnasked(
  context: ChainContext,
  intent: Intent,
  { behindPending }: Pick<Standing, "behindPending">,
): PreparedIntent | null {
  const { payload } = intent;
  const shown = shownTo(context);
  refuseUnasked(context, intent, shown);
  if (payload.gas === undefined || !behindPending) return null;
  if (!isFullyPriced(payload)) {
    const market = context.recentMarket();
    return market && priceBehindPending(context, intent, payload.gas, { market, shown });
  }
  // While the chain is unreachable, the newest known block and base fee are outdated, so skip this check.
  if (context.reachable) refuseHopelessFee(shown, payload);
  return withGas(intent, payload.gas, namedCap(payload));
}

function priceBehindPending(context: ChainContext, intent: Intent, gas: bigint, priced: Priced): PreparedIntent {
  const fees = pricedAt(context, intent.payload, gas, priced);
  refuseHopelessFee(priced.shown, intent.payload);
  return withGas(intent, gas, feeCap(fees));
}

export async function prepare(context: ChainContext, intent: Intent, standing: Standing): Promise<PreparedIntent> {
  return prepareUnasked(context, intent, standing) ?? prepareAsking(context, intent, standing);
}

/** Prepares an intent that needs calls to the chain (`prepareUnasked` returned null). */
export async function prepareAsking(
  context: ChainContext,
  intent: Intent,
  { behindPending, laneKnown }: Standing,
): Promise<PreparedIntent> {
  try {
    return await askChain(context, intent, behindPending);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    const { payload } = intent;
    if (isComplete(intent) && laneKnown) return withGas(intent, payload.gas as bigint, namedCap(payload));
    const hint = isComplete(intent)
      ? "this signer's nonce is not known yet: wait for it"
      : "set gas and fees to have the request accepted meanwhile";
    throw unavailable(`the chain does not answer; ${hint}, or try again`, error);
  }
}

/**
 * True if this endpoint's own answers would cause the transaction to be refused, assuming that no unmined transaction
 * precedes it. The answers of other endpoints are not used.
 */
export function isRefusedBy(context: ChainContext, intent: Intent, prospect: Prospect): boolean {
  const { head, market, simulation } = prospect;
  const { to } = intent.payload;
  const shown = { ...head, mostGas: lowerLimit(head.gasLimit, context.gasLimits.cap) };
  const runsNoCode = simulation.outcome === "ok" && simulation.hasCode === false;
  if (runsNoCode && intent.allowNoCode !== true && (to === null || !context.knownCode.isKnown(to))) return true;
  try {
    refuseUnasked(context, intent, shown);
    judge(context, intent, { simulation: limited(simulation, shown), market, shown, behindPending: false });
    return false;
  } catch (error) {
    if (error instanceof FencepostError) return true;
    throw error;
  }
}

/** The call that an endpoint is to simulate for this intent. */
export function questionOf(context: ChainContext, intent: Intent): Call {
  return asAsked(context, callOf(intent));
}

function limited(simulation: Simulation, { mostGas }: Shown): Simulation {
  const detail = simulation.outcome === "ok" ? gasOverLimit(simulation.gas, mostGas) : null;
  return detail === null ? simulation : { outcome: "gasOverBlock", detail };
}

async function askChain(context: ChainContext, intent: Intent, behindPending: boolean) {
  const { payload } = intent;
  const shown = shownTo(context);
  if (payload.gas !== undefined && behindPending) {
    const market = await context.marketFor(payload);
    return priceBehindPending(context, intent, payload.gas, { market, shown });
  }
  const call = callOf(intent);
  const [said, market] = await Promise.all([simulateWithin(context, call), context.marketFor(payload)]);
  const simulation = intent.allowNoCode === true ? said : await ranByCode(context, call, said, behindPending);
  const estimated = simulation.outcome === "ok" && payload.gas === undefined ? simulation.gas : null;
  if (estimated !== null) await confirmEstimate(context, call, { gas: estimated, market, wishes: payload });
  return judge(context, intent, { simulation, market, shown: shownTo(context), behindPending });
}

interface Judged extends Priced {
  readonly simulation: Simulation;
  readonly behindPending: boolean;
}

/**
 * Decides about the intent once the chain has answered everything: throws the refusal, or returns the accepted intent
 * with its price.
 */
function judge(context: ChainContext, intent: Intent, judged: Judged): PreparedIntent {
  const { payload } = intent;
  const { simulation, shown, behindPending } = judged;
  if (simulation.outcome !== "ok") throw refusal(simulation, behindPending);
  refuseHopelessFee(shown, payload);
  const gas = payload.gas ?? withMargin(simulation.gas, payload, shown.mostGas?.gas ?? null);
  const cap = feeCap(pricedAt(context, payload, gas, judged));
  const needed = payload.value + gas * cap;
  if (needed > simulation.balance) {
    const detail = `needs ${needed} wei (value + gas x fee cap), the account has ${simulation.balance}`;
    throw refusal({ outcome: "insufficientFunds", detail }, behindPending);
  }
  return withGas(intent, gas, cap);
}

/**
 * Number and base fee of the newest block, and the maximum gas: from this node's own view of the chain, or from one
 * endpoint's answer.
 */
interface Shown {
  readonly number: number | null;
  readonly baseFeePerGas: bigint | null;
  readonly mostGas: GasLimit | null;
}

interface Priced {
  readonly market: FeeMarket;
  readonly shown: Shown;
}

/**
 * Uses the lower of the newest block's base fee and the last one that two endpoints agreed on, so that one endpoint's
 * false value refuses no caller.
 */
function shownTo({ follower: { head }, leastBaseFee, gasLimits }: ChainContext): Shown {
  return { number: head?.number ?? null, baseFeePerGas: leastBaseFee, mostGas: gasLimits.most };
}

function refuseUnasked(context: ChainContext, { payload }: Intent, { mostGas }: Shown) {
  refuseImpossibleGas({ gasLimits: { most: mostGas } }, payload);
  const { value, gas = intrinsicGas(payload) } = payload;
  refuseOverCeiling(context.ceilings, { gas, value }, payload);
}

async function ranByCode(context: ChainContext, call: Call, said: Simulation, behindPending: boolean) {
  const simulation = await simulationWithCode(context, call, said);
  if (simulation === said) return said;
  if (simulation !== null) return withinLimits(context, call, simulation);
  // If unmined transactions precede this one, one of them may deploy the receiver's code. An estimate made now would
  // then be too low.
  if (behindPending) throw refusal({ outcome: "gasTooLow", detail: notDeployedYet(call) }, true);
  const detail = `${call.to} has no code, so this call data would do nothing; check the address and the chain, or give allowNoCode: true`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "NO_CODE" });
}

function notDeployedYet({ to }: Call) {
  return `${to} has no code yet, so the gas of this call cannot be estimated; where a transaction before it deploys the code, give gas, or send it once that is mined; where it is meant to have none, give allowNoCode: true`;
}

/**
 * The price at which the transaction will be signed. If the market is above the fee ceiling, the transaction waits for
 * the market to fall. But if it has so much gas that a cost ceiling leaves less per unit than the base fee, it cannot
 * be paid for and is refused now, before it costs anything.
 */
function pricedAt(context: ChainContext, payload: Payload, gas: bigint, { market, shown }: Priced) {
  const { ceilings } = context;
  const content: Content = { gas, value: payload.value };
  refuseOverCeiling(ceilings, content, payload);
  const { fees, reached } = context.priceOn(market, payload, content);
  const baseFee = shown.baseFeePerGas ?? 0n;
  if (reached === null || reached.variable === "FENCEPOST_MAX_FEE_GWEI") return fees;
  if (reached.most > 0n && reached.most >= baseFee) return fees;
  throw overCeiling(ceilings, content, baseFee > 0n ? baseFee : 1n, reached);
}

/** Fields are listed one by one: every create passes here, and object spreads are slow to make and to read. */
function withGas(intent: Intent, gas: bigint, cap: bigint): PreparedIntent {
  const { txId, lane, requestId, owner, payload, fingerprint, metadata } = intent;
  const { pool, allowNoCode, exactNonce, validUntil } = intent;
  const named = { txId, lane, requestId, owner, payload, fingerprint, metadata, gas, gasCost: gas * cap };
  return { ...named, ...defined({ pool, allowNoCode, exactNonce, validUntil }) };
}

/** Fee cap of a payload whose fees the caller set. */
function namedCap({ maxFeePerGas = 0n, gasPrice = 0n }: Payload) {
  return maxFeePerGas > gasPrice ? maxFeePerGas : gasPrice;
}

function callOf({ lane, payload }: Intent): Call {
  const { to, data, value, gas, accessList } = payload;
  return { from: lane.signer, to, data, value, ...defined({ gas, accessList }) };
}

/**
 * Checks without a call to the chain: no chain runs a transaction below its intrinsic gas, above its block limit or
 * above its own cap.
 */
export function refuseImpossibleGas(
  { gasLimits }: { readonly gasLimits: Pick<ChainContext["gasLimits"], "most"> },
  payload: Pick<Payload, "to" | "data" | "accessList" | "gas">,
): void {
  if (payload.gas === undefined) return;
  const least = intrinsicGas(payload);
  if (payload.gas < least) {
    throw refusal(
      { outcome: "gasTooLow", detail: `gas ${payload.gas} is below the ${least} this transaction costs at least` },
      false,
    );
  }
  const detail = gasOverLimit(payload.gas, gasLimits.most);
  if (detail !== null) throw refusal({ outcome: "gasOverBlock", detail }, false);
}

/**
 * Checks a transaction that its caller signed: refuses gas that no chain would run, and a price that no block would
 * include.
 */
export function refuseImpossible(context: ChainContext, payload: Payload): void {
  refuseImpossibleGas(context, payload);
  if (context.reachable) refuseHopelessFee(shownTo(context), payload);
}

/**
 * Refuses a fee cap far below the base fee. The base fee falls by an eighth per block at most: a cap slightly below it
 * may wait, but this one would be refused by nodes.
 */
function refuseHopelessFee({ number, baseFeePerGas: baseFee }: Shown, payload: Payload) {
  const cap = payload.maxFeePerGas ?? payload.gasPrice;
  if (cap === undefined || baseFee === null || !isHopelessCap(cap, baseFee)) return;
  const field = payload.maxFeePerGas === undefined ? "gasPrice" : "maxFeePerGas";
  const detail = `${field}: the fee cap of ${cap} wei is less than half of the base fee, ${baseFee} wei at block ${number}; offer more than the base fee, or leave the fees to the market`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "FEE_TOO_LOW", baseFeePerGas: `${baseFee}` });
}

function refusal(why: Refusal, dependsOnPending: boolean) {
  const extras = { reason: REASONS[why.outcome], ...(dependsOnPending ? { dependsOnPending } : {}) };
  if (why.outcome !== "revert") return new FencepostError("SUBMISSION_REJECTED", why.detail, extras);
  const { name, message, data } = why.revert;
  const detail = `the call would revert${message === null ? "" : `: ${message}`}`;
  return new FencepostError("SUBMISSION_REJECTED", detail, { ...extras, revert: { name, message, data } });
}
