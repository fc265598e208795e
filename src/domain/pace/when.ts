/** Time of a scheduled action, on the monotonic clock. The action is due from that time on. */
export type When =
  | { readonly kind: "at once" }
  | { readonly kind: "at"; readonly ms: number }
  /** No action until an event schedules one. */
  | { readonly kind: "never" };

export const AT_ONCE: When = { kind: "at once" };
export const NEVER: When = { kind: "never" };

export function at(ms: number): When {
  return { kind: "at", ms };
}

/** Schedules an action after an interval; never, if no interval is set. */
export function afterInterval(nowMs: number, intervalMs: number | null): When {
  return intervalMs === null ? NEVER : at(nowMs + intervalMs);
}

export function isDue(when: When, nowMs: number): boolean {
  return when.kind === "at" ? when.ms <= nowMs : when.kind === "at once";
}

export interface BackoffRule {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Backoff time: doubling with half-range jitter. `failures` ≥ 1, `random` in [0, 1). */
export function backoffMs(rule: BackoffRule, failures: number, random: number): number {
  const full = Math.min(rule.mostMs, rule.firstMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random;
}
