/** @import { Columns, Transaction } from "../../page-types.ts" */
import { h } from "../dom.js";
import { countOf, plural, shortHex, visible } from "../formats.js";
import { fenceOf, stateOf } from "../stages.js";
import { approvalLine, isAwaiting } from "./approval.js";
import { age, cell, chainName, ether, laneLink, quiet, receiver, said, table, transactionLink } from "./words.js";

/** @type {Columns} */
const COLUMNS = [
  ["State", "state-cell"],
  ["Transaction", "grow"],
  ["To", "mid"],
  ["Ether", "right"],
  ["Call", "wide"],
  ["Stage", "wide widest"],
  ["Nonce", "right mid"],
  ["Signer", "wide"],
  ["Created", "right"],
];

/**
 * Table of transactions. `isNarrow`: a narrow table for one lane, without the signer's column. `hasTotals`: with a row
 * of the sums of this page.
 *
 * @param {string} caption
 * @param {readonly Transaction[]} items
 * @param {{ readonly isNarrow?: boolean, readonly hasTotals?: boolean }} [options]
 */
export function transactionTable(caption, items, { isNarrow = false, hasTotals = false } = {}) {
  const foot = hasTotals ? h("tfoot", totalsByChain(items).map(totalRow)) : null;
  return h("div", { class: isNarrow ? "narrow" : null }, table(caption, COLUMNS, items.map(row), foot));
}

/** @param {Transaction} transaction */
function row(transaction) {
  const { txId, chainId, signer, nonce, payload, createdAt, heldSince } = transaction;
  return h(
    "tr",
    { key: txId, "data-tx": txId },
    cell("state-cell", stateOf(transaction), heldSince !== null && h("span.tag", "held")),
    cell("grow", transactionLink(transaction), isAwaiting(transaction) ? approvalLine(transaction) : null),
    cell("mid", receiver(payload.to)),
    cell("right mono", payload.value === "0" ? quiet("0") : ether(payload.value)),
    cell("wide call", callOf(transaction)),
    cell("wide widest", fenceOf(transaction)),
    cell("right mono mid", nonce === null ? quiet("none") : countOf(nonce)),
    cell("wide", laneLink(chainId, signer), " ", chainName(chainId)),
    cell("right", age(createdAt)),
  );
}

const MOST_ARGUMENT = 14;

/**
 * The call of a payload in words if it is known, else its selector.
 *
 * @param {Transaction} transaction
 */
function callOf({ payload: { data }, decoded }) {
  if (data === "0x") return quiet("–");
  if (decoded === undefined)
    return h("code.quiet", { title: `${plural((data.length - 2) / 2, "byte")} of data` }, data.slice(0, 10));
  const { contract, name, args } = decoded;
  const full = `${contract === null ? "" : `${contract}.`}${name}(${args.map((arg) => `${arg.name} ${arg.value}`).join(", ")})`;
  const short = args.map(({ value }) =>
    value.startsWith("0x") ? shortHex(value) : value.length > MOST_ARGUMENT ? "…" : value,
  );
  return h("span", { title: visible(full).slice(0, 500) }, said(name, 40), quiet("(", said(short.join(", "), 60), ")"));
}

/**
 * Fee that a transaction has paid, in wei; null if it is not mined or the price is not known.
 *
 * @param {Pick<Transaction, "receipt">} transaction
 */
export function feeOf({ receipt }) {
  if (receipt === null || receipt.effectiveGasPrice === null) return null;
  return BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice) + BigInt(receipt.besideGas ?? 0);
}

/**
 * Sums of a page of the list, by chain: the ether of two chains is not added up.
 *
 * @param {readonly Transaction[]} items
 */
export function totalsByChain(items) {
  /** @type {Map<number, { chainId: number, count: number, value: bigint, fees: bigint }>} */
  const sums = new Map();
  for (const transaction of items) {
    const { chainId, payload } = transaction;
    const sum = sums.get(chainId) ?? { chainId, count: 0, value: 0n, fees: 0n };
    sum.count += 1;
    sum.value += BigInt(payload.value);
    sum.fees += feeOf(transaction) ?? 0n;
    sums.set(chainId, sum);
  }
  return [...sums.values()];
}

/** @param {ReturnType<typeof totalsByChain>[number]} total */
function totalRow({ chainId, count, value, fees }, index = 0) {
  return h(
    "tr",
    { key: chainId },
    cell("", index === 0 ? "This page" : ""),
    cell(
      "grow",
      plural(count, "transaction"),
      " ",
      chainName(chainId),
      quiet(" · fees "),
      ether(String(fees)),
      quiet(" ether"),
    ),
    cell("mid"),
    cell("right mono", ether(String(value))),
    ...["wide", "wide widest", "mid", "wide", ""].map((kind) => cell(kind)),
  );
}
