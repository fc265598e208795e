import fc from "fast-check";
import type { BlockRef } from "../../src/domain/chain/block-window.ts";
import type { Hash } from "../../src/domain/lane.ts";

/** Replaces the last `depth` blocks by `length` others. Depth 0 only adds blocks. */
export interface Fork {
  readonly depth: number;
  readonly length: number;
}

export const forks: fc.Arbitrary<readonly Fork[]> = fc.array(
  fc.record({ depth: fc.integer({ min: 0, max: 6 }), length: fc.integer({ min: 1, max: 8 }) }),
  { minLength: 1, maxLength: 30 },
);

export function hashNumber(n: number): Hash {
  return `0x${n.toString(16).padStart(64, "0")}`;
}

/** A naive model of a chain, as a plain list. Tests compare more complex structures with it. */
export class NaiveChain {
  blocks: readonly BlockRef[] = [];
  private made = 0;

  constructor(first: number, length = 1) {
    this.append(first, hashNumber(0), length);
  }

  get tip(): BlockRef {
    return this.blocks.at(-1) as BlockRef;
  }

  /** Returns the blocks that the fork added, ascending, and removed, descending. The first block is never removed. */
  fork({ depth, length }: Fork): { readonly added: readonly BlockRef[]; readonly removed: readonly BlockRef[] } {
    const kept = this.blocks.slice(0, Math.max(1, this.blocks.length - depth));
    const removed = this.blocks.slice(kept.length).reverse();
    this.blocks = kept;
    return { added: this.append(this.tip.number + 1, this.tip.hash, length), removed };
  }

  private append(number: number, parentHash: Hash, length: number): readonly BlockRef[] {
    const added: BlockRef[] = [];
    for (let i = 0; i < length; i++) {
      const hash = hashNumber(++this.made);
      added.push({ number: number + i, hash, parentHash: added.at(-1)?.hash ?? parentHash });
    }
    this.blocks = [...this.blocks, ...added];
    return added;
  }
}
