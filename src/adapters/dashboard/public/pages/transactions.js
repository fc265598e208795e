/** @import { AnswerAt, Overview, PageOf, Query, RouteQuery, SignerLane } from "../../page-types.ts" */
import { hasKey, readApi } from "../api.js";
import { h } from "../dom.js";
import { csvButton } from "../parts/csv.js";
import { chainFilter, choice, SIGNER_NAMES, signerNames, textFilter, timeFilter } from "../parts/filters.js";
import { paging } from "../parts/paging.js";
import { addUp, stretchBar } from "../parts/stretch.js";
import { testTransfers } from "../parts/test-transfers.js";
import { transactionTable } from "../parts/transaction-rows.js";
import { empty, section } from "../parts/words.js";
import { linkTo, toTransactions } from "../routes.js";
import { may, world } from "../world.js";

/** @type {readonly (keyof Overview["states"])[]} */
const STATES = ["CREATED", "ALLOCATED", "TRACKING", "STUCK", "CONFIRMED", "FAILED_FINAL"];
/** @type {readonly (readonly [value: string, text: string])[]} */
const ORDERS = [
  ["newest", "newest first"],
  ["oldest", "oldest first"],
];
const PAGE = 50;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;

/**
 * Page of all transactions, newest first, filtered by the page's address.
 *
 * @type {PageOf<{ readonly page: AnswerAt<"/tx">, readonly signers: readonly SignerLane[], readonly query: RouteQuery }>}
 */
export const transactionsPage = {
  title: () => "Transactions",

  async load({ route, signal }) {
    const page = await readApi("/tx", {
      query: { ...queryOf(route.query), after: route.query.after, limit: PAGE },
      signal,
    });
    void addUp(route.query, signal);
    return {
      page,
      query: route.query,
      signers: world.isDev ? (await readApi("/signers", { query: { limit: 20 }, signal })).items : [],
    };
  },

  view({ page: { items, next }, signers, query: loaded }, { route, go }) {
    const { query } = route;
    const isFiltered = ["state", "chain", "signer", "text", "from", "to"].some((name) => query[name] !== undefined);
    return [
      h("div.title", h("h1", "Transactions"), h("div.buttons.end", csvButton(queryOf(query)))),
      filters(query, go),
      stretchBar(query),
      items.length === 0
        ? isFiltered
          ? nothingFound()
          : firstSteps(signers)
        : transactionTable("Transactions", items, { hasTotals: true }),
      paging(["tx"], loaded, next),
      signers.length > 0 && may("submit") ? testTransfers(signers) : null,
    ];
  },
};

/**
 * The API's query of the page's filters.
 *
 * @param {RouteQuery} query
 */
function queryOf({ state, chain, signer, text, order, from, to }) {
  return { state, chainId: chain, signer, order, createdAfter: from, createdBefore: to, ...wordQuery(text) };
}

/**
 * Search query: a hash searches attempts; any other text searches request ids.
 *
 * @param {string | undefined} text
 */
function wordQuery(text) {
  if (text === undefined) return {};
  return HASH.test(text) ? { txHash: text } : { requestId: text };
}

/**
 * @param {RouteQuery} query
 * @param {(query: Query) => void} go
 */
function filters(query, go) {
  return h(
    "form.filters",
    { "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    stateTabs(query),
    h(
      "div.fields",
      textFilter("Signer", "signer", {
        query,
        go,
        size: 14,
        pattern: ADDRESS.source,
        placeholder: "0x…",
        list: SIGNER_NAMES,
      }),
      signerNames(),
      chainFilter(query, go),
      textFilter("Request id or hash", "text", { query, go, size: 18, placeholder: "order-42" }),
      choice("Order", "order", { query, go, options: ORDERS }),
      h("div.fields", timeFilter("Created from", "from", { query, go }), timeFilter("to", "to", { query, go })),
    ),
  );
}

/** @param {RouteQuery} query */
function stateTabs(query) {
  /**
   * @param {keyof Overview["states"] | undefined} state
   * @param {string} label
   */
  const tab = (state, label) =>
    h(
      "a",
      {
        href: toTransactions({ ...query, state, after: undefined }),
        "aria-current": (query.state ?? "") === (state ?? "") ? "true" : null,
      },
      label,
      count(state),
    );
  return h(
    "nav.tabs",
    { "aria-label": "State" },
    tab(undefined, "all"),
    STATES.map((state) => tab(state, state.toLowerCase().replace("_", " "))),
  );
}

/** @param {keyof Overview["states"] | undefined} state */
function count(state) {
  const number = state === undefined ? undefined : world.overview?.states[state];
  return number === undefined ? null : h("span.count", number.toLocaleString("en", { notation: "compact" }));
}

function nothingFound() {
  return empty("Nothing here is like that. ", h("a", { href: linkTo(["tx"]) }, "Show all transactions"));
}

/**
 * Help that is shown if the node has no transactions.
 *
 * @param {readonly SignerLane[]} signers
 */
export function firstSteps(signers) {
  const [from] = signers;
  if (from === undefined) {
    return section(
      "No transaction yet",
      {},
      h(
        "p",
        "The first one that is sent to ",
        h("code", "POST /api/v1/tx"),
        " appears here. ",
        h("a", { href: "docs" }, "How to send one"),
      ),
    );
  }
  const body = JSON.stringify({
    signer: from.signer,
    payload: { to: (signers[1] ?? from).signer, value: "1000000000000000" },
  });
  const key = hasKey() ? '  -H "authorization: Bearer $FENCEPOST_API_KEY" \\\n' : "";
  const url = new URL("api/v1/tx", document.baseURI);
  const command = `curl -X POST ${url} \\\n${key}  -H "content-type: application/json" \\\n  -d '${body}'`;
  return section(
    "No transaction yet",
    { name: "first-steps" },
    h("p", "Paste this into a terminal, and watch it walk along the fence:"),
    h("pre", { tabindex: "0", "aria-label": "Command" }, h("code", command)),
  );
}
