/**
 * Stage 1, second half: everything that can be known before a nonce is spent.
 *
 * Reads: the chain (estimate or simulation, price, balance). Writes: nothing. Invariant: a deterministic failure is
 * answered 422 and consumes nothing; what the chain could not say decides nothing (I7).
 *
 * A revert or a lack of funds is deterministic only when nothing un-mined of the lane stands before the transaction.
 * Behind pending ones it is accepted where the caller brought gas, and refused with `dependsOnPending` where not.
 * A crash here leaves nothing behind.
 */

import { type Content, overCeiling, refuseOverCeiling } from "../../../domain/ceilings.ts";
import { defined } from "../../../domain/defined.ts";
import { FencepostError, type RejectionReason, unavailable } from "../../../domain/errors.ts";
import { type FeeMarket, type Fees, feeCap, isFullyPriced, isHopelessCap } from "../../../domain/fees.ts";
import { gasOverLimit, intrinsicGas, withMargin } from "../../../domain/gas.ts";
import type { Intent, Payload, PreparedIntent } from "../../../domain/transaction.ts";
import { type Call, ChainUnavailable, type Simulation } from "../../../ports/chain.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { confirmEstimate, simulateWithin, withinLimits } from "../../chain/gas-needed.ts";
import { simulationWithCode } from "../../chain/receiver-code.ts";

type Refusal = Exclude<Simulation, { outcome: "ok" }>;

const REASONS: Readonly<Record<Refusal["outcome"], RejectionReason>> = {
  revert: "REVERT",
  insufficientFunds: "INSUFFICIENT_FUNDS",
  gasTooLow: "GAS_TOO_LOW",
  gasOverBlock: "GAS_OVER_BLOCK",
};

/** What the lane says about this moment. */
export interface Standing {
  /** Something un-mined stands before this transaction. */
  readonly behindPending: boolean;
  /** The lane has a cursor, so that a chain that is away need not stop it. */
  readonly laneKnown: boolean;
}

/** Whether this transaction costs the chain a question of its own: an estimate, or a simulation where nothing stands before it. */
export function asksChain({ payload }: Intent, { behindPending }: Pick<Standing, "behindPending">): boolean {
  return payload.gas === undefined || !behindPending;
}

/** Nothing about it has to be asked of the chain, wherever it stands in its lane but at the head. */
export function isComplete({ payload }: Intent): boolean {
  return payload.gas !== undefined && isFullyPriced(payload);
}

/** Where the chain has nothing to say about it; null where it has to be asked. */
export function prepareUnasked(
  context: ChainContext,
  intent: Intent,
  { behindPending }: Pick<Standing, "behindPending">,
): PreparedIntent | null {
  const { payload } = intent;
  refuseImpossibleGas(context, payload);
  const { value, gas = intrinsicGas(payload) } = payload;
  refuseOverCeiling(context.ceilings, { gas, value }, payload);
  if (payload.gas === undefined || !behindPending || !isFullyPriced(payload)) return null;
  // Of a chain that is silent the head is of the past, and so is its base fee.
  if (context.reachable) refuseHopelessFee(context, payload);
  return withGas(intent, payload.gas, namedCap(payload));
}

export async function prepare(context: ChainContext, intent: Intent, standing: Standing): Promise<PreparedIntent> {
  const { behindPending, laneKnown } = standing;
  const unasked = prepareUnasked(context, intent, standing);
  if (unasked !== null) return unasked;
  try {
    return await askChain(context, intent, behindPending);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    const { gas } = intent.payload;
    const isComplete = gas !== undefined && isFullyPriced(intent.payload);
    if (isComplete && laneKnown) return withGas(intent, gas, namedCap(intent.payload));
    const hint = isComplete
      ? "this signer's nonce is not known yet: wait for it"
      : "bring gas and fees to be accepted meanwhile";
    throw unavailable(`the chain does not answer; ${hint}, or try again`, error);
  }
}

async function askChain(context: ChainContext, intent: Intent, behindPending: boolean): Promise<PreparedIntent> {
  const { payload } = intent;
  if (payload.gas !== undefined && behindPending) {
    const fees = priced(context, payload, payload.gas, await context.marketFor(payload));
    refuseHopelessFee(context, payload);
    return withGas(intent, payload.gas, feeCap(fees));
  }
  const call = callOf(intent);
  const [said, market] = await Promise.all([simulateWithin(context, call), context.marketFor(payload)]);
  const simulation = intent.allowNoCode === true ? said : await ranByCode(context, call, said, behindPending);
  if (simulation.outcome !== "ok") throw refusal(simulation, behindPending);
  refuseHopelessFee(context, payload);
  const gas = payload.gas ?? withMargin(simulation.gas, payload, context.gasLimits.most?.gas ?? null);
  if (payload.gas === undefined) await confirmEstimate(context, call, { gas: simulation.gas, market, wishes: payload });
  const cap = feeCap(priced(context, payload, gas, market));
  const needed = payload.value + gas * cap;
  if (needed > simulation.balance) {
    const detail = `needs ${needed} wei (value + gas x fee cap), the account has ${simulation.balance}`;
    throw refusal({ outcome: "insufficientFunds", detail }, behindPending);
  }
  return withGas(intent, gas, cap);
}

async function ranByCode(
  context: ChainContext,
  call: Call,
  said: Simulation,
  behindPending: boolean,
): Promise<Simulation> {
  const simulation = await simulationWithCode(context, call, said);
  if (simulation === said) return said;
  if (simulation !== null) return withinLimits(context, call, simulation);
  // Behind pending ones its deployment may be one of them. What was estimated now would run out of gas in its code.
  if (behindPending) throw refusal({ outcome: "gasTooLow", detail: notDeployedYet(call) }, true);
  const detail = `${call.to} has no code, so this call data would do nothing; check the address and the chain, or give allowNoCode: true`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "NO_CODE" });
}

function notDeployedYet({ to }: Call): string {
  return `${to} has no code yet, so the gas of this call cannot be estimated; where a transaction before it deploys the code, give gas, or send it once that is mined; where it is meant to have none, give allowNoCode: true`;
}

/**
 * The price as it will be signed. A market above the ceiling of the fee is waited for: it falls again. But so much gas that
 * a ceiling of the cost leaves less for each unit than the base fee cannot be paid for, and is refused while it is free to.
 */
function priced(context: ChainContext, payload: Payload, gas: bigint, market: FeeMarket): Fees {
  const { ceilings, follower } = context;
  const content: Content = { gas, value: payload.value };
  refuseOverCeiling(ceilings, content, payload);
  const { fees, reached } = context.priceOn(market, payload, content);
  const baseFee = follower.head?.baseFeePerGas ?? 0n;
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

/** Of a payload that its caller priced. */
function namedCap({ maxFeePerGas = 0n, gasPrice = 0n }: Payload): bigint {
  return maxFeePerGas > gasPrice ? maxFeePerGas : gasPrice;
}

function callOf({ lane, payload }: Intent): Call {
  const { to, data, value, gas, accessList } = payload;
  return {
    from: lane.signer,
    to,
    data,
    value,
    ...(gas === undefined ? {} : { gas }),
    ...(accessList === undefined ? {} : { accessList }),
  };
}

/** Known without asking: no chain runs a transaction below its intrinsic gas, above its block or above its own cap. */
export function refuseImpossibleGas(
  context: ChainContext,
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
  const detail = gasOverLimit(payload.gas, context.gasLimits.most);
  if (detail !== null) throw refusal({ outcome: "gasOverBlock", detail }, false);
}

/** Of a transaction that its caller signed: what no chain would run, and what no block would take at this price. */
export function refuseImpossible(context: ChainContext, payload: Payload): void {
  refuseImpossibleGas(context, payload);
  if (context.reachable) refuseHopelessFee(context, payload);
}

/** The base fee falls by an eighth a block at most. What offers a little less than it may wait; this would be refused. */
function refuseHopelessFee({ follower }: ChainContext, payload: Payload): void {
  const baseFee = follower.head?.baseFeePerGas ?? null;
  const cap = payload.maxFeePerGas ?? payload.gasPrice;
  if (cap === undefined || baseFee === null || !isHopelessCap(cap, baseFee)) return;
  const field = payload.maxFeePerGas === undefined ? "gasPrice" : "maxFeePerGas";
  const detail = `${field}: the fee cap of ${cap} wei is less than half of the base fee, ${baseFee} wei at block ${follower.head?.number}; offer more than the base fee, or leave the fees to the market`;
  throw new FencepostError("SUBMISSION_REJECTED", detail, { reason: "FEE_TOO_LOW", baseFeePerGas: `${baseFee}` });
}

function refusal(why: Refusal, dependsOnPending: boolean): FencepostError {
  const extras = { reason: REASONS[why.outcome], ...(dependsOnPending ? { dependsOnPending } : {}) };
  if (why.outcome !== "revert") return new FencepostError("SUBMISSION_REJECTED", why.detail, extras);
  const { name, message, data } = why.revert;
  const detail = `the call would revert${message === null ? "" : `: ${message}`}`;
  return new FencepostError("SUBMISSION_REJECTED", detail, { ...extras, revert: { name, message, data } });
}
