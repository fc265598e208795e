import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import type { Receipt, UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import { admit, isRefusal, refuseByPrice, signedByNode } from "./admission.ts";
import {
  blockHash,
  type Executed,
  effectiveGasPrice,
  foreignTransaction,
  receiptOf,
  type SimulatedBlock,
} from "./block.ts";
import { BlockStore } from "./block-store.ts";
import { type Account, Ledger } from "./ledger.ts";
import { DEFAULTS, type ReorgOptions, type SimulatedChainOptions } from "./options.ts";
import { GETH_POOL, TransactionPool } from "./pool.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { Selection } from "./selection.ts";
import { maximumCost, type SimulatedTransaction } from "./transaction.ts";

export type Submission =
  | { readonly accepted: true; readonly hash: Hash }
  | { readonly accepted: false; readonly refusal: Refusal };

/**
 * One transaction that arrived at the chain, accepted or not. A test's checker compares the list of these with the
 * database.
 */
export interface WitnessEntry {
  readonly raw: Hex;
  readonly hash: Hash | null;
  readonly from: Address | null;
  readonly nonce: number | null;
  readonly submission: Submission;
}

export type ChainEvent =
  | { readonly type: "arrival"; readonly entry: WitnessEntry }
  | { readonly type: "block"; readonly block: SimulatedBlock }
  | { readonly type: "rollback"; readonly depth: number };

export type MinedOutcome = (transaction: SimulatedTransaction) => boolean;

/**
 * A chain without an EVM: accounts, a mempool with geth's rules, hash-linked blocks, receipts. Blocks are mined only by
 * `mine`, so a test or a virtual clock controls time.
 */
export class SimulatedChain {
  readonly options: SimulatedChainOptions;
  readonly pool: TransactionPool;
  readonly witness: WitnessEntry[] = [];
  /** Transactions that the node was asked to sign itself, in order. */
  readonly nodeSigned: Omit<WitnessEntry, "raw">[] = [];
  readonly blocks: BlockStore;
  readonly #ledger: Ledger;
  readonly #listeners = new Set<(event: ChainEvent) => void>();
  readonly #revertData = new Map<Address, Hex>();
  readonly #gasBurned = new Map<Address, bigint>();
  readonly #nodeKeys = new Set<Address>();
  #revertsMined: MinedOutcome = () => false;
  #baseFee: bigint | null;
  #gasLimit: bigint;
  #branch = 0;
  #foreign = 0;

  constructor(options: Partial<SimulatedChainOptions> = {}) {
    this.options = { ...DEFAULTS, ...options };
    this.pool = new TransactionPool({ ...GETH_POOL, ...this.options.pool });
    this.#ledger = new Ledger(this.options.defaultBalance);
    this.#baseFee = this.options.baseFee;
    this.#gasLimit = this.options.blockGasLimit;
    this.blocks = new BlockStore(this.#seal([]));
  }

  get chainId(): number {
    return this.options.chainId;
  }

  get head(): SimulatedBlock {
    return this.blocks.head;
  }

  /** Base fee of the next block. */
  get nextBaseFee(): bigint | null {
    return this.#baseFee;
  }

  get gasLimit(): bigint {
    return this.#gasLimit;
  }

  subscribe(listener: (event: ChainEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  submit(raw: Hex): Submission {
    const { transaction, submission } = this.#judge(raw);
    const entry: WitnessEntry = {
      raw,
      hash: transaction?.hash ?? null,
      from: transaction?.from ?? null,
      nonce: transaction?.nonce ?? null,
      submission,
    };
    this.witness.push(entry);
    this.#emit({ type: "arrival", entry });
    return submission;
  }

  /**
   * Makes the node sign a transaction with a key that the node holds. The signed bytes exist nowhere else; the caller
   * gets only the hash.
   */
  sendUnsigned(from: Address, unsigned: UnsignedTransaction): Submission {
    if (!this.#nodeKeys.has(from)) return { accepted: false, refusal: refusals.unknownAccount() };
    const transaction = signedByNode(from, unsigned);
    const submission = this.#judgeAdmitted(transaction);
    this.nodeSigned.push({ hash: transaction.hash, from, nonce: transaction.nonce, submission });
    return submission;
  }

  /** Gives the node these keys to sign with. */
  holdKeys(...addresses: readonly Address[]): void {
    for (const address of addresses) this.#nodeKeys.add(address);
  }

  /** The account as of a canonical block; as of the latest if none is given. */
  account(address: Address, atBlock?: number): Account {
    const current = this.#ledger.account(address);
    return atBlock === undefined ? current : (this.blocks.accountBefore(address, atBlock + 1) ?? current);
  }

  pendingNonce(address: Address): number {
    return this.pool.pendingNonce(address, this.account(address));
  }

  receipt(hash: Hash): Receipt | null {
    const place = this.blocks.placeOf(hash);
    return place === null ? null : receiptOf(place.block, place.index);
  }

  /** A transaction mined on the canonical chain or waiting in the mempool. */
  transaction(hash: Hash): SimulatedTransaction | null {
    const place = this.blocks.placeOf(hash);
    return place?.block.transactions[place.index]?.transaction ?? this.pool.get(hash);
  }

  mine(count = 1): readonly SimulatedBlock[] {
    return Array.from({ length: count }, () => this.#mineFromPool());
  }

  /** Mines transactions of another program that holds the key, at the account's next nonces, in one block. */
  mineForeign(address: Address, count = 1): SimulatedBlock {
    const { nonce } = this.account(address);
    const transactions = Array.from({ length: count }, (_, i) =>
      foreignTransaction(address, nonce + i, this.#foreign++),
    );
    return this.#append(transactions);
  }

  /** Puts another program's transaction into the mempool, where only the pending count shows it. */
  injectForeign(address: Address, nonce = this.pendingNonce(address)): SimulatedTransaction {
    const transaction = foreignTransaction(address, nonce, this.#foreign++);
    this.pool.restore(transaction, this.account(address));
    return transaction;
  }

  /** Replaces the last `depth` blocks by another branch. The old blocks can still be found by hash, as in geth. */
  reorg(depth: number, options: ReorgOptions = {}): readonly SimulatedBlock[] {
    const displaced = this.#unwind(depth);
    const { drop = () => false, keepInPool = true, include = [], newBlocks = depth + 1 } = options;
    const dropped = new Set(displaced.filter((transaction) => drop === "all" || drop(transaction)));
    const wanted = [
      ...include.map((raw) => this.#admitted(raw)),
      ...displaced.filter((transaction) => !dropped.has(transaction)),
    ];
    const blocks: SimulatedBlock[] = [];
    let rest: readonly SimulatedTransaction[] = wanted;
    for (let i = 0; i < newBlocks; i++) {
      const block = this.#append(rest);
      blocks.push(block);
      rest = rest.filter((transaction) => this.blocks.placeOf(transaction.hash) === null);
    }
    this.#reinject([...rest, ...(keepInPool ? dropped : [])]);
    return blocks;
  }

  /** Removes the last blocks without a replacement, so that the chain becomes shorter. */
  rollback(depth: number, options: { readonly keepInPool?: boolean } = {}): void {
    const displaced = this.#unwind(depth);
    if (options.keepInPool === true) this.#reinject(displaced);
  }

  dropTransaction(hash: Hash): boolean {
    return this.pool.remove(hash);
  }

  dropAllTransactions(): void {
    this.pool.clear();
  }

  setNonce(address: Address, nonce: number): void {
    this.#ledger.update(address, { nonce });
    this.pool.align(address, this.account(address));
  }

  setBalance(address: Address, balance: bigint): void {
    this.#ledger.update(address, { balance });
  }

  setBaseFee(baseFee: bigint): void {
    this.#baseFee = baseFee;
  }

  setBlockGasLimit(gasLimit: bigint): void {
    this.#gasLimit = gasLimit;
  }

  /** Makes calls and transactions to this contract revert with this data; null stops that. */
  revertCallsTo(address: Address, data: Hex | null): void {
    if (data === null) this.#revertData.delete(address);
    else this.#revertData.set(address, data);
  }

  /** Makes the contract accept every call and use this much gas beyond the intrinsic gas. */
  burnGasAt(address: Address, gas: bigint): void {
    this.#gasBurned.set(address, gas);
  }

  gasBurnedAt(to: Address | null): bigint {
    return to === null ? 0n : (this.#gasBurned.get(to) ?? 0n);
  }

  hasCode(address: Address): boolean {
    return this.#gasBurned.has(address) || this.#revertData.has(address);
  }

  /** Sets which transactions revert when mined although a call beforehand succeeded. */
  revertMined(outcome: MinedOutcome): void {
    this.#revertsMined = outcome;
  }

  revertDataOf(to: Address | null): Hex | null {
    return to === null ? null : (this.#revertData.get(to) ?? null);
  }

  #emit(event: ChainEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #judge(raw: Hex): { readonly transaction: SimulatedTransaction | null; readonly submission: Submission } {
    const transaction = admit(raw, this.options);
    if (isRefusal(transaction)) return { transaction: null, submission: { accepted: false, refusal: transaction } };
    return { transaction, submission: this.#judgeAdmitted(transaction) };
  }

  #judgeAdmitted(transaction: SimulatedTransaction): Submission {
    const refusal =
      (this.pool.get(transaction.hash) === null ? null : refusals.alreadyKnown()) ??
      refuseByPrice(transaction, { ...this.options, gasLimit: this.#gasLimit, baseFee: this.#baseFee }) ??
      this.pool.add(transaction, this.account(transaction.from));
    return refusal === null ? { accepted: true, hash: transaction.hash } : { accepted: false, refusal };
  }

  #admitted(raw: Hex): SimulatedTransaction {
    const transaction = admit(raw, this.options);
    if (isRefusal(transaction)) throw new Error(`cannot include this transaction: ${transaction.message}`);
    return transaction;
  }

  #mineFromPool(): SimulatedBlock {
    const selection = new Selection(this.pool, this.#baseFee, (address) => this.account(address).nonce);
    const chosen: SimulatedTransaction[] = [];
    let gasLeft = this.#gasLimit;
    for (let entry = selection.take(); entry !== null; entry = selection.take()) {
      const { transaction } = entry;
      if (transaction.gas > gasLeft) continue;
      gasLeft -= transaction.intrinsicGas;
      chosen.push(transaction);
      selection.accept(entry);
    }
    return this.#append(chosen);
  }

  /**
   * Executes the transactions that fit, in the given order. One that does not fit, or does not have its sender's next
   * nonce, is left out.
   */
  #append(candidates: readonly SimulatedTransaction[]): SimulatedBlock {
    const block = this.#seal(candidates);
    this.blocks.append(block);
    for (const address of block.undo.keys()) this.pool.align(address, this.account(address));
    this.#emit({ type: "block", block });
    return block;
  }

  #seal(candidates: readonly SimulatedTransaction[]): SimulatedBlock {
    const parent = this.blocks?.head;
    const number = parent === undefined ? 0 : parent.number + 1;
    const parentHash = parent?.hash ?? `0x${"0".repeat(64)}`;
    const transactions: Executed[] = [];
    let gasUsed = 0n;
    const undo = this.#ledger.record(() => {
      for (const candidate of candidates) {
        if (candidate.gas + gasUsed > this.#gasLimit) continue;
        const executed = this.#execute(candidate);
        if (executed === null) continue;
        transactions.push(executed);
        gasUsed += executed.gasUsed;
      }
    });
    const hashes = transactions.map(({ transaction }) => transaction.hash);
    return {
      number,
      hash: blockHash({ number, parentHash, salt: `${this.options.seed}:${this.chainId}:${this.#branch}`, hashes }),
      parentHash,
      timestamp: this.options.timestamp(number),
      baseFeePerGas: this.#baseFee,
      gasLimit: this.#gasLimit,
      gasUsed,
      transactions,
      undo,
    };
  }

  #execute(transaction: SimulatedTransaction): Executed | null {
    const { from, to, nonce, value } = transaction;
    const needed = transaction.intrinsicGas + this.gasBurnedAt(to);
    const ranOut = transaction.raw !== null && needed > transaction.gas;
    const gasUsed = ranOut ? transaction.gas : needed;
    const account = this.account(from);
    if (account.nonce !== nonce) return null;
    if (maximumCost(transaction) > account.balance && transaction.raw !== null) {
      // The sender can no longer pay for the transaction, so geth's demoteUnexecutables drops it.
      this.pool.remove(transaction.hash);
      return null;
    }
    const price = effectiveGasPrice(transaction, this.#baseFee);
    const reverted = ranOut || this.revertDataOf(to) !== null || this.#revertsMined(transaction);
    const paid = transaction.raw === null ? 0n : gasUsed * price + (reverted ? 0n : value);
    this.#ledger.update(from, { nonce: nonce + 1, balance: account.balance - paid });
    if (to !== null && !reverted && value > 0n) {
      this.#ledger.update(to, { balance: this.account(to).balance + value });
    }
    return { transaction, reverted, gasUsed, effectiveGasPrice: price };
  }

  #unwind(depth: number): readonly SimulatedTransaction[] {
    const removed = this.blocks.removeLast(depth);
    for (const block of removed) this.#ledger.revert(block.undo);
    this.#branch++;
    for (const block of removed) {
      for (const address of block.undo.keys()) this.pool.align(address, this.account(address));
    }
    this.#emit({ type: "rollback", depth });
    return removed.toReversed().flatMap((block) => block.transactions.map(({ transaction }) => transaction));
  }

  #reinject(transactions: readonly SimulatedTransaction[]): void {
    for (const transaction of transactions) this.pool.restore(transaction, this.account(transaction.from));
  }
}
