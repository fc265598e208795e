/**
 * Decides if an operator's action would be accepted now, and would change anything. The rules are the same as when the
 * action is executed (application/operations/transaction-actions.ts, application/detours/change-payload.ts). In doubt,
 * a payload that may be in a mempool is assumed to be there.
 */

import { feeLimit, repricingLimit } from "../fees/ceilings.ts";
import { highestOffer, leastReplacement } from "../fees/repricing.ts";
import { attemptToSend, isHashAlone, isSendable, repricedKind } from "../transaction/attempts.ts";
import { feeCap } from "../transaction/fees.ts";
import { leavesFrom, TRANSITIONS, type TransitionRule } from "../transaction/transitions.ts";
import type { Situation } from "./situation.ts";
import type { HelpCode } from "./table.ts";

/** Gas of a transfer of zero value to oneself. */
export const GAS_OF_NOTHING = 21_000n;

const RULES: Partial<Readonly<Record<HelpCode, (situation: Situation) => boolean>>> = {
  RESUBMIT: ({ transaction: { attempts, receipt }, chain: { pooled } }) =>
    receipt === null && attemptToSend(attempts) !== null && pooled !== true,
  REPRICE: (situation) => {
    const { attempts, value, forbidden } = situation.transaction;
    const newest = attempts.findLast(isSendable);
    if (newest === undefined || forbidden !== null) return false;
    const kind = repricedKind(attempts);
    const moved = kind === "cancel" || kind === "placeholder" ? 0n : value;
    return maySignAnother(situation, kind) && isUnderCeiling(situation, { gas: newest.gas, value: moved });
  },
  CANCEL: (situation) => {
    const { state, attempts, awaiting, held, forbiddenCancel } = situation.transaction;
    if (state === "CREATED") return awaiting !== null || held !== null;
    if (forbiddenCancel !== null || !canPayForNothing(situation)) return false;
    if (state === "ALLOCATED") return true;
    // A cancel is not offered for a transaction that is already being cancelled: it would change nothing, only a higher
    // price helps.
    const standing = repricedKind(attempts);
    if (standing === "cancel" || standing === "placeholder") return false;
    return maySignAnother(situation, "cancel") && isUnderCeiling(situation, { gas: GAS_OF_NOTHING, value: 0n });
  },
  REPLACE: (situation) => situation.transaction.state === "ALLOCATED" || maySignAnother(situation, "replace"),
  FILL_HOLE: ({ lane: { hole, signerAway } }) =>
    hole?.filling.by === "action" && hole.forbidden === null && signerAway === null,
  USE_NONCE_ELSEWHERE: ({ transaction: { attempts }, lane: { hole } }) =>
    hole === null ? attemptToSend(attempts)?.nodeSigned === true : hole.filling.by === "chainNode",
  RAISE_LIMIT: ({ transaction, lane: { hole } }) =>
    hole === null || hole.forbidden !== null || transaction.forbidden !== null,
  // If the endpoint works and shows new blocks, checking it is not offered in two cases: for a STUCK transaction of which only hashes are
  // known, because it was probably never sent, and for a refusal that waits for a later block.
  CHECK_RPC: ({ transaction: { state, attempts, refusal }, chain }) =>
    (state !== "STUCK" && refusal?.waitsFor !== "laterBlock") ||
    (refusal === null && !isHashAlone(attempts)) ||
    !chain.reachable ||
    chain.stalledSince !== null ||
    chain.doubted !== null,
  CHECK_SIGNER: ({ lane }) => lane.signerAway !== null,
};

export function isOfUse(code: HelpCode, situation: Situation): boolean {
  return RULES[code]?.(situation) ?? true;
}

function maySignAnother({ transaction, lane }: Situation, kind: ReturnType<typeof repricedKind>) {
  const { state, subState, receipt, attempts } = transaction;
  const rule: TransitionRule = TRANSITIONS[kind];
  if (receipt !== null || lane.signerAway !== null) return false;
  if (!rule.from.includes(state) || !leavesFrom(rule, { state, subState })) return false;
  return attemptToSend(attempts)?.nodeSigned !== true;
}

/**
 * True if a replacement is within the ceilings. A mempool accepts it only if it offers at least 10 % more. Above the
 * limit of automatic repricing, an operator's action is accepted only if the base fee justifies the price.
 */
function isUnderCeiling(
  { transaction: { attempts }, chain: { ceilings, baseFee } }: Situation,
  content: { readonly gas: bigint; readonly value: bigint },
) {
  const first = attempts.find(isSendable);
  const standing = highestOffer(attempts.filter(isSendable));
  if (ceilings === null) return false;
  if (first === undefined || standing === null) return true;
  const least = feeCap(leastReplacement(standing));
  if (least <= repricingLimit(ceilings, content, first.fees).most) return true;
  return baseFee !== null && feeCap(standing) < baseFee && least <= feeLimit(ceilings, content).most;
}

/**
 * True if the balance pays for a cancel, or is unknown. It may suffice for that even if it does not suffice for the
 * transaction itself.
 */
function canPayForNothing({ transaction: { attempts }, chain: { balance } }: Situation) {
  const standing = highestOffer(attempts.filter(isSendable));
  return balance === null || standing === null || balance >= GAS_OF_NOTHING * feeCap(leastReplacement(standing));
}
