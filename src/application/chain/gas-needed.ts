/**
 * Gas that a call needs on this chain, and whether the chain would accept that much.
 *
 * Reads: the chain's estimate of the call, the known limits. Writes: nothing. One endpoint's estimate is believed if
 * little depends on it; if it is out of all proportion and expensive too, a second endpoint must confirm it.
 */

import { needsCode } from "../../domain/chain/receiver-code.ts";
import { unavailable } from "../../domain/errors.ts";
import { gasOverLimit, isOutOfProportion, plainTransferGas } from "../../domain/fees/gas.ts";
import type { Address } from "../../domain/lane.ts";
import type { FeeMarket, FeeWishes } from "../../domain/transaction/fees.ts";
import type { Call, EndpointAnswer, Simulation } from "../../ports/chain.ts";
import type { ChainContext } from "./chain-context.ts";

/** Two honest endpoints may be at neighbouring blocks, and a call may cost more in one of them. */
const SAME_WITHIN = 2n;

/** An estimate if `call.gas` is absent, a trial run if it is given; refused if the chain accepts less. */
export async function simulateWithin(context: ChainContext, call: Call): Promise<Simulation> {
  const simulation = await context.chain.simulate(asAsked(context, call));
  noteCode(context, call, simulation);
  return withinLimits(context, call, simulation);
}

/** Everything that one request asks the chain about a call. */
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

/** Throws UNAVAILABLE if two endpoints contradict each other: then neither is believed. */
export async function confirmEstimate(context: ChainContext, call: Call, estimated: Estimated): Promise<void> {
  const { gas } = estimated;
  if (!isOutOfProportion(gas, call) || !isDear(context, estimated)) return;
  const answers = await context.chain.simulateEverywhere(withKnownCost(context, call));
  // The endpoint of the first estimate is unknown: the next one answers if one fails.
  const others = answers.filter((answer) => !isAsMuch(answer, gas));
  if (answers.length < 2 || answers.length - others.length >= 2) return;
  const said = others.map(inWords).join(", ");
  throw unavailable(`one endpoint estimates ${gas} gas for this call, another ${said}; bring gas, or try again`);
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
  /** The content that decides its price. */
  readonly market: FeeMarket;
  readonly wishes: FeeWishes;
}

/** At the price that is wanted, this much gas costs more than a transaction may: then its price would have to give way. */
function isDear(context: ChainContext, { gas, market, wishes }: Estimated) {
  const { reached } = context.priceOn(market, wishes, { gas, value: 0n });
  return reached !== null && reached.variable !== "FENCEPOST_MAX_FEE_GWEI";
}

function withKnownCost({ chain }: ChainContext, call: Call) {
  const gasWithoutCode = call.gas === undefined ? plainTransferGas(chain.chainId, call) : null;
  return gasWithoutCode === null ? call : { ...call, gasWithoutCode };
}

/**
 * Call data to an address without code does nothing, and is paid for: refused while that is free.
 *
 * Reads: the chain's word, which rides along with the estimate or the trial run of the same call. Writes: nothing. Code
 * that was seen once is not asked for again. "Absent" and "not yet" are different answers: an endpoint that lags has no
 * code of what was deployed a moment ago, so every endpoint that is up is asked before anything is refused, and one that
 * keeps silent leaves it open (I7).
 */

/** The call, with a check of the receiver's code if that matters and is unknown. */
export function askingCode({ knownCode }: ChainContext, call: Call): Call {
  const isOpen = call.to !== null && !knownCode.isSeen(call.to) && needsCode(call);
  return isOpen ? { ...call, asksCode: true } : call;
}

export function noteCode({ knownCode }: ChainContext, { to }: Call, simulation: Simulation): void {
  if (to !== null && simulation.outcome === "ok" && simulation.hasCode === true) knownCode.see(to);
}

/**
 * Answer of an endpoint that has the code, if the first one has none: its estimate was for a call without effect. Null:
 * none has it.
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

/** The call ran, but the endpoint saw no code at its receiver. */
function isBlind(simulation: Simulation) {
  return simulation.outcome === "ok" && simulation.hasCode === false;
}

/** The answer if the endpoint saw code; null: it saw none. Only code reverts. */
function seenBy(given: EndpointAnswer<Simulation>): Simulation | null {
  if (given.kind === "silent") return null;
  const { answer } = given;
  const hasCode = answer.outcome === "revert" || (answer.outcome === "ok" && answer.hasCode === true);
  return hasCode ? answer : null;
}
