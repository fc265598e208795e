import { choice, duration, durationOrOff, formatDuration, integer, type Parser } from "./parsers.ts";

/** A number and a unit: `250ms`, `10s`, `5m`, `1h`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h"}`;

export interface Setting<T, Said = unknown> {
  readonly variable: `FENCEPOST_${string}`;
  readonly parse: Parser<T, Said>;
  readonly fallback: NoInfer<T>;
  /** Where `dev` differs. */
  readonly devFallback?: NoInfer<T>;
  /** For `fencepost config` and the documentation; without secrets. */
  show(value: NoInfer<T>): string;
  /** The texts in it that must never leave the process. Where this is given, no message quotes any of the value. */
  secrets?(value: NonNullable<NoInfer<T>>): readonly string[];
}

export type Rule<T, Said> = Omit<Setting<T, Said>, "variable">;

/** In milliseconds: the name of the value ends with the unit in the code. */
export interface Timed {
  readonly unit: "Ms";
}

/** Settings by their keys, each with the variable that its key spells: `pollInterval` is FENCEPOST_POLL_INTERVAL. */
export function settings<R extends Readonly<Record<string, Rule<unknown, unknown>>>>(rules: R) {
  const named = Object.entries(rules).map(([key, rule]) => {
    return [key, { ...rule, variable: `FENCEPOST_${key.replace(/[A-Z]/g, "_$&").toUpperCase()}` }];
  });
  return Object.fromEntries(named) as { readonly [K in keyof R]: R[K] & Pick<Setting<unknown>, "variable"> };
}

/** Not "none": that is a value which `auth` may have. */
export const NOT_SET = "not set";

/** Of what has a default on each chain (src/domain/default-ceilings.ts). */
export const BY_CHAIN_ID = "by chain id";

interface Optional<T, Said> extends Pick<Rule<T, Said>, "parse"> {
  show?(value: NoInfer<T>): string;
  secrets?(value: NonNullable<NoInfer<T>>): readonly string[];
  /** Shown where it is not set. */
  readonly unset?: string;
}

/** A setting without a default: null until it is set. */
export function optional<T, Said>({
  show = String,
  unset = NOT_SET,
  ...rest
}: Optional<T, Said>): Rule<T | null, Said> {
  return { ...rest, fallback: null, show: (value) => (value === null ? unset : show(value)) };
}

export function whole(fallback: number, limits: readonly [number, number]): Rule<number, number> {
  return { parse: integer(...limits), fallback, show: String };
}

/** Durations, in milliseconds: with the least, or with least and most. */
export function time(fallback: number, leastMs: number, mostMs?: number): Rule<number, Duration> & Timed {
  return { parse: duration(leastMs, mostMs), fallback, show: formatDuration, unit: "Ms" };
}

/** As `time`, and `off` is null. */
export function timeOrOff(fallback: number | null, leastMs: number): Rule<number | null, Duration | "off"> & Timed {
  const show = (value: number | null): string => (value === null ? "off" : formatDuration(value));
  return { parse: durationOrOff(leastMs), fallback, show, unit: "Ms" };
}

/** The first value is the default. */
export function oneOf<const T extends string>(...values: readonly [T, ...T[]]): Rule<T, T> {
  return { parse: choice(...values), fallback: values[0], show: String };
}
