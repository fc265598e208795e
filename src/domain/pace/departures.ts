/**
 * Decides when batches start, for work whose cost does not depend on its size: a database transaction, a request to a
 * node. After a pause, `reserve` batches start at once. Under steady load one batch starts every `everyMs`, with all
 * work that has arrived by then. So rare work never waits, and steady work shares transactions and requests. If `flow`
 * reports little work, batches start more often: waiting would only add latency.
 */
export class Departures {
  private readonly everyMs: number;
  private readonly aheadMs: number;
  private readonly flow: Flow | null;
  /**
   * Monotonic time until which the batches started so far use up the rate of one batch per `everyMs`.
   */
  private earnedMs = 0;

  constructor(everyMs: number, reserve: number, flow: Flow | null = null) {
    this.everyMs = everyMs;
    this.aheadMs = everyMs * (reserve - 1);
    this.flow = flow;
  }

  /** Time in ms until the next batch may start; 0: now. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.earnedMs - this.aheadMs - nowMs);
  }

  /**
   * Records that a batch started. If it started early because it was full, the batch after it is still delayed by at
   * most `everyMs`.
   */
  left(nowMs: number, share = 1): void {
    const intervalMs = share * (this.flow?.share(nowMs) ?? 1) * this.everyMs;
    this.earnedMs = Math.min(Math.max(this.earnedMs, nowMs), nowMs + this.aheadMs) + intervalMs;
  }
}

const HALF_LIFE_MS = 200;
const PER_SECOND = (1_000 * Math.LN2) / HALF_LIFE_MS;
/**
 * If the rate of work is below this share of `plenty`, collecting work into batches saves too little: batches start
 * almost at once.
 */
const FEW = 0.7;
const LEAST_SHARE = 0.1;

/**
 * Measures the recent rate of work. Counted work is halved five times a second, so that a short burst does not count as
 * steady load.
 */
export class Flow {
  private readonly plenty: number;
  private amount = 0;
  private atMs = 0;

  /** `plenty`: rate of work per second at which batches wait for the whole interval. */
  constructor(plenty: number) {
    this.plenty = plenty;
  }

  add(nowMs: number, count: number): void {
    this.amount = this.remaining(nowMs) + count;
    this.atMs = nowMs;
  }

  /** Share of the batch interval to wait: small at a low rate of work, the whole interval from `plenty` on. */
  share(nowMs: number): number {
    const part = (this.remaining(nowMs) * PER_SECOND) / this.plenty;
    return Math.min(1, Math.max(LEAST_SHARE, (part - FEW) / (1 - FEW)));
  }

  private remaining(nowMs: number) {
    return this.amount * 0.5 ** ((nowMs - this.atMs) / HALF_LIFE_MS);
  }
}
