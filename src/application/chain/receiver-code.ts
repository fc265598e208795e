/**
 * Call data to an address without code does nothing, and is paid for: refused while that is free.
 *
 * Reads: the chain's word, which rides along with the estimate or the trial run of the same call. Writes: nothing. Code
 * that was seen once is not asked for again. "Absent" and "not yet" are different answers: an endpoint that lags has no
 * code of what was deployed a moment ago, so every endpoint that is up is asked before anything is refused, and one that
 * keeps silent leaves it open (I7).
 */

import { needsCode } from "../../domain/chain/receiver-code.ts";
import type { Address } from "../../domain/lane.ts";
import type { Call, Heard, Simulation } from "../../ports/chain.ts";
import type { ChainContext } from "./chain-context.ts";

/** The call, with the question whether its receiver has code where that matters and is not known. */
export function askingCode({ knownCode }: ChainContext, call: Call): Call {
  const isOpen = call.to !== null && !knownCode.isSeen(call.to) && needsCode(call);
  return isOpen ? { ...call, asksCode: true } : call;
}

export function noteCode({ knownCode }: ChainContext, { to }: Call, simulation: Simulation): void {
  if (to !== null && simulation.outcome === "ok" && simulation.hasCode === true) knownCode.see(to);
}

/**
 * What an endpoint says that has the code, where the one that was asked first has none: its estimate was for a call that
 * does nothing. Null: none has.
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
  const isAbsent = answers.length > 0 && answers.every((heard) => heard.kind === "says" && isBlind(heard.answer));
  return isAbsent && !context.knownCode.isKnown(call.to as Address) ? null : said;
}

/** It ran, and there was no code to run. */
function isBlind(simulation: Simulation) {
  return simulation.outcome === "ok" && simulation.hasCode === false;
}

/** Only code reverts. */
function seenBy(heard: Heard<Simulation>): Simulation | null {
  if (heard.kind === "silent") return null;
  const { answer } = heard;
  const hasCode = answer.outcome === "revert" || (answer.outcome === "ok" && answer.hasCode === true);
  return hasCode ? answer : null;
}
