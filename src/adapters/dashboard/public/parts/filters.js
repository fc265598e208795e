/** Filters of a list. Each filter is part of the page's address; changing it returns to the first page of the list. */
import { h } from "../dom.js";
import { linkTo } from "../routes.js";
import { world } from "../world.js";

const changed = (query, go, name) => (event) => go({ ...query, [name]: event.target.value.trim(), after: undefined });

export function textFilter(label, name, { query, go, ...more }) {
  const value = query[name] ?? "";
  const onchange = changed(query, go, name);
  return h(
    "label",
    `${label} `,
    h("input", { name, value, onchange, spellcheck: "false", autocomplete: "off", ...more }),
  );
}

/** Filter by chain, shown only if there is more than one chain. */
export function chainFilter(query, go) {
  const chains = world.overview?.chains ?? [];
  if (chains.length < 2 && query.chain === undefined) return null;
  return choice("Chain", "chain", {
    query,
    go,
    options: [["", "all"], ...chains.map(({ chainId }) => [String(chainId), String(chainId)])],
  });
}

export function choice(label, name, { query, go, options }) {
  const shown = options.map(([value, text]) => h("option", { value }, text));
  const value = query[name] ?? options[0][0];
  return h("label", `${label} `, h("select", { name, value, onchange: changed(query, go, name) }, shown));
}

export function paging(parts, query, next) {
  if (next === null && query.after === undefined) return null;
  return h(
    "nav.paging",
    { "aria-label": "Pages of the list" },
    query.after !== undefined && h("a", { href: linkTo(parts, { ...query, after: undefined }) }, "First page"),
    next !== null && h("a", { href: linkTo(parts, { ...query, after: next }) }, "Next page"),
  );
}
