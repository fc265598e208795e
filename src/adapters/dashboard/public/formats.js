/** Formats numbers, times and names for people. */

/** @param {string} hex */
export function shortHex(hex) {
  return hex.length <= 14 ? hex : `${hex.slice(0, 6)}…${hex.slice(-4)}`;
}

/**
 * Shortens a transaction's id to its end: ids begin with the creation time, so neighbours differ only at the end.
 *
 * @param {string} txId
 */
export function shortId(txId) {
  return txId.length <= 14 ? txId : `…${txId.slice(-8)}`;
}

const WEI_DIGITS = 18;

/**
 * @param {string} wei
 * @returns {string}
 */
export function etherOf(wei) {
  if (wei.startsWith("-")) return `-${etherOf(wei.slice(1)).replace("< ", "")}`;
  const digits = wei.padStart(WEI_DIGITS + 1, "0");
  const whole = digits.slice(0, -WEI_DIGITS).replace(/\B(?=(\d{3})+$)/g, ",");
  const fraction = digits.slice(-WEI_DIGITS).slice(0, 4).replace(/0+$/, "");
  if (whole === "0" && fraction === "" && wei !== "0") return "< 0.0001";
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/**
 * The exact amount in a larger unit, without rounding and without separators, so that it can be pasted.
 *
 * @param {string} wei
 * @returns {string}
 */
export function exactOf(wei, digits = WEI_DIGITS) {
  if (wei.startsWith("-")) return `-${exactOf(wei.slice(1), digits)}`;
  const text = wei.padStart(digits + 1, "0");
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`.replace(/\.?0+$/, "");
}

/** @param {string | number} wei */
export function gweiOf(wei) {
  const gwei = Number(wei) / 1e9;
  return gwei.toLocaleString("en", { maximumSignificantDigits: 4 });
}

/**
 * Converts a decimal amount to its smallest unit (`digits` decimals), without floating point.
 *
 * @param {string} amount
 */
export function weiOf(amount, digits = WEI_DIGITS) {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(digits, "0")).toString();
}

export const GWEI_DIGITS = 9;

/** @param {number} number */
export function countOf(number) {
  return number.toLocaleString("en");
}

/**
 * @param {number} count
 * @param {string} word
 */
export function plural(count, word, words = `${word}s`) {
  return `${countOf(count)} ${count === 1 ? word : words}`;
}

/**
 * Time zone of all times on the page; undefined for the browser's own.
 *
 * @type {"UTC" | undefined}
 */
let zone;

/** @param {"UTC" | undefined} chosen */
export function useZone(chosen) {
  zone = chosen;
}

/** Short name of the time zone in use, such as "UTC" or "GMT+1". */
export function zoneName(at = new Date()) {
  const parts = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "short" }).formatToParts(at);
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

/** @param {string | number} iso */
export function timeOf(iso) {
  return new Date(iso).toLocaleTimeString([], { hour12: false, timeZone: zone });
}

/**
 * Formats a date and time, to the second, with the name of its time zone.
 *
 * @param {string | number} iso
 */
export function momentOf(iso) {
  const at = new Date(iso);
  const text = at.toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hour12: false, timeZone: zone });
  return `${text} ${zoneName(at)}`;
}

/**
 * Formats a date and time to the minute, for the ends of a stretch of time.
 *
 * @param {string | number} iso
 */
export function minuteOf(iso) {
  const at = new Date(iso);
  const form = /** @type {const} */ ({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  return at.toLocaleString([], { ...form, hour12: false, timeZone: zone });
}

const MINUTE_MS = 60_000;

/**
 * Value of a field for a date and time, in the zone of the page, such as "2026-11-18T09:30".
 *
 * @param {string} iso
 */
export function fieldOf(iso) {
  const ms = Date.parse(iso);
  const shift = zone === "UTC" ? 0 : new Date(ms).getTimezoneOffset() * MINUTE_MS;
  return Number.isNaN(ms) ? "" : new Date(ms - shift).toISOString().slice(0, 16);
}

/** A year below this is one that is still being typed: a field has the year 2 after its first digit. */
const FIRST_YEAR = 1970;

/**
 * The instant of a field's value, in the zone of the page; undefined for an empty field, null while a year is typed.
 *
 * @param {string} field
 */
export function instantOf(field) {
  if (field === "") return undefined;
  const at = new Date(zone === "UTC" ? `${field}Z` : field);
  return Number.isNaN(at.getTime()) || at.getUTCFullYear() < FIRST_YEAR ? null : at.toISOString();
}

/**
 * Formats a duration: "320 ms", "4.2 s", "3 min", "2 h 5 min", "3 d".
 *
 * @param {number} ms
 */
export function durationOf(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d`;
}

/**
 * Formats the time since `iso` in whole seconds, for live counters.
 *
 * @param {string} iso
 * @param {number} now
 */
export function ageOf(iso, now) {
  const ms = Math.max(0, now - Date.parse(iso));
  return ms < 10_000 ? `${Math.floor(ms / 1_000)} s` : durationOf(ms);
}

/**
 * Invisible characters and those that change the writing direction (line ends, NUL, bidi marks, zero widths). They are
 * spelled out, so that one text cannot look like another.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** @param {string} text */
export function visible(text) {
  return text.replaceAll(UNSEEN, (character) => `⟨${codeOf(character)}⟩`);
}

/** @param {string} character */
function codeOf(character) {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Shortens a long text and adds how much was cut.
 *
 * @param {string} text
 */
export function cut(text, most = 2_000) {
  return text.length <= most ? text : `${text.slice(0, most)}… and ${plural(text.length - most, "character")} more`;
}

/**
 * Turns an error code into words: "NONCE_CONSUMED_EXTERNALLY" → "nonce consumed externally".
 *
 * @param {string} code
 */
export function wordsOf(code) {
  return code.toLowerCase().replaceAll("_", " ");
}
