/** @import { Child, PageOf, Webhook } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, durationOf, momentOf, plural } from "../formats.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { actionsForWebhook } from "../parts/webhook-actions.js";
import { age, code, facts, quiet, said, section } from "../parts/words.js";
import { linkTo } from "../routes.js";
import { lastAnswer, webhookState } from "./webhooks.js";

const LOOK_MS = 2_000;

/**
 * Page of one webhook, with its actions.
 *
 * @type {PageOf<Webhook>}
 */
export const webhookPage = {
  title: (webhook) => (webhook === undefined ? "Webhook" : webhook.name),
  load: ({ route: { parts }, signal }) =>
    readApi("/webhooks/{subscriberId}", { params: { subscriberId: parts[1] ?? "" }, signal }),
  everyMs: () => LOOK_MS,

  view(webhook, { refresh }) {
    const actions = actionsForWebhook(webhook);
    // Once it is removed there is nothing to load again.
    const onDone = () => void reloaded(webhook.subscriberId, refresh);
    return [
      h("div.title", h("h1", said(webhook.name, 64)), webhookState(webhook)),
      pauseOf(webhook),
      h("div.buttons", actionButtons(actions, { webhook }, onDone)),
      withheld(actions),
      section("Deliveries", {}, facts(progress(webhook))),
      section("Which outcomes, and where to", {}, facts(terms(webhook))),
    ];
  },
};

/**
 * Shows the list if the webhook was removed, else reloads the page.
 *
 * @param {string} subscriberId
 * @param {() => void} refresh
 */
async function reloaded(subscriberId, refresh) {
  const { items } = await readApi("/webhooks").catch(() => ({ items: null }));
  if (items !== null && !items.some((each) => each.subscriberId === subscriberId)) location.hash = linkTo(["webhooks"]);
  else refresh();
}

/** @param {Webhook} webhook */
function pauseOf({ paused }) {
  if (paused === null) return null;
  const { by, why, at } = paused;
  const who = { OPERATOR: "Somebody paused it", GONE: "Its receiver answered 410 Gone", GAVE_UP: "It was given up" };
  return h("p.notice.bad", h("b", who[by]), " ", age(at), ": ", said(why, 400), ". Its position is kept.");
}

/**
 * @param {Webhook} webhook
 * @returns {Readonly<Record<string, Child>>}
 */
function progress(webhook) {
  const { position, epoch, behind, behindSince, failingSince, nextTryAt, deliveredAt, nodeId } = webhook;
  return {
    Position: [h("b", countOf(position)), quiet(` in epoch ${countOf(epoch)}`)],
    Behind:
      behind === 0
        ? "nothing"
        : [h("b", plural(behind, "outcome")), ", the oldest for ", behindSince === null ? "" : age(behindSince, "")],
    "Last answer": lastAnswer(webhook),
    "Failing since": failingSince === null ? null : h("span.bad", age(failingSince)),
    "Next try": nextTryAt === null ? null : momentOf(nextTryAt),
    "Last delivered": agoOf(deliveredAt),
    "Delivered by": nodeId === null ? quiet("no node") : said(nodeId, 60),
  };
}

/** @param {string | null} at */
function agoOf(at) {
  return at === null ? quiet("never") : age(at);
}

/**
 * @param {Webhook} webhook
 * @returns {Readonly<Record<string, Child>>}
 */
function terms({ url, signers, chains, keys, states, giveUpAfterSeconds, generation, rotatedUntil, ...made }) {
  const { createdBy, createdAt, changedBy, changedAt } = made;
  return {
    Receiver: code(url),
    Signers: listed(signers),
    Chains: listed(chains),
    "API keys": listed(keys),
    States: listed(states),
    "Given up after": durationOf(giveUpAfterSeconds * 1_000),
    Secret: [
      `generation ${countOf(generation)}`,
      rotatedUntil === null ? null : quiet(`, the one before until ${momentOf(rotatedUntil)}`),
    ],
    Made: [age(createdAt), createdBy === null ? "" : [" by ", said(createdBy, 64)]],
    Changed: [age(changedAt), " by ", said(changedBy, 80)],
  };
}

/** @param {readonly (string | number)[] | null} chosen */
function listed(chosen) {
  return chosen === null ? quiet("all") : chosen.map((each, index) => [index === 0 ? "" : ", ", code(String(each))]);
}
