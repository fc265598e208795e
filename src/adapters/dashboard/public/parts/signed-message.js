/**
 * What a requested signature is about, in full: signer, domain, asker, rule, and the message itself.
 *
 * @import { Child, Mood, Signature } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { countOf, wordsOf } from "../formats.js";
import { code, facts, laneLink, left, quiet, said, saidLines } from "./words.js";

/** @type {Readonly<Record<Signature["state"], Mood>>} */
const MOODS = {
  AWAITING_APPROVAL: "waiting",
  ALLOWED: "moving",
  SIGNED: "done",
  REJECTED: "closed",
  EXPIRED: "closed",
};

/** @param {Pick<Signature, "state">} signature */
export function signatureState({ state }) {
  return h("span", { class: `state ${MOODS[state]}` }, h("b", wordsOf(state)));
}

/**
 * @param {string | null} owner
 * @returns {Child}
 */
export function askerOf(owner) {
  return owner === null ? quiet("no API key") : said(owner, 64);
}

/**
 * @param {Signature} signature
 * @param {Readonly<Record<string, Child>>} [more]
 */
export function messageFacts(signature, more) {
  const { chainId, signer, domain, owner, rule, amount, typedData, expiresAt, state } = signature;
  return facts({
    Signer: [laneLink(chainId, signer), ` on chain ${chainId}`],
    Domain: domain === null ? quiet("none") : h("b", said(domain, 255)),
    Type: typedData === null ? "a personal message" : h("b", said(typedData.primaryType, 100)),
    "Asked for by": askerOf(owner),
    Rule: said(rule, 200),
    Amount: amount === "0" ? null : code(amount),
    Time: state === "AWAITING_APPROVAL" && expiresAt !== null ? left(expiresAt) : null,
    ...more,
  });
}

/**
 * The message that is signed. Nothing of it is left out: whoever approves it answers for all of it.
 *
 * @param {Signature} signature
 */
export function messageShown({ message, typedData }) {
  if (typedData === null) {
    const pre = { tabindex: "0", "aria-label": "The message" };
    return h("pre.message", pre, saidLines(message ?? "", Number.POSITIVE_INFINITY));
  }
  return h(
    "div.message",
    { tabindex: "0", role: "group", "aria-label": "The typed data" },
    h("h3", "Domain"),
    members(typedData.domain),
    h("h3", said(typedData.primaryType, 100)),
    members(typedData.message),
  );
}

/** @param {object} values */
function members(values) {
  return h(
    "ul.args",
    Object.entries(values).map(([name, value]) =>
      h("li", { key: name }, quiet(said(name, 100), " "), shownValue(value)),
    ),
  );
}

/**
 * @param {unknown} value
 * @returns {Child}
 */
function shownValue(value) {
  if (Array.isArray(value) && value.length === 0) return quiet("an empty list");
  if (typeof value === "object" && value !== null) return members(value);
  return h("code", said(String(value), Number.POSITIVE_INFINITY));
}

/**
 * The message in a few words, for lists.
 *
 * @param {Signature} signature
 */
export function messageName({ message, typedData, domain }) {
  if (typedData !== null) return said(typedData.primaryType, 60);
  // Of personal messages, only a sign-in names a domain.
  if (domain !== null) return "Sign-in";
  const text = message ?? "";
  return said(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** @param {string} amount */
export const amountOf = (amount) => (/^[0-9]{1,15}$/.test(amount) ? countOf(Number(amount)) : amount);
