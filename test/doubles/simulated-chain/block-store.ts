import type { Address, Hash } from "../../../src/domain/lane.ts";
import type { SimulatedBlock } from "./block.ts";
import type { Account } from "./ledger.ts";

export interface Place {
  readonly block: SimulatedBlock;
  readonly index: number;
}

/** The canonical chain by height, every block that ever existed by hash, and the location of each mined transaction. */
export class BlockStore {
  readonly #canonical: SimulatedBlock[];
  readonly #byHash = new Map<Hash, SimulatedBlock>();
  readonly #places = new Map<Hash, Place>();

  constructor(genesis: SimulatedBlock) {
    this.#canonical = [genesis];
    this.#byHash.set(genesis.hash, genesis);
  }

  get head(): SimulatedBlock {
    return this.#canonical[this.#canonical.length - 1] as SimulatedBlock;
  }

  byNumber(number: number): SimulatedBlock | null {
    return this.#canonical[number] ?? null;
  }

  /** Finds any block by its hash, including orphans. */
  byHash(hash: Hash): SimulatedBlock | null {
    return this.#byHash.get(hash) ?? null;
  }

  isCanonical(block: SimulatedBlock): boolean {
    return this.#canonical[block.number] === block;
  }

  placeOf(transaction: Hash): Place | null {
    return this.#places.get(transaction) ?? null;
  }

  append(block: SimulatedBlock): void {
    this.#canonical.push(block);
    this.#byHash.set(block.hash, block);
    block.transactions.forEach(({ transaction }, index) => {
      this.#places.set(transaction.hash, { block, index });
    });
  }

  /** Removes the last `depth` blocks and returns them newest first. Genesis is never removed. */
  removeLast(depth: number): readonly SimulatedBlock[] {
    if (depth < 0 || depth > this.head.number)
      throw new RangeError(`cannot take ${depth} blocks from ${this.head.number}`);
    const removed = this.#canonical.splice(this.#canonical.length - depth, depth).reverse();
    for (const { transactions } of removed) {
      for (const { transaction } of transactions) this.#places.delete(transaction.hash);
    }
    return removed;
  }

  /** The account's state before `fromBlock`; null if neither that block nor a later one changed it. */
  accountBefore(address: Address, fromBlock: number): Account | null {
    for (let number = fromBlock; number < this.#canonical.length; number++) {
      const before = this.#canonical[number]?.undo.get(address);
      if (before !== undefined) return before;
    }
    return null;
  }
}
