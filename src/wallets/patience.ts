/**
 * A time limit with growing pauses. Wallet libraries run in the caller's process without a clock port, so this is the
 * only file that reads the clock.
 */
export class Patience {
  private readonly untilMs: number;
  private pauseMs: number;

  constructor(ms: number) {
    this.untilMs = performance.now() + ms;
    this.pauseMs = FIRST_PAUSE_MS;
  }

  get isOver(): boolean {
    return performance.now() >= this.untilMs;
  }

  /** Pauses; each pause is a little longer than the one before. */
  async pause(): Promise<void> {
    const ms = Math.min(this.pauseMs, Math.max(0, this.untilMs - performance.now()));
    this.pauseMs = Math.min(this.pauseMs * 1.5, LONGEST_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

const FIRST_PAUSE_MS = 15;
const LONGEST_PAUSE_MS = 250;
