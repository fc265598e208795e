import type { Clock } from "../../ports/clock.ts";

export interface RateRule {
  readonly most: number;
  readonly withinMs: number;
}

/** How often something may happen to one thing: so many times within any stretch of that length. */
export class RateLimit<Key> {
  private readonly clock;
  private readonly rule;
  private readonly taken = new Map<Key, number[]>();

  constructor(clock: Pick<Clock, "monotonicMs">, rule: RateRule) {
    this.clock = clock;
    this.rule = rule;
  }

  /** False: not now. */
  take(key: Key): boolean {
    const nowMs = this.clock.monotonicMs();
    const recent = (this.taken.get(key) ?? []).filter((atMs) => nowMs - atMs < this.rule.withinMs);
    if (recent.length >= this.rule.most) return false;
    this.taken.delete(key);
    this.taken.set(key, [...recent, nowMs]);
    this.forget(nowMs);
    return true;
  }

  /** Keys stand in the order of their last use: those whose time is over stand in front. */
  private forget(nowMs: number) {
    for (const [key, times] of this.taken) {
      if (nowMs - (times.at(-1) ?? 0) < this.rule.withinMs) return;
      this.taken.delete(key);
    }
  }
}
