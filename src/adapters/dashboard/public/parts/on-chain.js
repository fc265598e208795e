/**
 * Logs and revert reason of a mined transaction, loaded on request. Their content comes from contracts and endpoints,
 * so it is shown as plain text, within the API's limits.
 *
 * @import { Logs, Transaction } from "../../page-types.ts"
 */
import { failureOf, readApi } from "../api.js";
import { h } from "../dom.js";
import { plural } from "../formats.js";
import { age, code, copyButton, empty, explored, quiet, said, section } from "./words.js";

/**
 * Loaded logs and revert reasons, cached by transaction and block, because a reorg changes them.
 *
 * @typedef {{ readonly shown?: Logs | undefined, readonly isAsking?: boolean, readonly problem?: string | undefined }} Looked
 * @type {Map<string, Looked>}
 */
const looks = new Map();
const MOST_KEPT = 20;

/** @type {Readonly<Record<string, string>>} */
const UNSHOWN = {
  unmined: "It is in no block any more.",
  unknown: "The endpoint that was asked has no receipt of it. It may be behind: ask again.",
  differs:
    "The endpoint that was asked shows it in another block than the node knows: a reorg is under way, or one of them is wrong.",
  silent: "No endpoint answered in time, or with something of use.",
};

/** @param {Transaction} transaction */
export function onChain({ txId, chainId, receipt }) {
  if (receipt === null) return null;
  const key = `${txId}${receipt.blockHash}`;
  const look = looks.get(key);
  return section(
    receipt.status === "success" ? "Logs" : "Why it reverted",
    { name: "on-chain", aside: look?.shown === undefined ? null : ["from the chain ", age(look.shown.askedAt)] },
    look?.shown === undefined ? null : shown(look.shown, chainId, receipt),
    look?.problem === undefined ? null : h("p.result.bad", { role: "alert" }, look.problem),
    h(
      "div.buttons",
      h(
        "button",
        { type: "button", disabled: look?.isAsking === true, onclick: () => ask(key, txId) },
        look?.isAsking === true ? "Asking…" : look?.shown === undefined ? "Ask the chain" : "Ask again",
      ),
      look === undefined && quiet("not kept by the node: one question to an endpoint"),
    ),
  );
}

/**
 * @param {string} key
 * @param {string} txId
 */
async function ask(key, txId) {
  const before = looks.get(key);
  keep(key, { ...before, isAsking: true, problem: undefined });
  try {
    const { onChain: answer } = await readApi("/tx/{txId}", { params: { txId }, query: { include: "logs" } });
    keep(key, { shown: answer });
  } catch (error) {
    keep(key, { ...before, problem: failureOf(error).message });
  }
}

/**
 * @param {string} key
 * @param {Looked} look
 */
function keep(key, look) {
  looks.delete(key);
  looks.set(key, look);
  const [oldest] = looks.keys();
  if (looks.size > MOST_KEPT && oldest !== undefined) looks.delete(oldest);
  dispatchEvent(new Event("redraw"));
}

/**
 * @param {Logs} logs
 * @param {number} chainId
 * @param {NonNullable<Transaction["receipt"]>} receipt
 */
function shown({ kind, logs, more, revert }, chainId, { status }) {
  if (kind !== "shown") return empty(UNSHOWN[kind] ?? kind);
  return [
    status === "success" ? null : reason(revert),
    logs.length === 0 && status === "success" ? empty("It left no logs.") : null,
    h(
      "ol.logs",
      logs.map((log, index) => h("li", { key: index }, entry(log, chainId))),
    ),
    more === 0 ? null : empty(`and ${plural(more, "log")} more`),
  ];
}

/** @param {Logs["revert"]} revert */
function reason(revert) {
  if (revert === null)
    return empty(
      "Called again on the state before its block it does not revert: what stood before it in the block was why.",
    );
  const { name, message, data } = revert;
  return [
    h("p.bad", said(message ?? name ?? "An error of the contract's own.", 600)),
    data === "0x" ? null : bytes("Revert data", data, (data.length - 2) / 2),
    h("p.quiet", "By calling it again on the state before its block."),
  ];
}

/**
 * @param {Logs["logs"][number]} log
 * @param {number} chainId
 */
function entry({ address, topics, data, dataLength, event }, chainId) {
  const where = h("p.quiet", explored(chainId, "address", address, code(address)));
  if (event !== null) return [h("b", said(event.name, 60)), args(event.args), where];
  return [
    h("b", "An event of its own"),
    args(topics.map((value, index) => ({ name: `topic ${index}`, value }))),
    dataLength === 0 ? null : bytes("Data", data, dataLength),
    where,
  ];
}

/** @param {readonly { readonly name: string, readonly value: string }[]} list */
function args(list) {
  return h(
    "ul.args",
    list.map(({ name, value }) => h("li", quiet(said(name, 60), " "), code(value))),
  );
}

/**
 * @param {string} what
 * @param {string} data
 * @param {number} length
 */
function bytes(what, data, length) {
  return h(
    "details",
    h("summary", `${what}, `, plural(length, "byte"), " ", code(data.slice(0, 10)), " ", copyButton(data, what)),
    h("pre.bytes", { tabindex: "0", "aria-label": what }, data),
  );
}
