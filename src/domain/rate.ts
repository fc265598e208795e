/**
 * So many a second, and as many at once after a rest: a bucket that holds one second's worth. It is kept as the moment at
 * which it is full again, so that nothing has to be poured in meanwhile.
 */
export interface Drawn {
  /** Of what was wanted, the most that there was. */
  readonly given: number;
  /** Whole ones that are left. */
  readonly left: number;
  /** Monotonic. At that moment there is a whole second's worth again. */
  readonly fullAtMs: number;
}

const A_SECOND_MS = 1_000;
/** Fractions of a millisecond add up to a hair less than a whole one. */
const HAIR = 1e-6;

/** `fullAtMs`: of the last draw; null: it was never drawn from. */
export function draw(
  perSecond: number,
  fullAtMs: number | null,
  { wanted, nowMs }: { readonly wanted: number; readonly nowMs: number },
): Drawn {
  const emptyForMs = Math.max(0, (fullAtMs ?? nowMs) - nowMs);
  const whole = Math.max(0, Math.floor(perSecond * (1 - emptyForMs / A_SECOND_MS) + HAIR));
  const given = Math.min(wanted, whole);
  return { given, left: whole - given, fullAtMs: nowMs + emptyForMs + (given * A_SECOND_MS) / perSecond };
}
