export interface Drained<T> {
  readonly items: readonly T[];
  /** True if items were dropped since the last drain: the consumer has not seen every block. */
  readonly gapPotential: boolean;
}

/**
 * Bounded buffer between the code that polls new blocks and one consumer. A slow consumer loses the oldest items and is
 * notified; the polling code and other consumers are not affected.
 */
export class BlockBuffer<T> {
  private readonly capacity: number;
  private items: T[] = [];
  private gap = false;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get length(): number {
    return this.items.length;
  }

  push(item: T): void {
    this.items.push(item);
    if (this.items.length > this.capacity) {
      this.items.shift();
      this.gap = true;
    }
  }

  /** Records that blocks were missed before they reached the buffer: the consumer is notified as after an overflow. */
  markGap(): void {
    this.gap = true;
  }

  drain(): Drained<T> {
    const drained = { items: this.items, gapPotential: this.gap };
    this.items = [];
    this.gap = false;
    return drained;
  }
}
