import type { Address } from "../../../src/domain/lane.ts";
import { effectiveGasPrice } from "./block.ts";
import type { PoolEntry, TransactionPool } from "./pool.ts";

interface Candidate extends PoolEntry {
  readonly price: bigint;
}

/**
 * The order in which a miner includes transactions: best price first, earlier arrival among equals, each sender's in
 * nonce order. If a sender's next transaction does not pay the base fee or is skipped, all later ones of that sender
 * are skipped.
 */
export class Selection {
  readonly #pool: TransactionPool;
  readonly #baseFee: bigint | null;
  readonly #heap: Candidate[] = [];

  constructor(pool: TransactionPool, baseFee: bigint | null, nonceOf: (address: Address) => number) {
    this.#pool = pool;
    this.#baseFee = baseFee;
    for (const address of pool.senders()) this.#offer(address, nonceOf(address));
  }

  /**
   * Takes the best remaining transaction. The next transaction of the same sender becomes available only after
   * `accept`.
   */
  take(): PoolEntry | null {
    const best = this.#heap[0];
    if (best === undefined) return null;
    const last = this.#heap.pop() as Candidate;
    if (this.#heap.length > 0) this.#sink(last);
    return best;
  }

  accept(entry: PoolEntry): void {
    this.#offer(entry.transaction.from, entry.transaction.nonce + 1);
  }

  #offer(address: Address, nonce: number): void {
    const entry = this.#pool.entry(address, nonce);
    if (entry === null) return;
    const { transaction, arrival } = entry;
    if (this.#baseFee !== null && transaction.maxFeePerGas < this.#baseFee) return;
    this.#heap.push({ transaction, arrival, price: effectiveGasPrice(transaction, this.#baseFee) });
    this.#rise(this.#heap.length - 1);
  }

  #rise(from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#before(at, parent)) return;
      [heap[at], heap[parent]] = [heap[parent] as Candidate, heap[at] as Candidate];
      at = parent;
    }
  }

  #sink(candidate: Candidate): void {
    const heap = this.#heap;
    heap[0] = candidate;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      let best = at;
      if (left < heap.length && this.#before(left, best)) best = left;
      if (left + 1 < heap.length && this.#before(left + 1, best)) best = left + 1;
      if (best === at) return;
      [heap[at], heap[best]] = [heap[best] as Candidate, heap[at] as Candidate];
      at = best;
    }
  }

  #before(a: number, b: number): boolean {
    const left = this.#heap[a] as Candidate;
    const right = this.#heap[b] as Candidate;
    return left.price === right.price ? left.arrival < right.arrival : left.price > right.price;
  }
}
