/**
 * Filters of a list. Each filter is part of the page's address; changing it returns to the first page of the list.
 *
 * @import { Query, RouteQuery } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { fieldOf, instantOf, zoneName } from "../formats.js";
import { parseRoute } from "../routes.js";
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

/** A field for a time reports every digit that is typed: the last one is followed by a pause. */
const TYPING_MS = 700;
/**
 * Timers of the fields in which a time is being typed, by name.
 *
 * @type {Map<string, ReturnType<typeof setTimeout>>}
 */
const typing = new Map();

/**
 * Filter by a time, in the time zone of the page.
 *
 * @param {string} label
 * @param {string} name
 * @param {FilterContext} context
 */
export function timeFilter(label, name, { query, go }) {
  const apply = (/** @type {HTMLInputElement} */ { value, validity }) => {
    const instant = instantOf(value);
    // A field whose date is incomplete has no value, as an empty one has.
    if (instant === null || validity.badInput) return;
    // Another filter may have changed meanwhile.
    go({ ...parseRoute(location.hash).query, [name]: instant, after: undefined });
  };
  const onchange = (/** @type {{ readonly target: HTMLInputElement }} */ { target }) => {
    clearTimeout(typing.get(name));
    typing.set(
      name,
      setTimeout(() => apply(target), TYPING_MS),
    );
  };
  const value = fieldOf(query[name] ?? "");
  // Years of four digits: the API knows no others.
  const max = "9999-12-31T23:59";
  const title = `Time zone: ${zoneName()}`;
  return h("label", `${label} `, h("input", { type: "datetime-local", name, value, max, title, onchange }));
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

/** Id of the list of names that a filter of signers offers. */
export const SIGNER_NAMES = "signer-names";

/** The configured names, which stand for addresses in the filter of signers. */
export function signerNames() {
  const options = [...world.names].map(([value, label]) => h("option", { key: value, value, label }));
  return h("datalist", { key: SIGNER_NAMES, id: SIGNER_NAMES }, options);
}
