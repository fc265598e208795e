import type { Hash } from "../lane.ts";

export interface BlockRef {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
}

export interface WindowChange<B extends BlockRef> {
  readonly window: BlockWindow;
  /** Blocks that are new on the canonical chain, ascending. */
  readonly added: readonly B[];
  /** Blocks that are no longer canonical, descending. */
  readonly removed: readonly BlockRef[];
}

/**
 * The most recent canonical blocks, contiguous and hash-linked. Immutable: code that holds a window sees one hash per
 * height, however long its work takes.
 */
export class BlockWindow {
  static readonly empty = new BlockWindow([]);
  private readonly blocks: readonly BlockRef[];

  private constructor(blocks: readonly BlockRef[]) {
    this.blocks = blocks;
  }

  /**
   * Creates a window. Throws if the blocks are not ascending, contiguous and linked: an inconsistent window would cause
   * wrong decisions.
   */
  static of(blocks: readonly BlockRef[]): BlockWindow {
    assertLinked(blocks);
    return new BlockWindow(blocks.map(bare));
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

  /** Hash of the block at this height; null if it is outside the window. */
  hashAt(number: number): Hash | null {
    const first = this.blocks[0];
    if (first === undefined) return null;
    return this.blocks[number - first.number]?.hash ?? null;
  }

  contains(block: Pick<BlockRef, "number" | "hash">): boolean {
    return this.hashAt(block.number) === block.hash;
  }

  /**
   * True if the block may be on the chain that this node follows: it has the known hash at its height, or is below the
   * window and cannot be checked. False for blocks above the newest known one.
   */
  mayStandOn(block: Pick<BlockRef, "number" | "hash">): boolean {
    return this.oldest !== null && (block.number < this.oldest.number || this.contains(block));
  }

  /** Blocks of the window above `number`, ascending. */
  above(number: number): readonly BlockRef[] {
    const first = this.blocks[0];
    if (first === undefined) return [];
    return this.blocks.slice(Math.max(0, number + 1 - first.number));
  }

  /**
   * Appends linked blocks above their parent in the window; blocks that were above that parent are removed. Null if the
   * parent is not in the window, because the fork is deeper.
   */
  extend<B extends BlockRef>(added: readonly B[], capacity: number): WindowChange<B> | null {
    const first = added[0];
    if (first === undefined) return { window: this, added, removed: [] };
    assertLinked(added);
    if (!this.contains({ number: first.number - 1, hash: first.parentHash })) return null;
    const kept = this.blocks.filter((block) => block.number < first.number);
    const removed = this.blocks.filter((block) => block.number >= first.number).reverse();
    return { window: new BlockWindow([...kept, ...added.map(bare)].slice(-capacity)), added, removed };
  }
}

function bare({ number, hash, parentHash }: BlockRef): BlockRef {
  return { number, hash, parentHash };
}

/** True if the blocks are ascending and contiguous, each the parent of the next. */
export function isLinked(blocks: readonly BlockRef[]): boolean {
  return blocks.every((block, index) => {
    const parent = blocks[index - 1];
    return parent === undefined || (block.number === parent.number + 1 && block.parentHash === parent.hash);
  });
}

function assertLinked(blocks: readonly BlockRef[]) {
  if (!isLinked(blocks))
    throw new Error(`blocks ${blocks.map((block) => block.number).join(", ")} do not form one chain`);
}
