/** Counts recent events in slices of a time window, so that memory does not grow with the number of events. */
const SLICES = 30;

export class RecentCount {
  private readonly sliceMs: number;
  private readonly counts: number[] = [];
  /** Index of the newest time slice in which events were counted. */
  private newest = 0;
  private sum = 0;

  constructor(windowMs: number) {
    this.sliceMs = windowMs / SLICES;
  }

  add(nowMs: number, count = 1): void {
    this.moveTo(nowMs);
    const at = this.newest % SLICES;
    this.counts[at] = (this.counts[at] ?? 0) + count;
    this.sum += count;
  }

  within(nowMs: number): number {
    this.moveTo(nowMs);
    return this.sum;
  }

  private moveTo(nowMs: number) {
    const slice = Math.floor(nowMs / this.sliceMs);
    const first = Math.max(this.newest + 1, slice - SLICES + 1);
    for (let each = first; each <= slice; each++) {
      this.sum -= this.counts[each % SLICES] ?? 0;
      this.counts[each % SLICES] = 0;
    }
    this.newest = Math.max(this.newest, slice);
  }
}
