/**
 * Obstacles between a transaction and its block. Each rule reads the facts about the transaction and returns the cause
 * that it finds, or nothing. The order of the rules is the order in the explanation, most important first.
 */
import type { SubmitAnswer } from "../chain/answers.ts";
import type { RefusalWait } from "../chain/unconfirmed-refusal.ts";
import { feeLimit, repricingLimit, sourceInWords } from "../fees/ceilings.ts";
import { isHashAlone, isPrivate, isSendable } from "../transaction/attempts.ts";
import { feeCap, larger } from "../transaction/fees.ts";
import type { Attempt } from "../transaction/transaction.ts";
import type { Cause, Situation } from "./situation.ts";
import type { CauseCode } from "./table.ts";
import {
  agoInWords,
  awayText,
  doubtText,
  ether,
  gwei,
  holeText,
  killText,
  spanInWords,
  suspensionText,
  unownedText,
  untilInWords,
} from "./words.ts";

export type Rule = (situation: Situation) => Cause | false | null;

/** Obstacle: the transaction has no nonce yet, because another API key must first approve or reject it. */
export const awaitingApproval: Rule = ({ transaction: { awaiting, reason, since }, now }) => {
  if (awaiting === null) return null;
  const { rule, expiresAt, owner } = awaiting;
  const whose = owner === null ? "" : ` other than ${owner}, which made it`;
  const why = reason === null ? rule : `${rule}: ${reason}`;
  const text = `waits until an API key with the scope approve${whose} has approved it (${why}); it expires ${untilInWords(expiresAt, now)}`;
  return { code: "AWAITING_APPROVAL", text, since, data: { rule, owner, expiresAt: expiresAt.toISOString() } };
};

/** Obstacle: an operator has put the transaction on hold, regardless of the state of its lane. */
export const heldBack: Rule = ({ transaction: { held, nonce, attempts } }) => {
  if (held === null) return null;
  const behind = nonce === null ? "it gets no nonce" : "nothing of it is sent";
  const mined = attempts.length === 0 ? "" : "; what a node has of it may still be mined";
  const text = `it is held back (${held.actor}: ${held.reason}): ${behind} until it is resumed${mined}`;
  return { code: "HELD", text, since: held.since, data: { nonce, actor: held.actor } };
};

/** Obstacle: the time by which the caller wanted the transaction mined (`validUntil`) has passed. */
export const expiring: Rule = ({ transaction: { validUntil, expiredAt, held }, now }) => {
  if (validUntil === null || validUntil > now) return null;
  const over = `it expired ${agoInWords(validUntil, now)} (validUntil ${validUntil.toISOString()})`;
  const data = { validUntil: validUntil.toISOString() };
  if (expiredAt !== null) {
    const text = `${over} and is being cancelled: whichever payload is mined decides`;
    return { code: "EXPIRING", text, since: expiredAt, data };
  }
  const then = held === null ? "as soon as something may be sent for it" : "once it is resumed";
  return { code: "EXPIRING", text: `${over}, and is cancelled ${then}`, data };
};

/** The transaction's `validUntil` is still ahead: no obstacle, but worth showing. */
export const expires: Rule = ({ transaction: { validUntil }, now }) => {
  if (validUntil === null || validUntil <= now) return null;
  const at = validUntil.toISOString();
  const text = `it expires at ${at}, ${untilInWords(validUntil, now)}: not mined by then, it is cancelled`;
  return { code: "EXPIRES", text, data: { validUntil: at } };
};

/** The transaction was sent only to private endpoints, so public nodes neither show nor forward it. */
export const sentPrivately: Rule = ({ transaction: { attempts, receipt }, chain: { privateEndpoints: names } }) => {
  if (!isPrivate(attempts) || receipt !== null) return null;
  const place = `${names.length === 1 ? "the private endpoint" : "the private endpoints"} ${names.join(", ")}`;
  const text =
    names.length > 0
      ? `only ${place} ${names.length === 1 ? "was" : "were"} given it; no public endpoint was`
      : "only private endpoints were given it, and none is configured any more: it is not sent again until it is disclosed";
  return { code: "SENT_PRIVATELY", text, data: { endpoints: names.join(", ") } };
};

/** Causes that stop a whole lane, and so all of its transactions. */
export const LANE_RULES: readonly Rule[] = [
  ({ lane: { killed } }) =>
    killed !== null && { code: "KILLED", text: killText(killed), data: { killId: killed.killId } },
  ({ lane: { suspended, suspendedFor }, transaction: { nonce } }) =>
    suspended && { code: "LANE_SUSPENDED", text: suspensionText(suspendedFor), data: { nonce } },
  ({ lane: { owner, unowned } }) => {
    if (owner !== null) return null;
    const text = unownedText(unowned?.reason ?? null);
    return { code: "LANE_UNOWNED", text, ...(unowned === null ? {} : { since: unowned.since }) };
  },
  ({ lane, now }) => {
    if (lane.owner === null || lane.owner.expiresAt > now) return null;
    const { nodeId, expiresAt } = lane.owner;
    const text = `node ${nodeId} acts for its signer, and its lease ended ${agoInWords(expiresAt, now)}; another node takes over`;
    return { code: "OWNER_SILENT", text, since: expiresAt, data: { nodeId } };
  },
  ({ chain }) =>
    !chain.known && { code: "CHAIN_UNKNOWN", text: `chain ${chain.chainId} is not configured on this node` },
  ({ chain: { doubted } }) => doubted !== null && { code: "CHAIN_DOUBTED", text: doubtText(doubted) },
  ({ chain: { reachable, known, unreachableSince: since }, now }) => {
    if (reachable || !known) return null;
    if (since === null) return { code: "CHAIN_UNREACHABLE", text: "no endpoint of the chain answers" };
    const text = `no endpoint of the chain has answered for ${spanInWords(since, now)}`;
    return { code: "CHAIN_UNREACHABLE", text, since };
  },
  ({ chain: { stalledSince: since, head, reachable }, transaction: { attempts }, now }) => {
    if (since === null || !reachable || attempts.length === 0) return null;
    const text = `the chain stands still: no block has come after ${head} for ${spanInWords(since, now)}`;
    return { code: "CHAIN_STALLED", text, since };
  },
];

/** Obstacle: the transaction waits for a lower nonce that no transaction of the lane has. */
export const missingBelow: Rule = ({ lane: { hole }, transaction: { nonce } }) => {
  if (hole === null || nonce === null || hole.nonce >= nonce) return null;
  const data = { nonce: hole.nonce };
  if (!hole.reserved) return { code: "HOLE_BELOW", text: holeText(hole), data };
  const text = `the chain wants nonce ${hole.nonce} next, which is reserved for a caller that signs itself: everything above waits for it`;
  return { code: "RESERVED_BELOW", text, data };
};

/** Obstacle: the transaction waits behind another one. `why`: the cause for which that other one waits, if known. */
export function waitingBehind(why: Cause | null): Rule {
  return ({ lane: { head }, transaction: { nonce } }) => {
    if (head === null || nonce === null || head.nonce >= nonce) return null;
    const places = nonce - head.nonce === 1 ? "" : `, ${nonce - head.nonce} places ahead`;
    const held = head.held && why === null ? " and held back by an operator" : "";
    const status = `${head.state}${held}${places}`;
    const text = `waits behind nonce ${head.nonce}, which is ${status}${why === null ? "" : `: ${why.text}`}`;
    return { code: "WAITING_BEHIND", text, data: { nonce: head.nonce, txId: head.txId, state: head.state } };
  };
}

export const waitingForWindow: Rule = ({ transaction: { state, nonce }, chain: { minedCount, inFlightWindow } }) => {
  if (state !== "ALLOCATED" || nonce === null || minedCount === null) return null;
  const first = minedCount + inFlightWindow;
  if (nonce < first) return null;
  const text = `at most ${inFlightWindow} of a lane are sent ahead of the mined nonce ${minedCount}; it is ${nonce - first + 1} places behind that`;
  return { code: "WAITING_FOR_WINDOW", text, data: { nonce, minedCount } };
};

const AWAITED: Readonly<Record<RefusalWait, string>> = {
  laterBlock: "the endpoint, the only one that is up, says so again at a later block",
  agreement: "another endpoint, which would accept it, says the same",
  behind: "another endpoint, which is behind, has come to that block",
  silent: "every endpoint that is up has answered",
};

/** Obstacles in the transaction itself, the decisive one first: a higher price does not help if funds are short. */
export const OWN_RULES: readonly Rule[] = [
  ({ transaction: { refusal, state } }) => {
    if (refusal === null || state !== "CREATED") return null;
    const { reason, firstBlock, waitsFor, since } = refusal;
    const text = `an endpoint refuses it since block ${firstBlock} (${reason}), which ends nothing that was accepted: it waits until ${AWAITED[waitsFor]}`;
    return { code: "REFUSAL_UNCONFIRMED", text, since, data: { firstBlock, waitsFor } };
  },
  ({ transaction, chain: { minedCount } }) => {
    const { nonce } = transaction;
    if (nonce === null || minedCount === null || minedCount <= nonce || attempted(transaction) === null) return null;
    const text = `the chain is past nonce ${nonce} and no receipt of ours is known yet: which payload was mined is looked for`;
    return { code: "NONCE_CONSUMED", text, data: { nonce, minedCount } };
  },
  ({ transaction: { subState, since } }) =>
    subState === "UNKNOWN_SUBMIT_RESULT" && {
      code: "SUBMIT_RESULT_UNKNOWN",
      text: "the node signs for this signer, and its answer was lost: the hash is looked for by sender and nonce",
      since,
    },
  answered("rejected"),
  ({ transaction, lane: { signerAway }, chain: { baseFee }, now }) => {
    const attempt = attempted(transaction, isSendable);
    const wantsMore = attempt !== null && baseFee !== null && feeCap(attempt.fees) < baseFee;
    if (signerAway === null || (transaction.state !== "ALLOCATED" && !wantsMore)) return null;
    const code = signerAway.lies ? "SIGNER_LIES" : "SIGNER_AWAY";
    return { code, text: awayText(signerAway, now), since: signerAway.since };
  },
  (situation) => {
    const {
      transaction,
      chain: { balance, remembered },
    } = situation;
    const attempt = attempted(transaction);
    const refused = answered("insufficientFunds")(situation);
    // No funds are missing if a node accepted the transaction, and none has refused it for lack of funds since.
    if (attempt === null || (transaction.subState === "BROADCAST" && refused === null)) return null;
    if (balance === null) return refused;
    const moved = attempt.kind === "cancel" || attempt.kind === "placeholder" ? 0n : transaction.value;
    const missing = moved + attempt.gas * feeCap(attempt.fees) - balance;
    // A balance that was read before the refusal does not prove that the funds suffice now.
    if (missing <= 0n) return remembered === true ? refused : null;
    const text = `the signer's balance is short by ${ether(missing)} for value and gas`;
    return { code: "INSUFFICIENT_FUNDS", text, data: { missing: `${missing}`, balance: `${balance}` } };
  },
  ({ transaction: { gas, value, state }, chain: { ceilings } }) => {
    if (state !== "ALLOCATED" || gas === null || ceilings === null) return null;
    const { most, variable } = feeLimit(ceilings, { gas, value });
    if (most >= 0n) return null;
    const text = `it is not signed: what it moves is above the ceiling of its cost (${variable})`;
    return { code: "FEE_CEILING_REACHED", text, data: { ceiling: `${ceilings.cost}`, variable } };
  },
  ({ transaction, chain: { ceilings, baseFee } }) => {
    const attempt = attempted(transaction, isSendable);
    const first = transaction.attempts.find(isSendable);
    if (attempt === null || first === undefined || ceilings === null) return null;
    const content = { gas: attempt.gas, value: transaction.value };
    const offer = feeCap(attempt.fees);
    // A node accepts a replacement only if it offers at least 10 % more. If that is above the ceiling, the price cannot
    // be raised any more.
    const next = (offer * 11n) / 10n;
    const absolute = feeLimit(ceilings, content);
    // An operator may have set a price above the limit of automatic repricing. Then only the ceiling applies.
    const limit = next > absolute.most ? absolute : repricingLimit(ceilings, content, first.fees);
    const { most, variable } = limit;
    if (next <= most || isPlenty(offer, baseFee)) return null;
    const allowed = `${gwei(larger(most, 0n))} (${sourceInWords(limit)})`;
    const wanted = baseFee !== null && offer < baseFee ? ` for gas that costs ${gwei(baseFee)}` : "";
    const how = limit.timesFirst === undefined ? "" : " by itself";
    const text = `its price may not rise${how} above ${allowed}, and it offers ${gwei(offer)}${wanted}`;
    return { code: "FEE_CEILING_REACHED", text, data: { ceiling: `${most}`, variable } };
  },
  ({ transaction, chain: { baseFee } }) => {
    const { forbidden } = transaction;
    const attempt = attempted(transaction, isSendable);
    if (forbidden === null || attempt === null || isPlenty(feeCap(attempt.fees), baseFee)) return null;
    const text = `it may not be offered for more: ${forbidden.detail}`;
    return { code: "POLICY_LIMIT_REACHED", text, data: { rule: forbidden.rule } };
  },
  ({ transaction, chain: { baseFee, dearSinceBlock: sinceBlock } }) => {
    const attempt = attempted(transaction, isSendable);
    if (attempt === null || baseFee === null || feeCap(attempt.fees) >= baseFee) return null;
    const offer = feeCap(attempt.fees);
    const since = sinceBlock === null ? "" : ` since block ${sinceBlock}`;
    const text = `offers at most ${gwei(offer)} for gas that costs ${gwei(baseFee)}${since}`;
    return { code: "FEE_BELOW_BASE_FEE", text, data: { feeCap: `${offer}`, baseFee: `${baseFee}`, sinceBlock } };
  },
  answered("underpriced"),
  ({ transaction: { nonce, subState, lastSubmittedAt: since }, chain: { pooled, minedCount }, now }) => {
    // That the mempool lacks the transaction is no obstacle in two cases: a send is in progress, or the chain has
    // passed the nonce.
    if (pooled !== false || since === null || subState === "PENDING") return null;
    if (minedCount !== null && nonce !== null && minedCount > nonce) return null;
    // `since` is left out. It is unknown when the node dropped the transaction, and the time of the last send changes
    // with each send.
    return {
      code: "NOT_IN_POOL",
      text: `the node does not hold it; last sent ${agoInWords(since, now)}, and sent again in its turn`,
    };
  },
  ({ transaction, chain: { stuckAfterResubmits: most } }) => {
    const { state, submitAttempts, lastError } = transaction;
    const again = submitAttempts - 1;
    // Report many resends only for a STUCK transaction: any other may have been sent this often while it waited behind
    // others.
    if (state !== "STUCK" || most === 0 || again < most || lastError !== null) return null;
    const text = `it was sent again ${again} times since a node took it, and no block has it`;
    return { code: "RESENT_OFTEN", text, data: { submitAttempts } };
  },
  answered("nonceTooHigh"),
  answered("unknown"),
  ({ transaction: { withdrawn, since, attempts } }) => {
    const again = isHashAlone(attempts) ? BY_ITS_CALLER : "it is sent again";
    return withdrawn && { code: "REORGED", text: `it was mined, and its block left the chain; ${again}`, since };
  },
  ({ transaction: { state, reason, since } }) =>
    state === "STUCK" && { code: "STUCK", text: reason ?? "no reason was kept", since },
];

const BY_ITS_CALLER = "only its caller can send it again";

const ANSWERS = {
  rejected: { code: "NODE_REFUSED", words: "a node refuses it" },
  underpriced: { code: "UNDERPRICED", words: "a node wants a higher price" },
  insufficientFunds: { code: "INSUFFICIENT_FUNDS", words: "a node says that the signer cannot pay for it" },
  nonceTooHigh: { code: "NODE_WANTS_LOWER_NONCE", words: "the node takes no nonce ahead of the chain's" },
  unknown: { code: "NODE_DID_NOT_ANSWER", words: "the last submission has no clear answer" },
} as const satisfies Partial<Record<SubmitAnswer, { readonly code: CauseCode; readonly words: string }>>;

/**
 * Finds the obstacle that the node's last response names. The name of the response is the part of the transaction's
 * last error before the colon.
 */
function answered(answer: keyof typeof ANSWERS): Rule {
  return ({ transaction: { lastError, receipt } }) => {
    const [name, ...said] = lastError?.split(":") ?? [];
    if (receipt !== null || name !== answer) return null;
    const { code, words } = ANSWERS[answer];
    const detail = said.join(":").trim();
    return { code, text: detail === "" ? words : `${words}: ${detail}` };
  };
}

/** Progress of a transaction: shown only if nothing is wrong. */
export const PROGRESS_RULES: readonly Rule[] = [
  ({ transaction: { state } }) =>
    state === "CREATED" && {
      code: "WAITING_FOR_ALLOCATION",
      text: "accepted; it gets its nonce when the owner of its lane takes it up",
    },
  ({ transaction: { state } }) =>
    state === "ALLOCATED" && { code: "WAITING_FOR_SIGNATURE", text: "it has its nonce and is signed next" },
  ({ transaction: { subState, attempts } }) =>
    subState === "PENDING" &&
    isHashAlone(attempts) && {
      code: "WAITING_FOR_BLOCK",
      text: `its caller sent it; it is followed by its hash until a block has it; ${BY_ITS_CALLER}`,
    },
  ({ transaction: { subState } }) =>
    subState === "PENDING" && { code: "WAITING_FOR_SEND", text: "signed and stored; no node has taken it yet" },
  ({ lane: { owner }, now }) => {
    const text = "a node has it; it waits for a block";
    if (owner === null) return { code: "WAITING_FOR_BLOCK", text };
    const ends = `its lease ends ${untilInWords(owner.expiresAt, now)}`;
    return { code: "WAITING_FOR_BLOCK", text: `${text} (node ${owner.nodeId} acts for it, ${ends})` };
  },
];

/**
 * The newest attempt for which `isMeant` is true (by default: any attempt of ours). Null if there is none, or the
 * transaction is mined already.
 */
function attempted({ attempts, receipt }: Situation["transaction"], isMeant = isOurs) {
  return receipt === null ? (attempts.findLast(isMeant) ?? null) : null;
}

const isOurs = ({ foreign }: Attempt) => foreign !== true;

/**
 * True if the price is at least twice the base fee, which is enough for the next blocks. False if there is no base fee
 * to compare with.
 */
function isPlenty(offer: bigint, baseFee: bigint | null) {
  return baseFee !== null && baseFee > 0n && offer >= baseFee * 2n;
}

/** Explains a final transaction; null if it is not final. */
export function settledCause({ transaction, chain }: Situation): Cause | null {
  const { state, subState, receipt, attempts } = transaction;
  if (state !== "CONFIRMED" && state !== "FAILED_FINAL") return null;
  const at = receipt === null ? "" : ` in block ${receipt.blockNumber}`;
  const code = (subState ?? "CONFIRMED") as CauseCode;
  const texts: Partial<Record<CauseCode, string>> = {
    CONFIRMED: `mined${at} and final`,
    REPLACED: `its replacement was mined${at} and is final`,
    REVERTED: `mined${at}, where it reverted; the outcome is final`,
    CANCELLED:
      receipt === null && transaction.nonce === null
        ? `cancelled before it had a nonce: ${transaction.reason ?? "no reason was kept"}`
        : `cancelled: a transaction without effect was mined at its nonce${at}`,
    EXPIRED: `given up${at}: ${transaction.reason ?? "its time was over"}`,
    NONCE_CONSUMED_EXTERNALLY: `its nonce ${transaction.nonce} was used by a transaction that was not sent from here${at}`,
    REJECTED: `refused before anything of it was sent: ${transaction.reason ?? transaction.lastError ?? "no reason was kept"}`,
    REQUEST_ID_REUSED: "its request id belongs to another payload",
  };
  const foreign = attempts.find((attempt) => attempt.foreign === true)?.txHash ?? receipt?.txHash ?? null;
  const cause: Cause = { code, text: texts[code] ?? `settled as ${code}`, since: transaction.since };
  const data = { chainId: chain.chainId, txHash: foreign };
  return code === "NONCE_CONSUMED_EXTERNALLY" ? { ...cause, data } : cause;
}

/** Explains a mined transaction that is not final; null if it is not mined. */
export function minedCause({ transaction, chain }: Situation): Cause | null {
  const { receipt, subState } = transaction;
  if (subState !== "MINED" || receipt === null) return null;
  const { blockNumber, txHash } = receipt;
  if (transaction.attempts.some((attempt) => attempt.txHash === txHash && attempt.foreign === true)) {
    const text = `nonce ${transaction.nonce} was used by ${txHash}, which was not sent from here; once that is final, so is this`;
    return { code: "NONCE_USED_BY_OTHERS", text, data: { txHash, blockNumber } };
  }
  if (chain.finality !== "confirmations") {
    const text = `mined in block ${blockNumber}; final once the chain's ${chain.finality} tag reaches it`;
    return { code: "WAITING_FOR_FINALITY_TAG", text, data: { blockNumber, head: chain.head } };
  }
  const on = chain.head === null ? null : Math.max(0, chain.head - blockNumber);
  const progress = on === null ? "" : `, ${on} of ${chain.confirmations} blocks on top of it`;
  return {
    code: "WAITING_FOR_CONFIRMATIONS",
    text: `mined in block ${blockNumber}${progress}`,
    data: { blockNumber, confirmations: on, needed: chain.confirmations },
  };
}

/**
 * Returns the cause if endpoints disagree about the receipt's block, if one has not responded about it, or, before the
 * transaction is mined, if they disagree about the gas price; otherwise null.
 */
export function disputedCause({ transaction: { receipt }, chain: { disputed } }: Situation): Cause | null {
  if (disputed === null) return null;
  const { code, answers, since } = disputed;
  if (receipt === null) {
    const text = `what the chain's endpoints say of the price of gas cannot all be true, so the lower price is offered first and raised while blocks pass it over: ${answers.join("; ")}`;
    return { code, text, ...(since === null ? {} : { since }) };
  }
  const block = `block ${receipt.blockNumber}`;
  const why =
    code === "RPC_BEHIND"
      ? `an endpoint that is up has not said for a minute what ${block} holds, and no outcome rests on another one alone`
      : `what the chain's endpoints say of ${block} cannot all be true, so it decides nothing`;
  const data = { blockNumber: receipt.blockNumber, txHash: receipt.txHash };
  return { code, text: `${why}: ${answers.join("; ")}`, ...(since === null ? {} : { since }), data };
}
