/**
 * Confirmation dialog of an action: the action's effect, its reason, the request to be sent, and a second confirmation.
 *
 * @import { Action, ActionSubject } from "../../page-types.ts"
 */
import { failureOf, randomId, readApi, sendApi } from "../api.js";
import { byId, dialogById, draw, h } from "../dom.js";
import { GWEI_DIGITS, weiOf } from "../formats.js";
import { chainOf } from "../world.js";
import { meaningOf, previewOf, wordOf } from "./actions.js";
import { approvalFacts } from "./approval.js";
import { say } from "./words.js";

const AMOUNT = "[0-9]+([.][0-9]{1,18})?";
const GWEI = "[0-9]+([.][0-9]{1,9})?";

/**
 * The open dialog, or null. Only one can be open at a time. `said`: the user's input by field.
 *
 * @typedef {{
 *   readonly action: Action, about: ActionSubject, readonly onDone: () => void, readonly key: string,
 *   said: Readonly<Record<string, string | undefined>>, problem: string | null, isBusy: boolean,
 * }} Open
 * @type {Open | null}
 */
let open = null;

/**
 * Opens the dialog. `about`: the transaction and current fees, for the preview. `onDone`: reloads the page.
 *
 * @param {Action} action
 * @param {ActionSubject} about
 * @param {() => void} onDone
 */
export function openAction(action, about, onDone) {
  // One idempotency key per dialog: a second click, or a repeat after a lost answer, is the same action.
  open = { action, about, onDone, key: `dashboard-${randomId()}`, said: {}, problem: null, isBusy: false };
  show();
  dialogById("action-dialog").showModal();
  if (about.transaction === undefined) void readUp(open);
}

/**
 * Loads a transaction that is not on the page, so that the preview can show the action's effect on the chain.
 *
 * @param {Open} mine
 */
async function readUp(mine) {
  const [, txId] = /^\/api\/v1\/tx\/([^/]+)\//.exec(mine.action.path) ?? [];
  if (txId === undefined) return;
  const transaction = await readApi("/tx/{txId}", { params: { txId } }).catch(() => null);
  if (open !== mine) return;
  if (transaction === null) {
    mine.about = { isUnread: true };
    show();
    return;
  }
  mine.about = { transaction, baseFee: chainOf(transaction.chainId)?.baseFee ?? null };
  show();
}

/**
 * @param {Action} action
 * @param {ActionSubject} about
 * @param {() => void} onDone
 */
export function actionButton(action, about, onDone) {
  const { danger } = meaningOf(action);
  const onclick = () => openAction(action, about, onDone);
  return h("button", { type: "button", class: danger === true ? "danger" : null, onclick }, action.label);
}

/** Actions that cannot be sent before the transaction to approve or reject is loaded. */
const FOUR_EYES = new Set(["approve", "reject"]);

/** @param {ActionSubject} about */
function judged({ transaction, isUnread }) {
  if (transaction !== undefined) return h("div.judged", approvalFacts(transaction));
  return isUnread === true
    ? h("p.notice.bad", "It could not be read, and cannot be decided from here. Close this and try again.")
    : h("p.quiet", "Reading what it is about…");
}

function show() {
  const mine = open;
  if (mine === null) return;
  const { action, about, problem, isBusy } = mine;
  const { what, fields = [], danger } = meaningOf(action);
  const preview = previewOf(action, about);
  const decides = FOUR_EYES.has(wordOf(action));
  const isBlind = decides && about.transaction === undefined;
  draw(
    byId("action-dialog"),
    h(
      "form",
      { key: mine.key, onsubmit: submit, oninput: note, method: "dialog" },
      h("h2", { id: "action-title" }, action.label),
      h("p", what),
      decides ? judged(about) : null,
      preview !== null && h("p.preview", h("b", "On the chain: "), preview),
      fields.map((field) => FIELDS[field]()),
      h(
        "label",
        "Reason ",
        h("textarea", {
          name: "reason",
          required: true,
          rows: "2",
          maxlength: "1000",
          placeholder: "kept in the history, with the name of your key",
        }),
      ),
      h(
        "details",
        h("summary", "The request"),
        h("pre", { tabindex: "0", "aria-label": "The request" }, requestText(mine)),
      ),
      h("p.result.bad", { role: "alert" }, problem ?? ""),
      h(
        "div.buttons",
        h("button.plain", { type: "button", onclick: () => dialogById("action-dialog").close() }, "Back"),
        h(
          "button",
          { type: "submit", class: danger === true ? "danger solid" : "solid", disabled: isBusy || isBlind },
          isBusy ? "Sending…" : action.label,
        ),
      ),
    ),
  );
}

/**
 * @param {string} name
 * @param {string} label
 * @param {Readonly<Record<string, unknown>>} attributes
 */
const input = (name, label, attributes) =>
  h("label", { key: name }, `${label} `, h("input", { name, spellcheck: "false", autocomplete: "off", ...attributes }));

/**
 * Input fields of the actions, each with its member of the request body. If a field is empty, the node chooses the
 * value.
 */
const FIELDS = {
  fees: () =>
    h(
      "div.pair",
      input("maxFee", "At most, gwei", { pattern: GWEI, inputmode: "decimal", placeholder: "market" }),
      input("tip", "Tip, gwei", { pattern: GWEI, inputmode: "decimal", placeholder: "market" }),
    ),
  payload: () => [
    input("to", "To", { required: true, pattern: "0x[0-9a-fA-F]{40}", title: "0x and 40 hex digits" }),
    input("ether", "Ether", { required: true, pattern: AMOUNT, inputmode: "decimal" }),
    input("data", "Data", { pattern: "0x([0-9a-fA-F]{2})*", placeholder: "0x" }),
  ],
  nonce: () =>
    input("nonce", "Down to nonce", { pattern: "[0-9]+", inputmode: "numeric", placeholder: "as far as it goes" }),
};

/** @param {{ readonly target: HTMLInputElement }} event */
function note(event) {
  if (open === null) return;
  open.said = { ...open.said, [event.target.name]: event.target.value.trim() };
  show();
}

/** @param {Open} dialog */
function bodyOf({ action, said }) {
  const { maxFee, tip, to, ether, data, nonce, reason = "" } = said;
  return {
    ...action.body,
    ...(filled(maxFee, GWEI) ? { maxFeePerGas: weiOf(maxFee, GWEI_DIGITS) } : {}),
    ...(filled(tip, GWEI) ? { maxPriorityFeePerGas: weiOf(tip, GWEI_DIGITS) } : {}),
    ...(to === undefined ? {} : { payload: payloadOf(to, ether, data) }),
    ...(filled(nonce, "[0-9]+") ? { nonce: Number(nonce) } : {}),
    reason,
  };
}

/**
 * @param {string | undefined} text
 * @param {string} pattern
 * @returns {text is string}
 */
function filled(text, pattern) {
  return text !== undefined && new RegExp(`^(?:${pattern})$`).test(text);
}

/**
 * @param {string} to
 * @param {string | undefined} ether
 * @param {string | undefined} data
 */
function payloadOf(to, ether, data) {
  return {
    to,
    value: filled(ether, AMOUNT) ? weiOf(ether) : "0",
    ...(data === undefined || data === "" ? {} : { data }),
  };
}

/** @param {Open} mine */
function requestText(mine) {
  const { method, path } = mine.action;
  return `${method} ${path}\nIdempotency-Key: ${mine.key}\n\n${JSON.stringify(bodyOf(mine), null, 2)}`;
}

/** @param {Event} event */
async function submit(event) {
  event.preventDefault();
  const mine = open;
  if (mine === null) return;
  mine.isBusy = true;
  mine.problem = null;
  show();
  try {
    const { method, path } = mine.action;
    await sendApi({ method, path, body: bodyOf(mine), key: mine.key });
    dialogById("action-dialog").close();
    say(`${mine.action.label}: the node has accepted it.`);
    mine.onDone();
  } catch (error) {
    const { status, message } = failureOf(error);
    mine.problem = status === undefined ? "The node did not answer. Try again: the action is performed once." : message;
  } finally {
    mine.isBusy = false;
    if (open === mine) show();
  }
}
