/**
 * The strip: figures of the last hour, day or week, over all lanes or of one. A stretch of it is chosen by a click, by
 * dragging, or by a link in its table; the list of transactions then shows those created in it.
 *
 * @import { Child, Columns, History, RouteQuery } from "../../page-types.ts"
 */
import { failureOf, readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf } from "../formats.js";
import { linkTo, toTransactions } from "../routes.js";
import { world } from "../world.js";
import { historyTable } from "./history-table.js";
import { panels } from "./panels.js";
import { age, cell, ether, laneLink, quiet, said, section, table } from "./words.js";

const MINUTE_MS = 60_000;

/** @type {Readonly<Record<string, { readonly label: string, readonly ms: number, readonly everyMs: number }>>} */
const RANGES = {
  "1h": { label: "1 h", ms: 60 * MINUTE_MS, everyMs: 10_000 },
  "24h": { label: "24 h", ms: 1_440 * MINUTE_MS, everyMs: 30_000 },
  "7d": { label: "7 d", ms: 10_080 * MINUTE_MS, everyMs: 60_000 },
};
const USUAL = "24h";

/**
 * A loaded strip. `fees`: the history of one chain, which alone has base fees; `problem`: why it could not be loaded
 * again.
 *
 * @typedef {{ readonly history: History, readonly fees: History, readonly atMs: number, readonly problem: string | null }} Strip
 * @typedef {{ readonly chainId?: number | undefined, readonly signer?: string | undefined }} Scope
 */

/**
 * Strips by what they show. A page loads its data again at every change; a strip only after its range's interval.
 *
 * @type {Map<string, Strip>}
 */
const strips = new Map();
const MOST_KEPT = 10;

/** @param {RouteQuery} query */
function rangeOf({ range = USUAL }) {
  return range in RANGES ? range : USUAL;
}

/**
 * Loads the strip, or returns the last one while it is recent. A failure keeps the last one, and never fails the page.
 *
 * @param {RouteQuery} query
 * @param {Scope} scope
 * @param {AbortSignal} signal
 * @returns {Promise<Strip | { readonly problem: string } | null>}
 */
export async function stripOf(query, scope, signal) {
  const range = RANGES[rangeOf(query)];
  if (range === undefined) return null;
  const chainId = scope.chainId ?? chainFor(query);
  const key = JSON.stringify([rangeOf(query), chainId, scope]);
  const last = strips.get(key);
  if (last !== undefined && Date.now() - last.atMs < range.everyMs) return last;
  const step = range.ms > 1_440 * MINUTE_MS ? 3_600 : range.ms > 60 * MINUTE_MS ? 600 : 60;
  const times = { from: new Date(Date.now() - range.ms).toISOString(), to: new Date().toISOString(), step };
  const isSplit = scope.chainId === undefined && (world.overview?.chains.length ?? 1) > 1;
  try {
    const [history, fees] = await Promise.all([
      readApi("/history", { query: { ...times, ...scope, ...(isSplit ? {} : { chainId }) }, signal }),
      isSplit ? readApi("/history", { query: { ...times, ...scope, chainId }, signal }) : null,
    ]);
    return keep(key, { history, fees: fees ?? history, atMs: Date.now(), problem: null });
  } catch (error) {
    if (signal.aborted) throw error;
    const { message } = failureOf(error);
    return last === undefined ? { problem: message } : { ...last, problem: message };
  }
}

/**
 * Chain whose fees are shown over all lanes: the one of the address, else the first.
 *
 * @param {RouteQuery} query
 */
function chainFor({ chain }) {
  return chain === undefined ? world.overview?.chains[0]?.chainId : Number(chain);
}

/**
 * @param {string} key
 * @param {Strip} strip
 */
function keep(key, strip) {
  strips.delete(key);
  strips.set(key, strip);
  const [oldest] = strips.keys();
  if (strips.size > MOST_KEPT && oldest !== undefined) strips.delete(oldest);
  return strip;
}

/**
 * @param {Awaited<ReturnType<typeof stripOf>>} strip
 * @param {{ readonly query: RouteQuery, readonly parts: readonly string[], readonly scope: Scope }} context
 */
export function stripCard(strip, { query, parts, scope }) {
  if (strip === null) return null;
  const ranges = Object.entries(RANGES).map(([name, { label }]) =>
    h(
      "a",
      {
        key: name,
        href: linkTo(parts, { ...query, range: name }),
        "aria-current": name === rangeOf(query) ? "true" : null,
      },
      label,
    ),
  );
  const tabs = h("nav.tabs", { "aria-label": "Range of the history" }, ranges);
  if (!("history" in strip)) {
    return section("History", { aside: tabs }, h("p.notice.bad", `It cannot be shown: ${strip.problem}.`));
  }
  const { history, fees, atMs, problem } = strip;
  const asOf = [problem === null ? "as of " : h("b.bad", "not updated since "), age(new Date(atMs).toISOString())];
  /** @type {(from: number, to: number) => string} */
  const stretch = (from, to) =>
    toTransactions({
      signer: scope.signer,
      chain: scope.chainId,
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
    });
  return section(
    "History",
    { aside: [quiet(asOf), " ", tabs] },
    chainTabs(query, parts, scope),
    panels(history, fees, stretch),
    h("p.quiet.hint", "Drag over a plot, or click it, to list the transactions created then."),
    spend(history, scope),
    historyTable(history, fees, stretch),
  );
}

/**
 * Links to the chains whose fees can be shown; null if there is only one.
 *
 * @param {RouteQuery} query
 * @param {readonly string[]} parts
 * @param {Scope} scope
 */
function chainTabs(query, parts, scope) {
  const chains = world.overview?.chains ?? [];
  if (scope.chainId !== undefined || chains.length < 2) return null;
  const shown = chainFor(query);
  return h(
    "p.quiet.hint",
    "Fees of ",
    chains.map(({ chainId }, index) => [
      index === 0 ? "" : ", ",
      chainId === shown
        ? h("b", { key: chainId }, `chain ${chainId}`)
        : h("a", { key: chainId, href: linkTo(parts, { ...query, chain: chainId }) }, `chain ${chainId}`),
    ]),
  );
}

const MOST_SPENDERS = 5;

/**
 * Fees paid by API key and, over all lanes, by signer.
 *
 * @param {History} history
 * @param {Scope} scope
 */
function spend({ keys, signers }, { signer }) {
  const tables = [
    signer === undefined && spenders("Spend by signer", signers, (each) => laneLink(each.chainId, each.signer)),
    spenders("Spend by key", keys, (each) => (each.key === null ? quiet("no key") : said(each.key, 40))),
  ];
  return h("div.spend", tables);
}

/**
 * @template {{ readonly chainId: number, readonly completed: number, readonly fees: string }} Row
 * @param {string} caption
 * @param {readonly Row[]} rows
 * @param {(row: Row) => Child} name
 */
function spenders(caption, rows, name) {
  if (rows.length === 0) return null;
  const rest = rows.slice(MOST_SPENDERS);
  return h(
    "div",
    { key: caption },
    h("h3", caption),
    spendTable(caption, rows.slice(0, MOST_SPENDERS), name),
    rest.length === 0
      ? null
      : h("details", h("summary", `The next ${countOf(rest.length)}`), spendTable(`${caption}, continued`, rest, name)),
  );
}

/**
 * @template {{ readonly chainId: number, readonly completed: number, readonly fees: string }} Row
 * @param {string} caption
 * @param {readonly Row[]} rows
 * @param {(row: Row) => Child} name
 */
function spendTable(caption, rows, name) {
  const shown = rows.map((each, index) =>
    h(
      "tr",
      { key: index },
      cell("grow", name(each), " ", quiet(`chain ${each.chainId}`)),
      cell("right mono", countOf(each.completed)),
      cell("right mono", ether(each.fees)),
    ),
  );
  /** @type {Columns} */
  const columns = [
    ["Name", "grow"],
    ["Final", "right"],
    ["Fees, ether", "right"],
  ];
  return table(caption, columns, shown);
}
