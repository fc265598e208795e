/**
 * Actions on webhooks with their texts.
 *
 * @import { Action, Webhook } from "../../page-types.ts"
 * @import { Meaning } from "./actions.js"
 */

/** @type {NonNullable<Meaning["scopes"]>} */
const OPERATE = ["operate", "admin"];
/** @type {NonNullable<Meaning["scopes"]>} */
const ADMIN = ["admin"];

/** @type {Readonly<Record<string, Meaning>>} */
export const WEBHOOK_ACTIONS = {
  "webhook.add": {
    label: "Add a webhook",
    what: "Every outcome that the filter selects is posted to the receiver, signed. The secret is shown once, afterwards.",
    fields: ["name", "receiver", "begin"],
    scopes: ADMIN,
    hasNoReason: true,
  },
  "webhook.change": {
    label: "Change",
    what: "The receiver or its filter. What is left empty stays; of the filters, all are replaced if one is given.",
    fields: ["receiver"],
    scopes: ADMIN,
  },
  "webhook.pause": {
    label: "Pause the webhook",
    what: "Nothing more is posted until it is resumed. Its position is kept.",
    scopes: OPERATE,
  },
  "webhook.resume": {
    label: "Resume the webhook",
    what: "It goes on after its position. If it fails, it is tried now.",
    scopes: OPERATE,
  },
  "webhook.replay": {
    label: "Replay",
    what: "Everything after the position below is posted again, under the same ids.",
    fields: ["after"],
    scopes: OPERATE,
  },
  "webhook.test": { label: "Test", what: "Posts a signed test event to the receiver, now.", scopes: ADMIN },
  "webhook.rotate": {
    label: "Rotate the secret",
    what: "Shows the next secret, once. For the overlap, deliveries are signed with both.",
    fields: ["overlap"],
    scopes: ADMIN,
  },
  "webhook.remove": {
    label: "Remove",
    what: "Its position is forgotten for ever, and nothing more is posted.",
    danger: true,
    scopes: ADMIN,
    hasNoReason: true,
  },
};

/**
 * Name of a request about webhooks.
 *
 * @param {Action["method"]} method
 * @param {string} path
 */
export function webhookWord(method, path) {
  const [, , does] = /\/webhooks(\/[^/]+)?(?:\/([a-z]+))?$/.exec(path) ?? [];
  if (does !== undefined) return `webhook.${does}`;
  return `webhook.${method === "DELETE" ? "remove" : method === "PUT" ? "change" : "add"}`;
}

/**
 * @param {string} word
 * @param {string} path
 * @param {Action["method"]} [method]
 * @returns {Action}
 */
function actionOf(word, path, method = "POST") {
  return {
    action: word,
    label: WEBHOOK_ACTIONS[word]?.label ?? word,
    method,
    path: `/api/v1/webhooks${path}`,
    body: {},
  };
}

export const newWebhook = () => actionOf("webhook.add", "");

/**
 * All actions on a webhook, least drastic first.
 *
 * @param {Pick<Webhook, "subscriberId" | "state">} webhook
 */
export function actionsForWebhook({ subscriberId, state }) {
  const action = (/** @type {string} */ does) => actionOf(`webhook.${does}`, `/${subscriberId}/${does}`);
  return [
    action("test"),
    ...(state === "ACTIVE" ? [] : [action("resume")]),
    ...(state === "PAUSED" ? [] : [action("pause")]),
    action("replay"),
    actionOf("webhook.change", `/${subscriberId}`, "PUT"),
    action("rotate"),
    actionOf("webhook.remove", `/${subscriberId}`, "DELETE"),
  ];
}
