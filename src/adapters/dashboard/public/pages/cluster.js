/** @import { AnswerAt, ClusterHistory, PageOf, Takeover } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, plural } from "../formats.js";
import { stopEverything } from "../parts/actions.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { age, cell, empty, laneLink, quiet, said, section, table } from "../parts/words.js";
import { linkTo } from "../routes.js";

/** The most that one answer lists. A node of many lanes that stops leaves one takeover per lane. */
const LATEST = 500;
const LOOK_MS = 5_000;

/**
 * Page of the cluster: its nodes, their lanes, and past takeovers.
 *
 * @type {PageOf<{ readonly nodes: AnswerAt<"/nodes">["items"], readonly past: ClusterHistory }>}
 */
export const clusterPage = {
  title: () => "Cluster",

  async load({ signal }) {
    const [nodes, past] = await Promise.all([
      readApi("/nodes", { signal }),
      readApi("/cluster/history", { query: { limit: LATEST }, signal }),
    ]);
    return { nodes: nodes.items, past };
  },

  everyMs: () => LOOK_MS,

  view({ nodes, past }, { refresh }) {
    const left = past.nodes.filter(({ state }) => state !== "alive");
    const versions = new Set(nodes.map(({ version }) => version));
    const aside = quiet(
      versions.size > 1
        ? `${plural(versions.size, "version")}: an upgrade is under way`
        : `version ${[...versions][0] ?? "unknown"}`,
    );
    return [
      h(
        "div.title",
        h("h1", "Cluster"),
        quiet(plural(nodes.length, "node")),
        h("div.buttons.end", actionButtons([stopEverything()], {}, refresh)),
        withheld([stopEverything()]),
      ),
      section("Nodes", { aside }, nodes.length === 0 ? empty("No node is alive.") : alive(nodes)),
      section(
        "Takeovers",
        { aside: quiet("a lane that came to another node") },
        past.takeovers.length === 0 ? empty("No lane has changed hands.") : takeovers(past.takeovers),
      ),
      section(
        "Nodes that left",
        {},
        left.length === 0 ? empty("None, as far as the database remembers.") : formerNodes(left),
      ),
      section("Database", { aside: quiet("its history, as the nodes saw it") }, databases(past.database)),
    ];
  },
};

/** Age from which a node's heartbeat counts as late. Heartbeats are written several times a second. */
const LATE_MS = 10_000;

/** @param {AnswerAt<"/nodes">["items"]} nodes */
function alive(nodes) {
  const most = Math.max(...nodes.map(({ lanes }) => lanes), 1);
  const rows = nodes.map(({ nodeId, instanceId, url, version, mode, startedAt, heartbeatAt, lanes }) => {
    const isLate = Date.now() - Date.parse(heartbeatAt) > LATE_MS;
    return h(
      "tr",
      { key: instanceId },
      cell(
        "grow",
        h("b", { title: instanceId }, said(nodeId, 60)),
        " ",
        quiet(url === "" ? "embedded" : said(url, 60)),
      ),
      cell(
        "fee",
        h(
          "div.fee-bar",
          h("a.mono", { href: linkTo(["lanes"], { owner: nodeId }) }, countOf(lanes)),
          h("span.track", { "aria-hidden": "true" }, h("span.fill", { style: { width: `${(100 * lanes) / most}%` } })),
        ),
      ),
      cell("wide", said(version, 30)),
      cell("wide", mode),
      cell("right wide", age(startedAt)),
      cell("right", h("span", { class: isLate ? "bad" : null }, age(heartbeatAt))),
    );
  });
  return table(
    "Nodes",
    [
      ["Node", "grow"],
      ["Lanes", "fee"],
      ["Version", "wide"],
      ["Mode", "wide"],
      ["Started", "right wide"],
      ["Heartbeat", "right"],
    ],
    rows,
  );
}

/** Takeovers for one reason within this time belong to one event, such as the end of a node. */
const EVENT_MS = 60_000;

/**
 * Groups takeovers by event: from one node, for one reason, shortly after one another.
 *
 * @param {readonly Takeover[]} items
 */
export function takeoverEvents(items) {
  /** @type {Takeover[][]} */
  const events = [];
  for (const item of items) {
    const event = events.find(([first]) => first !== undefined && isOneEvent(first, item));
    if (event === undefined) events.push([item]);
    else event.push(item);
  }
  return events;
}

/**
 * @param {Takeover} a
 * @param {Takeover} b
 */
function isOneEvent(a, b) {
  return a.from === b.from && a.why === b.why && Math.abs(Date.parse(a.at) - Date.parse(b.at)) <= EVENT_MS;
}

/** @param {readonly Takeover[]} items */
function takeovers(items) {
  const rows = takeoverEvents(items).flatMap((event) => {
    const [first] = event;
    if (first === undefined) return [];
    const { from, why, at } = first;
    return h(
      "tr",
      { key: `${from}${why}${at}` },
      cell("right", age(at)),
      cell("", lanesOf(event)),
      cell("", from === null ? quiet("nobody") : said(from, 40), " → ", receivers(event)),
      cell("grow wide", why === null ? "" : said(why, 200)),
    );
  });
  return table("Takeovers", [["When", "right"], ["Lanes"], ["From and to"], ["Why", "grow wide"]], rows);
}

/**
 * The lanes of an event: the one, or how many, with the list behind a click.
 *
 * @param {readonly Takeover[]} event
 */
function lanesOf(event) {
  const lanes = event.map(({ chainId, signer, fencingToken }) => [
    laneLink(chainId, signer),
    quiet(`, token ${fencingToken}`),
  ]);
  if (lanes.length === 1) return lanes[0];
  return h(
    "details",
    h("summary", plural(lanes.length, "lane")),
    h(
      "ul",
      lanes.map((lane) => h("li", lane)),
    ),
  );
}

/**
 * Nodes that took the lanes of an event, each with how many.
 *
 * @param {readonly Takeover[]} event
 */
function receivers(event) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { to } of event) counts.set(to, (counts.get(to) ?? 0) + 1);
  const many = counts.size > 1;
  return [...counts].map(([node, count], index) => [
    index === 0 ? "" : ", ",
    said(node, 40),
    many ? ` ${count}` : null,
  ]);
}

const MOODS = { alive: "done", draining: "waiting", expired: "failed", gone: "closed" };

/** @param {ClusterHistory["nodes"]} items */
function formerNodes(items) {
  const rows = items.map(({ nodeId, instanceId, version, startedAt, heartbeatAt, state }) =>
    h(
      "tr",
      { key: instanceId },
      cell("grow", h("span", { title: instanceId }, said(nodeId, 60))),
      cell("", h("span", { class: `state ${MOODS[state]}` }, h("b", state))),
      cell("wide", said(version, 30)),
      cell("right wide", age(startedAt)),
      cell("right", age(heartbeatAt)),
    ),
  );
  return table(
    "Nodes that left",
    [["Node", "grow"], ["State"], ["Version", "wide"], ["Started", "right wide"], ["Last heartbeat", "right"]],
    rows,
  );
}

/** @param {ClusterHistory["database"]} items */
function databases(items) {
  const rows = items.map(({ epoch, systemIdentifier, timeline, mayHaveLost, seenAt }) =>
    h(
      "tr",
      { key: `${epoch}${seenAt}` },
      cell("right mono", countOf(epoch)),
      cell("grow mono", said(systemIdentifier, 40), quiet(`, timeline ${timeline}`)),
      cell("", mayHaveLost ? h("span.tag.bad", "commits may be lost") : quiet("complete")),
      cell("right", age(seenAt)),
    ),
  );
  return table("Database", [["Epoch", "right"], ["Identifier", "grow"], ["Commits"], ["Seen", "right"]], rows);
}
