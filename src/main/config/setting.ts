import { formatDuration } from "./duration.ts";
import { choice, duration, durationOrOff, integer, type Parser } from "./parsers.ts";

export type Variable = `FENCEPOST_${string}`;

export interface Setting<T> {
  readonly variable: Variable;
  readonly parse: Parser<T>;
  readonly fallback: NoInfer<T>;
  /** Where `dev` differs. */
  readonly devFallback?: NoInfer<T>;
  /** For `fencepost config` and the documentation; without secrets. */
  show(value: NoInfer<T>): string;
  /** The value is never quoted in a message. */
  readonly secret?: boolean;
}

export function setting<T>(variable: Variable, rest: Omit<Setting<T>, "variable">): Setting<T> {
  return { variable, ...rest };
}

interface Optional<T> {
  readonly parse: Parser<T>;
  readonly secret?: boolean;
  show(value: NoInfer<T>): string;
}

/** Not "none": that is a value which `auth` may have. */
export const NOT_SET = "not set";

/** A setting without a default: null until it is set. */
export function optional<T>(variable: Variable, { show, ...rest }: Optional<T>): Setting<T | null> {
  return { variable, ...rest, fallback: null, show: (value) => (value === null ? NOT_SET : show(value)) };
}

/** As `optional`, for what has a default on each chain (src/domain/default-ceilings.ts). */
export const BY_CHAIN_ID = "by chain id";

export function byChain<T>(variable: Variable, { show, ...rest }: Optional<T>): Setting<T | null> {
  return { variable, ...rest, fallback: null, show: (value) => (value === null ? BY_CHAIN_ID : show(value)) };
}

export function whole(variable: Variable, fallback: number, limits: readonly [number, number]): Setting<number> {
  return { variable, parse: integer(...limits), fallback, show: String };
}

/** Durations, in milliseconds: with the least, or with least and most. */
export function time(
  variable: Variable,
  fallbackMs: number,
  limits: number | readonly [number, number],
): Setting<number> {
  const parse = typeof limits === "number" ? duration(limits) : duration(...limits);
  return { variable, parse, fallback: fallbackMs, show: formatDuration };
}

/** As `time`, and `off` is null. */
export function timeOrOff(variable: Variable, fallbackMs: number, leastMs: number): Setting<number | null> {
  const show = (value: number | null): string => (value === null ? "off" : formatDuration(value));
  return { variable, parse: durationOrOff(leastMs), fallback: fallbackMs, show };
}

/** The first value is the default. */
export function oneOf<const T extends string>(variable: Variable, ...values: readonly [T, ...T[]]): Setting<T> {
  return { variable, parse: choice(...values), fallback: values[0], show: String };
}
