import type { Address, Hash } from "../../../src/domain/lane.ts";
import type { Account } from "./ledger.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { maximumCost, type SimulatedTransaction } from "./transaction.ts";

export interface PoolRules {
  /** Number of executable transactions that an account keeps even if the mempool is full (geth: 16). */
  readonly accountSlots: number;
  /** Maximum number of executable transactions of all accounts (geth: 5,120). */
  readonly globalSlots: number;
  /**
   * Maximum number of future transactions of one account (geth: 64). Further ones are accepted and silently dropped,
   * highest nonce first.
   */
  readonly accountQueue: number;
  /** Maximum number of future transactions of all accounts (geth: 1,024). */
  readonly globalQueue: number;
  /** Percentage by which both fee fields must rise for a replacement (geth: 10). */
  readonly priceBump: bigint;
  /**
   * Treatment of future nonces. `queue`: as geth. `refuseGaps`: as a sequencer that accepts only the next nonce.
   * `refuseUnmined`: as a sequencer that accepts a nonce only if all lower nonces are mined.
   */
  readonly futureNonces: "queue" | "refuseGaps" | "refuseUnmined";
}

export const GETH_POOL: PoolRules = {
  accountSlots: 16,
  globalSlots: 5_120,
  accountQueue: 64,
  globalQueue: 1_024,
  priceBump: 10n,
  futureNonces: "queue",
};

/** A mempool that accepts everything, for benchmarks that measure Fencepost and not the mempool. */
export const ROOMY_POOL: PoolRules = {
  ...GETH_POOL,
  globalSlots: 1_000_000,
  accountQueue: 1_000_000,
  globalQueue: 1_000_000,
};

export interface PoolEntry {
  readonly transaction: SimulatedTransaction;
  readonly arrival: number;
}

/** One sender's transactions. Those from `first` up to `end` have no gap and are executable; the rest are queued. */
interface Line {
  readonly byNonce: Map<number, PoolEntry>;
  first: number;
  end: number;
  /** Maximum cost of all executable transactions together. */
  committed: bigint;
}

/** geth's legacy mempool, as far as a sender can observe it. */
export class TransactionPool {
  #rules: PoolRules;
  readonly #lines = new Map<Address, Line>();
  readonly #byHash = new Map<Hash, SimulatedTransaction>();
  #arrivals = 0;
  #executable = 0;

  constructor(rules: PoolRules) {
    this.#rules = rules;
  }

  /** Changes the rules, as if the node were replaced or reconfigured; its transactions stay. */
  change(rules: Partial<PoolRules>): void {
    this.#rules = { ...this.#rules, ...rules };
  }

  get size(): number {
    return this.#byHash.size;
  }

  /** Number of executable transactions; the rest of `size` is queued. */
  get executableSize(): number {
    return this.#executable;
  }

  get(hash: Hash): SimulatedTransaction | null {
    return this.#byHash.get(hash) ?? null;
  }

  senders(): Iterable<Address> {
    return this.#lines.keys();
  }

  /** The first nonce that is neither mined nor executable. */
  pendingNonce(address: Address, account: Account): number {
    const line = this.#lines.get(address);
    return line === undefined ? account.nonce : Math.max(line.end, account.nonce);
  }

  entry(address: Address, nonce: number): PoolEntry | null {
    return this.#lines.get(address)?.byNonce.get(nonce) ?? null;
  }

  /**
   * Adds a transaction or returns the refusal; the checks are in geth's order. The caller has made sure that the
   * transaction is not in the mempool yet.
   */
  add(transaction: SimulatedTransaction, account: Account): Refusal | null {
    const { from, nonce } = transaction;
    if (nonce < account.nonce) return refusals.nonceTooLow(account.nonce, nonce);
    const line = this.#lineOf(from, account);
    const refused =
      this.#refuseFuture(transaction, account, line) ??
      this.#refusePoor(transaction, account, line) ??
      this.#refuseReplacement(transaction, line);
    if (refused !== null) {
      this.#forgetIfEmpty(from, line);
      return refused;
    }
    this.#put(line, transaction);
    this.#trim(from, line);
    return null;
  }

  /** Puts back a transaction that a reorg freed or a test supplies, without any check of price or balance. */
  restore(transaction: SimulatedTransaction, account: Account): void {
    if (transaction.nonce < account.nonce || this.#byHash.has(transaction.hash)) return;
    const line = this.#lineOf(transaction.from, account);
    if (line.byNonce.has(transaction.nonce)) return;
    this.#put(line, transaction);
  }

  remove(hash: Hash): boolean {
    const transaction = this.#byHash.get(hash);
    const line = transaction && this.#lines.get(transaction.from);
    if (transaction === undefined || line === undefined) return false;
    this.#delete(line, transaction);
    this.#reindex(line, line.first);
    this.#forgetIfEmpty(transaction.from, line);
    return true;
  }

  clear(): void {
    this.#lines.clear();
    this.#byHash.clear();
    this.#executable = 0;
  }

  /**
   * Called when a block or a reorg changed this account's nonce: drops consumed transactions, promotes or demotes the
   * rest.
   */
  align(address: Address, account: Account): void {
    const line = this.#lines.get(address);
    if (line === undefined) return;
    if (account.nonce > line.first) {
      for (const [nonce, { transaction }] of line.byNonce) {
        if (nonce < account.nonce) this.#delete(line, transaction);
      }
    }
    this.#reindex(line, account.nonce);
    this.#forgetIfEmpty(address, line);
  }

  #lineOf(address: Address, account: Account): Line {
    const known = this.#lines.get(address);
    if (known !== undefined) return known;
    const line: Line = { byNonce: new Map(), first: account.nonce, end: account.nonce, committed: 0n };
    this.#lines.set(address, line);
    return line;
  }

  #forgetIfEmpty(address: Address, line: Line): void {
    if (line.byNonce.size === 0) this.#lines.delete(address);
  }

  #refuseFuture(transaction: SimulatedTransaction, account: Account, line: Line): Refusal | null {
    const { futureNonces, globalSlots, globalQueue } = this.#rules;
    const { from, nonce } = transaction;
    const highest = futureNonces === "queue" ? Number.MAX_SAFE_INTEGER : line.end;
    if (nonce > (futureNonces === "refuseUnmined" ? account.nonce : highest)) {
      return refusals.nonceTooHigh(from, nonce, account.nonce);
    }
    return this.#byHash.size >= globalSlots + globalQueue ? refusals.poolFull() : null;
  }

  #refusePoor(transaction: SimulatedTransaction, account: Account, line: Line): Refusal | null {
    const cost = maximumCost(transaction);
    if (cost > account.balance) return refusals.insufficientFunds(account.balance, cost);
    const replaced = line.byNonce.get(transaction.nonce);
    const freed = replaced === undefined ? 0n : maximumCost(replaced.transaction);
    if (line.committed - freed + cost <= account.balance || transaction.nonce > line.end) return null;
    return refusals.insufficientFundsBehindQueue(account.balance, line.committed - freed, cost);
  }

  #refuseReplacement(transaction: SimulatedTransaction, line: Line): Refusal | null {
    const old = line.byNonce.get(transaction.nonce)?.transaction;
    if (old === undefined) return null;
    const enough =
      this.#outbids(transaction.maxFeePerGas, old.maxFeePerGas) &&
      this.#outbids(transaction.maxPriorityFeePerGas, old.maxPriorityFeePerGas);
    return enough ? null : refusals.replacementUnderpriced();
  }

  #outbids(fee: bigint, old: bigint): boolean {
    return fee > old && fee * 100n >= old * (100n + this.#rules.priceBump);
  }

  #put(line: Line, transaction: SimulatedTransaction): void {
    const old = line.byNonce.get(transaction.nonce)?.transaction;
    if (old !== undefined) {
      this.#byHash.delete(old.hash);
      if (old.nonce < line.end) line.committed -= maximumCost(old);
    }
    line.byNonce.set(transaction.nonce, { transaction, arrival: this.#arrivals++ });
    this.#byHash.set(transaction.hash, transaction);
    if (transaction.nonce < line.end) line.committed += maximumCost(transaction);
    this.#extend(line);
  }

  #extend(line: Line): void {
    for (let next = line.byNonce.get(line.end); next !== undefined; next = line.byNonce.get(line.end)) {
      line.end++;
      line.committed += maximumCost(next.transaction);
      this.#executable++;
    }
  }

  #delete(line: Line, transaction: SimulatedTransaction): void {
    line.byNonce.delete(transaction.nonce);
    this.#byHash.delete(transaction.hash);
  }

  #reindex(line: Line, first: number): void {
    this.#executable -= line.end - line.first;
    line.first = first;
    line.end = first;
    line.committed = 0n;
    this.#extend(line);
  }

  /** A sender with too many transactions silently loses those with the highest nonces. */
  #trim(address: Address, line: Line): void {
    const { accountQueue, globalSlots, accountSlots } = this.#rules;
    const queued = line.byNonce.size - (line.end - line.first);
    if (queued > accountQueue) this.#evictHighest(address, line);
    while (this.#executable > globalSlots) {
      const largest = [...this.#lines].reduce((a, b) => (b[1].end - b[1].first > a[1].end - a[1].first ? b : a));
      if (largest[1].end - largest[1].first <= accountSlots) return;
      this.#evict(largest[0], largest[1], largest[1].end - 1);
    }
  }

  #evictHighest(address: Address, line: Line): void {
    let highest = 0;
    for (const nonce of line.byNonce.keys()) highest = Math.max(highest, nonce);
    this.#evict(address, line, highest);
  }

  #evict(address: Address, line: Line, nonce: number): void {
    const entry = line.byNonce.get(nonce);
    if (entry === undefined) return;
    this.#delete(line, entry.transaction);
    this.#reindex(line, line.first);
    this.#forgetIfEmpty(address, line);
  }
}
