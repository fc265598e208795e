/** @import { Columns, Transaction } from "../../page-types.ts" */
import { h } from "../dom.js";
import { countOf, shortHex } from "../formats.js";
import { fenceOf, stateOf } from "../stages.js";
import { approvalLine, isAwaiting } from "./approval.js";
import { age, cell, chainName, laneLink, quiet, table, transactionLink } from "./words.js";

/** @type {Columns} */
const COLUMNS = [
  ["State", "state-cell"],
  ["Transaction", "grow"],
  ["Stage", "wide"],
  ["Nonce", "right mid"],
  ["Signer", "wide"],
  ["Hash", "wide"],
  ["Attempts", "right wide"],
  ["Created", "right"],
];

/**
 * Table of transactions. `isNarrow`: a narrow table for one lane, without the signer's column.
 *
 * @param {string} caption
 * @param {readonly Transaction[]} items
 */
export function transactionTable(caption, items, isNarrow = false) {
  return h("div", { class: isNarrow ? "narrow" : null }, table(caption, COLUMNS, items.map(row)));
}

/** @param {Transaction} transaction */
function row(transaction) {
  const { txId, chainId, signer, nonce, txHash, attempts, createdAt, heldSince } = transaction;
  return h(
    "tr",
    { key: txId, "data-tx": txId },
    cell("state-cell", stateOf(transaction), heldSince !== null && h("span.tag", "held")),
    cell("grow", transactionLink(transaction), isAwaiting(transaction) ? approvalLine(transaction) : null),
    cell("wide", fenceOf(transaction)),
    cell("right mono mid", nonce === null ? quiet("none") : countOf(nonce)),
    cell("wide", laneLink(chainId, signer), " ", chainName(chainId)),
    cell("wide mono", txHash === null ? quiet("none yet") : h("span", { title: txHash }, shortHex(txHash))),
    cell("right wide mono", attempts.length === 0 ? quiet("0") : countOf(attempts.length)),
    cell("right", age(createdAt)),
  );
}
