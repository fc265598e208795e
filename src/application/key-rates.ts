/**
 * How fast each API key may create, on this node: a bucket for each key that has a rate, by its name, so that two secrets of
 * one key share it. Another node has its own buckets: behind a load balancer a key has its rate on each.
 */
import { FencepostError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";
import { draw } from "../domain/rate.ts";
import type { Clock } from "../ports/clock.ts";

export const RATE_RULE = "createsPerSecond";

/** After which every bucket is full again. */
const FULL_AFTER_SECONDS = 1;

type Rated = Pick<Principal, "name" | "createsPerSecond">;

export class KeyRates {
  private readonly clock: Pick<Clock, "monotonicMs">;
  /** When each is full again, by the key's name. Those that are full are forgotten. */
  private readonly fullAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.clock = clock;
  }

  /** How many of so many it may create now, the first of them. All, where it has no rate. */
  take(key: Rated, wanted: number): number {
    return this.drawn(key, wanted)?.given ?? wanted;
  }

  /** How many more it may create now; null: it has no rate. */
  left(key: Rated): number | null {
    return this.drawn(key, 0)?.left ?? null;
  }

  private drawn({ name, createsPerSecond }: Rated, wanted: number) {
    if (createsPerSecond === null || name === null) return null;
    const nowMs = this.clock.monotonicMs();
    const drawn = draw(createsPerSecond, this.fullAtMs.get(name) ?? null, { wanted, nowMs });
    if (drawn.given > 0) {
      this.forget(nowMs);
      this.fullAtMs.set(name, drawn.fullAtMs);
    }
    return drawn;
  }

  /** Keys come and go; at most as many stay as created something within the last second. */
  private forget(nowMs: number): void {
    for (const [name, fullAtMs] of this.fullAtMs) if (fullAtMs <= nowMs) this.fullAtMs.delete(name);
  }
}

export function tooFast({ createsPerSecond: limit }: Rated): FencepostError {
  const detail = `this API key creates at most ${limit} a second on a node; nothing was accepted`;
  const retryAfterSeconds = FULL_AFTER_SECONDS;
  return new FencepostError("QUOTA_EXCEEDED", detail, { rule: RATE_RULE, limit: limit ?? 0, retryAfterSeconds });
}
