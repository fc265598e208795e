/** @import { PageOf, Query, Route } from "../page-types.ts" */
import { failureOf } from "./api.js";
import { byId, draw, h } from "./dom.js";
import { listenToKeys } from "./keyboard.js";
import { clusterPage } from "./pages/cluster.js";
import { feedPage } from "./pages/feed.js";
import { lanePage } from "./pages/lane.js";
import { lanesPage } from "./pages/lanes.js";
import { nowPage } from "./pages/now.js";
import { policiesPage } from "./pages/policies.js";
import { signaturePage } from "./pages/signature.js";
import { signaturesPage } from "./pages/signatures.js";
import { transactionPage } from "./pages/transaction.js";
import { transactionsPage } from "./pages/transactions.js";
import { webhookPage } from "./pages/webhook.js";
import { webhooksPage } from "./pages/webhooks.js";
import { age, copyExactAmounts, empty, tick } from "./parts/words.js";
import { linkTo, parseRoute } from "./routes.js";
import { drawTab } from "./tab.js";
import { drawTop } from "./top.js";
import { followWorld, sightNow } from "./world.js";

/** Shortest interval between two reloads of the page's data, in milliseconds. */
const LOOK_MS = 1_000;

/** @type {PageOf<null>} */
const NOT_FOUND = {
  title: () => "Not found",
  load: async () => null,
  view: () => empty("There is no such page. ", h("a", { href: linkTo([]) }, "What happens now")),
};

/**
 * @param {Route} route
 * @returns {PageOf<unknown>}
 */
function pageOf({ parts: [kind, id, more] }) {
  switch (kind) {
    case undefined:
      return nowPage;
    case "tx":
      return id === undefined ? transactionsPage : transactionPage;
    case "lanes":
      return id === undefined ? lanesPage : more === undefined ? NOT_FOUND : lanePage;
    case "feed":
      return feedPage;
    case "cluster":
      return clusterPage;
    case "webhooks":
      return id === undefined ? webhooksPage : webhookPage;
    case "signatures":
      return id === undefined ? signaturesPage : signaturePage;
    case "policies":
      return policiesPage;
    default:
      return NOT_FOUND;
  }
}

/**
 * The current page. `data` is kept while the page reloads, and while the node does not answer.
 *
 * @typedef {{
 *   readonly route: Route, readonly page: PageOf<unknown>, data: unknown, problem: unknown,
 *   readonly leaving: AbortController, timer: ReturnType<typeof setTimeout> | undefined,
 *   lookedAt: number, isLooking: boolean, isOwed: boolean,
 * }} Shown
 */

/** @type {Shown} */
let shown = pageAt(parseRoute(location.hash), undefined);

/**
 * @param {Route} route
 * @param {unknown} data
 * @returns {Shown}
 */
function pageAt(route, data) {
  const states = { problem: null, timer: undefined, lookedAt: 0, isLooking: false, isOwed: false };
  return { route, page: pageOf(route), data, leaving: new AbortController(), ...states };
}

function open() {
  const before = shown;
  before.leaving.abort();
  clearTimeout(before.timer);
  const route = parseRoute(location.hash);
  const isSame = before.route.path === route.path;
  shown = pageAt(route, isSame ? before.data : undefined);
  // Reuse no element of another page: a focused link could become a button at the same place.
  if (!isSame) keepingFocus(() => byId("main").replaceChildren());
  // Another page of a list begins at its top.
  if (!isSame || before.route.query.after !== route.query.after) scrollTo(0, 0);
  redraw();
  void look();
  void shown.page.follow?.({ signal: shown.leaving.signal, redraw });
}

/** Loads the page's data, one request at a time. */
async function look() {
  const mine = shown;
  clearTimeout(mine.timer);
  if (mine.isLooking) {
    mine.isOwed = true;
    return;
  }
  mine.isLooking = true;
  mine.isOwed = false;
  try {
    const data = await mine.page.load({ route: mine.route, signal: mine.leaving.signal });
    Object.assign(mine, { data, problem: null, lookedAt: Date.now() });
  } catch (error) {
    if (mine.leaving.signal.aborted) return;
    mine.problem = error;
  }
  mine.isLooking = false;
  if (mine !== shown) return;
  redraw();
  const again = mine.isOwed ? LOOK_MS : mine.problem !== null ? 2 * LOOK_MS : (mine.page.everyMs?.(mine.data) ?? null);
  if (again !== null) mine.timer = setTimeout(lookIfSeen, again);
}

function lookIfSeen() {
  if (!document.hidden) void look();
}

/** Schedules one reload of the page's data; calls before that reload have no further effect. */
function lookSoon() {
  if (document.hidden) return;
  clearTimeout(shown.timer);
  shown.timer = setTimeout(look, Math.max(0, shown.lookedAt + LOOK_MS - Date.now()));
}

function redraw() {
  const { page, data, problem, route } = shown;
  drawTab(page.title(data));
  drawTop(byId("top"), route);
  const main = byId("main");
  main.dataset.path = route.path;
  main.setAttribute("aria-busy", String(data === undefined && problem === null));
  keepingFocus(() => {
    if (data === undefined) draw(main, problem === null ? loading() : problemOf(problem, false));
    else draw(main, problemOf(problem, true), page.view(data, { route, go, refresh: () => void look() }));
  });
  drawStaleness();
}

/**
 * Runs `change`. If it removes the focused element of the page, the page itself gets the focus: the next Tab goes to its
 * first link, not to the top of the document.
 *
 * @param {() => void} change
 */
function keepingFocus(change) {
  const main = byId("main");
  const hadFocus = main.contains(document.activeElement);
  change();
  if (hadFocus && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

function loading() {
  return h(
    "div.loading",
    h("h1.unseen", "Loading"),
    [1, 2, 3].map((line) => h("span", { key: line })),
  );
}

/**
 * Shows that a request failed. If the page already has data and the node does not answer, only the top bar shows that.
 *
 * @param {unknown} problem
 * @param {boolean} hasData
 */
function problemOf(problem, hasData) {
  if (problem === null) return null;
  const { status, name, message } = failureOf(problem);
  if (hasData && status === undefined) return null;
  const isSilence = status === undefined && ["TypeError", "TimeoutError"].includes(name);
  const text = isSilence ? "The node does not answer. Trying again." : message;
  const title = status === 404 ? "Not found" : status === 403 ? "Not allowed" : "This cannot be shown";
  return h(
    "div.card.refusal",
    { role: "alert" },
    h("h1", title),
    h("p", text),
    h("button", { type: "button", onclick: look }, "Try again"),
  );
}

/** Marks the page as stale if the node has not answered recently. A page without data shows its own message instead. */
function drawStaleness() {
  const { kind, since, why } = sightNow();
  document.documentElement.toggleAttribute("data-stale", kind !== "live");
  const notice = byId("notice");
  notice.hidden = kind === "live" || (kind === "unknown" && since === null);
  const text = why === null ? "No answer yet." : `${why}.`;
  const old = since === null ? " Nothing of what you see is proved." : [" What you see is ", age(since, ""), " old."];
  draw(notice, notice.hidden ? null : [text, old]);
}

/**
 * Changes the query in the current page's address, which adds an entry to the browser's history.
 *
 * @param {Query} query
 */
function go(query) {
  location.hash = linkTo(shown.route.parts, query);
}

byId("skip").onclick = (event) => {
  event.preventDefault();
  byId("main").focus();
};
addEventListener("hashchange", open);
addEventListener("look-again", look);
addEventListener("redraw", redraw);
document.addEventListener("visibilitychange", () => document.hidden || void look());
// True if the node had answered recently at the timer's previous run. If it had both at that run and at this one, only
// the live ages are updated; else the page is redrawn.
let wasLive = false;
setInterval(() => {
  tick();
  const isLive = sightNow().kind === "live";
  if (!isLive || !wasLive) redraw();
  wasLive = isLive;
}, LOOK_MS);
listenToKeys();
copyExactAmounts();
open();
followWorld({ onNews: redraw, onMoved: lookSoon });
