/**
 * Explains why a transaction is not final yet, in plain words, and what would help. Pure: any node can collect the
 * facts (application/queries/explain.ts).
 */

import { isHashAlone } from "../transaction/attempts.ts";
import { isSettled } from "../transaction/transitions.ts";
import { inWords, requestsOf, type Step } from "./advice.ts";
import {
  awaitingApproval,
  disputedCause,
  expires,
  expiring,
  heldBack,
  LANE_RULES,
  minedCause,
  missingBelow,
  OWN_RULES,
  PROGRESS_RULES,
  type Rule,
  sentPrivately,
  settledCause,
  waitingBehind,
  waitingForWindow,
} from "./obstacles.ts";
import { isOfUse } from "./possible.ts";
import type { Cause, Explanation, Situation } from "./situation.ts";
import { type CauseCode, type HelpCode, TROUBLES } from "./table.ts";
import { agoInWords, inSentence } from "./words.ts";

/** Obstacles between a transaction and its outcome, the decisive one first, and the remedies that help now. */
interface Finding {
  readonly causes: readonly Cause[];
  readonly steps: readonly Step[];
}

/**
 * Explains a transaction. `blocker`: facts about the transaction or nonce that it waits for; null if it waits for
 * nothing, or if its caller may not see the blocker.
 */
export function explain(situation: Situation, blocker: Situation | null = null): Explanation {
  const before = blocker === null ? null : find(blocker, null);
  const { causes, steps } = find(situation, before);
  const isOver = settledCause(situation) !== null;
  const wait: Step = { code: "WAIT", because: "WAITING_FOR_BLOCK", about: situation, isBlocker: false };
  const help = steps.length === 0 && !isOver ? [wait] : steps;
  return {
    summary: summaryOf(situation, causes, help),
    causes,
    ...blockedBy(situation, causes),
    help: help.map((step) => ({ code: step.code, text: inWords(step) })),
    actions: help.flatMap(requestsOf),
  };
}

function find(situation: Situation, before: Finding | null): Finding {
  const decided = settledCause(situation);
  if (decided !== null) return { causes: [decided], steps: helpOf(situation, [decided]) };
  // A transaction that awaits approval has no place in its lane yet, so the lane cannot block it.
  const awaiting = said(situation, [awaitingApproval]);
  const hold = said(situation, [heldBack, expiring]);
  const ahead = said(situation, [expires]);
  if (awaiting.length > 0) {
    const causes = [...hold, ...awaiting];
    return { causes: [...causes, ...ahead], steps: helpOf(situation, causes) };
  }
  const lane = said(situation, LANE_RULES);
  const mined = minedCause(situation);
  if (mined !== null) {
    const inTheWay = [...lane.filter(({ code }) => !STOPS_SENDING.has(code)), ...said(situation, [disputedCause])];
    return { causes: [...inTheWay, mined], steps: helpOf(situation, [...inTheWay, mined]) };
  }
  const unmined = findUnmined(situation, before, { lane, hold });
  const place = said(situation, [sentPrivately]);
  // Sending a private transaction to public endpoints is a last resort. It is offered only if something is wrong, or if
  // there is no private endpoint.
  const isWrong = unmined.steps.length > 0 || situation.chain.privateEndpoints.length === 0;
  const steps = isWrong ? [...unmined.steps, ...helpOf(situation, place)] : unmined.steps;
  return { causes: [...unmined.causes, ...place, ...ahead], steps };
}

/** Causes that stop a transaction from being sent. They do not matter once it is mined. */
const STOPS_SENDING: ReadonlySet<CauseCode> = new Set(["KILLED", "LANE_SUSPENDED"]);

/**
 * Causes that are ignored while the transaction waits behind another one: until that one is mined, nodes need not have
 * it in their mempool, however often it was sent.
 */
const LATER: ReadonlySet<CauseCode> = new Set(["NOT_IN_POOL", "RESENT_OFTEN"]);

function findUnmined(
  situation: Situation,
  before: Finding | null,
  { lane, hold }: { lane: readonly Cause[]; hold: readonly Cause[] },
): Finding {
  const order = inOrder(situation, before, lane);
  const own = ownCauses(situation, order.length > 0);
  const ownSteps = firstHelp(situation, own);
  const orderSteps = stepsBefore(situation, order, before);
  // If the transaction before this one needs no help, this one's own trouble comes first.
  const isNext = orderSteps.length === 0 && ownSteps.length > 0;
  const rest = isNext ? [...own, ...order] : [...order, ...own];
  const wrong = [...lane, ...hold, ...rest];
  const causes = wrong.length > 0 ? wrong : said(situation, PROGRESS_RULES).slice(0, 1);
  if (lane.length > 0) return { causes, steps: helpOf(situation, lane) };
  if (situation.transaction.held !== null) return { causes, steps: [...helpOf(situation, hold), ...orderSteps] };
  return { causes, steps: isNext ? ownSteps : orderSteps };
}

function ownCauses(situation: Situation, isBehind: boolean): readonly Cause[] {
  const own = said(situation, [...OWN_RULES, disputedCause]);
  // The chain has passed the transaction's nonce, so none of its other causes matters any more.
  const past = own.find(({ code }) => code === "NONCE_CONSUMED");
  return past === undefined ? own.filter(({ code }) => !isBehind || !LATER.has(code)) : [past];
}

/** Causes that lie in lower nonces: which transaction this one waits for, and why that one waits. */
function inOrder(situation: Situation, before: Finding | null, lane: readonly Cause[]): readonly Cause[] {
  // Skip causes that stop the whole lane: they are already in the explanation.
  const why = before?.causes.find(({ code }) => lane.every((cause) => cause.code !== code)) ?? null;
  return said(situation, [missingBelow, waitingBehind(why), waitingForWindow]);
}

/**
 * Remedies for a transaction that waits for a lower nonce. If it waits for a nonce gap: those that fill the gap. If it
 * waits for another transaction: those that help that transaction.
 */
function stepsBefore(situation: Situation, order: readonly Cause[], before: Finding | null): readonly Step[] {
  if (!order.some(({ code }) => code === "WAITING_BEHIND")) return helpOf(situation, order);
  if (before === null) return [stepOf(situation, "LOOK_AT_BLOCKER", "WAITING_BEHIND")];
  return before.steps.map((step) => ({ ...step, isBlocker: true }));
}

function said(situation: Situation, rules: readonly Rule[]): readonly Cause[] {
  return rules.flatMap((rule) => rule(situation) || []);
}

/** All remedies against these causes, each once. */
function helpOf(situation: Situation, causes: readonly Cause[]): readonly Step[] {
  const steps = new Map<HelpCode, Step>();
  for (const { code: because } of causes) {
    for (const code of TROUBLES[because].helps) {
      if (!steps.has(code) && isOfUse(code, situation)) steps.set(code, stepOf(situation, code, because));
    }
  }
  // Cancelling the transaction is listed last.
  const isLast = ({ code }: Step) => Number(code === "CANCEL");
  return [...steps.values()].sort((a, b) => isLast(a) - isLast(b));
}

/**
 * Remedies against the first obstacle for which there are any. Later obstacles do not matter until that one is removed.
 */
function firstHelp(situation: Situation, causes: readonly Cause[]): readonly Step[] {
  return causes.map((cause) => helpOf(situation, [cause])).find((steps) => steps.length > 0) ?? [];
}

function stepOf(about: Situation, code: HelpCode, because: CauseCode): Step {
  return { code, because, about, isBlocker: false };
}

function blockedBy({ lane: { head, hole } }: Situation, causes: readonly Cause[]): Pick<Explanation, "blockedBy"> {
  const is = (...codes: readonly CauseCode[]) => causes.some(({ code }) => codes.includes(code));
  if (head !== null && is("WAITING_BEHIND")) return { blockedBy: { txId: head.txId, nonce: head.nonce } };
  return hole !== null && is("HOLE_BELOW", "RESERVED_BELOW") ? { blockedBy: { nonce: hole.nonce } } : {};
}

function summaryOf(situation: Situation, causes: readonly Cause[], help: readonly Step[]) {
  const [first] = causes;
  const [best] = help;
  const why = first?.text ?? "nothing is known of it";
  const isTrouble = best !== undefined && best.code !== "WAIT";
  const advice =
    best === undefined ? "" : isTrouble ? ` What helps: ${inWords(best)}.` : ` ${inSentence(inWords(best))}`;
  const isOpen = !isSettled(situation.transaction.state);
  const held = isTrouble && isOpen ? heldUp(situation) : "";
  const missing = isTrouble && first !== undefined && OWN_CODES.has(first.code) ? missingIn(situation) : "";
  return `${placeOf(situation)}${why}${held}.${advice}${missing}${isOpen ? askedFor(situation) : ""}`;
}

/** Causes that may turn out to be wrong once the signer's balance and transaction count on the chain are known. */
const OWN_CODES: ReadonlySet<CauseCode> = new Set([
  ...(["FEE_BELOW_BASE_FEE", "FEE_CEILING_REACHED", "POLICY_LIMIT_REACHED", "UNDERPRICED", "NOT_IN_POOL"] as const),
  ...(["RESENT_OFTEN", "NODE_DID_NOT_ANSWER", "STUCK"] as const),
]);

/** Lists the facts that could not be read. Without them, the explanation may be wrong. */
function missingIn({ chain: { balance, minedCount } }: Situation) {
  const missing = [
    ...(balance === null ? ["the balance of the signer"] : []),
    ...(minedCount === null ? ["how many of its transactions the chain counts"] : []),
  ];
  return missing.length === 0 ? "" : ` Not known now: ${missing.join(", ")}.`;
}

function askedFor({ transaction: { asked, receipt, subState, attempts }, now }: Situation) {
  if (asked === null || receipt !== null) return "";
  const waits = subState === "BROADCAST" || isHashAlone(attempts) ? "waits for a block" : "waits to be sent";
  return ` Asked ${agoInWords(asked.at, now)} by ${asked.by} (${asked.action}), ${waits}.`;
}

function placeOf({ transaction: { nonce, state } }: Situation) {
  if (nonce === null) return isSettled(state) ? "It is over: " : "It has no nonce yet: ";
  return state === "STUCK" ? `Nonce ${nonce} is stuck: ` : `Nonce ${nonce}: `;
}

function heldUp({ lane: { behind } }: Situation) {
  if (behind === 0) return "";
  return behind === 1 ? "; one nonce waits behind it" : `; ${behind} nonces wait behind it`;
}
