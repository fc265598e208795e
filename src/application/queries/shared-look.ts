import type { Clock } from "../../ports/clock.ts";
import type { HeldQuery } from "../api.ts";
import { Answers } from "../chain/answers.ts";

const EVERY_MS = 1_000;

/**
 * A view that many people watch. It is drawn at most once a second, only while somebody asks, and once for all who do. The
 * answer comes as soon as its revision differs from the one that the caller has seen, or when the caller's wait is over.
 */
export function sharedLook<T>(clock: Clock, draw: () => Promise<T>) {
  const views = new Answers<"view", T>(clock);
  let drawnMs = 0;
  const drawAt = (nowMs: number) => {
    drawnMs = nowMs;
    return draw();
  };
  return async <V extends { readonly revision: string }>(query: HeldQuery, present: (view: T) => V): Promise<V> => {
    const untilMs = clock.monotonicMs() + (query.revision === undefined ? 0 : (query.waitMs ?? 0));
    for (;;) {
      const view = present(await views.about("view", EVERY_MS, drawAt));
      const nowMs = clock.monotonicMs();
      if (view.revision !== query.revision || nowMs >= untilMs || query.signal?.aborted === true) return view;
      const nextMs = Math.max(1, drawnMs + EVERY_MS - nowMs);
      await clock.sleep(Math.min(untilMs - nowMs, nextMs), query.signal).catch(() => undefined);
    }
  };
}
