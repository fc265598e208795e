/**
 * What of the limits is used. Windows are fixed hours and days, UTC, by the database's clock. Only the present ones matter:
 * what was used in an earlier one limits nothing any more.
 */
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Wei. */
export interface Amounts {
  /** Moved to receivers. */
  readonly value: bigint;
  /** The same and gas × price. */
  readonly cost: bigint;
}

export const NOTHING: Amounts = { value: 0n, cost: 0n };

export interface Use {
  /** When the hour began that it is about, in milliseconds; the day is that hour's. */
  readonly hourMs: number;
  readonly hour: Amounts;
  readonly day: Amounts;
}

export const UNUSED: Use = { hourMs: 0, hour: NOTHING, day: NOTHING };

export function plus(a: Amounts, b: Amounts): Amounts {
  return { value: a.value + b.value, cost: a.cost + b.cost };
}

export function minus(a: Amounts, b: Amounts): Amounts {
  return { value: a.value - b.value, cost: a.cost - b.cost };
}

/** Of each the greater. */
export function most(a: Amounts, b: Amounts): Amounts {
  return { value: a.value > b.value ? a.value : b.value, cost: a.cost > b.cost ? a.cost : b.cost };
}

export function isNothing({ value, cost }: Amounts): boolean {
  return value === 0n && cost === 0n;
}

export function hourOf(ms: number): number {
  return ms - (ms % HOUR_MS);
}

function dayOf(ms: number): number {
  return ms - (ms % DAY_MS);
}

/**
 * As it stands at this moment. It never goes back to an earlier window: a transaction that waited for its lock is dated
 * before one that passed it, and a database's clock may jump. What it counts then counts in the later one.
 */
export function within(use: Use, at: Date): Use {
  const hourMs = hourOf(at.getTime());
  if (hourMs <= use.hourMs) return use;
  return { hourMs, hour: NOTHING, day: dayOf(hourMs) === dayOf(use.hourMs) ? use.day : NOTHING };
}

/** The hour in which something counts that is charged at this moment. */
export function chargedHour(use: Use, at: Date): number {
  return Math.max(use.hourMs, hourOf(at.getTime()));
}

/** Adds to the hour and the day of that hour, so far as they are the present ones. Less than nothing takes back. */
export function added(use: Use, hourMs: number, amounts: Amounts): Use {
  const now = within(use, new Date(hourMs));
  return {
    hourMs: now.hourMs,
    hour: now.hourMs === hourMs ? plus(now.hour, amounts) : now.hour,
    day: dayOf(now.hourMs) === dayOf(hourMs) ? plus(now.day, amounts) : now.day,
  };
}
