/** @import { Explanation, Transaction } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { wordsOf } from "../formats.js";
import { toTransaction } from "../routes.js";
import { progressOf } from "../stages.js";
import { world } from "../world.js";
import { actionsOf } from "./actions.js";
import { actionButtons, withheld } from "./scopes.js";
import { age, said } from "./words.js";

/**
 * Reload interval of an explanation if nothing changed. Explanations call the chain, so they are not loaded at every
 * poll.
 */
const EXPLAINED_FOR_MS = 15_000;
/** @type {{ readonly key: string, revision: string | undefined, readonly atMs: number, readonly explained: Explanation } | null} */
let last = null;

/**
 * Loads the explanation of a transaction. The explanation depends on the list of problems and on `state`, the
 * transaction's visible state.
 *
 * @param {string} txId
 * @param {unknown} state
 * @param {AbortSignal} signal
 */
export async function explainedOf(txId, state, signal) {
  const key = JSON.stringify([txId, state]);
  const revision = world.attention?.revision;
  // The list of problems has a revision number. If no revision was known before, the first known one does not count as
  // a change.
  const isSame = last?.key === key && (last.revision ?? revision) === (revision ?? last.revision);
  if (last !== null && isSame && Date.now() - last.atMs < EXPLAINED_FOR_MS) {
    last.revision ??= revision;
    return last.explained;
  }
  const explained = await readApi("/tx/{txId}/explain", { params: { txId }, signal });
  last = { key, revision, atMs: Date.now(), explained };
  return explained;
}

/**
 * Explains why a transaction is not final: one sentence, its causes, and actions as buttons.
 *
 * @param {Explanation} explained
 * @param {Transaction} transaction
 * @param {{ readonly baseFee: string | null, readonly refresh: () => void }} context
 */
export function explanation(explained, transaction, { baseFee, refresh }) {
  const { summary, causes, blockedBy, help } = explained;
  const actions = actionsOf(explained);
  const blocker = blockedBy?.txId === transaction.txId ? undefined : blockedBy?.txId;
  return h(
    "section",
    { class: `card explain ${progressOf(transaction).mood}`, "aria-label": "Why" },
    h("p.sentence", said(summary, 600)),
    causes.length >= 2 && h("ul.causes", causes.map(cause)),
    words(help, actions),
    h(
      "div.buttons",
      blocker === undefined
        ? null
        : h("a.button", { href: toTransaction(blocker) }, `Look at nonce ${blockedBy?.nonce}`),
      actionButtons(actions, { transaction, baseFee }, refresh),
    ),
    withheld(actions, { transaction }),
  );
}

/** @param {Explanation["causes"][number]} cause */
function cause({ code, text, since }) {
  return h("li", h("span.code", wordsOf(code)), " ", said(text), since !== undefined && [" ", age(since)]);
}

/**
 * Shows advice that has no matching action, as text.
 *
 * @param {Explanation["help"]} help
 * @param {readonly { readonly code: string }[]} actions
 */
function words(help, actions) {
  const pressed = new Set(actions.map(({ code }) => code));
  const unpressed = help.filter(({ code }) => !pressed.has(code) && code !== "LOOK_AT_BLOCKER");
  return unpressed.length === 0
    ? null
    : h(
        "ul.help",
        unpressed.map(({ text }) => h("li", said(text))),
      );
}
