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
import { messageFacts, messageShown } from "./signed-message.js";
import { WEBHOOK_FIELDS, webhookBody } from "./webhook-fields.js";
import { copyButton, say } from "./words.js";

const AMOUNT = "[0-9]+([.][0-9]{1,18})?";
const GWEI = "[0-9]+([.][0-9]{1,9})?";

/**
 * The open dialog, or null. Only one can be open at a time. `said`: the user's input by field. `secret`: of the answer,
 * to be shown once.
 *
 * @typedef {{
 *   readonly action: Action, about: ActionSubject, readonly onDone: () => void, readonly key: string,
 *   said: Readonly<Record<string, string | undefined>>, problem: string | null, isBusy: boolean, secret: string | null,
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
  open = {
    action,
    about,
    onDone,
    key: `dashboard-${randomId()}`,
    said: {},
    problem: null,
    isBusy: false,
    secret: null,
  };
  show();
  const dialog = dialogById("action-dialog");
  // However it is closed, no secret stays in the page.
  dialog.onclose = () => {
    open = null;
    dialog.replaceChildren();
  };
  dialog.showModal();
  if (about.transaction === undefined && about.signature === undefined) void readUp(open);
}

/**
 * Loads a transaction that is not on the page, so that the preview can show the action's effect on the chain.
 *
 * @param {Open} mine
 */
async function readUp(mine) {
  const [, signatureId] = /^\/api\/v1\/signatures\/([^/]+)\//.exec(mine.action.path) ?? [];
  if (signatureId !== undefined) return readMessage(mine, signatureId);
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
 * @param {Open} mine
 * @param {string} signatureId
 */
async function readMessage(mine, signatureId) {
  const signature = await readApi("/signatures/{signatureId}", { params: { signatureId } }).catch(() => null);
  if (open !== mine) return;
  mine.about = signature === null ? { isUnread: true } : { signature };
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

/** Actions that cannot be sent before the transaction or message to approve or reject is loaded. */
const FOUR_EYES = new Set(["approve", "reject", "signature.approve", "signature.reject"]);

/** @param {ActionSubject} about */
function judged({ transaction, signature, isUnread }) {
  if (signature !== undefined) return h("div.judged", messageFacts(signature), messageShown(signature));
  if (transaction !== undefined) return h("div.judged", approvalFacts(transaction));
  return isUnread === true
    ? h("p.notice.bad", "It could not be read, and cannot be decided from here. Close this and try again.")
    : h("p.quiet", "Reading what it is about…");
}

function show() {
  const mine = open;
  if (mine === null) return;
  const { action, about, problem, isBusy } = mine;
  if (mine.secret !== null) return draw(byId("action-dialog"), secretShown(mine.secret));
  const { what, fields = [], danger, hasNoReason } = meaningOf(action);
  const preview = previewOf(action, about);
  const decides = FOUR_EYES.has(wordOf(action));
  const isBlind = decides && about.transaction === undefined && about.signature === undefined;
  draw(
    byId("action-dialog"),
    h(
      "form",
      { key: mine.key, onsubmit: submit, oninput: note, method: "dialog" },
      h("h2", { id: "action-title" }, action.label),
      h("p", what),
      decides ? judged(about) : null,
      preview !== null && h("p.preview", h("b", "On the chain: "), preview),
      fields.map((field) => FIELDS[field](about.webhook)),
      hasNoReason === true ? null : reasonField(),
      h(
        "details",
        h("summary", "The request"),
        h("pre", { tabindex: "0", "aria-label": "The request" }, requestText(mine)),
      ),
      h("p.result.bad", { role: "alert" }, problem ?? ""),
      h(
        "div.buttons",
        h("button.plain", { type: "button", onclick: closeDialog }, "Back"),
        h(
          "button",
          { type: "submit", class: danger === true ? "danger solid" : "solid", disabled: isBusy || isBlind },
          isBusy ? "Sending…" : action.label,
        ),
      ),
    ),
  );
}

function reasonField() {
  const placeholder = "kept in the history, with the name of your key";
  return h(
    "label",
    "Reason ",
    h("textarea", { name: "reason", required: true, rows: "2", maxlength: "1000", placeholder }),
  );
}

/**
 * The secret of a webhook, which no node shows again.
 *
 * @param {string} secret
 */
function secretShown(secret) {
  return h(
    "div.stack",
    { key: "secret" },
    h("h2", { id: "action-title" }, "The secret, shown this once"),
    h("p", "Give it to the receiver, which verifies deliveries with it. It is stored nowhere; a lost one is rotated."),
    h("p.preview.secret", h("code", secret), " ", copyButton(secret, "the secret")),
    h("div.buttons", h("button.solid", { type: "button", onclick: closeDialog }, "I have kept it")),
  );
}

function closeDialog() {
  dialogById("action-dialog").close();
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
  ...WEBHOOK_FIELDS,
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
    ...(wordOf(action).startsWith("webhook.") ? webhookBody(said) : {}),
    ...(meaningOf(action).hasNoReason === true ? {} : { reason }),
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
    finish(mine, await sendApi({ method, path, body: bodyOf(mine), key: mine.key }));
  } catch (error) {
    const { status, message } = failureOf(error);
    mine.problem = status === undefined ? "The node did not answer. Try again: the action is performed once." : message;
  } finally {
    mine.isBusy = false;
    if (open === mine) show();
  }
}

/**
 * Closes the dialog. A secret in the answer is shown first; a test that the receiver did not take is a failure.
 *
 * @param {Open} mine
 * @param {unknown} answer
 */
function finish(mine, answer) {
  const { secret, delivered, reason } = Object(answer);
  mine.onDone();
  if (delivered === false) {
    mine.problem = `The receiver did not take it: ${reason}.`;
    return;
  }
  if (typeof secret === "string") {
    mine.secret = secret;
    return;
  }
  closeDialog();
  say(delivered === true ? `The receiver answered ${reason}.` : `${mine.action.label}: the node has accepted it.`);
}
