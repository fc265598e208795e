/**
 * How much gas a call needs on this chain, and whether the chain would take that much.
 *
 * Reads: the chain's word on the call, the limits that are known. Writes: nothing. One endpoint's estimate is believed where
 * little hangs on it; where it is out of all proportion and dear besides, a second endpoint has to say the same.
 */
import { unavailable } from "../../domain/errors.ts";
import { gasOverLimit, isOutOfProportion, plainTransferGas } from "../../domain/fees/gas.ts";
import type { FeeMarket, FeeWishes } from "../../domain/transaction/fees.ts";
import type { Call, Heard, Simulation } from "../../ports/chain.ts";
import type { ChainContext } from "./chain-context.ts";
import { askingCode, noteCode } from "./receiver-code.ts";

/** Two honest endpoints may stand at neighbouring blocks, and a call may cost more in one of them. */
const SAME_WITHIN = 2n;

/** An estimate where `call.gas` is absent, a trial run under it where it is given; refused where the chain takes less. */
export async function simulateWithin(context: ChainContext, call: Call): Promise<Simulation> {
  const simulation = await context.chain.simulate(asAsked(context, call));
  noteCode(context, call, simulation);
  return withinLimits(context, call, simulation);
}

/** All that the chain is asked about a call at once. */
export function asAsked(context: ChainContext, call: Call): Call {
  return askingCode(context, withKnownCost(context, call));
}

/** The same for one that has been made already. */
export function withinLimits(context: ChainContext, call: Call, simulation: Simulation): Simulation {
  if (simulation.outcome !== "ok") return simulation;
  context.knownBalances.set(call.from, simulation.balance);
  const detail = gasOverLimit(simulation.gas, context.gasLimits.most);
  return detail === null ? simulation : { outcome: "gasOverBlock", detail };
}

/** Throws UNAVAILABLE where two endpoints contradict each other: then neither is believed. */
export async function confirmEstimate(context: ChainContext, call: Call, estimated: Estimated): Promise<void> {
  const { gas } = estimated;
  if (!isOutOfProportion(gas, call) || !isDear(context, estimated)) return;
  const answers = await context.chain.simulateEverywhere(withKnownCost(context, call));
  // Which of them has estimated it before is not known: the next one answers where one fails.
  const others = answers.filter((answer) => !isAsMuch(answer, gas));
  if (answers.length < 2 || answers.length - others.length >= 2) return;
  const said = others.map(inWords).join(", ");
  throw unavailable(`one endpoint estimates ${gas} gas for this call, another ${said}; bring gas, or try again`);
}

function isAsMuch(heard: Heard<Simulation>, gas: bigint) {
  return heard.kind === "says" && heard.answer.outcome === "ok" && heard.answer.gas * SAME_WITHIN >= gas;
}

function inWords(heard: Heard<Simulation>) {
  if (heard.kind === "silent") return "gives no answer";
  const { answer: simulation } = heard;
  return simulation.outcome === "ok" ? `${simulation.gas}` : simulation.outcome;
}

export interface Estimated {
  readonly gas: bigint;
  /** What its price goes by. */
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
