/** @import { Child, Columns, Mood, PageOf, Webhook } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf } from "../formats.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { newWebhook } from "../parts/webhook-actions.js";
import { age, cell, empty, quiet, said, table } from "../parts/words.js";
import { linkTo, toWebhook } from "../routes.js";

/** A webhook's progress is no part of the overview, whose changes reload other lists. */
const LOOK_MS = 5_000;

/** @type {Columns} */
const COLUMNS = [
  ["Webhook", "grow"],
  ["State"],
  ["Position", "right mid"],
  ["Behind", "right"],
  ["Oldest", "right mid"],
  ["Last answer"],
  ["Delivered", "right wide"],
  ["Node", "wide"],
];

/**
 * Page of all webhooks: where each one is in the feed, how far it is behind, and what its receiver answered.
 *
 * @type {PageOf<readonly Webhook[]>}
 */
export const webhooksPage = {
  title: () => "Webhooks",
  load: async ({ signal }) => (await readApi("/webhooks", { signal })).items,
  everyMs: () => LOOK_MS,

  view(items, { refresh }) {
    const actions = [newWebhook()];
    return [
      h(
        "div.title",
        h("h1", "Webhooks"),
        quiet("receivers to which outcomes are posted"),
        h("div.buttons.end", actionButtons(actions, {}, refresh)),
      ),
      withheld(actions),
      items.length === 0
        ? empty("None. Outcomes are read from ", h("a", { href: linkTo(["feed"]) }, "the feed"), ".")
        : table("Webhooks", COLUMNS, items.map(row)),
    ];
  },
};

/** @param {Webhook} webhook */
function row(webhook) {
  const { subscriberId, name, url, position, behind, behindSince, deliveredAt, nodeId } = webhook;
  return h(
    "tr",
    { key: subscriberId },
    cell("grow", h("a.name", { href: toWebhook(subscriberId) }, said(name, 64)), h("small.url", said(url, 120))),
    cell("", webhookState(webhook)),
    cell("right mono mid", countOf(position)),
    cell("right mono", behind === 0 ? quiet("0") : countOf(behind)),
    cell("right mid", behindSince === null ? quiet("–") : age(behindSince, "")),
    cell("brief", lastAnswer(webhook)),
    cell("right wide", deliveredAt === null ? quiet("never") : age(deliveredAt)),
    cell("wide", nodeId === null ? quiet("none") : said(nodeId, 40)),
  );
}

/** @type {Readonly<Record<Webhook["state"], Mood>>} */
const MOODS = { ACTIVE: "done", FAILING: "failed", PAUSED: "waiting" };

/** @param {Pick<Webhook, "state">} webhook */
export function webhookState({ state }) {
  return h("span", { class: `state ${MOODS[state]}` }, h("b", state.toLowerCase()));
}

/**
 * @param {Pick<Webhook, "lastAnswer">} webhook
 * @returns {Child}
 */
export function lastAnswer({ lastAnswer: answer }) {
  if (answer === null) return quiet("none yet");
  const { status, reason, at } = answer;
  const isGood = status !== null && status >= 200 && status < 300;
  const text = status === null ? said(reason ?? "none", 60) : `HTTP ${status}`;
  return [h("span", { class: isGood ? null : "bad" }, text), " ", h("small.quiet", age(at))];
}
