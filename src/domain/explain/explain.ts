/**
 * Why a transaction is not final yet, in plain words, and what would help. Pure: any node can collect the facts
 * (application/queries/explain.ts).
 */
import { isHashAlone } from "../attempts.ts";
import { LANE_RULES, ORDER_RULES, OWN_RULES, PROGRESS_RULES } from "./obstacles.ts";
import { disputedCause, minedCause, settledCause } from "./outcomes.ts";
import type { Cause, CauseCode, Explanation, HelpCode, Situation } from "./situation.ts";

const HELP: Readonly<Record<HelpCode, string>> = {
  WAIT: "nothing needs to be done: it goes on by itself",
  LOOK_AT_BLOCKER: "look at the transaction it waits for; whatever helps that one helps all behind it",
  RESUME_LANE: "resume the lane (POST /api/v1/signers/{signer}/resume)",
  START_A_NODE: "start a node that holds this signer's key and reaches its chain",
  CHECK_RPC: "check the chain's endpoints; several can be configured, and failing ones are passed over",
  FUND_SIGNER: "send funds to the signer; it goes on by itself once they are there",
  REPRICE: "offer more (POST /api/v1/tx/{txId}/reprice)",
  RAISE_CEILING:
    "raise the ceiling that is named (FENCEPOST_MAX_FEE_GWEI, FENCEPOST_MAX_GAS_COST_WEI or FENCEPOST_MAX_COST_WEI), or wait until the market is below it",
  RESUBMIT: "send the stored bytes again now (POST /api/v1/tx/{txId}/resubmit)",
  CANCEL: "give it up safely (POST /api/v1/tx/{txId}/cancel): its nonce is used without effect",
  REPLACE: "replace what it does (POST /api/v1/tx/{txId}/replace)",
  FILL_HOLE:
    'resolve the head of the lane with { "action": "PLACEHOLDER" } (POST /api/v1/tx/{txId}/resolve), or set FENCEPOST_HOLE_POLICY=heal; a nonce that was given back is filled by the next transaction too',
  USE_RESERVATION:
    "let the caller that reserved the nonce hand in what it signed, name its hash, or release it (POST /api/v1/nonces/{id}/submit, used or release)",
  SEND_ANEW: "send it again under a new request id, once you know why it was refused",
  PROTECT_KEY: "find out who else signs with this key: two users of one key race for its nonces",
};

const HELPS: Partial<Readonly<Record<CauseCode, readonly HelpCode[]>>> = {
  REVERTED: ["SEND_ANEW"],
  NONCE_CONSUMED_EXTERNALLY: ["PROTECT_KEY", "SEND_ANEW"],
  REJECTED: ["SEND_ANEW"],
  REQUEST_ID_REUSED: ["SEND_ANEW"],
  WAITING_BEHIND: ["LOOK_AT_BLOCKER"],
  HOLE_BELOW: ["FILL_HOLE"],
  RESERVED_BELOW: ["USE_RESERVATION"],
  LANE_SUSPENDED: ["RESUME_LANE"],
  LANE_UNOWNED: ["START_A_NODE"],
  OWNER_SILENT: ["WAIT", "START_A_NODE"],
  CHAIN_UNKNOWN: ["START_A_NODE"],
  CHAIN_UNREACHABLE: ["CHECK_RPC"],
  CHAIN_DOUBTED: ["CHECK_RPC"],
  RPC_DISAGREES: ["CHECK_RPC"],
  RPC_BEHIND: ["CHECK_RPC"],
  FEE_BELOW_BASE_FEE: ["REPRICE", "CANCEL"],
  FEE_CEILING_REACHED: ["RAISE_CEILING", "CANCEL"],
  UNDERPRICED: ["REPRICE"],
  INSUFFICIENT_FUNDS: ["FUND_SIGNER", "CANCEL"],
  NODE_REFUSED: ["REPLACE", "CANCEL"],
  NODE_DID_NOT_ANSWER: ["CHECK_RPC"],
  NOT_IN_POOL: ["RESUBMIT", "REPRICE"],
  NONCE_USED_BY_OTHERS: ["PROTECT_KEY"],
  STUCK: ["RESUBMIT", "REPRICE", "CANCEL"],
};

export function explain(situation: Situation): Explanation {
  const decided = settledCause(situation);
  const causes = decided === null ? openCauses(situation) : [decided];
  const helps = [...new Set(causes.flatMap(({ code }) => HELPS[code] ?? []))].filter(isPossible(situation));
  const settled = decided !== null;
  const help = helps.length === 0 && !settled ? (["WAIT"] as const) : helps;
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
  const said = (rules: readonly ((situation: Situation) => Cause | null)[]): readonly Cause[] =>
    rules.flatMap((rule) => rule(situation) ?? []);
  const lane = said(LANE_RULES);
  const mined = minedCause(situation);
  if (mined !== null) {
    return [...lane.filter(({ code }) => code !== "LANE_SUSPENDED"), ...said([disputedCause]), mined];
  }
  const wrong = [...lane, ...said(ORDER_RULES), ...said(OWN_RULES)];
  return wrong.length > 0 ? wrong : said(PROGRESS_RULES).slice(0, 1);
}

function summaryOf({ transaction }: Situation, causes: readonly Cause[]): string {
  const { state, subState, nonce } = transaction;
  const status = subState === null ? state : `${state}/${subState}`;
  const where = nonce === null ? status : `${status} at nonce ${nonce}`;
  const [first, ...more] = causes;
  const rest = more.length === 0 ? "" : ` (and ${more.length} more ${more.length === 1 ? "cause" : "causes"})`;
  return `${where}: ${first?.text ?? "nothing is known of it"}${rest}`;
}
