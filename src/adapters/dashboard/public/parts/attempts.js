/** @import { Attempt, Chain, Columns, Transaction } from "../../page-types.ts" */
import { h } from "../dom.js";
import { plural, timeOf } from "../formats.js";
import { cell, explored, gwei, hex, quiet, table } from "./words.js";

/** @type {Readonly<Record<string, string>>} */
const KINDS = {
  initial: "first",
  reprice: "dearer",
  cancel: "cancel",
  replace: "replacement",
  placeholder: "placeholder",
};

/**
 * Table of a transaction's attempts. Each row shows the attempt's fee beside the market's fee. The mined attempt is
 * marked.
 *
 * @param {Transaction} transaction
 * @param {Chain | null} market
 */
export function attemptsTable({ chainId, attempts, receipt }, market) {
  if (attempts.length === 0) return h("p.empty", "Nothing is signed yet.");
  const baseFee = market?.baseFee ?? null;
  const highest = Math.max(...attempts.map(capOf), Number(baseFee ?? 0), 1);
  const rows = attempts.map((attempt) => {
    const isMined = attempt.txHash !== null && attempt.txHash === receipt?.txHash;
    return h(
      "tr",
      { key: attempt.ordinal, class: isMined ? "mined" : null },
      cell("right mono", String(attempt.ordinal)),
      cell("", KINDS[attempt.kind] ?? attempt.kind, isMined ? h("span.tag.good", "mined") : null),
      cell(
        "mono",
        attempt.txHash === null ? quiet("not known") : explored(chainId, "tx", attempt.txHash, hex(attempt.txHash)),
      ),
      cell("fee", feeBar(attempt, highest, receipt === null ? baseFee : null)),
      cell("right mono", attempt.maxPriorityFeePerGas === undefined ? quiet("–") : gwei(attempt.maxPriorityFeePerGas)),
      cell("right", attempt.firstSentAt === null ? quiet("not sent") : timeOf(attempt.firstSentAt)),
    );
  });
  /** @type {Columns} */
  const columns = [
    ["#", "right"],
    ["Kind"],
    ["Hash"],
    ["Fee cap, gwei", "fee"],
    ["Tip", "right"],
    ["First sent", "right"],
  ];
  return table(`${plural(attempts.length, "attempt")} at one nonce`, columns, rows);
}

/**
 * Base fee as last reported by the node; null if unknown.
 *
 * @param {Chain | null} market
 */
export function marketNow(market) {
  if (market === null || market.baseFee === null) return null;
  return quiet(
    "now ",
    gwei(market.baseFee),
    " gwei base fee",
    market.tip === null ? null : [", ", gwei(market.tip), " tip"],
  );
}

/** @param {Attempt} attempt */
function capOf({ maxFeePerGas, gasPrice }) {
  return Number(maxFeePerGas ?? gasPrice ?? 0);
}

/**
 * Draws a bar for the fee that an attempt offers and a mark for the newest block's base fee.
 *
 * @param {Attempt} attempt
 * @param {number} highest
 * @param {string | null} baseFee
 */
function feeBar(attempt, highest, baseFee) {
  const cap = capOf(attempt);
  const isShort = baseFee !== null && cap < Number(baseFee);
  /** @param {number} value */
  const share = (value) => `${((100 * value) / highest).toFixed(1)}%`;
  return h(
    "div",
    { class: isShort ? "fee-bar short" : "fee-bar" },
    h("span.mono", gwei(attempt.maxFeePerGas ?? attempt.gasPrice ?? "0")),
    h(
      "span.track",
      { "aria-hidden": "true" },
      h("span.fill", { style: { width: share(cap) } }),
      baseFee !== null && h("span.market", { style: { left: share(Number(baseFee)) } }),
    ),
    isShort ? h("small", "below the market") : null,
  );
}
