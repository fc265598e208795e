/**
 * Small elements used by all pages.
 *
 * @import { Child, Columns } from "../../page-types.ts"
 */
import { byId, h } from "../dom.js";
import {
  ageOf,
  countOf,
  cut,
  etherOf,
  exactOf,
  GWEI_DIGITS,
  gweiOf,
  momentOf,
  shortHex,
  shortId,
  visible,
} from "../formats.js";
import { toLane, toTransaction } from "../routes.js";
import { chainOf, nameOf } from "../world.js";

/**
 * Shows a foreign text (of a caller, contract or chain), isolated so that its writing direction does not affect the
 * text around it.
 *
 * @param {string} text
 * @param {number} [most]
 */
export function said(text, most) {
  return h("bdi.said", cut(visible(text), most));
}

/**
 * Shows a foreign text with its line breaks, isolated so that its writing direction does not affect the text around it.
 *
 * @param {string} text
 * @param {number} [most]
 */
export function saidLines(text, most) {
  return h("bdi", cut(text.split("\n").map(visible).join("\n"), most));
}

/**
 * Shows an address, hash or argument. An argument may be a text that a contract or caller chose.
 *
 * @param {string} text
 */
export function code(text) {
  return h("code", cut(visible(text)));
}

/**
 * Shows a shortened text with the full text as its title.
 *
 * @param {string} text
 */
export function hex(text) {
  return h("code", { title: text }, shortHex(text));
}

/**
 * Shows an amount in ether, shortened to four decimals. The exact figure is its title, and a click or a copy of the
 * text copies that figure.
 *
 * @param {string} wei
 */
export function ether(wei) {
  return amount(etherOf(wei), exactOf(wei), `${exactOf(wei)} ether, ${wei} wei`);
}

/**
 * Shows a price in gwei, shortened to four digits, with the exact figure as `ether` has it.
 *
 * @param {string} wei
 */
export function gwei(wei) {
  return amount(gweiOf(wei), exactOf(wei, GWEI_DIGITS), `${exactOf(wei, GWEI_DIGITS)} gwei, ${wei} wei`);
}

/**
 * @param {string} short
 * @param {string} exact
 * @param {string} title
 */
function amount(short, exact, title) {
  return h("data.amount", { value: exact, title, onclick: () => void copyExact(exact) }, short);
}

/** @param {string} exact */
async function copyExact(exact) {
  await navigator.clipboard?.writeText(exact);
  say(`Copied ${exact}`);
}

/** Copies the exact figure if the copied text is one shortened amount. */
export function copyExactAmounts() {
  document.addEventListener("copy", (event) => {
    const { anchorNode, focusNode } = getSelection() ?? {};
    const at = amountAround(anchorNode);
    if (at === null || at !== amountAround(focusNode)) return;
    event.clipboardData?.setData("text/plain", at.getAttribute("value") ?? "");
    event.preventDefault();
  });
}

/** @param {Node | null | undefined} node */
function amountAround(node) {
  const element = node instanceof Element ? node : node?.parentElement;
  return element?.closest("data.amount") ?? null;
}

const SHOWN_MS = 6_000;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let forgetting;

/**
 * Shows a message at the bottom of the page for a while.
 *
 * @param {string} text
 */
export function say(text) {
  const toast = byId("toast");
  toast.textContent = text;
  clearTimeout(forgetting);
  forgetting = setTimeout(() => {
    toast.textContent = "";
  }, SHOWN_MS);
}

/** @param {Child[]} children */
export function quiet(...children) {
  return h("span.quiet", children);
}

/**
 * Shows the time since `iso`, updated live.
 *
 * @param {string} iso
 */
export function age(iso, after = " ago") {
  const text = `${ageOf(iso, Date.now())}${after}`;
  return h("time", { datetime: iso, title: momentOf(iso), "data-age": after }, text);
}

/**
 * Shows a live countdown that stops at zero.
 *
 * @param {string} iso
 */
export function left(iso) {
  return h("time", { datetime: iso, title: momentOf(iso), "data-left": true }, leftOf(iso, Date.now()));
}

/**
 * @param {string} iso
 * @param {number} now
 */
function leftOf(iso, now) {
  const ms = Date.parse(iso) - now;
  return ms <= 0 ? "over" : `${Math.ceil(ms / 1_000)} s left`;
}

/** Updates the live ages and countdowns, without requests to the node. */
export function tick() {
  const now = Date.now();
  for (const time of times("time[data-age]")) {
    time.textContent = `${ageOf(time.dateTime, now)}${time.dataset.age}`;
  }
  for (const time of times("time[data-left]")) time.textContent = leftOf(time.dateTime, now);
}

/**
 * @param {string} selector
 * @returns {NodeListOf<HTMLTimeElement>}
 */
function times(selector) {
  return document.querySelectorAll(selector);
}

/**
 * Link to a transaction, labelled with its request id, or with its shortened id if it has none.
 *
 * @param {{ readonly txId: string, readonly requestId?: string | null }} transaction
 */
export function transactionLink({ txId, requestId }) {
  const name = requestId === null || requestId === undefined ? shortId(txId) : visible(requestId);
  return h("a.name", { href: toTransaction(txId), title: txId }, h("bdi", cut(name, 80)));
}

/**
 * @param {number} chainId
 * @param {string} signer
 */
export function laneLink(chainId, signer) {
  const name = nameOf(signer);
  const link = { href: toLane(chainId, signer), title: name === null ? signer : `${name}, ${signer}` };
  return name === null ? h("a.hex", link, shortHex(signer)) : h("a.named", link, h("bdi", cut(visible(name), 40)));
}

/**
 * Shows a receiver's address, shortened, by its name if it is one of the signers.
 *
 * @param {string | null} to
 */
export function receiver(to) {
  if (to === null) return quiet("new contract");
  const name = nameOf(to);
  return name === null ? h("code", { title: to }, shortHex(to)) : h("bdi", { title: to }, cut(visible(name), 40));
}

/** @param {number} chainId */
export function chainName(chainId) {
  return h("span.chain", `chain ${chainId}`);
}

/**
 * A link to the chain's block explorer, if one is known.
 *
 * @param {number} chainId
 * @param {"tx" | "address" | "block"} kind
 * @param {string} id
 * @param {Child} shown
 */
export function explored(chainId, kind, id, shown) {
  const base = chainOf(chainId)?.explorer ?? null;
  if (base === null) return shown;
  const href = `${base.replace(/\/+$/, "")}/${kind}/${encodeURIComponent(id)}`;
  const label = `Block explorer: ${kind} ${shortHex(String(id))}`;
  return [
    shown,
    " ",
    h("a.out", { href, target: "_blank", rel: "noreferrer", "aria-label": label, title: label }, "↗"),
  ];
}

/**
 * A list of names and values; entries with the value null are left out.
 *
 * @param {Readonly<Record<string, Child>>} values
 */
export function facts(values) {
  const known = Object.entries(values).filter(([, value]) => value !== null);
  return h(
    "dl.facts",
    known.map(([name, value]) => h("div", h("dt", name), h("dd", value))),
  );
}

/**
 * A table. `columns`: [heading, class]. A row with a target contains a link; the keys `j` and `k` move from link to
 * link.
 *
 * @param {string} caption
 * @param {Columns} columns
 * @param {Child} rows
 * @param {Child} [foot]
 */
export function table(caption, columns, rows, foot = null) {
  const head = columns.map(([name, kind]) => h("th", { scope: "col", class: kind }, name));
  return h(
    "div.scroll",
    // Make a wide table scroll separately, and focusable so that the arrow keys scroll it.
    { tabindex: "0", role: "group", "aria-label": caption },
    h("table", h("caption.unseen", caption), h("thead", h("tr", head)), h("tbody", rows), foot),
  );
}

/**
 * @param {string} kind
 * @param {Child[]} children
 */
export function cell(kind, ...children) {
  return h("td", { class: kind }, children);
}

/**
 * @param {string} title
 * @param {{ readonly aside?: Child, readonly name?: string | null }} [options]
 * @param {Child[]} children
 */
export function section(title, { aside = null, name = null } = {}, ...children) {
  const id = `about-${(name ?? title).toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return h(
    "section.card",
    { "aria-labelledby": id, key: id },
    h("header", h("h2", { id }, title), aside !== null && h("div.aside", aside)),
    children,
  );
}

/** @param {Child[]} children */
export function empty(...children) {
  return h("p.empty", children);
}

/**
 * @param {number} value
 * @param {string | null} [unit]
 */
export function number(value, unit = null) {
  return [h("b", countOf(value)), unit === null ? null : ` ${unit}`];
}

/**
 * A copy button; its colour confirms the copy.
 *
 * @param {string} text
 * @param {string} what
 */
export function copyButton(text, what) {
  /** @param {{ readonly currentTarget: HTMLElement }} event */
  const copy = async ({ currentTarget }) => {
    await navigator.clipboard?.writeText(text);
    currentTarget.classList.add("copied");
  };
  return h(
    "button.icon.copy",
    { type: "button", "aria-label": `Copy ${what}`, title: `Copy ${what}`, onclick: copy },
    h(
      "svg",
      { viewBox: "0 0 16 16", "aria-hidden": "true" },
      h("path", { d: "M5 2h8v9h-2v3H3V5h2zM6.2 3.2V5H11v4.8h.8V3.2zM4.2 6.2v6.6h5.6V6.2z" }),
    ),
  );
}
