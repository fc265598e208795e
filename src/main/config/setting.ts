import { choice, duration, durationOrOff, formatDuration, integer, type Parser, parseDuration } from "./parsers.ts";

/** A duration as a number and a unit: `250ms`, `10s`, `5m`, `1h`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h"}`;

/** One setting as declared in the settings table. */
export interface Rule<T, Written = unknown> {
  readonly parse: Parser<T, Written>;
  readonly fallback: NoInfer<T>;
  /** Default of the setting for the `dev` command, if it differs. */
  readonly devFallback?: NoInfer<T>;
  /** Formats a value for `fencepost config` and the documentation, without secrets. */
  show?(value: NonNullable<NoInfer<T>>): string;
  /** Text that is shown if the setting is not set. */
  readonly unset?: string;
  /**
   * Returns the parts of the value that must never leave the process. If a setting has this function, messages never
   * quote its value.
   */
  secrets?(value: NonNullable<NoInfer<T>>): readonly string[];
}

export interface Setting<T, Written = unknown> extends Omit<Rule<T, Written>, "show"> {
  readonly variable: `FENCEPOST_${string}`;
  show(value: T): string;
}

/** Marks a setting whose value is in milliseconds: its name in the code ends with `Ms`. */
export interface Timed {
  readonly unit: "Ms";
}

/**
 * Settings by their keys, each with the environment variable derived from its key: `pollInterval` is
 * FENCEPOST_POLL_INTERVAL.
 */
export function settings<R extends Readonly<Record<string, Rule<unknown>>>>(rules: R) {
  const named = Object.entries(rules).map(([key, rule]) => {
    const variable = `FENCEPOST_${key.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
    const show = (value: unknown) =>
      value === null || value === undefined ? (rule.unset ?? NOT_SET) : (rule.show ?? joined)(value);
    return [key, { ...rule, variable, show }];
  });
  return Object.fromEntries(named) as {
    readonly [K in keyof R]: Omit<R[K], "show"> & Pick<Setting<unknown>, "variable" | "show">;
  };
}

function joined(value: unknown) {
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Text that is shown for a setting that is not set. It is not "none", because `auth` can have that value. */
export const NOT_SET = "not set";

/** Text for a setting that is not set and whose default depends on the chain (src/domain/fees/default-ceilings.ts). */
export const BY_CHAIN_ID = "by chain id";

export function withDefault<T, Written>(fallback: NoInfer<T>, parse: Parser<T, Written>): Rule<T, Written> {
  return { parse, fallback };
}

/** A setting without a default: null until it is set. */
export function optional<T, Written>(
  parse: Parser<T, Written>,
  rest: Pick<Rule<T>, "show" | "unset" | "secrets"> = {},
): Rule<T | null, Written> {
  return { ...rest, parse, fallback: null };
}

export function whole(fallback: number, limits: readonly [number, number]): Rule<number, number> {
  return { parse: integer(...limits), fallback };
}

/** A duration in milliseconds, of at least `leastMs`. */
export function time(fallback: number, leastMs: number, mostMs?: number): Rule<number, Duration> & Timed {
  return { parse: duration(leastMs, mostMs), fallback, show: formatDuration, unit: "Ms" };
}

/** Like `time`, but also accepts `off`, which becomes null. */
export function timeOrOff(fallback: number | null, leastMs: number): Rule<number | null, Duration | "off"> & Timed {
  return { parse: durationOrOff(leastMs), fallback, show: formatDuration, unset: "off", unit: "Ms" };
}

/** A setting with a choice of values; the first value is the default. */
export function oneOf<const T extends string>(...values: readonly [T, ...T[]]): Rule<T, T> {
  return { parse: choice(...values), fallback: values[0] };
}

const DAY_MS = 86_400_000;

type Age = Duration | `${number}d`;

/**
 * A retention age: days (`90d`), a duration (`36h`), or a word that means "keep for ever", which is the default and
 * parses to null.
 */
export function ageOr<const Word extends string>(word: Word, leastMs: number): Rule<number | null, Age | Word> {
  const parse: Parser<number | null, Age | Word> = (raw) => {
    const text = typeof raw === "string" ? raw.trim() : "";
    if (text === word) return { value: null };
    const days = /^([1-9]\d{0,3})d$/.exec(text)?.[1];
    const value = days === undefined ? parseDuration(text) : Number(days) * DAY_MS;
    if (value === null) return { mistake: `is not an age (use 90d, 36h, or ${word})` };
    return value < leastMs ? { mistake: `is too short (at least ${formatAge(leastMs)}, or ${word})` } : { value };
  };
  return { parse, fallback: null, show: formatAge, unset: word };
}

export function formatAge(ms: number): string {
  return ms > 0 && ms % DAY_MS === 0 ? `${ms / DAY_MS}d` : formatDuration(ms);
}
