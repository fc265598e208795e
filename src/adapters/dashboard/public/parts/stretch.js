/**
 * The range of time of a list, with its exact totals. A node reads thousands of transactions to add them up, so the list
 * does not wait for the totals, and they are not read again with every change of the list.
 *
 * @import { AnswerAt, RouteQuery } from "../../page-types.ts"
 */
import { failureOf, readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, minuteOf, plural, zoneName } from "../formats.js";
import { toTransactions } from "../routes.js";
import { age, ether, quiet } from "./words.js";

const EVERY_MS = 30_000;

/**
 * The totals that were read last. `of`: the filters; `isRead`: false while the node adds up.
 *
 * @type {{ of: string, atMs: number, isRead: boolean, costs: AnswerAt<"/costs"> | null, problem: string | null }}
 */
let totals = { of: "", atMs: 0, isRead: true, costs: null, problem: null };

/**
 * The API's query of the totals; null if no range is chosen, or a filter is set that costs do not know.
 *
 * @param {RouteQuery} query
 */
function queryOf({ state, text, chain, signer, from, to }) {
  if (from === undefined || to === undefined || state !== undefined || text !== undefined) return null;
  return { by: /** @type {const} */ ("day"), from, to, chainId: chain, signer };
}

/**
 * Reads the totals of the chosen range, unless they are recent, and draws the page again.
 *
 * @param {RouteQuery} filters
 * @param {AbortSignal} signal
 */
export async function addUp(filters, signal) {
  const query = queryOf(filters);
  const of = JSON.stringify(query);
  if (query === null || (totals.of === of && (!totals.isRead || Date.now() - totals.atMs < EVERY_MS))) return;
  const before = totals.of === of ? totals.costs : null;
  const mine = { of, atMs: Date.now(), isRead: false, costs: before, problem: /** @type {string | null} */ (null) };
  totals = mine;
  try {
    mine.costs = await readApi("/costs", { query, signal });
  } catch (error) {
    // Another page or filter was opened meanwhile: read them again when this one is.
    if (signal.aborted) mine.of = "";
    else mine.problem = failureOf(error).message;
  }
  mine.isRead = true;
  if (!signal.aborted) dispatchEvent(new Event("redraw"));
}

/**
 * The range with its totals, and a link that lifts it; null if none is chosen.
 *
 * @param {RouteQuery} query
 */
export function stretchBar(query) {
  const { from, to } = query;
  if (from === undefined && to === undefined) return null;
  const ends = [from === undefined ? "" : `from ${minuteOf(from)}`, to === undefined ? "" : `to ${minuteOf(to)}`];
  return h(
    "p.stretch",
    h("b", `Created ${ends.join(" ").trim()} ${zoneName()}`),
    totalsOf(query),
    h("a", { href: toTransactions({ ...query, from: undefined, to: undefined, after: undefined }) }, "all times"),
  );
}

/** @param {RouteQuery} filters */
function totalsOf(filters) {
  const query = queryOf(filters);
  if (query === null || totals.of !== JSON.stringify(query)) return null;
  const { costs, problem, atMs } = totals;
  if (problem !== null) return h("span.bad", `Totals are not known: ${problem}`);
  if (costs === null) return quiet("adding up…");
  if (costs.next !== null) return quiet("more than 20,000: see fencepost costs");
  return [
    costs.items.length === 0 ? quiet("no transaction") : chainTotals(costs),
    quiet("as of ", age(new Date(atMs).toISOString())),
  ];
}

/** @param {AnswerAt<"/costs">} costs */
function chainTotals({ items }) {
  const chains = [...new Set(items.map(({ chainId }) => chainId))];
  return chains.map((chainId) => {
    const own = items.filter((item) => item.chainId === chainId);
    const sum = (/** @type {"fees" | "value"} */ name) => own.reduce((total, item) => total + BigInt(item[name]), 0n);
    const count = own.reduce((total, { transactions }) => total + transactions, 0);
    const failed = own.reduce((total, item) => total + item.failed, 0);
    return h(
      "span",
      { key: chainId },
      `${plural(count, "transaction")}, ${countOf(failed)} failed, `,
      ether(String(sum("value"))),
      " ether moved, ",
      ether(String(sum("fees"))),
      " ether fees ",
      quiet(`chain ${chainId}`),
    );
  });
}
