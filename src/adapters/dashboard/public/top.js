/**
 * The top bar: navigation, search, and the status of the connection to the node.
 *
 * @import { Route } from "../page-types.ts"
 */
import { forgetKey, hasKey } from "./api.js";
import { dialogById, draw, h } from "./dom.js";
import { plural, useZone, zoneName } from "./formats.js";
import { age, quiet, said } from "./parts/words.js";
import { linkTo } from "./routes.js";
import { searchBox } from "./search.js";
import { sightNow, world } from "./world.js";

/** @type {readonly (readonly [name: string, parts: readonly string[]])[]} */
const PAGES = [
  ["Now", []],
  ["Transactions", ["tx"]],
  ["Lanes", ["lanes"]],
  ["Feed", ["feed"]],
  ["Webhooks", ["webhooks"]],
  ["Signatures", ["signatures"]],
  ["Cluster", ["cluster"]],
  ["Policies", ["policies"]],
];

/**
 * @param {HTMLElement} bar
 * @param {Route} route
 */
export function drawTop(bar, route) {
  draw(
    bar,
    h("a.brand", { href: linkTo([]), "aria-label": "Fencepost" }, mark(), h("span", "Fencepost")),
    h(
      "nav",
      { "aria-label": "Dashboard" },
      PAGES.map(([name, parts]) => tab(name, parts, route)),
    ),
    searchBox(),
    h(
      "div.tools",
      status(),
      caller(),
      iconButton("Times in UTC or local time", switchZone, zoneName()),
      iconButton("Dark or light", switchTheme, "◐"),
      iconButton("Keys", () => dialogById("help-dialog").showModal(), "?"),
      hasKey() ? iconButton("Forget the API key", leave, "⏏") : null,
      h("a.reference", { href: "docs" }, "API"),
    ),
  );
}

/**
 * @param {string} label
 * @param {() => void} onclick
 * @param {string} text
 */
function iconButton(label, onclick, text) {
  return h("button.icon", { key: label, type: "button", "aria-label": label, title: label, onclick }, text);
}

/** How many scopes there are (src/domain/keys/principal.ts). */
const ALL_SCOPES = 7;

/** The API key of this tab with its scopes, and the node that answers. */
function caller() {
  const { me } = world;
  if (me === null) return null;
  const limits = [
    me.signers === null ? [] : [plural(me.signers.length, "signer")],
    me.chains === null ? [] : [`chains ${me.chains.join(", ")}`],
  ].flat();
  const scopes = me.scopes.length === ALL_SCOPES ? "all scopes" : me.scopes.join(", ");
  const title = `Scopes: ${me.scopes.join(", ")}. ${limits.length === 0 ? "" : `Limited to ${limits.join(", ")}. `}Node ${me.nodeId}, version ${me.version}.`;
  return h(
    "p.caller",
    { title },
    h("b", me.key === null ? quiet("no key") : said(me.key, 30)),
    h("small", `${scopes}${limits.length === 0 ? "" : ` for ${limits.join(", ")}`} · `, said(me.nodeId, 24)),
  );
}

/**
 * @param {string} name
 * @param {readonly string[]} parts
 * @param {Route} route
 */
function tab(name, parts, { parts: [at] }) {
  const count = name === "Now" ? (world.attention?.items.length ?? 0) + (world.attention?.more ?? 0) : 0;
  return h(
    "a",
    { href: linkTo(parts), "aria-current": at === parts[0] ? "page" : null },
    name,
    count !== 0 &&
      h("span", { class: `badge ${world.attention?.items[0]?.severity.toLowerCase() ?? ""}` }, String(count)),
  );
}

function mark() {
  return h(
    "svg.mark",
    { viewBox: "0 0 16 16", "aria-hidden": "true" },
    h("path", { d: "M1 5l2-3 2 3v10H1zM6 5l2-3 2 3v10H6zM11 5l2-3 2 3v10h-4z" }),
    h("path", { d: "M0 7h16v1.6H0zM0 11h16v1.6H0z" }),
  );
}

/** Connection status. "Live" depends only on the age of the last good answer. */
function status() {
  const { kind, since } = sightNow();
  if (kind === "live") return h("span.status", { title: "Age of the last good answer" }, "live ", age(since, ""));
  if (since === null) return h("span.status.lost", kind === "blind" ? "no answer" : "connecting");
  return h("span.status.lost", "no answer for ", age(since, ""));
}

const THEME = "fencepost-theme";

function switchTheme() {
  const root = document.documentElement;
  const isDark =
    getComputedStyle(root).colorScheme === "dark" ||
    (root.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem(THEME, root.dataset.theme);
}

const theme = localStorage.getItem(THEME);
if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;

const ZONE = "fencepost-zone";

/** Shows all times in UTC, or again in local time. */
function switchZone() {
  const isUtc = localStorage.getItem(ZONE) === "UTC";
  localStorage.setItem(ZONE, isUtc ? "local" : "UTC");
  useZone(isUtc ? undefined : "UTC");
  dispatchEvent(new Event("redraw"));
}

useZone(localStorage.getItem(ZONE) === "UTC" ? "UTC" : undefined);

function leave() {
  forgetKey();
  location.reload();
}
