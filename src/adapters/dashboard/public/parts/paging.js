/**
 * Links to the pages of a list. The API pages forward only, so the tab remembers which page each `after` followed.
 *
 * @import { RouteQuery } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { linkTo } from "../routes.js";

const TRAIL = "fencepost-pages";
const MOST_KEPT = 500;

/** @returns {Record<string, string>} */
function trail() {
  try {
    return JSON.parse(sessionStorage.getItem(TRAIL) ?? "{}");
  } catch {
    return {};
  }
}

/**
 * Remembers the page before `next`; an empty text is the first page.
 *
 * @param {string} next
 * @param {string} at
 */
function remember(next, at) {
  const known = trail();
  if (known[next] === at) return;
  const entries = Object.entries({ ...known, [next]: at }).slice(-MOST_KEPT);
  sessionStorage.setItem(TRAIL, JSON.stringify(Object.fromEntries(entries)));
}

/**
 * Links to the pages around the shown one. `query` is the one with which the shown page was loaded: the address may be
 * ahead of it.
 *
 * @param {readonly string[]} parts
 * @param {RouteQuery} query
 * @param {string | null} next
 */
export function paging(parts, query, next) {
  const { after } = query;
  if (next !== null) remember(next, after ?? "");
  if (next === null && after === undefined) return null;
  const before = after === undefined ? undefined : trail()[after];
  /** @param {string | null | undefined} to */
  const href = (to) => linkTo(parts, { ...query, after: to });
  return h(
    "nav.paging",
    { "aria-label": "Pages of the list" },
    after !== undefined && h("a", { key: "first", href: href(undefined) }, "First page"),
    before !== undefined && h("a", { key: "previous", href: href(before) }, "Previous page"),
    next !== null && h("a", { key: "next", href: href(next) }, "Next page"),
  );
}
