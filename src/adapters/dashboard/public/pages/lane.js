/** @import { Action, Chain, Explanation, NonceRuler, Notice, PageOf, SignerLane, Transaction } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, shortHex, wordsOf } from "../formats.js";
import { actionsForLane } from "../parts/actions.js";
import { attemptsTable, marketNow } from "../parts/attempts.js";
import { explainedOf, explanation } from "../parts/explanation.js";
import { stripCard, stripOf } from "../parts/history.js";
import { openNotice, pastNotices } from "../parts/lane-notices.js";
import { raiseButton } from "../parts/raise.js";
import { ruler, windowOf } from "../parts/ruler.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { transactionTable } from "../parts/transaction-rows.js";
import {
  age,
  cell,
  code,
  copyButton,
  empty,
  ether,
  explored,
  facts,
  left,
  number,
  quiet,
  said,
  section,
  table,
  transactionLink,
} from "../parts/words.js";
import { toTransactions } from "../routes.js";
import { chainOf, nameOf, world } from "../world.js";
import { laneState } from "./lanes.js";

const MOVING_MS = 2_000;
const NEWEST = 10;
/**
 * Signers whose balance was requested from the chain. That happens once per visit; later loads use the node's cached
 * value.
 */
const asked = new Set();

/**
 * @typedef {{
 *   readonly lane: SignerLane, readonly nonces: NonceRuler, readonly newest: readonly Transaction[],
 *   readonly noticed: readonly Notice[], readonly first: Transaction | null, readonly explained: Explanation | null,
 *   readonly strip: Awaited<ReturnType<typeof stripOf>>,
 * }} LaneData
 * @typedef {Omit<NonNullable<SignerLane["decisions"]>[number], "reason" | "fencingToken"> & {
 *   readonly reason: string | null, readonly fencingToken: number | null, readonly tx?: Transaction,
 * }} Decision
 */

/**
 * Page of one lane: its nonces, its lowest open transaction, and its owner.
 *
 * @type {PageOf<LaneData>}
 */
export const lanePage = {
  title: (data) => (data === undefined ? "Lane" : `Lane ${nameOf(data.lane.signer) ?? shortHex(data.lane.signer)}`),

  async load({ route, signal }) {
    const [, chain = "", signer = ""] = route.parts;
    const lane = await laneOf(chain, signer, signal);
    const { chainId } = lane;
    const shown = windowOf(route.query, lane);
    const head = lane.headOfLine?.txId;
    const [nonces, newest, noticed, first, explained, strip] = await Promise.all([
      readApi("/signers/{signer}/nonces", {
        params: { signer },
        query: { chainId, from: shown.from, to: shown.to },
        signal,
      }),
      readApi("/tx", { query: { signer, chainId, limit: NEWEST }, signal }),
      readApi("/notices", { query: { signer, chainId, limit: NEWEST }, signal }),
      head === undefined
        ? null
        : readApi("/tx/{txId}", { params: { txId: head }, query: { include: "history" }, signal }),
      head === undefined ? null : explainedOf(head, [lane.headOfLine?.state, lane.holes, lane.suspended], signal),
      stripOf(route.query, { chainId, signer: lane.signer }, signal),
    ]);
    return { lane, nonces, newest: newest.items, noticed: noticed.items, first, explained, strip };
  },

  everyMs: ({ lane }) => (lane.pending + lane.stuck > 0 ? MOVING_MS : null),

  view({ lane, nonces, newest, noticed, first, explained, strip }, { route, go, refresh }) {
    // Compute the shown nonces from the address, not from the loaded data, so that an arrow key held down keeps moving
    // the window.
    const shown = windowOf(route.query, lane);
    const { chainId, signer } = lane;
    const market = chainOf(chainId);
    const baseFee = market?.baseFee ?? null;
    return [
      heading(lane, refresh),
      openNotice(noticed, lane, refresh),
      notices(lane),
      first === null || explained === null ? null : explanation(explained, first, { baseFee, refresh }),
      section("Nonces", { aside: quiet("next ", number(lane.cursor ?? 0)) }, ruler(nonces, shown, { route, go, lane })),
      stripCard(strip, { query: route.query, parts: route.parts, scope: { chainId, signer } }),
      h(
        "div.columns",
        h("div", standing(lane, market), holes(lane), pastNotices(noticed), decisions(lane, first)),
        h(
          "div",
          first !== null &&
            section(
              "Head of line",
              { aside: [transactionLink(first), ` nonce ${first.nonce === null ? "none" : countOf(first.nonce)}`] },
              attemptsTable(first, market),
            ),
          section(
            "Newest transactions",
            { aside: h("a", { href: toTransactions({ signer, chain: chainId }) }, "all of this lane") },
            newest.length === 0
              ? empty("Nothing was sent from here yet.")
              : transactionTable("Newest transactions", newest, { isNarrow: true }),
          ),
        ),
      ),
    ];
  },
};

/**
 * @param {string} chain
 * @param {string} signer
 * @param {AbortSignal} signal
 */
async function laneOf(chain, signer, signal) {
  const isFirst = !asked.has(signer);
  asked.add(signer);
  const query = isFirst ? { fresh: "true" } : {};
  const { items } = await readApi("/signers/{signer}", { params: { signer }, query, signal });
  const lane = items.find(({ chainId }) => String(chainId) === chain) ?? items[0];
  if (lane === undefined) throw new Error("This signer has no lane here.");
  return lane;
}

/**
 * @param {SignerLane} lane
 * @param {() => void} refresh
 */
function heading(lane, refresh) {
  const { chainId, signer } = lane;
  const kills = (world.attention?.items ?? []).filter(({ code: word }) => word === "KILLED");
  const actions = actionsForLane(
    lane,
    kills.some((each) => each.signer === signer),
  );
  const [first, ...rest] = actions;
  const name = nameOf(signer);
  return h(
    "div.title",
    h(
      "h1",
      name === null ? h("span.mono", shortHex(signer)) : [said(name, 60), " ", h("small.mono.quiet", shortHex(signer))],
      " ",
      quiet(`chain ${chainId}`),
    ),
    laneState(lane),
    copyButton(signer, "the address"),
    h("div.buttons.end", first === undefined ? null : actionButtons([first], {}, refresh), more(lane, rest, refresh)),
    withheld(actions),
  );
}

/**
 * @param {SignerLane} lane
 * @param {readonly Action[]} actions
 * @param {() => void} refresh
 */
function more(lane, actions, refresh) {
  const buttons = [actionButtons(actions, {}, refresh), raiseButton(lane, refresh)].flat();
  if (buttons.every((button) => button === null)) return null;
  return h("details.others.menu", h("summary", "More actions"), h("div.buttons", buttons));
}

/** @param {SignerLane} lane */
function notices({ suspendedBy, signerAway, unowned }) {
  return [
    suspendedBy === "HISTORY"
      ? h(
          "p.notice.bad",
          "The database may lack commits: this lane gives no nonce and sends nothing until an operator resumes it.",
        )
      : null,
    unowned === null
      ? null
      : h("p.notice.bad", "No node acts for this lane: ", said(unowned.reason), ", for ", age(unowned.since, ""), "."),
    signerAway === null
      ? null
      : h("p.notice.bad", "Nothing is signed: ", said(signerAway.reason), ", for ", age(signerAway.since, ""), "."),
  ];
}

/**
 * @param {SignerLane} lane
 * @param {Chain | null} market
 */
function standing(lane, market) {
  const { chainId, signer, pending, confirmed, failed, stuck, reserved, chainCounts, balance, owner, lease } = lane;
  /**
   * @param {string} state
   * @param {number} value
   */
  const count = (state, value) =>
    value === 0 ? "0" : h("a", { href: toTransactions({ signer, chain: chainId, state }) }, countOf(value));
  return section(
    "How it stands",
    {},
    facts({
      Address: explored(chainId, "address", signer, code(signer)),
      Owner:
        owner === null
          ? "no node acts for it now"
          : [said(owner.nodeId, 60), lease === null ? null : quiet(`, token ${lease.fencingToken}`)],
      Lease: lease === null ? null : [left(lease.expiresAt), quiet(" unless its heartbeat renews it")],
      Balance: balance === null ? quiet("not asked yet") : [ether(balance), " ether"],
      "Chain counts":
        chainCounts === null
          ? quiet("not asked yet")
          : [
              countOf(chainCounts.latest),
              quiet(" mined"),
              chainCounts.pending === null ? null : [", ", countOf(chainCounts.pending), quiet(" with its pool")],
            ],
      Market: marketNow(market) ?? quiet("unknown"),
      "In flight": inFlight(lane),
      Pending: [
        count("TRACKING", pending),
        stuck > 0
          ? [
              ", ",
              h(
                "a.bad",
                { href: toTransactions({ signer, chain: chainId, state: "STUCK" }) },
                `${countOf(stuck)} stuck`,
              ),
            ]
          : null,
      ],
      Over: [count("CONFIRMED", confirmed), " confirmed, ", count("FAILED_FINAL", failed), " failed or cancelled"],
      Reserved: reserved === 0 ? null : countOf(reserved),
    }),
  );
}

/** @type {Readonly<Record<string, string>>} */
const LIMITS = {
  SUSPENDED: "the lane is suspended or stopped",
  CHAIN_UNSURE: "whether the chain that answers is ours is being looked at",
  SIGNER_AWAY: "its signer does not sign",
  HELD: "the next one is held back",
  NO_FUTURE_NONCES: "the chain's node takes no more ahead of what is mined",
  FULL: "the window is full: the next goes when one is mined",
};

/**
 * Shows the in-flight window: its limit, its use, and what blocks the next transaction.
 *
 * @param {SignerLane} lane
 */
function inFlight({ window, owner }) {
  if (window === null) return quiet(owner === null ? "no node acts for it" : "known to the node that acts for it");
  const { configured, open, inFlight: count, limitedBy } = window;
  return [
    countOf(count),
    quiet(` of ${countOf(open)} that may be`),
    open === configured ? null : quiet(`, ${countOf(configured)} by the settings`),
    limitedBy === null ? null : h("p.why", "More wait: ", LIMITS[limitedBy] ?? wordsOf(limitedBy), "."),
  ];
}

/** @param {SignerLane} lane */
function holes({ holes: open }) {
  if (open.length === 0) return null;
  const rows = open.map(({ nonce, why, detail, since }) =>
    h(
      "tr",
      { key: nonce },
      cell("right mono", countOf(nonce)),
      cell("", wordsOf(why)),
      cell("grow", said(detail, 300)),
      cell("right", age(since)),
    ),
  );
  return section(
    "Holes",
    { aside: quiet("everything above the lowest waits") },
    table("Holes", [["Nonce", "right"], ["Why"], ["Detail", "grow"], ["Since", "right"]], rows),
  );
}

/**
 * Shows decisions about the lane and its lowest open transaction (by people, the hook, policies or the node), newest
 * first.
 *
 * @param {SignerLane} lane
 * @param {Transaction | null} first
 */
function decisions({ decisions: ofLane = [] }, first) {
  const steps = (first?.history ?? []).filter(({ actor, event }) => actor !== null || DECIDED[event] !== undefined);
  /** @type {readonly Decision[]} */
  const ofHead = steps.map(({ event, actor, reason, nodeId, fencingToken, lastAt }) => {
    return {
      action: DECIDED[event] ?? wordsOf(event),
      actor: actor ?? "the node",
      reason,
      nodeId,
      fencingToken,
      at: lastAt,
      ...(first === null ? {} : { tx: first }),
    };
  });
  /** @type {Decision[]} */
  const taken = [...ofLane, ...ofHead].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  return section(
    "Decisions",
    { aside: quiet("about the lane and the head of its line") },
    taken.length === 0 ? empty("Nobody has decided anything.") : h("ol.timeline.decisions", taken.map(decision)),
  );
}

/**
 * Texts for history steps that the node decided by itself.
 *
 * @type {Readonly<Record<string, string>>}
 */
const DECIDED = {
  reprice: "raised the fee",
  stick: "called it stuck",
  unstick: "took it up again",
};

/** @param {Decision} decision */
function decision({ action, actor, reason, nodeId, fencingToken, at, tx }) {
  return h(
    "li",
    { key: `${at}${action}` },
    age(at),
    h(
      "div",
      said(actor, 80),
      " ",
      h("b", action),
      tx !== undefined && [" ", transactionLink(tx)],
      reason !== null && h("p.reason", said(reason, 400)),
    ),
    h("span.by", nodeId !== null && [said(nodeId, 40), `, token ${fencingToken}`]),
  );
}
