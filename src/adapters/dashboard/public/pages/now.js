/** @import { Action, ActionSubject, Attention, AttentionItem, Chain, Overview, PageOf, SignerLane } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, durationOf, plural, wordsOf } from "../formats.js";
import { meaningOf } from "../parts/actions.js";
import { approvalLine } from "../parts/approval.js";
import { stripCard, stripOf } from "../parts/history.js";
import { pastAlerts, places } from "../parts/past-alerts.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { testTransfers } from "../parts/test-transfers.js";
import { age, cell, copyButton, gwei, quiet, said, section, table } from "../parts/words.js";
import { linkTo, toLane, toTransaction, toTransactions, toWebhook } from "../routes.js";
import { answered } from "../sight.js";
import { attentionSight, may, sightNow, world } from "../world.js";
import { firstSteps } from "./transactions.js";

/**
 * `awaited`: transactions and signatures that wait for approval, by the id of their row.
 *
 * @typedef {{
 *   readonly isNew: boolean, readonly signers: readonly SignerLane[], readonly problem: Error | null,
 *   readonly awaited: ReadonlyMap<string, ActionSubject>, readonly strip: Awaited<ReturnType<typeof stripOf>>,
 * }} NowData
 */

const LOOK_MS = 15_000;
const MOODS = { CRITICAL: "critical", ERROR: "error", WARNING: "warning" };

/**
 * Start page: problems that need a person, worst first, and the overview below them.
 *
 * @type {PageOf<NowData>}
 */
export const nowPage = {
  title: () => "Now",

  async load({ route, signal }) {
    // If the overview cannot be loaded, the list of problems is shown without it.
    const [attention, overview] = await Promise.all([
      world.attention ?? readApi("/attention", { signal }).then(counted("/attention")),
      world.overview ?? readApi("/overview", { signal }).then(counted("/overview")).catch(asError),
    ]);
    world.attention ??= attention;
    if (overview instanceof Error)
      return { isNew: false, signers: [], problem: overview, awaited: new Map(), strip: null };
    const isNew = total(overview.states) === 0;
    const signers = isNew || world.isDev ? (await readApi("/signers", { query: { limit: 20 }, signal })).items : [];
    world.overview ??= overview;
    const [awaited, strip] = await Promise.all([awaitedOf(attention, signal), stripOf(route.query, {}, signal)]);
    return { isNew, signers, problem: null, awaited, strip: isNew ? null : strip };
  },

  /** The strip moves on also if nothing else changes. */
  everyMs: () => LOOK_MS,

  view({ isNew, signers, problem, awaited, strip }, { route, refresh }) {
    const { attention, overview } = world;
    if (attention === null) return null;
    return [
      headline(attention, overview),
      withheld(attention.items.flatMap(({ actions }) => actions)),
      attention.items.length === 0
        ? null
        : h(
            "ol.troubles",
            attention.items.map((item) => trouble(item, { refresh, about: awaited.get(item.id) ?? {} })),
          ),
      attention.more > 0 ? h("p.quiet", `and ${countOf(attention.more)} more`) : null,
      pastAlerts(attention.past),
      isNew ? firstSteps(signers) : null,
      overview === null ? h("p.notice.bad", `How everything goes cannot be shown: ${problem?.message}.`) : null,
      overview === null
        ? null
        : [
            figures(overview),
            stripCard(strip, { query: route.query, parts: [], scope: {} }),
            states(overview),
            chains(overview.chains),
          ],
      world.isDev && signers.length > 0 && may("submit") ? testTransfers(signers) : null,
    ];
  },
};

/** @param {Overview["states"]} counts */
function total(counts) {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

/**
 * Records a good answer of a data source.
 *
 * @param {string} path
 */
function counted(path) {
  return /** @template T @param {T} answer */ (answer) => {
    answered(path);
    return answer;
  };
}

/** @param {unknown} error */
function asError(error) {
  return error instanceof Error ? error : new Error(String(error));
}

/**
 * Headline of the start page. Green requires both the list of problems and the overview. Red requires the list of
 * problems; if a part is missing, the headline names it.
 *
 * @param {Attention} attention
 * @param {Overview | null} overview
 */
function headline({ items, more, asOf }, overview) {
  const count = items.length + more;
  const { kind, why } = count === 0 ? sightNow() : attentionSight();
  const mood =
    kind === "blind" ? "critical blind" : kind === "unknown" ? "unknown" : items[0] && MOODS[items[0].severity];
  const title =
    kind === "blind" ? why : kind === "unknown" ? "Not known" : count === 0 ? "All is well" : troubled(count);
  return h(
    "div",
    { class: `headline ${mood ?? "calm"}` },
    picket(),
    h(
      "div",
      h("h1", title),
      h(
        "p.quiet",
        kind === "live"
          ? count === 0 && overview !== null
            ? `Nothing waits for a person on ${plural(overview.lanes, "lane")}. `
            : ""
          : `Nobody knows what needs attention now. ${count === 0 ? "Nothing did" : `${troubled(count)}`} at the last good answer. `,
        "As of ",
        age(asOf),
        ".",
      ),
    ),
  );
}

/** @param {number} count */
function troubled(count) {
  return `${plural(count, "thing")} ${count === 1 ? "needs" : "need"} attention`;
}

function picket() {
  return h(
    "svg.mark",
    { viewBox: "0 0 16 16", "aria-hidden": "true" },
    h("path", { d: "M1 5l2-3 2 3v10H1zM6 5l2-3 2 3v10H6zM11 5l2-3 2 3v10h-4z" }),
    h("path", { d: "M0 7h16v1.6H0zM0 11h16v1.6H0z" }),
  );
}

/** Number of rows that wait for approval whose payload or message is loaded and shown. */
const MOST_AWAITED = 20;
/** @type {Map<string, ActionSubject>} */
const read = new Map();

/**
 * @param {Attention} attention
 * @param {AbortSignal} signal
 */
async function awaitedOf({ items }, signal) {
  const shown = items.filter(({ code }) => code === "AWAITING_APPROVAL").slice(0, MOST_AWAITED);
  for (const id of read.keys()) if (!shown.some((item) => item.id === id)) read.delete(id);
  await Promise.all(
    shown.map(async (item) => {
      if (read.has(item.id)) return;
      const about = await subjectOf(item, signal).catch(() => null);
      if (about !== null) read.set(item.id, about);
    }),
  );
  return new Map(read);
}

/**
 * @param {AttentionItem} item
 * @param {AbortSignal} signal
 * @returns {Promise<ActionSubject | null>}
 */
async function subjectOf({ txId, signatureId }, signal) {
  if (signatureId !== undefined)
    return { signature: await readApi("/signatures/{signatureId}", { params: { signatureId }, signal }) };
  return txId === null ? null : { transaction: await readApi("/tx/{txId}", { params: { txId }, signal }) };
}

/**
 * @param {AttentionItem} item
 * @param {{ readonly refresh: () => void, readonly about: ActionSubject }} context
 */
function trouble(item, { refresh, about }) {
  const { id, severity, code, sentence, since, asOf, waiting, actions } = item;
  return h(
    "li",
    { key: id, class: `trouble ${MOODS[severity]}`, "data-code": code },
    h(
      "div.what",
      h("p.sentence", h("span.unseen", `${severity.toLowerCase()}: `), said(sentence, 600)),
      about.transaction !== undefined && h("p.judged", approvalLine(about.transaction)),
      h(
        "p.meta",
        h("span.code", wordsOf(code)),
        places(item),
        since !== null && h("span", "for ", age(since, "")),
        asOf !== undefined && isOld(asOf) ? h("span", "figures of ", age(asOf)) : null,
        waiting !== 0 && h("span.behind", `${countOf(waiting)} ${waiting === 1 ? "waits" : "wait"} behind it`),
      ),
    ),
    h(
      "div.buttons",
      FUNDING.has(code) && item.signer !== null ? copyButton(item.signer, "the address to send funds to") : null,
      actions.length === 0 ? lookButton(item) : actions.map((action) => actionOrLink(action, refresh, about)),
    ),
  );
}

const OLD_FIGURES_MS = 15_000;

/** @param {string} asOf */
function isOld(asOf) {
  return Date.now() - Date.parse(asOf) > OLD_FIGURES_MS;
}

/** Codes of problems that only a deposit solves. */
const FUNDING = new Set(["INSUFFICIENT_FUNDS", "LOW_BALANCE"]);

/**
 * Link for a problem without an action.
 *
 * @param {AttentionItem} item
 */
function lookButton({ txId, chainId, signer, nodeId }) {
  if (txId !== null) return h("a.button", { href: toTransaction(txId) }, "Look at the transaction");
  if (signer !== null) return h("a.button", { href: toLane(chainId ?? "all", signer) }, "Look at the lane");
  return nodeId === null ? null : h("a.button", { href: linkTo(["cluster"]) }, "Look at the nodes");
}

/**
 * Button or link for an action: GET actions are links, all others are confirmed in a dialog.
 *
 * @param {Action} action
 * @param {() => void} refresh
 * @param {ActionSubject} about
 */
function actionOrLink(action, refresh, about) {
  if (action.method !== "GET") return actionButtons([{ ...action, label: meaningOf(action).label }], about, refresh);
  return h("a.button", { href: pageOf(action.path) }, action.label);
}

/**
 * Returns the dashboard page that corresponds to an API path.
 *
 * @param {string} path
 */
function pageOf(path) {
  const { pathname, searchParams } = new URL(path, document.baseURI);
  const [, kind, id] = /\/api\/v1\/([a-z]+)(?:\/([^/]+))?/.exec(pathname) ?? [];
  if (kind === "tx" && id !== undefined) return toTransaction(id);
  if (kind === "webhooks" && id !== undefined) return toWebhook(id);
  if (kind === "signers" && id !== undefined) return toLane(searchParams.get("chainId") ?? "all", id);
  if (kind === "nodes" || kind === "cluster" || kind === "leases") return linkTo(["cluster"]);
  return linkTo(kind === "tx" ? ["tx"] : []);
}

/** @param {Overview} overview */
function figures({ createdPerMinute, completedPerMinute, timeToFinalitySeconds: time, oldestPending, lanes }) {
  /** @param {number | null} value */
  const rate = (value) =>
    value === null ? "–" : value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
  return h(
    "div.figures",
    figure("Created", rate(createdPerMinute), "a minute", linkTo(["tx"])),
    figure("Completed", rate(completedPerMinute), "a minute", linkTo(["feed"])),
    time === null
      ? figure("Time to finality", "–", "nothing completed lately", linkTo(["feed"]))
      : figure(
          "Time to finality",
          durationOf(time.p50 * 1_000),
          `median; 95 % within ${durationOf(time.p95 * 1_000)}`,
          linkTo(["feed"]),
        ),
    oldestPending === null
      ? figure("Oldest pending", "none", "nothing is on its way", toTransactions({ state: "TRACKING" }))
      : figure(
          "Oldest pending",
          durationOf(oldestPending.ageSeconds * 1_000),
          oldestPending.nonce === null ? "no nonce yet" : `nonce ${countOf(oldestPending.nonce)}`,
          toTransaction(oldestPending.txId),
        ),
    figure("Lanes", countOf(lanes), "signers on chains", linkTo(["lanes"])),
  );
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} under
 * @param {string} href
 */
function figure(name, value, under, href) {
  return h("a.figure", { href }, h("span.name", name), h("b", value), h("small", under));
}

const STATE_MOODS = {
  CREATED: "waiting",
  ALLOCATED: "moving",
  TRACKING: "moving",
  STUCK: "stuck",
  CONFIRMED: "done",
  FAILED_FINAL: "closed",
};

/**
 * Bar of transactions per state. The bar shows only open transactions, because final ones are thousands of times more;
 * the numbers show all.
 *
 * @param {Overview} overview
 */
function states({ states: counts }) {
  const open = /** @type {const} */ (["CREATED", "ALLOCATED", "TRACKING", "STUCK"]).filter(
    (state) => counts[state] > 0,
  );
  const all = open.reduce((sum, state) => sum + counts[state], 0);
  const bar = open.map((state) =>
    h("span", {
      key: state,
      class: STATE_MOODS[state],
      title: `${countOf(counts[state])} ${wordsOf(state)}`,
      style: { "flex-grow": String(Math.max(counts[state] / all, 0.01)) },
    }),
  );
  return section(
    "Transactions by state",
    { aside: all === 0 ? quiet("nothing is on its way") : quiet(`${countOf(all)} on their way`) },
    all === 0 ? null : h("div.bar", { "aria-hidden": "true" }, bar),
    h(
      "ul.states",
      /** @type {(keyof typeof STATE_MOODS)[]} */ (Object.keys(STATE_MOODS)).map((state) =>
        h(
          "li",
          h(
            "a",
            { href: toTransactions({ state }), class: counts[state] === 0 ? "none" : STATE_MOODS[state] },
            h("b", countOf(counts[state])),
            h("span", wordsOf(state)),
          ),
        ),
      ),
    ),
  );
}

const ENDPOINT_MOODS = { up: "done", behind: "waiting", failing: "failed", foreign: "failed", unknown: "quiet" };

/** @param {readonly Chain[]} known */
function chains(known) {
  const rows = known.map(({ chainId, reachable, head, headSince, blockSeconds, stalled, baseFee, endpoints }) =>
    h(
      "tr",
      { key: chainId },
      cell(
        "",
        h("a", { href: toTransactions({ chain: chainId }) }, `chain ${chainId}`),
        reachable ? null : h("span.tag.bad", "does not answer"),
        stalled ? h("span.tag.bad", "stands still") : null,
      ),
      cell("right mono mid", head === null ? quiet("unknown") : countOf(head)),
      cell(
        "right",
        headSince === null ? quiet("unknown") : h("span", { class: stalled ? "bad" : null }, age(headSince)),
        blockSeconds !== null && h("small.quiet.wide", `, one every ${durationOf(blockSeconds * 1_000)}`),
      ),
      cell("right mono", baseFee === null ? quiet("unknown") : gwei(baseFee)),
      cell("grow", endpoints.map(endpoint)),
    ),
  );
  return section(
    "Chains",
    {},
    table(
      "Chains",
      [["Chain"], ["Head", "right mid"], ["Newest block", "right"], ["Base fee, gwei", "right"], ["Endpoints", "grow"]],
      rows,
    ),
  );
}

/** @param {Chain["endpoints"][number]} endpoint */
function endpoint({ url, status, behind }) {
  const lag = behind === null || behind === 0 ? "" : `, ${plural(behind, "block")} behind`;
  return h("span", { class: `endpoint state ${ENDPOINT_MOODS[status]}` }, said(url, 60), " ", h("b", status), lag);
}
