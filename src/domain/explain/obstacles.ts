/**
 * What stands between a transaction and its block. Each rule looks at the same facts and says its cause, or nothing; the
 * order of the list is the order of the answer, most telling first.
 */
import type { SubmitAnswer } from "../answers.ts";
import { isHashAlone, isSendable } from "../attempts.ts";
import { feeLimit, repricingLimit, sourceInWords } from "../ceilings.ts";
import { feeCap } from "../fees.ts";
import type { Attempt } from "../transaction.ts";
import type { Cause, Situation } from "./situation.ts";
import { agoInWords, ether, gwei, untilInWords } from "./words.ts";

export type Rule = (situation: Situation) => Cause | null;

/** Whatever the transaction: nothing of its lane moves. */
export const LANE_RULES: readonly Rule[] = [
  ({ lane, transaction }) =>
    lane.suspended
      ? {
          code: "LANE_SUSPENDED",
          text: "its lane is suspended: creates are accepted and wait",
          data: laneOf(transaction),
        }
      : null,
  ({ lane }) =>
    lane.owner === null ? { code: "LANE_UNOWNED", text: "no node acts for its signer at this moment" } : null,
  ({ lane, now }) => {
    if (lane.owner === null || lane.owner.expiresAt > now) return null;
    const { nodeId, expiresAt } = lane.owner;
    const text = `node ${nodeId} acts for its signer, and its lease ended ${agoInWords(expiresAt, now)}; another node takes over`;
    return { code: "OWNER_SILENT", text, since: expiresAt, data: { nodeId } };
  },
  ({ chain }) =>
    chain.known ? null : { code: "CHAIN_UNKNOWN", text: `chain ${chain.chainId} is not configured on this node` },
  ({ chain }) =>
    chain.doubted === null
      ? null
      : { code: "CHAIN_DOUBTED", text: `the endpoint does not show the chain that is known here: ${chain.doubted}` },
  ({ chain, now }) => {
    if (chain.reachable || !chain.known) return null;
    const { unreachableSince } = chain;
    const forHowLong = unreachableSince === null ? "" : ` since ${agoInWords(unreachableSince, now)}`;
    const since = unreachableSince === null ? {} : { since: unreachableSince };
    return { code: "CHAIN_UNREACHABLE", text: `no endpoint of the chain answers${forHowLong}`, ...since };
  },
];

/** What comes before it at the node. */
export const ORDER_RULES: readonly Rule[] = [
  ({ lane, transaction }) => {
    const { nonce } = transaction;
    if (lane.hole === null || nonce === null || lane.hole >= nonce) return null;
    const data = { nonce: lane.hole };
    const wanted = `the chain wants nonce ${lane.hole} next`;
    if (lane.holeReserved) {
      const text = `${wanted}, which is reserved for a caller that signs itself: everything above waits for it`;
      return { code: "RESERVED_BELOW", text, data };
    }
    const why = lane.holeDetail === null ? "" : ` (${lane.holeDetail})`;
    return { code: "HOLE_BELOW", text: `${wanted}, and no transaction holds it${why}: everything above waits`, data };
  },
  ({ lane, transaction }) => {
    const { head } = lane;
    if (head === null || transaction.nonce === null || head.nonce >= transaction.nonce) return null;
    const behind = transaction.nonce - head.nonce;
    const text = `waits behind nonce ${head.nonce}, which is ${head.state}${behind === 1 ? "" : ` (${behind} places ahead)`}`;
    return { code: "WAITING_BEHIND", text, data: { nonce: head.nonce, txId: head.txId, state: head.state } };
  },
  ({ transaction, chain }) => {
    const { state, nonce } = transaction;
    if (state !== "ALLOCATED" || nonce === null || chain.minedCount === null) return null;
    const first = chain.minedCount + chain.inFlightWindow;
    if (nonce < first) return null;
    const text = `at most ${chain.inFlightWindow} of a lane are sent ahead of the mined nonce ${chain.minedCount}; it is ${nonce - first + 1} places behind that`;
    return { code: "WAITING_FOR_WINDOW", text, data: { nonce, minedCount: chain.minedCount } };
  },
];

/** What is wrong with the transaction itself. */
export const OWN_RULES: readonly Rule[] = [
  ({ transaction }) =>
    transaction.state === "STUCK"
      ? { code: "STUCK", text: `stuck: ${transaction.reason ?? "no reason was kept"}`, since: transaction.since }
      : null,
  ({ transaction }) =>
    transaction.withdrawn
      ? {
          code: "REORGED",
          text: "it was mined, and its block left the chain; it is sent again",
          since: transaction.since,
        }
      : null,
  ({ transaction }) =>
    transaction.subState === "UNKNOWN_SUBMIT_RESULT"
      ? {
          code: "SUBMIT_RESULT_UNKNOWN",
          text: "the node signs for this signer, and its answer was lost: the hash is looked for by sender and nonce",
          since: transaction.since,
        }
      : null,
  ({ transaction, chain }) => {
    const { nonce } = transaction;
    if (nonce === null || chain.minedCount === null || chain.minedCount <= nonce || attempted(transaction) === null)
      return null;
    const text = `the chain is past nonce ${nonce} and no receipt of ours is known yet: which payload was mined is looked for`;
    return { code: "NONCE_CONSUMED", text, data: { nonce, minedCount: chain.minedCount } };
  },
  ({ transaction, chain }) => {
    const attempt = priced(transaction);
    if (attempt === null || chain.baseFee === null || feeCap(attempt.fees) >= chain.baseFee) return null;
    const since = chain.dearSinceBlock === null ? "" : ` since block ${chain.dearSinceBlock}`;
    return {
      code: "FEE_BELOW_BASE_FEE",
      text: `offers at most ${gwei(feeCap(attempt.fees))} for gas that costs ${gwei(chain.baseFee)}${since}`,
      data: { feeCap: `${feeCap(attempt.fees)}`, baseFee: `${chain.baseFee}`, sinceBlock: chain.dearSinceBlock },
    };
  },
  ({ transaction, chain }) => {
    const { gas, value, state } = transaction;
    if (state !== "ALLOCATED" || gas === null || chain.ceilings === null) return null;
    const { most, variable } = feeLimit(chain.ceilings, { gas, value });
    if (most >= 0n) return null;
    const text = `it is not signed: what it moves is above the ceiling of its cost (${variable})`;
    return { code: "FEE_CEILING_REACHED", text, data: { ceiling: `${chain.ceilings.cost}`, variable } };
  },
  ({ transaction, chain }) => {
    const attempt = priced(transaction);
    const first = transaction.attempts.find(isSendable);
    if (attempt === null || first === undefined || chain.ceilings === null) return null;
    const { gas, fees } = attempt;
    const limit = repricingLimit(chain.ceilings, { gas, value: transaction.value }, first.fees);
    const { most, variable } = limit;
    // A tenth more is the least a node takes for a replacement: where that is over the ceiling, repricing has ended.
    const next = (feeCap(fees) * 11n) / 10n;
    // Twice the base fee is enough for the next blocks; where there is none to compare with, the ceiling is all that is known.
    const isPlenty = chain.baseFee !== null && chain.baseFee > 0n && feeCap(fees) >= chain.baseFee * 2n;
    if (next <= most || isPlenty) return null;
    const allowed = `${gwei(most < 0n ? 0n : most)} (${sourceInWords(limit)})`;
    const text = `its price may not rise above ${allowed}, and it offers ${gwei(feeCap(fees))}`;
    return { code: "FEE_CEILING_REACHED", text, data: { ceiling: `${most}`, variable } };
  },
  ({ transaction, chain }) => {
    const attempt = attempted(transaction);
    const gas = attempt?.gas ?? transaction.gas;
    if (chain.balance === null || gas === null || attempt === null || transaction.subState === "BROADCAST") return null;
    const missing = transaction.value + gas * feeCap(attempt.fees) - chain.balance;
    if (missing <= 0n) return null;
    const text = `the signer's balance is short by ${ether(missing)} for value and gas`;
    return { code: "INSUFFICIENT_FUNDS", text, data: { missing: `${missing}`, balance: `${chain.balance}` } };
  },
  ({ transaction }) =>
    answered(transaction, { answer: "underpriced", code: "UNDERPRICED", words: "a node wants a higher price" }),
  ({ transaction }) => answered(transaction, { answer: "rejected", code: "NODE_REFUSED", words: "a node refuses it" }),
  ({ transaction }) =>
    answered(transaction, {
      answer: "nonceTooHigh",
      code: "NODE_WANTS_LOWER_NONCE",
      words: "the node takes no nonce ahead of the chain's",
    }),
  ({ transaction }) =>
    answered(transaction, {
      answer: "unknown",
      code: "NODE_DID_NOT_ANSWER",
      words: "the last submission has no clear answer",
    }),
  ({ transaction, chain, now }) => {
    // Not an obstacle while a send is claimed and unanswered, nor once the chain's count is past the nonce: no pool holds it then.
    if (chain.pooled !== false || transaction.lastSubmittedAt === null || transaction.subState === "PENDING")
      return null;
    if (chain.minedCount !== null && transaction.nonce !== null && chain.minedCount > transaction.nonce) return null;
    const text = `the node does not hold it; last sent ${agoInWords(transaction.lastSubmittedAt, now)}, and sent again in its turn`;
    return { code: "NOT_IN_POOL", text, since: transaction.lastSubmittedAt };
  },
];

/** How far along it is: said where nothing is wrong. */
export const PROGRESS_RULES: readonly Rule[] = [
  ({ transaction }) =>
    transaction.state === "CREATED"
      ? { code: "WAITING_FOR_ALLOCATION", text: "accepted; it gets its nonce when the owner of its lane takes it up" }
      : null,
  ({ transaction }) =>
    transaction.state === "ALLOCATED"
      ? { code: "WAITING_FOR_SIGNATURE", text: "it has its nonce and is signed next" }
      : null,
  ({ transaction }) =>
    transaction.subState === "PENDING" && isHashAlone(transaction.attempts)
      ? { code: "WAITING_FOR_BLOCK", text: "its caller sent it; it is followed by its hash until a block has it" }
      : null,
  ({ transaction }) =>
    transaction.subState === "PENDING"
      ? { code: "WAITING_FOR_SEND", text: "signed and stored; no node has taken it yet" }
      : null,
  ({ lane, now }) => {
    const ends =
      lane.owner === null
        ? ""
        : ` (node ${lane.owner.nodeId} acts for it, its lease ends ${untilInWords(lane.owner.expiresAt, now)})`;
    return { code: "WAITING_FOR_BLOCK", text: `a node has it; it waits for a block${ends}` };
  },
];

function laneOf({ nonce }: Situation["transaction"]): { readonly nonce: number | null } {
  return { nonce };
}

/** The newest payload of ours; null where none is signed, or it is mined already. */
function attempted({ attempts, receipt }: Situation["transaction"]): Attempt | null {
  return receipt === null ? (attempts.findLast((attempt) => attempt.foreign !== true) ?? null) : null;
}

/** The newest one whose price is known. */
function priced({ attempts, receipt }: Situation["transaction"]): Attempt | null {
  return receipt === null ? (attempts.findLast(isSendable) ?? null) : null;
}

function answered(
  { lastError, receipt }: Situation["transaction"],
  { answer, code, words }: { readonly answer: SubmitAnswer; readonly code: Cause["code"]; readonly words: string },
): Cause | null {
  if (receipt !== null || lastError === null) return null;
  const [name, ...said] = lastError.split(":");
  if (name !== answer) return null;
  const detail = said.join(":").trim();
  return { code, text: detail === "" ? words : `${words}: ${detail}` };
}
