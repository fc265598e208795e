/** @import { AnswerAt, Columns, PageOf, Query, RouteQuery, Signature } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { wordsOf } from "../formats.js";
import { chainFilter, SIGNER_NAMES, signerNames, textFilter } from "../parts/filters.js";
import { paging } from "../parts/paging.js";
import { amountOf, askerOf, messageName, signatureState } from "../parts/signed-message.js";
import { age, cell, chainName, empty, laneLink, quiet, said, table } from "../parts/words.js";
import { linkTo, toSignature } from "../routes.js";

const PAGE = 50;
const LOOK_MS = 5_000;

/** @type {readonly Signature["state"][]} */
const STATES = ["AWAITING_APPROVAL", "ALLOWED", "SIGNED", "REJECTED", "EXPIRED"];

/** @type {Columns} */
const COLUMNS = [
  ["Message", "grow"],
  ["State"],
  ["Signer", "mid"],
  ["Asked by", "mid"],
  ["Rule", "wide"],
  ["Amount", "right wide"],
  ["Asked", "right"],
];

/**
 * Page of the messages that keys signed under policy, newest first, filtered by signer, domain, asker and state.
 *
 * @type {PageOf<AnswerAt<"/signatures"> & { readonly query: RouteQuery }>}
 */
export const signaturesPage = {
  title: () => "Signatures",

  async load({ route: { query }, signal }) {
    const { state, chain, signer, key, domain, after } = query;
    const wanted = { state, chainId: chain, signer, key, domain, after, limit: PAGE };
    return { ...(await readApi("/signatures", { query: wanted, signal })), query };
  },

  everyMs: () => LOOK_MS,

  view({ items, next, query: loaded }, { route, go }) {
    const { query } = route;
    const isFiltered = Object.keys(query).length > 0;
    return [
      h("div.title", h("h1", "Signatures"), quiet("of messages, under policy")),
      filters(query, go),
      items.length === 0
        ? empty(
            isFiltered ? "None is like that. " : "No message was signed yet. ",
            isFiltered && h("a", { href: linkTo(["signatures"]) }, "Show all signatures"),
          )
        : table("Signatures", COLUMNS, items.map(row)),
      paging(["signatures"], loaded, next),
    ];
  },
};

/**
 * @param {RouteQuery} query
 * @param {(query: Query) => void} go
 */
function filters(query, go) {
  /**
   * @param {Signature["state"] | undefined} state
   * @param {string} label
   */
  const tab = (state, label) => {
    const href = linkTo(["signatures"], { ...query, state, after: undefined });
    return h("a", { href, "aria-current": query.state === state ? "true" : null }, label);
  };
  return h(
    "form.filters",
    { "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    h(
      "nav.tabs",
      { "aria-label": "Which signatures" },
      tab(undefined, "all"),
      STATES.map((state) => tab(state, wordsOf(state))),
    ),
    h(
      "div.fields",
      textFilter("Signer", "signer", { query, go, size: 14, placeholder: "0x…", list: SIGNER_NAMES }),
      signerNames(),
      chainFilter(query, go),
      textFilter("Domain", "domain", { query, go, size: 14, placeholder: "USD Coin" }),
      textFilter("Asked by", "key", { query, go, size: 12, placeholder: "API key" }),
    ),
  );
}

/** @param {Signature} signature */
function row(signature) {
  const { signatureId, chainId, signer, domain, owner, rule, amount, createdAt } = signature;
  return h(
    "tr",
    { key: signatureId },
    cell(
      "grow",
      h("a.name", { href: toSignature(signatureId) }, messageName(signature)),
      domain === null ? null : [" ", h("span.tag", said(domain, 60))],
    ),
    cell("brief", signatureState(signature)),
    cell("mid", laneLink(chainId, signer), " ", chainName(chainId)),
    cell("mid", askerOf(owner)),
    cell("wide", said(rule, 60)),
    cell("right mono wide", amount === "0" ? quiet("–") : amountOf(amount)),
    cell("right", age(createdAt)),
  );
}
