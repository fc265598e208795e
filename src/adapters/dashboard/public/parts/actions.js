/**
 * Operators' actions with their texts. An action is an API request (`action`, `label`, `method`, `path`, `body`) as
 * offered by the list of problems. Its explanation is shown before the request is sent.
 *
 * @import { Action, ActionSubject, Explanation, Scope, Signature, SignerLane, Transaction } from "../../page-types.ts"
 */
import { gweiOf } from "../formats.js";
import { WEBHOOK_ACTIONS, webhookWord } from "./webhook-actions.js";

/**
 * Text of an action. `what`: one sentence. `fields`: optional inputs beside the reason. `danger`: true if the action is
 * destructive. `scopes`: those of which it needs one, if it is not `operate`. `hasNoReason`: true if the request takes no
 * reason.
 *
 * @typedef {{
 *   readonly label: string, readonly what: string, readonly fields?: readonly Field[], readonly danger?: true,
 *   readonly scopes?: readonly Scope[], readonly hasNoReason?: true,
 * }} Meaning
 * @typedef {"fees" | "payload" | "nonce" | "name" | "receiver" | "after" | "begin" | "overlap"} Field
 */

/** @type {Readonly<Record<string, Meaning>>} */
const ACTIONS = {
  resubmit: { label: "Send again", what: "Sends the stored bytes again, now. Nothing new is signed." },
  reprice: {
    label: "Raise the fee",
    what: "Signs the same payload at the same nonce for more. Every attempt stays tracked; one of them is mined.",
    fields: ["fees"],
  },
  cancel: {
    label: "Cancel",
    what: "Uses the nonce up with a transfer of nothing to the signer itself. Whichever payload is mined first decides.",
    fields: ["fees"],
    danger: true,
  },
  replace: {
    label: "Replace",
    what: "Puts another payload at this nonce. What the caller asked for stays visible.",
    fields: ["payload"],
    danger: true,
  },
  resolve: { label: "Resolve", what: "Asks the hook now, or applies the action below." },
  placeholder: {
    label: "Fill the hole",
    what: "Takes the empty nonce with a transfer of nothing to the signer itself. Everything behind it goes on.",
  },
  suspend: { label: "Hold back", what: "Nothing of it is signed or sent until it is resumed. All behind it waits." },
  resume: { label: "Let it go on", what: "What was due meanwhile is done now." },
  approve: {
    label: "Approve",
    what: "It gets its nonce and is sent. Policies are judged again when it does.",
    scopes: ["approve"],
  },
  reject: { label: "Reject", what: "It ends here, without a nonce.", danger: true, scopes: ["approve"] },
  "signature.approve": {
    label: "Approve",
    what: "Rules and limits are judged again, and it is counted. Its asker gets the signature by repeating the request.",
    scopes: ["approve"],
  },
  "signature.reject": {
    label: "Reject",
    what: "It ends here: its asker never gets the signature.",
    danger: true,
    scopes: ["approve"],
  },
  suspendLane: {
    label: "Suspend the lane",
    what: "Nothing more is signed or sent from this lane; what is sent stays tracked.",
  },
  resumeLane: { label: "Resume the lane", what: "The lane signs and sends again." },
  realign: {
    label: "Realign",
    what: "Takes the next nonce down towards what the chain counts; never below a nonce that may have left.",
    fields: ["nonce"],
  },
  killSigner: {
    label: "Stop this signer",
    what: "Nothing is sent from this signer, on any node and chain, until it is ended. Creates are accepted and wait.",
    danger: true,
    scopes: ["operate", "admin"],
  },
  killAll: {
    label: "Stop everything",
    what: "Nothing is sent from any signer, on any node and chain, until a key with the scope admin ends it. Creates are accepted and wait.",
    danger: true,
    scopes: ["operate", "admin"],
  },
  acknowledge: {
    label: "Acknowledge",
    what: "Says that somebody looked into it and who. It needs attention no more; the same again is a new notice.",
  },
  endKill: {
    label: "End the kill",
    what: "Everything that was stopped by it goes on. Needs a key with admin.",
    scopes: ["admin"],
  },
};

/**
 * @param {Action} action
 * @returns {Meaning}
 */
export function meaningOf(action) {
  const word = wordOf(action);
  return ACTIONS[word] ?? WEBHOOK_ACTIONS[word] ?? { label: action.label, what: "Sends the request below." };
}

/**
 * Returns the name of an action; the API distinguishes some actions only by path and body.
 *
 * @param {Action} action
 */
export function wordOf({ action, path, method, body }) {
  if (path.endsWith("/kill"))
    return method === "DELETE" ? "endKill" : path === "/api/v1/kill" ? "killAll" : "killSigner";
  if (path.endsWith("/resolve") && Object(body).action === "PLACEHOLDER") return "placeholder";
  const [, word = action] = /\/([a-z]+)$/.exec(path) ?? [];
  if (path.startsWith("/api/v1/webhooks")) return webhookWord(method, path);
  if (path.includes("/signatures/")) return `signature.${word}`;
  if (path.includes("/signers/") && (word === "suspend" || word === "resume")) return `${word}Lane`;
  return word;
}

/**
 * @param {string} word
 * @param {string} path
 * @param {Readonly<Record<string, unknown>>} [body]
 * @param {Action["method"]} [method]
 * @returns {Action}
 */
function actionOf(word, path, body = {}, method = "POST") {
  return { action: word, label: ACTIONS[word]?.label ?? word, method, path: `/api/v1${path}`, body };
}

/** @param {string} txId */
const forTransaction = (txId) => (/** @type {string} */ word) => actionOf(word, `/tx/${txId}/${word}`);

/**
 * All actions that a transaction's state allows, least drastic first.
 *
 * @param {Transaction} transaction
 */
export function actionsFor(transaction) {
  const { txId, state, subState, heldSince } = transaction;
  const action = forTransaction(txId);
  const hold = action(heldSince === null ? "suspend" : "resume");
  if (state === "CREATED") {
    return subState === "AWAITING_APPROVAL"
      ? [action("approve"), action("reject"), action("cancel")]
      : [hold, action("cancel")];
  }
  if (state === "ALLOCATED") return [hold, action("replace"), action("cancel")];
  if (state === "STUCK" || (state === "TRACKING" && subState !== "MINED")) {
    return [action("resubmit"), action("reprice"), hold, action("replace"), action("cancel")];
  }
  return [];
}

/** @type {Readonly<Record<string, string>>} */
const LANE_PATHS = { suspendLane: "suspend", resumeLane: "resume", realign: "realign" };

/**
 * @param {string} word
 * @param {Pick<SignerLane, "chainId" | "signer">} lane
 */
function laneAction(word, { chainId, signer }) {
  return actionOf(word, `/signers/${signer}/${LANE_PATHS[word]}`, { chainId });
}

/**
 * Builds an action for a notice which reports that another program used the signer's key.
 *
 * @param {string} word
 * @param {{ readonly lane: SignerLane, readonly noticeId: string, readonly body: Readonly<Record<string, unknown>> }} subject
 */
export function actionFor(word, { lane, noticeId, body }) {
  if (word === "acknowledge") return actionOf(word, `/notices/${noticeId}/acknowledge`, body);
  return word === "killSigner" ? actionOf(word, `/signers/${lane.signer}/kill`) : laneAction(word, lane);
}

/** @param {Pick<Signature, "signatureId" | "state" | "expiresAt">} signature */
export function actionsForSignature({ signatureId, state, expiresAt }) {
  const isOver = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  if (state !== "AWAITING_APPROVAL" || isOver) return [];
  return ["approve", "reject"].map((word) => actionOf(word, `/signatures/${signatureId}/${word}`));
}

export const stopEverything = () => actionOf("killAll", "/kill");

/**
 * @param {SignerLane} lane
 * @param {boolean} isKilled
 */
export function actionsForLane(lane, isKilled) {
  return [
    laneAction(lane.suspended ? "resumeLane" : "suspendLane", lane),
    laneAction("realign", lane),
    isKilled
      ? actionOf("endKill", `/signers/${lane.signer}/kill`, {}, "DELETE")
      : actionOf("killSigner", `/signers/${lane.signer}/kill`),
  ];
}

/**
 * The actions that an explanation suggests, with their texts. Each is an API request.
 *
 * @param {Explanation} explained
 * @returns {(Action & { readonly code: string })[]}
 */
export function actionsOf({ actions }) {
  return actions.map((action) => ({ ...action, label: meaningOf(action).label }));
}

/**
 * Describes the effect of an action on the chain; null if it has none.
 *
 * @param {Action} action
 * @param {ActionSubject} [subject]
 */
export function previewOf(action, { transaction, baseFee = null } = {}) {
  if (transaction === undefined) return null;
  const { nonce, signer, attempts } = transaction;
  const standing = attempts.at(-1);
  const offered = standing === undefined ? null : gweiOf(standing.maxFeePerGas ?? standing.gasPrice ?? "0");
  const market = baseFee === null ? "" : ` The newest block asks for ${gweiOf(baseFee)} gwei.`;
  const price =
    offered === null ? "At the market's price." : `For at least a tenth more than the ${offered} gwei that stand.`;
  switch (wordOf(action)) {
    case "resubmit":
      return standing === undefined
        ? null
        : `Attempt ${standing.ordinal}, as it was signed: ${standing.txHash ?? "no hash yet"}.`;
    case "reprice":
      return `The same payload at nonce ${nonce}. ${price}${market}`;
    case "cancel":
      return nonce === null
        ? "Nothing: it has no nonce yet."
        : `0 ether from ${signer} to itself at nonce ${nonce}. ${price}${market}`;
    case "placeholder":
      return `0 ether from ${signer} to itself at nonce ${Object(action.body).nonce ?? "that is empty"}. At the market's price.${market}`;
    case "replace":
      return `The payload below at nonce ${nonce}. ${price}${market}`;
    default:
      return null;
  }
}
