import type { BlockRef } from "./block-window.ts";

/**
 * Stream of blocks that have reached a given depth, each height once, ascending. A reorg above that depth removes
 * blocks before they are emitted. A deeper one is reported, and emitted blocks are not taken back.
 */
export class StableStream<B extends BlockRef> {
  private readonly depth: number;
  private waiting: B[] = [];
  private through: number | null = null;

  constructor(depth: number) {
    this.depth = depth;
  }

  /** Height of the highest emitted block; null before the first. */
  get emittedThrough(): number | null {
    return this.through;
  }

  /** Discards pending blocks: they are about to be read again, because some may have been missed. */
  forgetWaiting(): void {
    this.waiting = [];
  }

  /** Applies a change of the chain. `brokeStability`: the reorg replaced blocks that were already emitted. */
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
