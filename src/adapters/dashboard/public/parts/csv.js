/**
 * Download of a list as CSV: all its pages, up to a limit.
 *
 * @import { AnswerAt, Query, QueryAt, Transaction } from "../../page-types.ts"
 */
import { failureOf, readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf } from "../formats.js";
import { nameOf } from "../world.js";
import { feeOf } from "./transaction-rows.js";
import { say } from "./words.js";

const PAGE = 1_000;
const MOST_ROWS = 10_000;

/** @type {readonly (readonly [name: string, value: (transaction: Transaction) => unknown])[]} */
const COLUMNS = [
  ["createdAt", ({ createdAt }) => createdAt],
  ["txId", ({ txId }) => txId],
  ["requestId", ({ requestId }) => requestId],
  ["key", ({ owner }) => owner],
  ["chainId", ({ chainId }) => chainId],
  ["signer", ({ signer }) => signer],
  ["signerName", ({ signer }) => nameOf(signer)],
  ["nonce", ({ nonce }) => nonce],
  ["state", ({ state }) => state],
  ["subState", ({ subState }) => subState],
  ["to", ({ payload }) => payload.to],
  ["valueWei", ({ payload }) => payload.value],
  ["call", ({ decoded }) => decoded?.name],
  ["txHash", ({ txHash }) => txHash],
  ["feeWei", feeOf],
  ["confirmedAt", ({ confirmedAt }) => confirmedAt],
];

/** @param {readonly Transaction[]} items */
export function csvOf(items) {
  const lines = [COLUMNS.map(([name]) => name), ...items.map((item) => COLUMNS.map(([, value]) => value(item)))];
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("");
}

/**
 * Quotes a cell (RFC 4180). Spreadsheets run a text that begins like a formula, so such a text gets an apostrophe.
 *
 * @param {unknown} value
 */
function quoted(value) {
  const text = String(value ?? "");
  const isFormula = typeof value === "string" && /^[=+\-@\t\r\n＝＋－＠]/.test(text);
  return `"${(isFormula ? `'${text}` : text).replaceAll('"', '""')}"`;
}

let isBusy = false;

/**
 * Button that downloads the list of `query`.
 *
 * @param {Query<QueryAt<"/tx">>} query
 */
export function csvButton(query) {
  const title = `Download up to ${countOf(MOST_ROWS)} rows. For all: fencepost export.`;
  return h(
    "button",
    { type: "button", title, disabled: isBusy, onclick: () => void download(query) },
    isBusy ? "Reading…" : "CSV",
  );
}

/** @param {Query<QueryAt<"/tx">>} query */
async function download(query) {
  setBusy(true);
  try {
    const { items, isCut } = await readAll(query);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csvOf(items)], { type: "text/csv;charset=utf-8" }));
    link.download = `transactions-${new Date().toISOString().slice(0, 16).replaceAll(":", "")}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
    say(`${countOf(items.length)} rows${isCut ? ", and there are more: use fencepost export" : ""}.`);
  } catch (error) {
    say(`No file was made: ${failureOf(error).message}.`);
  } finally {
    setBusy(false);
  }
}

/** @param {boolean} busy */
function setBusy(busy) {
  isBusy = busy;
  dispatchEvent(new Event("redraw"));
}

/** @param {Query<QueryAt<"/tx">>} query */
async function readAll(query) {
  /** @type {Transaction[]} */
  const items = [];
  /** @type {string | null | undefined} */
  let after;
  do {
    /** @type {AnswerAt<"/tx">} */
    const page = await readApi("/tx", { query: { ...query, after, limit: PAGE } });
    items.push(...page.items);
    after = page.next;
  } while (after !== null && items.length < MOST_ROWS);
  return { items, isCut: after !== null };
}
