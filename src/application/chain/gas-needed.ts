/**
 * Gas that a call needs on this chain, and whether the chain accepts that much.
 *
 * Reads: the chain's estimate of the call, the known limits. Writes: nothing. One endpoint's estimate is trusted if it
 * is plausible or cheap; if it is out of proportion and expensive too, a second endpoint must confirm it.
 */

import { needsCode } from "../../domain/chain/receiver-code.ts";
import { unavailable } from "../../domain/errors.ts";
import { gasOverLimit, isOutOfProportion, plainTransferGas } from "../../domain/fees/gas.ts";
import type { Address } from "../../domain/lane.ts";
import type { FeeMarket, FeeWishes } from "../../domain/transaction/fees.ts";
import type { Call, EndpointAnswer, Simulation } from "../../ports/chain.ts";
import type { ChainContext } from "./chain-context.ts";

/**
 * A second estimate confirms the first if it is at least the first one divided by this factor: honest endpoints may be
 * at neighbouring blocks, where the call needs different amounts of gas.
 */
const SAME_WITHIN = 2n;

/**
 * Estimates the gas if `call.gas` is absent, else runs the call with that gas. Refuses a call that needs more gas than
 * the chain accepts.
 */
export async function simulateWithin(context: ChainContext, call: Call): Promise<Simulation> {
  const simulation = await context.chain.simulate(asAsked(context, call));
  noteCode(context, call, simulation);
  return withinLimits(context, call, simulation);
}

/** Extends the call with everything that the same request to the chain can check or return. */
export function asAsked(context: ChainContext, call: Call): Call {
  return askingCode(context, withKnownCost(context, call));
}

/** Checks the gas of a finished simulation against the chain's limit. */
export function withinLimits(context: ChainContext, call: Call, simulation: Simulation): Simulation {
  if (simulation.outcome !== "ok") return simulation;
  context.knownBalances.set(call.from, simulation.balance);
  const detail = gasOverLimit(simulation.gas, context.gasLimits.most);
  return detail === null ? simulation : { outcome: "gasOverBlock", detail };
}

/**
 * Confirms an estimate that is out of proportion and expensive. Throws UNAVAILABLE unless two endpoints estimate about
 * as much; if fewer than two endpoints are up, nothing is compared.
 */
export async function confirmEstimate(context: ChainContext, call: Call, estimated: Estimated): Promise<void> {
  const { gas } = estimated;
  if (!isOutOfProportion(gas, call) || !isDear(context, estimated)) return;
  const answers = await context.chain.simulateEverywhere(withKnownCost(context, call));
  // Compare all endpoints, because it is unknown which one gave the first estimate: any endpoint may have served the
  // request.
  const others = answers.filter((answer) => !isAsMuch(answer, gas));
  if (answers.length < 2 || answers.length - others.length >= 2) return;
  const said = others.map(inWords).join(", ");
  throw unavailable(`one endpoint estimates ${gas} gas for this call, another ${said}; set gas, or try again`);
}

function isAsMuch(given: EndpointAnswer<Simulation>, gas: bigint) {
  return given.kind === "says" && given.answer.outcome === "ok" && given.answer.gas * SAME_WITHIN >= gas;
}

function inWords(given: EndpointAnswer<Simulation>) {
  if (given.kind === "silent") return "gives no answer";
  const { answer: simulation } = given;
  return simulation.outcome === "ok" ? `${simulation.gas}` : simulation.outcome;
}

export interface Estimated {
  readonly gas: bigint;
  /** The fee market and the caller's fee settings, which decide the transaction's price. */
  readonly market: FeeMarket;
  readonly wishes: FeeWishes;
}

/**
 * True if this much gas at the wanted price costs more than the ceiling for a transaction, so that the price would have
 * to be lowered.
 */
function isDear(context: ChainContext, { gas, market, wishes }: Estimated) {
  const { reached } = context.priceOn(market, wishes, { gas, value: 0n });
  return reached !== null && reached.variable !== "FENCEPOST_MAX_FEE_GWEI";
}

function withKnownCost({ chain }: ChainContext, call: Call) {
  const gasWithoutCode = call.gas === undefined ? plainTransferGas(chain.chainId, call) : null;
  return gasWithoutCode === null ? call : { ...call, gasWithoutCode };
}

/**
 * Refuses call data to an address without code, before any gas is spent: such a call does nothing and still costs gas.
 *
 * Reads: the code check that is part of the call's estimate or trial run. Writes: nothing. Code that was seen once is
 * not requested again. A lagging endpoint does not have the code of a recent deployment yet, so a call is refused only
 * after every endpoint that is up was queried; if one does not answer, the call is not refused (I7).
 */

/** Adds a check of the receiver's code to the call, if the call needs code there and none was seen yet. */
export function askingCode({ knownCode }: ChainContext, call: Call): Call {
  const isOpen = call.to !== null && !knownCode.isSeen(call.to) && needsCode(call);
  return isOpen ? { ...call, asksCode: true } : call;
}

export function noteCode({ knownCode }: ChainContext, { to }: Call, simulation: Simulation): void {
  if (to !== null && simulation.outcome === "ok" && simulation.hasCode === true) knownCode.see(to);
}

/**
 * If the first endpoint sees no code at the receiver, it estimated a call that does nothing. Then returns the
 * simulation of another endpoint that has the code; null if every endpoint answered that there is none. If that stays
 * unknown, returns the first simulation.
 */
export async function simulationWithCode(
  context: ChainContext,
  call: Call,
  said: Simulation,
): Promise<Simulation | null> {
  if (!isBlind(said)) return said;
  const answers = await context.chain.simulateEverywhere({ ...call, asksCode: true });
  const seeing = answers.map(seenBy).find((answer) => answer !== null);
  if (seeing != null) {
    noteCode(context, call, seeing);
    return seeing;
  }
  const isAbsent = answers.length > 0 && answers.every((given) => given.kind === "says" && isBlind(given.answer));
  return isAbsent && !context.knownCode.isKnown(call.to as Address) ? null : said;
}

/** True if the call ran but the endpoint saw no code at the receiver. */
function isBlind(simulation: Simulation) {
  return simulation.outcome === "ok" && simulation.hasCode === false;
}

/** The endpoint's simulation if it saw code at the receiver, else null. A revert proves that there is code. */
function seenBy(given: EndpointAnswer<Simulation>): Simulation | null {
  if (given.kind === "silent") return null;
  const { answer } = given;
  const hasCode = answer.outcome === "revert" || (answer.outcome === "ok" && answer.hasCode === true);
  return hasCode ? answer : null;
}
