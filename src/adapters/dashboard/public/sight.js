/**
 * Freshness of the page's data. For each source, the time of its last good answer is kept; a refusal, a 503 or a
 * missing answer does not count. The "Live" mark and the green headline depend only on these times.
 */

import { failureOf } from "./api.js";

/** Longest time that the node holds a poll open. A good answer must arrive at least this often. */
export const HELD_SECONDS = 10;
/**
 * Time after which a poll counts as unanswered, and a good answer no longer counts as recent. It is longer than the
 * node holds a poll open.
 */
export const LATE_MS = 15_000;
/**
 * In a hidden tab, a good answer counts as recent for this long, because browsers run a hidden tab's timers only once a
 * minute.
 */
const LATE_HIDDEN_MS = 90_000;

/**
 * State of each data source: `goodAt` (time of the last good answer) and the last failure since then.
 *
 * @typedef {{ readonly goodAt: number | null, readonly failure: { readonly at: number, readonly text: string } | null }} Followed
 * @type {Map<string, Followed>}
 */
const followed = new Map();

/** @param {string} name */
export function answered(name, now = Date.now()) {
  followed.set(name, { goodAt: now, failure: null });
}

/**
 * Records that a data source failed. `error`: as thrown by `callApi`.
 *
 * @param {string} name
 * @param {unknown} error
 */
export function failed(name, error, now = Date.now()) {
  const before = followed.get(name);
  const failure = { at: before?.failure?.at ?? now, text: failureText(error) };
  followed.set(name, { goodAt: before?.goodAt ?? null, failure });
}

/**
 * Freshness of the sources `names`. `live`: all have a recent good answer. `blind`: one is refused or unanswered; `why`
 * names it. `unknown`: neither a recent answer nor a failure, for example after loading or in a hidden tab. `since`:
 * the earliest of the sources' last good answers; null if a source has none.
 *
 * @param {readonly string[]} names
 * @returns {{ kind: "live", since: string, why: null } | { kind: "blind", since: string | null, why: string } | { kind: "unknown", since: string | null, why: null }}
 */
export function sightOf(names, { now = Date.now(), isHidden = document.hidden } = {}) {
  const all = names.map((name) => followed.get(name) ?? { goodAt: null, failure: null });
  const good = all.flatMap(({ goodAt }) => goodAt ?? []);
  const oldest = good.length < all.length ? null : Math.min(...good);
  const since = oldest === null ? null : new Date(oldest).toISOString();
  const failure = all.map((each) => each.failure).find((each) => each !== null) ?? null;
  if (failure !== null) return { kind: "blind", since, why: failure.text };
  const isLate = oldest === null || now - oldest > (isHidden ? LATE_HIDDEN_MS : LATE_MS);
  return isLate || since === null ? { kind: "unknown", since, why: null } : { kind: "live", since, why: null };
}

/**
 * Describes why a source failed, as a sentence without its full stop.
 *
 * @param {unknown} error
 */
function failureText(error) {
  const { status, message } = failureOf(error);
  if (status === undefined) return "The node does not answer";
  if (status === 403) return "This API key may not see it";
  return message.charAt(0).toUpperCase() + message.slice(1);
}
