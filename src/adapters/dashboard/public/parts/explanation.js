import { callApi } from "../api.js";
import { h } from "../dom.js";
import { wordsOf } from "../formats.js";
import { toTransaction } from "../routes.js";
import { progressOf } from "../stages.js";
import { world } from "../world.js";
import { ordersOf } from "./actions.js";
import { orderButton } from "./order-dialog.js";
import { age, said } from "./words.js";

/** An explanation asks the chain. It is asked for again where something changed, and else this seldom. */
const EXPLAINED_FOR_MS = 15_000;
let last = null;

/** `state`: what it depends on, as far as the page sees it; what needs attention anywhere does, too. */
export async function explainedOf(txId, state, signal) {
  const key = JSON.stringify([txId, state]);
  const revision = world.attention?.revision;
  // Nothing changed by the page's being told for the first time.
  const isSame = last?.key === key && (last.revision ?? revision) === (revision ?? last.revision);
  if (isSame && Date.now() - last.atMs < EXPLAINED_FOR_MS) {
    last.revision ??= revision;
    return last.explained;
  }
  const explained = await callApi(`/tx/${encodeURIComponent(txId)}/explain`, { signal });
  last = { key, revision, atMs: Date.now(), explained };
  return explained;
}

/** Why it is not over yet: one sentence, its reasons, and what helps as buttons. */
export function explanation(explained, transaction, { baseFee, refresh }) {
  const { summary, causes, blockedBy, help } = explained;
  const orders = ordersOf(explained);
  const isBlocked = blockedBy?.txId !== undefined && blockedBy.txId !== transaction.txId;
  return h(
    "section",
    { class: `card explain ${progressOf(transaction).mood}`, "aria-label": "Why" },
    h("p", { class: "sentence" }, said(summary, 600)),
    causes.length < 2 ? null : h("ul", { class: "causes" }, causes.map(cause)),
    words(help, orders),
    h(
      "div",
      { class: "buttons" },
      isBlocked
        ? h("a", { class: "button", href: toTransaction(blockedBy.txId) }, `Look at nonce ${blockedBy.nonce}`)
        : null,
      orders.map((order) => orderButton(order, { transaction, baseFee }, refresh)),
    ),
  );
}

function cause({ code, text, since }) {
  return h(
    "li",
    {},
    h("span", { class: "code" }, wordsOf(code)),
    " ",
    said(text),
    since === undefined ? null : [" ", age(since)],
  );
}

/** What helps and has no button: said in words. */
function words(help, orders) {
  const pressed = new Set(orders.map(({ code }) => code));
  const unpressed = help.filter(({ code }) => !pressed.has(code) && code !== "LOOK_AT_BLOCKER");
  return unpressed.length === 0
    ? null
    : h(
        "ul",
        { class: "help" },
        unpressed.map(({ text }) => h("li", {}, said(text))),
      );
}
