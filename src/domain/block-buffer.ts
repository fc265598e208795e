export interface Drained<T> {
  readonly items: readonly T[];
  /** Something was dropped since the last drain: the consumer must not trust that it saw every block. */
  readonly gapPotential: boolean;
}

/**
 * Between the head follower and one consumer. Bounded: a slow consumer loses the oldest items and is told so, and
 * neither the follower nor the other consumers notice.
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

  /** Blocks were missed before the buffer: the consumer is told as if the buffer had overflowed. */
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
