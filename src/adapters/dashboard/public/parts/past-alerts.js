/**
 * Alerts about past events, for people who missed them. They do not make the page red.
 *
 * @import { AttentionItem } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { countOf, wordsOf } from "../formats.js";
import { linkTo, toSignature, toTransaction } from "../routes.js";
import { age, laneLink, quiet, said, section } from "./words.js";

/** Storage key of the alerts that the user has dismissed. A new occurrence is shown again. */
const SEEN = "fencepost-seen-alerts";
const MOST_SEEN = 200;

/** @param {Pick<AttentionItem, "id" | "since">} item */
const keyOf = ({ id, since }) => `${id} ${since}`;

/** @returns {string[]} */
function seen() {
  try {
    return JSON.parse(sessionStorage.getItem(SEEN) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {readonly AttentionItem[]} items */
function dismiss(items) {
  sessionStorage.setItem(SEEN, JSON.stringify([...seen(), ...items.map(keyOf)].slice(-MOST_SEEN)));
  dispatchEvent(new Event("redraw"));
}

/** @param {readonly AttentionItem[]} past */
export function pastAlerts(past) {
  const known = new Set(seen());
  const news = past.filter((item) => !known.has(keyOf(item)));
  if (news.length === 0) return null;
  return section(
    "Over, for you to know",
    { name: "past", aside: h("button.plain", { type: "button", onclick: () => dismiss(news) }, "Seen") },
    h(
      "ol.past",
      news.map((item) =>
        h(
          "li.trouble.past",
          { key: keyOf(item), "data-code": item.code },
          h("p.sentence", said(item.sentence, 600)),
          h(
            "p.meta",
            h("span.code", wordsOf(item.code)),
            item.since === null ? null : h("span", age(item.since), ", over"),
            places(item),
          ),
        ),
      ),
    ),
    quiet("Alerts of the last quarter of an hour that told of a moment."),
  );
}

/**
 * Links to the lane, transaction, chain, node or endpoint that an alert is about.
 *
 * @param {AttentionItem} item
 */
export function places({ chainId, signer, txId, nonce, nodeId, endpoint, subscriber, signatureId }) {
  const lane = signer === null ? null : chainId === null ? h("code", signer) : laneLink(chainId, signer);
  const name = nonce === null ? "transaction" : `nonce ${countOf(nonce)}`;
  return [
    lane === null ? null : h("span", lane),
    txId !== null ? h("a.name", { href: toTransaction(txId) }, name) : nonce !== null ? h("span", name) : null,
    chainId === null ? null : h("span", `chain ${chainId}`),
    nodeId === null ? null : h("a", { href: linkTo(["cluster"]) }, said(nodeId, 60)),
    endpoint === null ? null : h("span", said(endpoint, 80)),
    subscriber === undefined ? null : h("a.name", { href: linkTo(["webhooks"]) }, said(subscriber, 64)),
    signatureId === undefined ? null : h("a.name", { href: toSignature(signatureId) }, "the message"),
  ];
}
