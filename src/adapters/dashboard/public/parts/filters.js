/**
 * Filters of a list. Each filter is part of the page's address; changing it returns to the first page of the list.
 *
 * @import { Query, RouteQuery } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { world } from "../world.js";

/** @typedef {{ readonly query: RouteQuery, readonly go: (query: Query) => void }} FilterContext */

/**
 * @param {RouteQuery} query
 * @param {(query: Query) => void} go
 * @param {string} name
 */
const changed = (query, go, name) => (/** @type {{ readonly target: HTMLInputElement }} */ event) =>
  go({ ...query, [name]: event.target.value.trim(), after: undefined });

/**
 * @param {string} label
 * @param {string} name
 * @param {FilterContext & Readonly<Record<string, unknown>>} context
 */
export function textFilter(label, name, { query, go, ...more }) {
  const value = query[name] ?? "";
  const onchange = changed(query, go, name);
  return h(
    "label",
    `${label} `,
    h("input", { name, value, onchange, spellcheck: "false", autocomplete: "off", ...more }),
  );
}

/**
 * Filter by chain, shown only if there is more than one chain.
 *
 * @param {RouteQuery} query
 * @param {(query: Query) => void} go
 */
export function chainFilter(query, go) {
  const chains = world.overview?.chains ?? [];
  if (chains.length < 2 && query.chain === undefined) return null;
  return choice("Chain", "chain", {
    query,
    go,
    options: [["", "all"], ...chains.map(({ chainId }) => /** @type {const} */ ([String(chainId), String(chainId)]))],
  });
}

/**
 * @param {string} label
 * @param {string} name
 * @param {FilterContext & { readonly options: readonly (readonly [value: string, text: string])[] }} context
 */
export function choice(label, name, { query, go, options }) {
  const shown = options.map(([value, text]) => h("option", { value }, text));
  const value = query[name] ?? options[0]?.[0];
  return h("label", `${label} `, h("select", { name, value, onchange: changed(query, go, name) }, shown));
}
