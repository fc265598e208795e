/**
 * How much of what the page shows is proved. Each thing that is followed has the time of its last good answer: a refusal, a 503
 * or silence is no answer. Nothing is called live, and nothing is green, by anything else.
 */

/** An answer is held for at most this long; so often something good must arrive. */
export const HELD_SECONDS = 10;
/** A held answer that is later than this is silence. */
export const LATE_MS = 15_000;
/** Browsers run the timers of a tab that nobody sees once a minute. */
const LATE_HIDDEN_MS = 90_000;

/** By what is followed: `goodAt`, and the last failure since then. */
const followed = new Map();

export function answered(name, now = Date.now()) {
  followed.set(name, { goodAt: now, failure: null });
}

/** `error`: as `callApi` throws it. */
export function failed(name, error, now = Date.now()) {
  const before = followed.get(name);
  const failure = { at: before?.failure?.at ?? now, text: failureOf(error) };
  followed.set(name, { goodAt: before?.goodAt ?? null, failure });
}

/**
 * `live`: every one of `names` was answered well lately. `blind`: one of them is refused or silent, and `why` says which part.
 * `unknown`: no answer lately and no failure either, as after loading or in a tab that was hidden. `since`: the oldest of the
 * last good answers as a time; null: there was none.
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

/** The part that is missing, as a sentence without its full stop. */
function failureOf({ status, message }) {
  if (status === undefined) return "The node does not answer";
  if (status === 403) return "This API key may not see it";
  return message.charAt(0).toUpperCase() + message.slice(1);
}
