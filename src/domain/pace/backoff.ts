export interface BackoffRule {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Doubling with half-range jitter: `failures` ≥ 1, `random` in [0, 1). */
export function backoffMs(rule: BackoffRule, failures: number, random: number): number {
  const full = Math.min(rule.mostMs, rule.firstMs * 2 ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random;
}
