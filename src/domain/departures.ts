/**
 * How often something leaves that costs the same however much it carries: a database transaction, a request to a node.
 * After a rest it leaves at once, `reserve` times in a row; where work keeps coming, once every `everyMs`, with all that has
 * gathered meanwhile. So rare work never waits, and steady work shares a transaction or a request.
 */
export class Departures {
  private readonly everyMs: number;
  private readonly aheadMs: number;
  /** Monotonic: when all that has left so far would have left, one every `everyMs`. Null: nothing has left yet. */
  private earnedMs: number | null = null;

  constructor(everyMs: number, reserve: number) {
    this.everyMs = everyMs;
    this.aheadMs = everyMs * (reserve - 1);
  }

  /** How long the next one has to wait; 0: it may leave now. */
  waitMs(nowMs: number): number {
    return this.earnedMs === null ? 0 : Math.max(0, this.earnedMs - this.aheadMs - nowMs);
  }

  /** One that left early because it was full does not make the next one wait longer than `everyMs`. */
  left(nowMs: number, share = 1): void {
    this.earnedMs = Math.min(Math.max(this.earnedMs ?? nowMs, nowMs), nowMs + this.aheadMs) + share * this.everyMs;
  }
}
