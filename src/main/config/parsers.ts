import { actingWordIn, METHOD_NAME } from "../../domain/chain/rpc-methods.ts";
import { isQueueShare, MOST_PER_SECOND } from "../../domain/keys/principal.ts";

/**
 * A parser converts the value of an environment variable (always text) or of a file (anything). It reports a mistake as
 * a phrase that follows the value in a sentence: `"10" is not a duration`. The phrase never quotes the value, which may
 * be a secret.
 */
export type Parsed<T> = { readonly value: T } | { readonly mistake: string };
export interface Parser<T, Written = unknown> {
  (raw: unknown): Parsed<T>;
  /** Type of the value as it is written in a configuration file (define.ts). Never set at run time. */
  readonly written?: Written;
}

/** A JSON document: an object in a file, or JSON text in a variable. */
export const document: Parser<Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>> = (raw) => {
  const value = typeof raw === "string" ? parsedJson(raw) : raw;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { mistake: "is not an object" };
  return { value: value as Readonly<Record<string, unknown>> };
};

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Creates a parser of texts. `read` returns null or undefined for a text to refuse. */
export function reading<T, Written = T>(
  read: (text: string) => T | null | undefined,
  mistake: string,
): Parser<T, Written> {
  return (raw) => {
    const value = read(asText(raw) ?? "");
    return value === null || value === undefined ? { mistake } : { value };
  };
}

export function matching(pattern: RegExp, mistake: string): Parser<string, string> {
  return reading((text) => (pattern.test(text) ? text : null), mistake);
}

export const text = matching(/./s, "is not a text");

export function choice<const T extends string>(...values: readonly T[]): Parser<T, T> {
  return reading((text) => values.find((one) => one === text), `is not one of ${values.join(", ")}`);
}

/**
 * Accepts only `fail`. The former value `requeue` gave a transaction a second nonce and could pay twice, so it is
 * refused with an explanation.
 */
export const onlyFail: Parser<"fail", "fail"> = (raw) => {
  const value = asText(raw);
  if (value === "fail") return { value };
  const instead = "a transaction that loses its nonce ends as FAILED_FINAL/NONCE_CONSUMED_EXTERNALLY";
  const mistake = `was removed: ${instead}, and its caller decides whether to send it again (docs/external-use.md)`;
  return { mistake: value === "requeue" ? mistake : "is not fail, the only value" };
};

const FLAGS = new Map([
  ["true", true],
  ["false", false],
]);
export const flag = reading((text) => FLAGS.get(text), "is neither true nor false");

export function integer(least: number, most: number): Parser<number, number> {
  const read = (digits: string) => {
    const value = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
    return value >= least && value <= most ? value : null;
  };
  return reading(read, `is not a whole number from ${least} to ${most}`);
}

export const chainId = integer(1, Number.MAX_SAFE_INTEGER);

/** A fraction of a lane's queue, above 0 and up to 1. */
export const share = reading((digits) => {
  const value = /^\d(\.\d+)?$/.test(digits) ? Number(digits) : Number.NaN;
  return isQueueShare(value) ? value : null;
}, "is not a part of one (use 0.1, or 1; four decimals at most)");

/** A rate: creates or reads per second. */
export const rate = integer(1, MOST_PER_SECOND);

/** Subscription methods are refused: they need a permanent connection, and endpoints are called over HTTP. */
const SUBSCRIPTIONS = ["eth_subscribe", "eth_unsubscribe"];

/** A JSON-RPC method that does not send or sign. */
export const rpcMethod: Parser<string, string> = (raw) => {
  const value = asText(raw) ?? "";
  if (!METHOD_NAME.test(value)) return { mistake: "is not the name of a method (use zks_getL1BatchDetails)" };
  if (SUBSCRIPTIONS.includes(value)) return { mistake: "is answered over WebSockets, and never forwarded" };
  const word = actingWordIn(value);
  return word === null ? { value } : { mistake: `is a method that can ${word}: /rpc forwards only reads` };
};

const NOT_A_DURATION = { mistake: "is not a duration (use 10s, 250ms, 5m)" };

/** Parses a duration to milliseconds. */
export function duration<Written>(leastMs: number, mostMs = Number.POSITIVE_INFINITY): Parser<number, Written> {
  return (raw) => {
    const value = parseDuration(asText(raw) ?? "");
    if (value === null) return NOT_A_DURATION;
    if (value > mostMs) return { mistake: `is too long (at most ${formatDuration(mostMs)})` };
    return value < leastMs ? { mistake: `is too short (at least ${formatDuration(leastMs)})` } : { value };
  };
}

/** Like `duration`, but also accepts `off`, which becomes null. */
export function durationOrOff<Written>(leastMs: number): Parser<number | null, Written> {
  const parse = duration(leastMs);
  return (raw) => {
    if (asText(raw) === "off" || raw === false) return { value: null };
    const parsed = parse(raw);
    return parsed === NOT_A_DURATION ? { mistake: "is not a duration (use 10s, 250ms, 5m, or off)" } : parsed;
  };
}

const GWEI_DECIMALS = 9;

/** An amount in gwei with up to nine decimals; the value is in wei. */
export const gwei: Parser<bigint, number | `${number}`> = (raw) => {
  const match = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(asText(raw) ?? "");
  if (match === null) return { mistake: "is not an amount of gwei (use 50 or 1.5)" };
  const value = BigInt((match[1] ?? "") + (match[2] ?? "").padEnd(GWEI_DECIMALS, "0"));
  return value > 0n ? { value } : { mistake: "is not more than zero" };
};

/** An amount in wei, as digits. In a file it may also be a bigint; a double does not hold it exactly. */
export const wei = reading<bigint, bigint | `${bigint}`>(
  (digits) => (/^\d{1,78}$/.test(digits) ? BigInt(digits) : null),
  "is not an amount of wei",
);

export function formatGwei(wei: bigint): string {
  const digits = wei.toString().padStart(GWEI_DECIMALS + 1, "0");
  const fraction = digits.slice(-GWEI_DECIMALS).replace(/0+$/, "");
  return digits.slice(0, -GWEI_DECIMALS) + (fraction === "" ? "" : `.${fraction}`);
}

/** A list in a file, or comma-separated text. A value that occurs twice is refused. */
export function list<T, Written = string>(
  item: Parser<T, Written>,
  identity: (value: T) => unknown = (value) => value,
): Parser<readonly T[], Extract<Written, string> | readonly Written[]> {
  return (raw) => {
    const items = typeof raw === "string" ? raw.split(",") : raw;
    if (!Array.isArray(items)) return { mistake: "is not a list (comma-separated)" };
    if (items.length === 0) return { mistake: "needs at least one item" };
    const values = new Map<unknown, T>();
    for (const [index, one] of items.entries()) {
      const parsed = item(one);
      if ("mistake" in parsed) return { mistake: `is wrong at place ${index + 1}: ${parsed.mistake}` };
      const key = identity(parsed.value);
      if (values.has(key)) return { mistake: `is wrong at place ${index + 1}: given before` };
      values.set(key, parsed.value);
    }
    return { value: [...values.values()] };
  };
}

/** The trimmed text of a string, number, bigint or boolean, else null. */
export function asText(raw: unknown): string | null {
  if (typeof raw === "string") return raw.trim();
  return ["number", "bigint", "boolean"].includes(typeof raw) ? String(raw) : null;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DURATION = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h)$/;
const LONGEST_MS = 365 * 24 * 3_600_000;

/** Parses a duration to whole milliseconds; null if the text is no duration. A bare `0` needs no unit. */
export function parseDuration(text: string): number | null {
  if (text === "0") return 0;
  const match = DURATION.exec(text);
  if (match === null) return null;
  const ms = Number(match[1]) * (UNITS_MS[match[2] ?? ""] ?? Number.NaN);
  const whole = Math.round(ms);
  const isWhole = Math.abs(ms - whole) < 1e-6;
  return isWhole && whole <= LONGEST_MS ? whole : null;
}

/** Formats a duration in the shortest form that parses to the same value. */
export function formatDuration(ms: number): string {
  const unit = ["h", "m", "s"].find((one) => ms > 0 && ms % (UNITS_MS[one] ?? Number.NaN) === 0) ?? "ms";
  return `${ms / (UNITS_MS[unit] ?? 1)}${unit}`;
}
