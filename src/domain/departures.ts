/**
 * How often something leaves that costs the same however much it carries: a database transaction, a request to a node.
 * After a rest it leaves at once, `reserve` times in a row; where work keeps coming, once every `everyMs`, with all that has
 * gathered meanwhile. So rare work never waits, and steady work shares a transaction or a request. Where `flow` says that
 * less comes than is worth gathering, it leaves more often than that: waiting would only make everybody slower.
 */
export class Departures {
  private readonly everyMs: number;
  private readonly aheadMs: number;
  private readonly flow: Flow | null;
  /** Monotonic: when all that has left so far would have left, one every `everyMs`. Null: nothing has left yet. */
  private earnedMs: number | null = null;

  constructor(everyMs: number, reserve: number, flow: Flow | null = null) {
    this.everyMs = everyMs;
    this.aheadMs = everyMs * (reserve - 1);
    this.flow = flow;
  }

  /** How long the next one has to wait; 0: it may leave now. */
  waitMs(nowMs: number): number {
    return this.earnedMs === null ? 0 : Math.max(0, this.earnedMs - this.aheadMs - nowMs);
  }

  /** One that left early because it was full does not make the next one wait longer than `everyMs`. */
  left(nowMs: number, share = 1): void {
    const intervalMs = share * (this.flow?.share(nowMs) ?? 1) * this.everyMs;
    this.earnedMs = Math.min(Math.max(this.earnedMs ?? nowMs, nowMs), nowMs + this.aheadMs) + intervalMs;
  }
}

const HALF_LIFE_MS = 200;
const PER_SECOND = (1_000 * Math.LN2) / HALF_LIFE_MS;
/** Below this part of what is plenty, gathering spares nothing that is short: what there is leaves almost at once. */
const FEW = 0.7;
const LEAST_SHARE = 0.1;

/** How much has come of late: halved five times a second, so that a few at once are not taken for a stream. */
export class Flow {
  private readonly plenty: number;
  private amount = 0;
  private atMs = 0;

  /** `plenty`: from so many a second on, each saved departure counts, and the whole interval is waited for. */
  constructor(plenty: number) {
    this.plenty = plenty;
  }

  add(nowMs: number, count: number): void {
    this.amount = this.remaining(nowMs) + count;
    this.atMs = nowMs;
  }

  /** Of the interval between departures: a small part where little comes, all of it where plenty does. */
  share(nowMs: number): number {
    const part = (this.remaining(nowMs) * PER_SECOND) / this.plenty;
    return Math.min(1, Math.max(LEAST_SHARE, (part - FEW) / (1 - FEW)));
  }

  private remaining(nowMs: number): number {
    return this.amount * 0.5 ** ((nowMs - this.atMs) / HALF_LIFE_MS);
  }
}
