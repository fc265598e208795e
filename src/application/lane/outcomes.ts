/** Outcomes that a pass has decided, and does not wait for. */
export class Outcomes {
  private readonly underWay = new Set<Promise<unknown>>();

  /** `failed` hears of what went wrong on the way. */
  add(writing: Promise<unknown>, failed: (error: unknown) => void): void {
    const ended = writing.catch(failed).finally(() => this.underWay.delete(ended));
    this.underWay.add(ended);
  }

  /** Until they stand in the database: before, a look for settled rows would find none. */
  async written(): Promise<void> {
    await Promise.all(this.underWay);
  }
}
