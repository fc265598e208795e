/**
 * Detects a growing backlog. A slow endpoint enlarges the backlog only for a short time, so only its minimum in each
 * period is compared. If the minimum rose in every one of the last periods, work arrives faster than it is done.
 */
const STRETCHES = 5;

export class Growth {
  private readonly stretchMs: number;
  private readonly lows: number[] = [];
  /** Minimum of the backlog in the current period; null: no value was seen in it yet. */
  private low: number | null = null;
  private endsMs = 0;

  constructor(stretchMs: number) {
    this.stretchMs = stretchMs;
  }

  see(nowMs: number, size: number): void {
    if (nowMs >= this.endsMs) {
      if (this.low !== null) this.lows.push(this.low);
      if (this.lows.length > STRETCHES) this.lows.shift();
      this.low = null;
      this.endsMs = nowMs + this.stretchMs;
    }
    this.low = Math.min(this.low ?? size, size);
  }

  /** Minima of the backlog in the first and the last period of its growth; null if the backlog does not grow. */
  get grown(): { readonly from: number; readonly to: number } | null {
    if (this.lows.length < STRETCHES) return null;
    const isRising = this.lows.every((low, index) => index === 0 || low > (this.lows[index - 1] ?? low));
    return isRising ? { from: Math.min(...this.lows), to: Math.max(...this.lows) } : null;
  }

  /** True if the minimum of the backlog did not rise in the last period. */
  get stopped(): boolean {
    const [before = 0, last = before] = this.lows.slice(-2);
    return last <= before;
  }
}
