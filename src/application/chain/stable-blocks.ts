/**
 * Endless stream of blocks that have at least a given number of blocks above them: in ascending order, each height
 * once. A slow consumer has its own bounded buffer. If the buffer dropped blocks, it reports that, and they are read
 * from the chain again.
 *
 * Reads: the node's view of new blocks, and the chain after a gap. Writes: nothing. A crash ends the stream; `from`
 * resumes it.
 */
import { isLinked } from "../../domain/chain/block-window.ts";
import { StableStream } from "../../domain/chain/stable-stream.ts";
import { type Block, unlessSilent } from "../../ports/chain.ts";
import type { Ports } from "../../ports/ports.ts";
import type { ChainContext } from "./chain-context.ts";
import { blocksBetween, type HeadChange, type Subscription } from "./head-follower.ts";

export interface StableBlocksOptions {
  /** Number of blocks that must be on top of a block before it is emitted. */
  readonly depth: number;
  /** First height to emit; if absent, the height of the newest block at the time of the call. */
  readonly from?: number;
  readonly signal: AbortSignal;
}

/** Heights read per page: a consumer that starts far back never holds all blocks in memory. */
const PAGE = 1_024;

export async function* stableBlocks(
  ports: Pick<Ports, "clock" | "telemetry">,
  context: ChainContext,
  options: StableBlocksOptions,
): AsyncGenerator<Block, void, undefined> {
  const { follower, settings } = context;
  const subscription = follower.subscribe();
  const reader = new StableReader(context, options, subscription);
  try {
    while (!options.signal.aborted) {
      const { stable, brokeStability, more } = await reader.next();
      const { chainId } = context.chain;
      const message = `a reorg on chain ${chainId} replaced blocks that had been streamed as stable`;
      const code = "STABLE_BLOCKS_REPLACED";
      if (brokeStability) ports.telemetry.emit({ type: "alert", severity: "ERROR", code, message, chainId });
      yield* stable;
      if (!more) await ports.clock.sleep(settings.pollIntervalMs, options.signal).catch(() => undefined);
    }
  } finally {
    follower.unsubscribe(subscription);
  }
}

class StableReader {
  private readonly context;
  private readonly depth;
  private readonly subscription;
  private readonly stream: StableStream<Block>;
  /** First height of the stream; null before any block was seen. */
  private firstHeight;
  private owed: readonly HeadChange[] = [];
  private gap = false;

  constructor(context: ChainContext, options: StableBlocksOptions, subscription: Subscription) {
    this.context = context;
    this.subscription = subscription;
    this.depth = options.depth;
    this.stream = new StableStream(options.depth);
    this.firstHeight = options.from ?? context.follower.head?.number ?? null;
    this.gap = this.firstHeight !== null;
  }

  /** Blocks that became stable since the last call. If the chain does not answer, the next call requests them again. */
  async next() {
    const { items, gapPotential } = this.subscription.drain();
    this.owed = [...this.owed, ...items];
    this.gap ||= gapPotential && this.firstHeight !== null;
    const scan = this.gap ? await this.rescan() : null;
    if (this.gap && scan === null) return { stable: [], brokeStability: false, more: false };
    const changes = scan === null ? this.owed : [{ added: scan.added, removed: [] }];
    this.owed = [];
    this.gap = scan !== null && !scan.reachedTip;
    const results = changes.map((change) => this.stream.apply(this.sinceFirst(change)));
    return {
      stable: results.flatMap(({ stable }) => stable),
      brokeStability: results.some(({ brokeStability }) => brokeStability),
      // True if more blocks can be read at once, without waiting for a new one.
      more: this.gap,
    };
  }

  private sinceFirst({ added, removed }: HeadChange): HeadChange {
    this.firstHeight ??= added[0]?.number ?? null;
    const first = this.firstHeight ?? 0;
    return { added: added.filter(({ number }) => number >= first), removed };
  }

  /**
   * Reads the next page of blocks from the chain, upwards from the last emitted height; null if the chain does not
   * answer.
   */
  private async rescan() {
    const { window } = this.context.follower;
    const { tip } = window;
    if (tip === null || this.firstHeight === null) return null;
    const first = this.stream.emittedThrough === null ? this.firstHeight : this.stream.emittedThrough + 1;
    const last = Math.min(tip.number, first + this.depth + PAGE - 1);
    const added = await unlessSilent(blocksBetween(this.context.chain, first, last), null);
    // This page was read by height, while new blocks are linked by hash. Check that both are on the same branch:
    // otherwise some heights would be emitted twice or skipped.
    if (added === null || !isLinked(added)) return null;
    const top = added.at(-1);
    if (top !== undefined && (window.hashAt(top.number) ?? top.hash) !== top.hash) return null;
    this.stream.forgetWaiting();
    return { added, reachedTip: last === tip.number };
  }
}
