/**
 * Freshness of the page's data. Each source has the time of its last good answer; a refusal, a 503 or no answer does
 * not count. "Live" and green depend on nothing else.
 */

/** Longest time that the node holds a poll: a good answer must arrive this often. */
export const HELD_SECONDS = 10;
/** Additional delay after which a held poll counts as unanswered. */
export const LATE_MS = 15_000;
/** Browsers run the timers of a hidden tab once a minute. */
const LATE_HIDDEN_MS = 90_000;

/** State of each source: `goodAt`, and the last failure since then. */
const followed = new Map();

export function answered(name, now = Date.now()) {
  followed.set(name, { goodAt: now, failure: null });
}

/** `error`: as thrown by `callApi`. */
export function failed(name, error, now = Date.now()) {
  const before = followed.get(name);
  const failure = { at: before?.failure?.at ?? now, text: failureOf(error) };
  followed.set(name, { goodAt: before?.goodAt ?? null, failure });
}

/**
 * `live`: all of `names` have a recent good answer. `blind`: one is refused or unanswered; `why` names it. `unknown`:
 * neither a recent answer nor a failure, as after loading or in a hidden tab. `since`: time of the oldest last good
 * answer; null: none.
 */
export function sightOf(names, { now = Date.now(), isHidden = document.hidden } = {}) {
  const all = names.map((name) => followed.get(name) ?? { goodAt: null, failure: null });
  const oldest = all.some(({ goodAt }) => goodAt === null) ? null : Math.min(...all.map(({ goodAt }) => goodAt));
  const since = oldest === null ? null : new Date(oldest).toISOString();
  const failure = all.map((each) => each.failure).find((each) => each !== null) ?? null;
  if (failure !== null) return { kind: "blind", since, why: failure.text };
  const isLate = oldest === null || now - oldest > (isHidden ? LATE_HIDDEN_MS : LATE_MS);
  return { kind: isLate ? "unknown" : "live", since, why: null };
}

/** The missing part, as a sentence without its full stop. */
function failureOf({ status, message }) {
  if (status === undefined) return "The node does not answer";
  if (status === 403) return "This API key may not see it";
  return message.charAt(0).toUpperCase() + message.slice(1);
}
