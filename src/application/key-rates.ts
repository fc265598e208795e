/**
 * Rate limits per API key on this node, for creates and for chain reads: one token bucket for each key that has a rate,
 * by the key's name, so that two secrets of one key share it. Each node has its own buckets: behind a load balancer a
 * key has its full rate on each node.
 */
import { FencepostError } from "../domain/errors.ts";
import type { Principal } from "../domain/keys/principal.ts";
import { draw } from "../domain/pace/rate.ts";
import type { Clock } from "../ports/clock.ts";

export const RATE_RULE = "createsPerSecond";
export type RateRule = typeof RATE_RULE | "readsPerSecond";

/** An empty token bucket is full again after this time in seconds. */
const FULL_AFTER_SECONDS = 1;

type Rated = Pick<Principal, "name" | RateRule>;

export class KeyRates {
  private readonly clock;
  /** Time at which each bucket is full again, by the key's name. Full buckets are removed. */
  private readonly fullAtMs: Readonly<Record<RateRule, Map<string, number>>> = {
    createsPerSecond: new Map(),
    readsPerSecond: new Map(),
  };

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.clock = clock;
  }

  /** How many of the wanted creates or reads the API key may make now; all of them if it has no rate limit. */
  take(key: Rated, wanted: number, rule: RateRule = RATE_RULE): number {
    return this.drawn(key, wanted, rule)?.given ?? wanted;
  }

  /** How many more creates the API key may make now; null if it has no rate limit. */
  left(key: Rated): number | null {
    return this.drawn(key, 0, RATE_RULE)?.left ?? null;
  }

  private drawn(key: Rated, wanted: number, rule: RateRule) {
    const { name, [rule]: perSecond } = key;
    if (perSecond === null || name === null) return null;
    const buckets = this.fullAtMs[rule];
    const nowMs = this.clock.monotonicMs();
    const drawn = draw(perSecond, buckets.get(name) ?? null, { wanted, nowMs });
    if (drawn.given > 0) {
      forget(buckets, nowMs);
      buckets.set(name, drawn.fullAtMs);
    }
    return drawn;
  }
}

/** Removes full buckets: at most as many remain as keys were used within the last second. */
function forget(buckets: Map<string, number>, nowMs: number) {
  for (const [name, fullAtMs] of buckets) if (fullAtMs <= nowMs) buckets.delete(name);
}

const REFUSALS: Readonly<Record<RateRule, (limit: number) => string>> = {
  createsPerSecond: (limit) => `this API key creates at most ${limit} a second on a node; nothing was accepted`,
  readsPerSecond: (limit) => `this API key has a chain asked at most ${limit} times a second on a node`,
};

export function tooFast(key: Rated, rule: RateRule = RATE_RULE): FencepostError {
  const limit = key[rule] ?? 0;
  const extras = { rule, limit, retryAfterSeconds: FULL_AFTER_SECONDS };
  return new FencepostError("QUOTA_EXCEEDED", REFUSALS[rule](limit), extras);
}
