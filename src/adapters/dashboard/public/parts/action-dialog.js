/**
 * Confirmation dialog of an action: the action's effect, its reason, the request to be sent, and a second confirmation.
 */
import { callApi, randomId } from "../api.js";
import { byId, draw, h } from "../dom.js";
import { GWEI_DIGITS, weiOf } from "../formats.js";
import { chainOf } from "../world.js";
import { meaningOf, previewOf, wordOf } from "./actions.js";
import { approvalFacts } from "./approval.js";

const AMOUNT = "[0-9]+([.][0-9]{1,18})?";
const GWEI = "[0-9]+([.][0-9]{1,9})?";

/** The open dialog, or null. Only one can be open at a time. */
let open = null;

/** Opens the dialog. `about`: the transaction and current fees, for the preview. `onDone`: reloads the page. */
export function openAction(action, about, onDone) {
  // One idempotency key per dialog: a second click, or a repeat after a lost answer, is the same action.
  open = { action, about, onDone, key: `dashboard-${randomId()}`, said: {}, problem: null, isBusy: false };
  show();
  byId("action-dialog").showModal();
  if (about.transaction === undefined) void readUp(open);
}

/** Loads a transaction that is not on the page, so that the preview can show the action's effect on the chain. */
async function readUp(mine) {
  const [, txId] = /^\/api\/v1\/tx\/([^/]+)\//.exec(mine.action.path) ?? [];
  if (txId === undefined) return;
  const transaction = await callApi(`/tx/${txId}`).catch(() => null);
  if (open !== mine) return;
  if (transaction === null) {
    mine.about = { isUnread: true };
    show();
    return;
  }
  mine.about = { transaction, baseFee: chainOf(transaction.chainId)?.baseFee ?? null };
  show();
}

export function actionButton(action, about, onDone) {
  const { danger } = meaningOf(action);
  const onclick = () => openAction(action, about, onDone);
  return h("button", { type: "button", class: danger === true ? "danger" : null, onclick }, action.label);
}

/** Actions that cannot be sent before the transaction to approve or reject is loaded. */
const FOUR_EYES = new Set(["approve", "reject"]);

function judged({ transaction, isUnread }) {
  if (transaction !== undefined) return h("div.judged", approvalFacts(transaction));
  return isUnread === true
    ? h("p.notice.bad", "It could not be read, and cannot be decided from here. Close this and try again.")
    : h("p.quiet", "Reading what it is about…");
}

function show() {
  const { action, about, said, problem, isBusy } = open;
  const { what, fields = [], danger } = meaningOf(action);
  const preview = previewOf(action, about);
  const decides = FOUR_EYES.has(wordOf(action));
  const isBlind = decides && about.transaction === undefined;
  draw(
    byId("action-dialog"),
    h(
      "form",
      { key: open.key, onsubmit: submit, oninput: note, method: "dialog" },
      h("h2", { id: "action-title" }, action.label),
      h("p", what),
      decides ? judged(about) : null,
      preview !== null && h("p.preview", h("b", "On the chain: "), preview),
      fields.map((field) => FIELDS[field](said)),
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
        h("pre", { tabindex: "0", "aria-label": "The request" }, requestText()),
      ),
      h("p.result.bad", { role: "alert" }, problem ?? ""),
      h(
        "div.buttons",
        h("button.plain", { type: "button", onclick: () => byId("action-dialog").close() }, "Back"),
        h(
          "button",
          { type: "submit", class: danger === true ? "danger solid" : "solid", disabled: isBusy || isBlind },
          isBusy ? "Sending…" : action.label,
        ),
      ),
    ),
  );
}

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

function note(event) {
  open.said = { ...open.said, [event.target.name]: event.target.value.trim() };
  show();
}

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

function filled(text, pattern) {
  return text !== undefined && new RegExp(`^(?:${pattern})$`).test(text);
}

function payloadOf(to, ether, data) {
  return {
    to,
    value: filled(ether, AMOUNT) ? weiOf(ether) : "0",
    ...(data === undefined || data === "" ? {} : { data }),
  };
}

function requestText() {
  const { method, path } = open.action;
  return `${method} ${path}\nIdempotency-Key: ${open.key}\n\n${JSON.stringify(bodyOf(open), null, 2)}`;
}

async function submit(event) {
  event.preventDefault();
  const mine = open;
  mine.isBusy = true;
  mine.problem = null;
  show();
  try {
    const { method, path } = mine.action;
    await callApi(path.replace(/^\/api\/v1/, ""), {
      method,
      body: bodyOf(mine),
      headers: { "idempotency-key": mine.key },
    });
    byId("action-dialog").close();
    say(`${mine.action.label}: the node has accepted it.`);
    mine.onDone();
  } catch (error) {
    mine.problem =
      error.status === undefined ? "The node did not answer. Try again: the action is performed once." : error.message;
  } finally {
    mine.isBusy = false;
    if (open === mine) show();
  }
}

const SHOWN_MS = 6_000;
let forgetting;

/** Shows a message at the bottom of the page for a while. */
export function say(text) {
  const toast = byId("toast");
  toast.textContent = text;
  clearTimeout(forgetting);
  forgetting = setTimeout(() => {
    toast.textContent = "";
  }, SHOWN_MS);
}
