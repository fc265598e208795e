import type { BlockRef } from "./block-window.ts";

/**
 * Blocks past a depth, each height once, in ascending order. What a reorg removes before it was stable is trimmed and
 * never seen; one that reaches below the threshold is reported, and what was emitted is not taken back.
 */
export class StableStream<B extends BlockRef> {
  private readonly depth: number;
  private waiting: B[] = [];
  private through: number | null = null;

  constructor(depth: number) {
    this.depth = depth;
  }

  /** The highest block that was emitted; null before the first. */
  get emittedThrough(): number | null {
    return this.through;
  }

  /** What waits is about to be read again, because some of it may have been missed. */
  forgetWaiting(): void {
    this.waiting = [];
  }

  /** `brokeStability`: the reorg replaced blocks that had been emitted already. */
  apply(change: { readonly added: readonly B[]; readonly removed: readonly BlockRef[] }): {
    readonly stable: readonly B[];
    readonly brokeStability: boolean;
  } {
    const removed = new Set(change.removed.map((block) => block.hash));
    this.waiting = this.waiting.filter((block) => !removed.has(block.hash));
    const lowestRemoved = change.removed.at(-1)?.number;
    const brokeStability = lowestRemoved !== undefined && this.through !== null && lowestRemoved <= this.through;
    for (const block of change.added) {
      if (this.through === null || block.number > this.through) this.waiting.push(block);
    }
    return { stable: this.takeStable(change.added.at(-1)?.number), brokeStability };
  }

  private takeStable(head: number | undefined): readonly B[] {
    if (head === undefined) return [];
    const stable = this.waiting.filter((block) => head - block.number >= this.depth);
    this.waiting = this.waiting.filter((block) => head - block.number < this.depth);
    this.through = stable.at(-1)?.number ?? this.through;
    return stable;
  }
}
