import type { Address, Hash } from "../../../src/domain/lane.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import { blockHash, receiptOf, type SimulatedBlock, tipOf } from "./block.ts";
import type { Place } from "./block-store.ts";
import type { SimulatedChain } from "./core.ts";
import type { Faults } from "./faults.ts";
import type { Account } from "./ledger.ts";
import type { SimulatedTransaction } from "./transaction.ts";

/** The chain as one endpoint reports it. Injected faults can make it lag or report false data. */
export class ChainView {
  readonly #chain: SimulatedChain;
  readonly #faults: Faults;
  /** Invented blocks on top of one real block, in ascending order. */
  #invented: { readonly on: Hash | null; readonly blocks: SimulatedBlock[] } = { on: null, blocks: [] };
  readonly #sortedTips = new WeakMap<SimulatedBlock, readonly bigint[]>();

  constructor(chain: SimulatedChain, faults: Faults) {
    this.#chain = chain;
    this.#faults = faults;
  }

  get head(): SimulatedBlock {
    const real = this.#realHead;
    return this.#inventedAt(real.number + this.#faults.invented) ?? real;
  }

  get #realHead(): SimulatedBlock {
    const { pinnedHead, lag } = this.#faults;
    const behind = pinnedHead ?? (lag === 0 ? null : Math.max(0, this.#chain.head.number - lag));
    return (behind === null ? null : this.#chain.blocks.byNumber(behind)) ?? this.#chain.head;
  }

  /** The block of a tag; null if this node does not support the tag. */
  tagged(tag: "latest" | "safe" | "finalized"): SimulatedBlock | null {
    if (tag === "latest") return this.head;
    const depths = this.#chain.options.tagDepths;
    const block = depths === null ? null : this.byNumber(Math.max(0, this.head.number - depths[tag]));
    return block === null ? null : this.#faults.tagged(block);
  }

  byNumber(number: number): SimulatedBlock | null {
    return number > this.#realHead.number ? this.#inventedAt(number) : this.#chain.blocks.byNumber(number);
  }

  /**
   * Invented blocks are replaced whenever the chain has a new block, because their parent hash must be that of the
   * newest real block.
   */
  #inventedAt(number: number): SimulatedBlock | null {
    const real = this.#realHead;
    if (number <= real.number || number > real.number + this.#faults.invented) return null;
    if (this.#invented.on !== real.hash) this.#invented = { on: real.hash, blocks: [] };
    const { blocks } = this.#invented;
    while (blocks.length < number - real.number) {
      const parent = blocks.at(-1) ?? real;
      const place = { number: parent.number + 1, parentHash: parent.hash };
      const hash = blockHash({ ...place, salt: "invented", hashes: [] });
      blocks.push({ ...real, ...place, hash, gasUsed: 0n, transactions: [] });
    }
    return blocks[number - real.number - 1] ?? null;
  }

  byHash(hash: Hash): SimulatedBlock | null {
    for (let number = this.#realHead.number + 1; number <= this.head.number; number++) {
      const invented = this.#inventedAt(number);
      if (invented?.hash === hash) return invented;
    }
    const block = this.#chain.blocks.byHash(hash);
    return block === null || block.number > this.head.number ? null : block;
  }

  receipt(hash: Hash): Receipt | null {
    const receipt = this.#chain.receipt(hash);
    return receipt === null || receipt.blockNumber > this.head.number ? null : this.#faults.receipt(receipt);
  }

  /**
   * The receipts of all transactions of the block, as this endpoint reports them; null in the place of a receipt that
   * it denies.
   */
  receiptsIn(block: SimulatedBlock): readonly (Receipt | null)[] {
    return block.transactions.map((_, index) => this.#faults.receipt(receiptOf(block, index)));
  }

  account(address: Address, atBlock = this.#realHead.number): Account {
    const isHead = atBlock === this.#chain.head.number;
    const honest = isHead ? this.#chain.account(address) : this.#chain.account(address, atBlock);
    return { ...honest, balance: this.#faults.balance(honest.balance) };
  }

  saysReverts(to: Address | null): boolean {
    return this.#faults.saysReverts(to);
  }

  estimate(honest: bigint): bigint {
    return this.#faults.estimate(honest);
  }

  transactionCount(address: Address, tag: "latest" | "pending"): number {
    const behind = this.#realHead !== this.#chain.head;
    const honest = tag === "latest" || behind ? this.account(address).nonce : this.#chain.pendingNonce(address);
    return this.#faults.nonce(honest, address, tag);
  }

  /**
   * Transaction count as of a block; null if this endpoint has pruned that state. If a test makes the endpoint report a
   * false count, past blocks get the false count too.
   */
  transactionCountAt(address: Address, blockNumber: number): number | null {
    if (blockNumber <= this.head.number - this.#faults.keptState) return null;
    return this.#faults.nonce(
      this.account(address, Math.min(blockNumber, this.#realHead.number)).nonce,
      address,
      "latest",
    );
  }

  bySenderAndNonce(address: Address, nonce: number): SimulatedTransaction | null {
    const { pool, blocks } = this.#chain;
    for (let number = this.head.number; number >= 0; number--) {
      const found = blocks
        .byNumber(number)
        ?.transactions.find(({ transaction }) => transaction.from === address && transaction.nonce === nonce);
      if (found !== undefined) return found.transaction;
    }
    return pool.entry(address, nonce)?.transaction ?? null;
  }

  /** The block and index of a transaction, as far as this endpoint has synchronised. */
  placeOf(hash: Hash): Place | null {
    const place = this.#chain.blocks.placeOf(hash);
    return place === null || place.block.number > this.head.number ? null : place;
  }

  get looksUpByNonce(): boolean {
    return this.#faults.looksUpByNonce;
  }

  /** The tip at a percentile of a block's transactions; null for an empty block. */
  tipAt(block: SimulatedBlock, percentile: number): bigint | null {
    if (block.transactions.length === 0) return null;
    let tips = this.#sortedTips.get(block);
    if (tips === undefined) {
      tips = block.transactions
        .map((executed) => tipOf(executed, block.baseFeePerGas))
        // A test may set the base fee above what mined transactions paid. Their tip is then negative; a real node never
        // reports less than zero.
        .map((tip) => (tip < 0n ? 0n : tip))
        .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      this.#sortedTips.set(block, tips);
    }
    return tips[Math.min(tips.length - 1, Math.floor((tips.length * percentile) / 100))] ?? null;
  }

  /** eth_gasPrice: the next base fee plus the usual tip. */
  gasPrice(): bigint {
    return (this.#chain.nextBaseFee ?? 0n) + this.suggestedTip();
  }

  /** eth_maxPriorityFeePerGas: the median tip of the last non-empty block, or one gwei. */
  suggestedTip(): bigint {
    for (let number = this.head.number; number > Math.max(0, this.head.number - 20); number--) {
      const block = this.byNumber(number);
      const tip = block === null ? null : this.tipAt(block, 60);
      if (tip !== null) return tip;
    }
    return 1_000_000_000n;
  }
}
