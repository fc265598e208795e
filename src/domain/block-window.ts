import type { Hash } from "./lane.ts";

export interface BlockRef {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
}

export interface WindowChange<B extends BlockRef> {
  readonly window: BlockWindow;
  /** New on the canonical chain, ascending. */
  readonly added: readonly B[];
  /** No longer on it, descending. */
  readonly removed: readonly BlockRef[];
}

/**
 * The most recent canonical blocks, contiguous and hash-linked. Immutable: the holder of a window has one frozen
 * view in which one height has one hash, however long the work on it takes.
 */
export class BlockWindow {
  static readonly empty = new BlockWindow([]);
  private readonly blocks: readonly BlockRef[];

  private constructor(blocks: readonly BlockRef[]) {
    this.blocks = blocks;
  }

  /** Throws where the blocks are not ascending, contiguous and linked: a window that lies is worse than none. */
  static of(blocks: readonly BlockRef[]): BlockWindow {
    assertLinked(blocks);
    return new BlockWindow(blocks.map(({ number, hash, parentHash }) => ({ number, hash, parentHash })));
  }

  get tip(): BlockRef | null {
    return this.blocks.at(-1) ?? null;
  }

  get oldest(): BlockRef | null {
    return this.blocks[0] ?? null;
  }

  get size(): number {
    return this.blocks.length;
  }

  /** Null: the height is outside the window, about which it says nothing. */
  hashAt(number: number): Hash | null {
    const first = this.blocks[0];
    if (first === undefined) return null;
    return this.blocks[number - first.number]?.hash ?? null;
  }

  contains(block: Pick<BlockRef, "number" | "hash">): boolean {
    return this.hashAt(block.number) === block.hash;
  }

  /**
   * Whether it may be on the chain that is followed, and is not above it: a height says nothing about another branch.
   * Below the window this cannot be checked: true.
   */
  mayStandOn(block: Pick<BlockRef, "number" | "hash">): boolean {
    return this.oldest !== null && (block.number < this.oldest.number || this.contains(block));
  }

  /** Blocks above `number`, ascending. */
  above(number: number): readonly BlockRef[] {
    const first = this.blocks[0];
    if (first === undefined) return [];
    return this.blocks.slice(Math.max(0, number + 1 - first.number));
  }

  /**
   * Appends linked blocks whose first one's parent is in the window; what stood above that parent is removed.
   * Null: the parent is not here, so the fork point is deeper than this window remembers.
   */
  extend<B extends BlockRef>(added: readonly B[], capacity: number): WindowChange<B> | null {
    const first = added[0];
    if (first === undefined) return { window: this, added, removed: [] };
    assertLinked(added);
    if (!this.contains({ number: first.number - 1, hash: first.parentHash })) return null;
    const kept = this.blocks.filter((block) => block.number < first.number);
    const removed = this.blocks.filter((block) => block.number >= first.number).reverse();
    const fresh = added.map(({ number, hash, parentHash }) => ({ number, hash, parentHash }));
    return { window: new BlockWindow([...kept, ...fresh].slice(-capacity)), added, removed };
  }
}

/** Ascending, contiguous, each the parent of the next. */
export function isLinked(blocks: readonly BlockRef[]): boolean {
  return blocks.every((block, index) => {
    const parent = blocks[index - 1];
    return parent === undefined || (block.number === parent.number + 1 && block.parentHash === parent.hash);
  });
}

function assertLinked(blocks: readonly BlockRef[]): void {
  if (!isLinked(blocks)) throw new Error(`blocks ${blocks.map((block) => block.number).join(", ")} are not one chain`);
}
