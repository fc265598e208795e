import { keepNewest } from "../../domain/keep-newest.ts";
import type { Clock } from "../../ports/clock.ts";
import type { HeldQuery } from "../api.ts";

/**
 * Cache of the chain's answers, keyed by the request. Callers share one request if each of them accepts an answer of
 * that age.
 */
export class Answers<K, T> {
  private readonly clock;
  private readonly most;
  private readonly questions = new Map<K, { readonly askedAtMs: number; readonly answer: Promise<T> }>();

  /** `most`: maximum number of cached answers; the oldest are dropped. */
  constructor(clock: Clock, most = Number.POSITIVE_INFINITY) {
    this.clock = clock;
    this.most = most;
  }

  /** Returns the cached answer if its request is younger than `atMostMs`, else sends a new request. */
  about(key: K, atMostMs: number, ask: (nowMs: number) => Promise<T>): Promise<T> {
    const nowMs = this.clock.monotonicMs();
    const known = this.questions.get(key);
    if (known !== undefined && nowMs - known.askedAtMs < atMostMs) return known.answer;
    const question = { askedAtMs: nowMs, answer: ask(nowMs) };
    keepNewest(this.questions, key, question, this.most);
    // A failed request is not cached: it fails only the callers that already wait for it.
    question.answer.catch(() => {
      if (this.questions.get(key) === question) this.questions.delete(key);
    });
    return question.answer;
  }

  clear(): void {
    this.questions.clear();
  }
}

const EVERY_MS = 1_000;

/**
 * A view that many callers watch through long polls. It is computed once for all of them, at most once a second, and
 * only while a caller waits. A caller gets its response as soon as the view's revision differs from the one it last
 * saw, or when its wait time ends.
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
