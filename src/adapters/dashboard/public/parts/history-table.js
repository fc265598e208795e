/**
 * The strip as a table, for people who read it by keyboard, screen reader or copy. Each row links to its transactions.
 *
 * @import { Columns, History } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { countOf, durationOf, minuteOf, wordsOf, zoneName } from "../formats.js";
import { cell, ether, gwei, quiet, table } from "./words.js";

/** True while the table is open; its rows are drawn only then. */
let isOpen = false;

/**
 * @param {History} history
 * @param {History} fees
 * @param {(from: number, to: number) => string} stretch
 */
export function historyTable(history, fees, stretch) {
  const ontoggle = (/** @type {{ readonly target: HTMLDetailsElement }} */ { target }) => {
    if (isOpen === target.open) return;
    isOpen = target.open;
    dispatchEvent(new Event("redraw"));
  };
  return h(
    "details",
    { ontoggle, open: isOpen },
    h("summary", "As a table"),
    isOpen ? rowsOf(history, fees, stretch) : null,
  );
}

/**
 * @param {History} history
 * @param {History} fees
 * @param {(from: number, to: number) => string} stretch
 */
function rowsOf({ buckets, stepSeconds }, fees, stretch) {
  const priced = new Map(fees.buckets.map((bucket) => [bucket.at, bucket]));
  /** @type {Columns} */
  const columns = [
    [`Created, ${zoneName()}`],
    ["Created", "right"],
    ["Final", "right"],
    ["Failed", "right"],
    ["p50", "right wide"],
    ["p95", "right wide"],
    ["Base fee, gwei", "right wide"],
    ["Offered", "right wide"],
    ["Fees, ether", "right"],
    ["Troubles", "grow wide"],
  ];
  const rows = buckets.toReversed().map(({ at, created, completed, failed, finalityMs, fees: paid, troubles }) => {
    const { baseFee = null, offered = null } = priced.get(at) ?? {};
    const from = Date.parse(at);
    return h(
      "tr",
      { key: at },
      cell("", h("a", { href: stretch(from, from + stepSeconds * 1_000) }, minuteOf(at))),
      cell("right mono", countOf(created)),
      cell("right mono", countOf(completed)),
      cell("right mono", failed === 0 ? quiet("0") : countOf(failed)),
      cell("right wide", finalityMs === null ? quiet("–") : durationOf(finalityMs.p50)),
      cell("right wide", finalityMs === null ? quiet("–") : durationOf(finalityMs.p95)),
      cell("right wide mono", baseFee === null ? quiet("–") : gwei(baseFee.avg)),
      cell("right wide mono", offered === null ? quiet("–") : gwei(offered.avg)),
      cell("right mono", ether(paid)),
      cell("grow wide", troubles.map(({ code, count }) => `${wordsOf(code)} ${countOf(count)}`).join(", ")),
    );
  });
  return table("History", columns, rows);
}
