/**
 * Polls the newest blocks of one chain and keeps a hash-linked window of recent ones. There is one such follower per
 * chain and node; its RPC cost grows with the number of blocks, not of pending transactions. New blocks go to consumers
 * through bounded buffers.
 *
 * Reads: the chain. Writes: nothing durable. After a crash, the next process begins at the chain's newest block, and
 * the receipt of every open transaction is looked up once by hash.
 */
import { BlockBuffer, type Drained } from "../../domain/chain/block-buffer.ts";
import { type BlockRef, BlockWindow, isLinked } from "../../domain/chain/block-window.ts";
import { watchDepth } from "../../domain/chain/finality.ts";
import { range } from "../../domain/range.ts";
import { SANITY_BLOCKS } from "../../domain/transaction/fees.ts";
import { type Block, type Chain, ChainUnavailable } from "../../ports/chain.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { ChainSettings } from "../settings.ts";

export interface HeadChange {
  readonly added: readonly Block[];
  readonly removed: readonly BlockRef[];
}

export interface Subscription {
  drain(): Drained<HeadChange>;
}

/**
 * Extra blocks kept beyond the depth at which reorgs are still expected, so that a reorg of that depth still finds its
 * fork point in the window.
 */
const SPARE_BLOCKS = 16;
/**
 * Minimum number of blocks in the window, because `finalized` may lag two epochs or more behind the newest block.
 * Blocks are kept as they arrive, and never fetched only to fill the window.
 */
const LEAST_CAPACITY = 256;
const FETCH_AT_ONCE = 64;
/**
 * Maximum number of probable next blocks that a poll requests in advance. After a long pause one poll finds many
 * blocks, but the next one finds fewer.
 */
const LIKELY_AT_MOST = 8;

export class HeadFollower {
  private readonly chain;
  private readonly telemetry;
  private readonly settings;
  private readonly depth;
  private readonly settledDepth;
  private readonly capacity;
  private readonly buffers = new Set<BlockBuffer<HeadChange>>();
  /** Window of recent canonical blocks: immutable, replaced as a whole. */
  window = BlockWindow.empty;
  /** The newest block with its contents; null before the first answer. */
  head: Block | null = null;
  /**
   * Base fees of the last blocks that this node has read, oldest first. Each came in a separate response. The array is
   * replaced after each change.
   */
  seenBaseFees: readonly bigint[] = [];
  private recomputes = false;
  private broken = false;
  /** Number of blocks that the last poll added to the window. */
  private stride = 0;

  constructor(chain: Chain, telemetry: Telemetry, settings: ChainSettings) {
    this.chain = chain;
    this.telemetry = telemetry;
    this.settings = settings;
    this.settledDepth = watchDepth(settings.confirmations);
    this.depth = this.settledDepth + SPARE_BLOCKS;
    this.capacity = Math.max(LEAST_CAPACITY, this.depth);
  }

  /**
   * Base fee of the newest block. If that block's header does not match its hash although earlier headers of this chain
   * did, the base fee of the last block that matched.
   */
  get baseFee(): bigint | null {
    const isForged = this.recomputes && this.head?.headerHolds === false;
    return (isForged ? this.seenBaseFees.at(-1) : this.head?.baseFeePerGas) ?? null;
  }

  /**
   * True if, since the last call of this method, the chain may have changed deeper than settled transactions are
   * checked for reorgs: by a deep reorg, by a newest block far below the known one, or because new blocks could not be
   * linked to the window. Resets the flag.
   */
  takeDiscontinuity(): boolean {
    const { broken } = this;
    this.broken = false;
    return broken;
  }

  subscribe(): Subscription {
    const buffer = new BlockBuffer<HeadChange>(this.settings.blockQueueLength);
    this.buffers.add(buffer);
    return buffer;
  }

  unsubscribe(subscription: Subscription): void {
    this.buffers.delete(subscription as BlockBuffer<HeadChange>);
  }

  /**
   * Polls the chain's newest block once. True if the canonical chain changed. Throws `ChainUnavailable`. If `isAwaited`
   * returns false and at most one listener is subscribed, the blocks between the last known one and the newest are not
   * fetched, because they contain none of our transactions.
   */
  async advance(isAwaited: () => boolean = () => true): Promise<boolean> {
    const [head, ahead] = await Promise.all([this.chain.head("latest"), isAwaited() ? this.likelyNext() : []]);
    if (head === null) throw new ChainUnavailable("the RPC endpoint returned no latest block");
    const { tip } = this.window;
    if (tip === null) return this.begin(head);
    if (this.window.contains(head)) {
      this.stride = 0;
      return false;
    }
    // `isAwaited` must be called after the response: a transaction may have been sent meanwhile, and be in one of the
    // blocks that would be skipped.
    const isNext = head.number === tip.number + 1 && head.parentHash === tip.hash;
    if (!isNext && head.number > tip.number && this.buffers.size <= 1 && !isAwaited()) return this.skipTo(head);
    const branch = await this.branchTo(head, ahead);
    if (branch === "lagging") {
      this.broken ||= (this.window.tip?.number ?? 0) - head.number > this.settledDepth;
      return false;
    }
    const change = branch === "lost" ? null : this.window.extend(branch, this.capacity);
    if (change === null) return this.begin(head);
    this.window = change.window;
    this.head = head;
    this.stride = change.added.length;
    this.noteBaseFees(this.seenBaseFees, change.added);
    this.broken ||= change.removed.length > this.settledDepth;
    const { chainId } = this.chain;
    const fromBlock = change.removed.at(-1)?.number;
    const depth = change.removed.length;
    if (fromBlock !== undefined) this.telemetry.emit({ type: "chain.reorg", chainId, depth, fromBlock });
    for (const buffer of this.buffers) buffer.push({ added: change.added, removed: change.removed });
    this.reportHead(head);
    return true;
  }

  /**
   * The blocks that connect the window of known blocks with `head`. "lagging": `head` is below the window, so it
   * contradicts no known block. "lost": the block at which the two branches fork is not in the window, the endpoint
   * does not return it, or too many blocks are missing.
   */
  private async branchTo(head: Block, ahead: readonly Block[]): Promise<readonly Block[] | "lagging" | "lost"> {
    const tip = this.window.tip as BlockRef;
    if (head.number <= tip.number && this.window.hashAt(head.number) === null) return "lagging";
    const between = head.number - tip.number - 1;
    if (between > this.capacity) return "lost";
    const known = ahead.filter(({ number }) => number < head.number);
    const branch = [
      ...known,
      ...(await blocksBetween(this.chain, tip.number + 1 + known.length, head.number - 1)),
      head,
    ];
    if (!isLinked(branch))
      throw new ChainUnavailable("the chain's blocks changed while they were read, so they do not link");
    for (let depth = 0; depth <= this.capacity; depth++) {
      const first = branch[0] as Block;
      // The new branch reaches down to the window's oldest block and still has no block in common with the window.
      if (first.number <= (this.window.oldest?.number ?? 0)) return "lost";
      if (this.window.contains({ number: first.number - 1, hash: first.parentHash })) return branch;
      const parent = await this.chain.blockByHash(first.parentHash);
      if (parent === null) return "lost";
      branch.unshift(parent);
    }
    return "lost";
  }

  /**
   * Blocks that probably follow the newest known one. On a chain that adds several blocks per poll, a poll requests as
   * many as the last poll found, together with the head in one request. Returns the blocks up to the first missing one;
   * the others are fetched as usual.
   */
  private async likelyNext(): Promise<readonly Block[]> {
    const { tip } = this.window;
    if (tip === null || this.stride < 2) return [];
    const numbers = range(tip.number + 1, tip.number + Math.min(this.stride - 1, LIKELY_AT_MOST));
    const next: Block[] = [];
    for (const block of await this.chain.blocksByNumber(numbers).catch(() => [])) {
      if (block === null) break;
      next.push(block);
    }
    return next;
  }

  /**
   * Fills the window of blocks anew, at the first poll or if new blocks could not be linked to it. Notifies listeners
   * that they may have missed blocks.
   */
  private async begin(head: Block) {
    const first = this.window.tip === null;
    const below = await blocksBetween(this.chain, Math.max(0, head.number - this.depth + 1), head.number - 1);
    if (!isLinked([...below, head]))
      throw new ChainUnavailable("the chain's blocks changed while they were read, so they do not link");
    this.window = BlockWindow.of([...below, head]);
    this.head = head;
    this.noteBaseFees([], [...below, head]);
    for (const buffer of this.buffers) {
      buffer.markGap();
      buffer.push({ added: [head], removed: [] });
    }
    this.broken ||= !first;
    if (!first) {
      this.telemetry.emit({ type: "chain.gap", chainId: this.chain.chainId, reason: "fork point beyond the window" });
    }
    this.reportHead(head);
    return true;
  }

  /**
   * Restarts the window of blocks at the chain's newest block. Listeners do not get the blocks in between, which
   * contain none of their transactions.
   */
  private skipTo(head: Block): true {
    this.window = BlockWindow.of([head]);
    this.head = head;
    this.stride = 0;
    this.noteBaseFees(this.seenBaseFees, [head]);
    for (const buffer of this.buffers) buffer.push({ added: [head], removed: [] });
    this.reportHead(head);
    return true;
  }

  private noteBaseFees(before: readonly bigint[], added: readonly Block[]) {
    // Once the hash of one header equals its block hash, this chain's block hashes can be recomputed. From then on, a
    // header that does not match its hash was altered by an endpoint.
    this.recomputes ||= added.some(({ headerHolds }) => headerHolds === true);
    const held = this.recomputes ? added.filter(({ headerHolds }) => headerHolds !== false) : added;
    this.seenBaseFees = [...before, ...held.flatMap(({ baseFeePerGas }) => baseFeePerGas ?? [])].slice(-SANITY_BLOCKS);
  }

  private reportHead(head: Block) {
    this.telemetry.emit({ type: "chain.head", chainId: this.chain.chainId, number: head.number, hash: head.hash });
  }
}

/** The blocks of these heights, in ascending order without gaps. Throws `ChainUnavailable`. */
export async function blocksBetween(chain: Chain, from: number, to: number): Promise<readonly Block[]> {
  const blocks: Block[] = [];
  for (let start = from; start <= to; start += FETCH_AT_ONCE) {
    const numbers = range(start, Math.min(to, start + FETCH_AT_ONCE - 1));
    for (const block of await chain.blocksByNumber(numbers)) {
      if (block === null) throw new ChainUnavailable("a block below the head is missing at this endpoint");
      blocks.push(block);
    }
  }
  return blocks;
}
