/**
 * A view of everything that many people look at again and again. It is drawn at most once a second, only while somebody asks,
 * and once for all who do.
 */
import type { Clock } from "../../ports/clock.ts";
import type { HeldQuery } from "../api.ts";

const EVERY_MS = 1_000;

export class SharedLook<T> {
  private readonly clock: Clock;
  private readonly draw: () => Promise<T>;
  private last: { readonly atMs: number; readonly view: Promise<T> } | null = null;

  constructor(clock: Clock, draw: () => Promise<T>) {
    this.clock = clock;
    this.draw = draw;
  }

  /** As of a second ago, or younger. */
  now(): Promise<T> {
    const nowMs = this.clock.monotonicMs();
    if (this.last !== null && nowMs - this.last.atMs < EVERY_MS) return this.last.view;
    const view = this.draw();
    const drawn = { atMs: nowMs, view };
    this.last = drawn;
    // What failed is tried anew by the next who asks.
    view.catch(() => {
      if (this.last === drawn) this.last = null;
    });
    return view;
  }

  /** As soon as it is told differently than under the revision that the caller has seen, or when its wait is over. */
  async held<V extends { readonly revision: string }>(query: HeldQuery, tell: (view: T) => V): Promise<V> {
    const untilMs = this.clock.monotonicMs() + (query.revision === undefined ? 0 : (query.waitMs ?? 0));
    for (;;) {
      const told = tell(await this.now());
      const leftMs = untilMs - this.clock.monotonicMs();
      if (told.revision !== query.revision || leftMs <= 0 || query.signal?.aborted === true) return told;
      await this.clock.sleep(Math.min(leftMs, this.untilNextMs()), query.signal).catch(() => undefined);
    }
  }

  private untilNextMs() {
    if (this.last === null) return EVERY_MS;
    return Math.max(1, this.last.atMs + EVERY_MS - this.clock.monotonicMs());
  }
}
