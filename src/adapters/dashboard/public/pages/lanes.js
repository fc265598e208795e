/** @import { AnswerAt, Columns, Mood, PageOf, Query, RouteQuery, SignerLane } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, durationOf, plural } from "../formats.js";
import { chainFilter, textFilter } from "../parts/filters.js";
import { paging } from "../parts/paging.js";
import { cell, chainName, empty, ether, laneLink, quiet, said, table } from "../parts/words.js";
import { linkTo, toTransaction, toTransactions } from "../routes.js";

const PAGE = 100;

/** @type {Columns} */
const COLUMNS = [
  ["Signer", "grow"],
  ["State"],
  ["Next nonce", "right"],
  ["Pending", "right"],
  ["Oldest", "right wide"],
  ["Confirmed", "right wide"],
  ["Failed", "right wide"],
  ["Ether", "right"],
  ["Owner", "wide"],
];

/**
 * Page of all lanes, loaded in pages, without calls to the chain.
 *
 * @type {PageOf<AnswerAt<"/signers"> & { readonly query: RouteQuery }>}
 */
export const lanesPage = {
  title: () => "Lanes",

  async load({ route: { query }, signal }) {
    const { needs, chain, owner, after } = query;
    const wanted = { needs, chainId: chain, owner, after, limit: PAGE };
    return { ...(await readApi("/signers", { query: wanted, signal })), query };
  },

  view({ items, next, query: loaded }, { route, go }) {
    const { query } = route;
    return [
      h("div.title", h("h1", "Lanes"), quiet("a signer on a chain: its own order, its own lease")),
      filters(query, go),
      items.length === 0 ? nothing(query) : table("Lanes", COLUMNS, items.map(row), totals(items)),
      paging(["lanes"], loaded, next),
    ];
  },
};

/**
 * @param {RouteQuery} query
 * @param {(query: Query) => void} go
 */
function filters(query, go) {
  /**
   * @param {string | undefined} needs
   * @param {string} label
   */
  const tab = (needs, label) =>
    h(
      "a",
      {
        href: linkTo(["lanes"], { ...query, needs, after: undefined }),
        "aria-current": query.needs === needs ? "true" : null,
      },
      label,
    );
  return h(
    "form.filters",
    { "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    h("nav.tabs", { "aria-label": "Which lanes" }, tab(undefined, "all"), tab("attention", "need attention")),
    h("div.fields", chainFilter(query, go), textFilter("Node", "owner", { query, go, size: 14 })),
  );
}

/** @param {RouteQuery} query */
function nothing({ needs, chain, owner }) {
  if (needs === undefined && chain === undefined && owner === undefined) {
    return empty("No signer is configured, and no lane was ever used.");
  }
  return empty(
    needs === undefined ? "No lane is like that. " : "None: every lane goes its way. ",
    h("a", { href: linkTo(["lanes"]) }, "Show all lanes"),
  );
}

/**
 * Sums of this page. Balances of several chains are not added up.
 *
 * @param {readonly SignerLane[]} items
 */
function totals(items) {
  const sum = (/** @type {"pending" | "confirmed" | "failed"} */ name) =>
    countOf(items.reduce((total, lane) => total + lane[name], 0));
  const isOneChain = new Set(items.map(({ chainId }) => chainId)).size === 1;
  const ethers = items.reduce((total, { balance }) => total + BigInt(balance ?? 0), 0n);
  return h(
    "tfoot",
    h(
      "tr",
      cell("grow", "This page: ", plural(items.length, "lane")),
      cell(""),
      cell(""),
      cell("right mono", sum("pending")),
      cell("wide"),
      cell("right wide mono", sum("confirmed")),
      cell("right wide mono", sum("failed")),
      cell("right mono", isOneChain ? ether(String(ethers)) : quiet("–")),
      cell("wide"),
    ),
  );
}

/** @param {SignerLane} lane */
function row(lane) {
  const {
    chainId,
    signer,
    cursor,
    pending,
    confirmed,
    failed,
    oldestPendingAgeSeconds: oldest,
    headOfLine,
    balance,
    owner,
  } = lane;
  /**
   * @param {string} state
   * @param {number} number
   */
  const count = (state, number) =>
    number === 0 ? quiet("0") : h("a", { href: toTransactions({ signer, chain: chainId, state }) }, countOf(number));
  return h(
    "tr",
    { key: `${chainId}:${signer}`, class: cursor === null ? "unused" : null },
    cell("grow", laneLink(chainId, signer), " ", chainName(chainId)),
    cell("", laneState(lane)),
    cell("right mono", cursor === null ? quiet("unused") : countOf(cursor)),
    cell("right mono", count("TRACKING", pending)),
    cell(
      "right wide",
      oldest === null || headOfLine === null
        ? quiet("–")
        : h("a", { href: toTransaction(headOfLine.txId) }, durationOf(oldest * 1_000)),
    ),
    cell("right wide mono", count("CONFIRMED", confirmed)),
    cell("right wide mono", count("FAILED_FINAL", failed)),
    cell("right mono", balance === null ? quiet("not asked") : ether(balance)),
    cell("wide", owner === null ? quiet("none") : said(owner.nodeId, 40)),
  );
}

/**
 * Returns the most severe state of a lane.
 *
 * @param {SignerLane} lane
 */
export function laneState({ stuck, holes, signerAway, unowned, suspendedBy, pending, cursor, reserved }) {
  /**
   * @param {Mood} mood
   * @param {string} text
   */
  const state = (mood, text) => h("span", { class: `state ${mood}` }, h("b", text));
  if (suspendedBy === "HISTORY") return state("stuck", "waits for an operator");
  if (unowned !== null) return state("failed", "no owner");
  if (stuck > 0) return state("stuck", `${countOf(stuck)} stuck`);
  if (holes.length > 0) return state("stuck", plural(holes.length, "hole"));
  if (signerAway !== null) return state("failed", signerAway.lies ? "signer answers falsely" : "signer away");
  if (suspendedBy === "OPERATOR") return state("waiting", "suspended");
  if (pending > 0) return state("moving", "moving");
  if (reserved > 0) return state("waiting", `${countOf(reserved)} reserved`);
  return state("closed", cursor === null ? "unused" : "idle");
}
