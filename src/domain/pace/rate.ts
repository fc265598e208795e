/**
 * Token bucket: a rate per second, with a burst of one second's worth. It is stored as the time at which it is full
 * again, so that no timer refills it.
 */
export interface Drawn {
  /** Number of tokens that were given, at most the number wanted. */
  readonly given: number;
  /** Whole tokens left in the bucket. */
  readonly left: number;
  /** Monotonic time at which the bucket is full again. */
  readonly fullAtMs: number;
}

const A_SECOND_MS = 1_000;
/** Tolerance for rounding errors: the sum of fractions of a millisecond may be slightly below a whole token. */
const HAIR = 1e-6;

/** Draws tokens. `fullAtMs`: result of the last draw; null if there was none. */
export function draw(
  perSecond: number,
  fullAtMs: number | null,
  { wanted, nowMs }: { wanted: number; nowMs: number },
): Drawn {
  const emptyForMs = Math.max(0, (fullAtMs ?? nowMs) - nowMs);
  const whole = Math.max(0, Math.floor(perSecond * (1 - emptyForMs / A_SECOND_MS) + HAIR));
  const given = Math.min(wanted, whole);
  return { given, left: whole - given, fullAtMs: nowMs + emptyForMs + (given * A_SECOND_MS) / perSecond };
}
