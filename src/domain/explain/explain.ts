/**
 * Why a transaction is not final yet, in plain words, and what would help. Pure: any node can collect the facts
 * (application/queries/explain.ts).
 */
import { isHashAlone } from "../attempts.ts";
import {
  awaitingApproval,
  expires,
  expiring,
  heldBack,
  LANE_RULES,
  ORDER_RULES,
  OWN_RULES,
  PROGRESS_RULES,
  type Rule,
} from "./obstacles.ts";
import { disputedCause, minedCause, settledCause } from "./outcomes.ts";
import { type Cause, type Explanation, HELP, HELPS, type HelpCode, type Situation } from "./situation.ts";

export function explain(situation: Situation): Explanation {
  const decided = settledCause(situation);
  const causes = decided === null ? openCauses(situation) : [decided];
  const helps = [...new Set(causes.flatMap(({ code }): readonly HelpCode[] => HELPS[code]))].filter(
    isPossible(situation),
  );
  const help = helps.length === 0 && decided === null ? (["WAIT"] as const) : helps;
  const { head } = situation.lane;
  const blocked = head !== null && causes.some(({ code }) => code === "WAITING_BEHIND");
  return {
    summary: summaryOf(situation, causes),
    causes,
    ...(blocked ? { blockedBy: { txId: head.txId, nonce: head.nonce } } : {}),
    help: help.map((code) => ({ code, text: HELP[code] })),
  };
}

function isPossible({ transaction: { attempts } }: Situation): (help: HelpCode) => boolean {
  const hashAlone = isHashAlone(attempts);
  return (help) => !hashAlone || (help !== "RESUBMIT" && help !== "REPRICE");
}

/** Something is wrong: all of it. Nothing is: how far along it is. */
function openCauses(situation: Situation): readonly Cause[] {
  const said = (rules: readonly Rule[]): readonly Cause[] => rules.flatMap((rule) => rule(situation) || []);
  const ahead = said([expires]);
  // It has no place in its lane yet, so nothing of the lane is in its way.
  const awaiting = said([awaitingApproval]);
  if (awaiting.length > 0) return [...said([heldBack, expiring]), ...awaiting, ...ahead];
  const lane = said(LANE_RULES);
  const mined = minedCause(situation);
  if (mined !== null) {
    const inTheWay = lane.filter(({ code }) => code !== "LANE_SUSPENDED" && code !== "KILLED");
    return [...inTheWay, ...said([disputedCause]), mined];
  }
  const wrong = [...lane, ...said([heldBack, expiring]), ...said(ORDER_RULES), ...said(OWN_RULES)];
  return [...(wrong.length > 0 ? wrong : said(PROGRESS_RULES).slice(0, 1)), ...ahead];
}

function summaryOf({ transaction }: Situation, causes: readonly Cause[]): string {
  const { state, subState, nonce } = transaction;
  const status = subState === null ? state : `${state}/${subState}`;
  const where = nonce === null ? status : `${status} at nonce ${nonce}`;
  const [first, ...more] = causes;
  const rest = more.length === 0 ? "" : ` (and ${more.length} more ${more.length === 1 ? "cause" : "causes"})`;
  return `${where}: ${first?.text ?? "nothing is known of it"}${rest}`;
}
