/**
 * Input fields of the actions on webhooks, and the part of the request that they make.
 *
 * @import { Webhook } from "../../page-types.ts"
 */
import { h } from "../dom.js";

/**
 * @param {string} name
 * @param {string} label
 * @param {Readonly<Record<string, unknown>>} attributes
 */
const input = (name, label, attributes) =>
  h("label", { key: name }, `${label} `, h("input", { name, spellcheck: "false", autocomplete: "off", ...attributes }));

const LIST = "separated by spaces";
const WHOLE = { pattern: "[0-9]+", inputmode: "numeric" };
const STATES = ["CONFIRMED", "FAILED_FINAL", "STUCK", "REORGED"];

/** Each field, for the webhook that the action is about; undefined for a new one. */
export const WEBHOOK_FIELDS = {
  name: () => input("name", "Name", { required: true, pattern: "[A-Za-z0-9_.\\-]{1,64}", placeholder: "books" }),
  /** @param {Webhook | undefined} webhook */
  receiver: (webhook) => [
    input("url", "URL of the receiver", {
      type: "url",
      required: webhook === undefined,
      placeholder: webhook?.url ?? "where outcomes are posted",
    }),
    h(
      "details",
      { key: "filter" },
      h("summary", "Only some outcomes"),
      h(
        "div.stack",
        input("signers", "Of these signers", { pattern: "(\\s*0x[0-9a-fA-F]{40})+\\s*", placeholder: `0x…, ${LIST}` }),
        input("chains", "On these chains", { pattern: "[0-9\\s]+", placeholder: `ids, ${LIST}` }),
        input("keys", "Made by these API keys", { placeholder: `names, ${LIST}` }),
        input("states", "In these states", {
          pattern: `(\\s*(${STATES.join("|")}))+\\s*`,
          placeholder: STATES.join(" "),
        }),
      ),
    ),
    input("giveUpHours", "Paused after failing for, hours", { ...WHOLE, placeholder: hoursOf(webhook) }),
  ],
  begin: () => input("after", "Begins after position", { ...WHOLE, placeholder: "now; 0 for all that is kept" }),
  /** @param {Webhook | undefined} webhook */
  after: (webhook) =>
    input("after", "After position", {
      ...WHOLE,
      required: true,
      placeholder:
        webhook === undefined ? "0 for all that is kept" : `below ${webhook.position}; 0 for all that is kept`,
    }),
  overlap: () => input("overlapHours", "Overlap, hours", { ...WHOLE, placeholder: "24" }),
};

const HOUR_SECONDS = 3_600;

/** @param {Webhook | undefined} webhook */
function hoursOf(webhook) {
  return String(Math.round((webhook?.giveUpAfterSeconds ?? 72 * HOUR_SECONDS) / HOUR_SECONDS));
}

/**
 * Members of the request body, of the fields that are filled in.
 *
 * @param {Readonly<Record<string, string | undefined>>} said
 */
export function webhookBody({ name, url, signers, chains, keys, states, after, giveUpHours, overlapHours }) {
  const given = {
    name: textOf(name),
    url: textOf(url),
    signers: listOf(signers),
    chains: listOf(chains)?.map(Number),
    keys: listOf(keys),
    states: listOf(states),
    after: numberOf(after),
    giveUpAfterSeconds: secondsOf(giveUpHours),
    overlapSeconds: secondsOf(overlapHours),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** @param {string | undefined} text */
const textOf = (text) => (text === "" ? undefined : text);

/** @param {string | undefined} text */
function listOf(text) {
  const words = text?.split(/[\s,]+/).filter((word) => word !== "") ?? [];
  return words.length === 0 ? undefined : words;
}

/** @param {string | undefined} text */
function numberOf(text) {
  return text !== undefined && /^[0-9]+$/.test(text) ? Number(text) : undefined;
}

/** @param {string | undefined} hours */
function secondsOf(hours) {
  const number = numberOf(hours);
  return number === undefined ? undefined : number * HOUR_SECONDS;
}
