import { keepNewest } from "../../domain/keep-newest.ts";
import type { Clock } from "../../ports/clock.ts";

/** Questions to the chain, by subject: one answer serves every caller that comes soon enough. */
export class Answers<K, T> {
  private readonly clock;
  private readonly most;
  private readonly questions = new Map<K, { readonly askedAtMs: number; readonly answer: Promise<T> }>();

  /** `most`: subjects that are kept; the oldest are dropped. */
  constructor(clock: Clock, most = Number.POSITIVE_INFINITY) {
    this.clock = clock;
    this.most = most;
  }

  /** The answer to a question that is younger than `atMostMs`, else to a new one. */
  about(key: K, atMostMs: number, ask: (nowMs: number) => Promise<T>): Promise<T> {
    const nowMs = this.clock.monotonicMs();
    const known = this.questions.get(key);
    if (known !== undefined && nowMs - known.askedAtMs < atMostMs) return known.answer;
    const question = { askedAtMs: nowMs, answer: ask(nowMs) };
    keepNewest(this.questions, key, question, this.most);
    // A failure serves only those who already wait for it.
    question.answer.catch(() => {
      if (this.questions.get(key) === question) this.questions.delete(key);
    });
    return question.answer;
  }

  clear(): void {
    this.questions.clear();
  }
}
