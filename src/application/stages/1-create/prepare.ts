/**
 * Stage 1, second half: all checks that are possible before a nonce is spent.
 *
 * Reads: the chain (estimate or simulation, price, balance). Writes: nothing. Invariant: a deterministic failure is
 * answered 422 and consumes nothing; a missing answer of the chain decides nothing (I7).
 *
 * A revert or a lack of funds is deterministic only if nothing un-mined of the lane precedes the transaction. Behind
 * pending ones it is accepted if the caller brought gas, and refused with `dependsOnPending` otherwise. A crash here
 * leaves nothing behind.
 */

import { defined } from "../../../domain/defined.ts";
import { FencepostError, type RejectionReason, unavailable } from "../../../domain/errors.ts";
import { type Content, overCeiling, refuseOverCeiling } from "../../../domain/fees/ceilings.ts";
import { type GasLimit, gasOverLimit, intrinsicGas, lowerLimit, withMargin } from "../../../domain/fees/gas.ts";
import { type FeeMarket, feeCap, isFullyPriced, isHopelessCap } from "../../../domain/transaction/fees.ts";
import type { Intent, Payload, PreparedIntent } from "../../../domain/transaction/transaction.ts";
import { type Call, ChainUnavailable, type Prospect, type Simulation } from "../../../ports/chain.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { asAsked, confirmEstimate, simulateWithin, simulationWithCode, withinLimits } from "../../chain/gas-needed.ts";

type Refusal = Exclude<Simulation, { outcome: "ok" }>;

const REASONS: Readonly<Record<Refusal["outcome"], RejectionReason>> = {
  revert: "REVERT",
  insufficientFunds: "INSUFFICIENT_FUNDS",
  gasTooLow: "GAS_TOO_LOW",
  gasOverBlock: "GAS_OVER_BLOCK",
};

/** The lane's facts of this moment. */
export interface Standing {
  /** Something un-mined precedes this transaction. */
  readonly behindPending: boolean;
  /** The lane has a cursor, so that a chain that is away need not stop it. */
  readonly laneKnown: boolean;
}

/**
 * True if this transaction needs a request of its own to the chain: an estimate, or a simulation if nothing precedes
 * it.
 */
export function asksChain({ payload }: Intent, { behindPending }: Pick<Standing, "behindPending">): boolean {
  return payload.gas === undefined || !behindPending;
}

/** Nothing about it needs the chain, at any place of its lane but the head. */
export function isComplete({ payload }: Intent): boolean {
  return payload.gas !== undefined && isFullyPriced(payload);
}

/** Prepares without a question to the chain; null: the chain has to be asked. */
export function prepareUnasked(
  context: ChainContext,
  intent: Intent,
  { behindPending }: Pick<Standing, "behindPending">,
): PreparedIntent | null {
  const { payload } = intent;
  const shown = shownTo(context);
  refuseUnasked(context, intent, shown);
  if (payload.gas === undefined || !behindPending || !isFullyPriced(payload)) return null;
  // A silent chain's head, and its base fee, are outdated.
  if (context.reachable) refuseHopelessFee(shown, payload);
  return withGas(intent, payload.gas, namedCap(payload));
}

export async function prepare(context: ChainContext, intent: Intent, standing: Standing): Promise<PreparedIntent> {
  return prepareUnasked(context, intent, standing) ?? prepareAsking(context, intent, standing);
}

/** For an intent that `prepareUnasked` returned null for. */
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
      : "bring gas and fees to be accepted meanwhile";
    throw unavailable(`the chain does not answer; ${hint}, or try again`, error);
  }
}

/**
 * True if this endpoint's own answers would have the transaction refused, for any reason, with nothing before it.
 * Another endpoint's price, block or balance has no part in this.
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

/** The question that a prospect answers. */
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
    const fees = priced(context, payload, payload.gas, { market, shown });
    refuseHopelessFee(shown, payload);
    return withGas(intent, payload.gas, feeCap(fees));
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

/** All that was asked is known: throws the refusal, or prices what is accepted. */
function judge(context: ChainContext, intent: Intent, judged: Judged): PreparedIntent {
  const { payload } = intent;
  const { simulation, shown, behindPending } = judged;
  if (simulation.outcome !== "ok") throw refusal(simulation, behindPending);
  refuseHopelessFee(shown, payload);
  const gas = payload.gas ?? withMargin(simulation.gas, payload, shown.mostGas?.gas ?? null);
  const cap = feeCap(priced(context, payload, gas, judged));
  const needed = payload.value + gas * cap;
  if (needed > simulation.balance) {
    const detail = `needs ${needed} wei (value + gas x fee cap), the account has ${simulation.balance}`;
    throw refusal({ outcome: "insufficientFunds", detail }, behindPending);
  }
  return withGas(intent, gas, cap);
}

/** The newest block, and the most gas that may be asked for: as this node follows the chain, or as one endpoint shows it. */
interface Shown {
  readonly number: number | null;
  readonly baseFeePerGas: bigint | null;
  readonly mostGas: GasLimit | null;
}

interface Priced {
  readonly market: FeeMarket;
  readonly shown: Shown;
}

/** The lowest of the base fees that one endpoint alone claims: no caller is refused by a lie. */
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
  // Behind pending ones its deployment may be one of them. What was estimated now would run out of gas in its code.
  if (behindPending) throw refusal({ outcome: "gasTooLow", detail: notDeployedYet(call) }, true);
  const detail = `${call.to} has no code, so this call data would do nothing; check the address and the chain, or give allowNoCode: true`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "NO_CODE" });
}

function notDeployedYet({ to }: Call) {
  return `${to} has no code yet, so the gas of this call cannot be estimated; where a transaction before it deploys the code, give gas, or send it once that is mined; where it is meant to have none, give allowNoCode: true`;
}

/**
 * The price as it will be signed. A market above the ceiling of the fee is waited for: it falls again. But so much gas that
 * a ceiling of the cost leaves less for each unit than the base fee cannot be paid for, and is refused while it is free to.
 */
function priced(context: ChainContext, payload: Payload, gas: bigint, { market, shown }: Priced) {
  const { ceilings } = context;
  const content: Content = { gas, value: payload.value };
  refuseOverCeiling(ceilings, content, payload);
  const { fees, reached } = context.priceOn(market, payload, content);
  const baseFee = shown.baseFeePerGas ?? 0n;
  if (reached === null || reached.variable === "FENCEPOST_MAX_FEE_GWEI") return fees;
  if (reached.most > 0n && reached.most >= baseFee) return fees;
  throw overCeiling(ceilings, content, baseFee > 0n ? baseFee : 1n, reached);
}

/** Spelled out: every create passes here, and copies made by spreading are slow to make and slow to read. */
function withGas(intent: Intent, gas: bigint, cap: bigint): PreparedIntent {
  const { txId, lane, requestId, owner, payload, fingerprint, metadata } = intent;
  const { pool, allowNoCode, exactNonce, validUntil } = intent;
  const named = { txId, lane, requestId, owner, payload, fingerprint, metadata, gas, gasCost: gas * cap };
  return { ...named, ...defined({ pool, allowNoCode, exactNonce, validUntil }) };
}

/** Fee cap of a payload that its caller priced. */
function namedCap({ maxFeePerGas = 0n, gasPrice = 0n }: Payload) {
  return maxFeePerGas > gasPrice ? maxFeePerGas : gasPrice;
}

function callOf({ lane, payload }: Intent): Call {
  const { to, data, value, gas, accessList } = payload;
  return { from: lane.signer, to, data, value, ...defined({ gas, accessList }) };
}

/** Known without asking: no chain runs a transaction below its intrinsic gas, above its block or above its own cap. */
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
 * Checks of a transaction that its caller signed: what no chain would run, and what no block would include at this
 * price.
 */
export function refuseImpossible(context: ChainContext, payload: Payload): void {
  refuseImpossibleGas(context, payload);
  if (context.reachable) refuseHopelessFee(shownTo(context), payload);
}

/** The base fee falls by an eighth a block at most. What offers a little less than it may wait; this would be refused. */
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
