/**
 * Blocks past a depth, as an endless stream: ascending, each height once. The consumer may be as slow as it likes: its
 * buffer is its own, bounded, and says when it dropped something; what is missing is then read from the chain again.
 *
 * Reads: the follower, and the chain after a gap. Writes: nothing. A crash ends the stream; `from` picks it up again.
 */
import { isLinked } from "../../domain/block-window.ts";
import { StableStream } from "../../domain/stable-stream.ts";
import { type Block, ChainUnavailable } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { ChainContext } from "./chain-context.ts";
import type { HeadChange, Subscription } from "./head-follower.ts";

export interface StableBlocksOptions {
  /** Blocks on top before one is emitted. */
  readonly depth: number;
  /** First height to emit; without it, the head at the time of asking. */
  readonly from?: number;
  readonly signal: AbortSignal;
}

interface StablePorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const READ_AT_ONCE = 64;

export async function* stableBlocks(
  ports: StablePorts,
  context: ChainContext,
  options: StableBlocksOptions,
): AsyncGenerator<Block, void, undefined> {
  const { follower, settings } = context;
  const subscription = follower.subscribe();
  const reader = new StableReader(context, options, subscription);
  try {
    while (!options.signal.aborted) {
      const { stable, brokeStability } = await reader.next();
      if (brokeStability) alert(ports.telemetry, context.chain.chainId);
      yield* stable;
      await ports.clock.sleep(settings.pollIntervalMs, options.signal).catch(() => undefined);
    }
  } finally {
    follower.unsubscribe(subscription);
  }
}

class StableReader {
  private readonly context: ChainContext;
  private readonly subscription: Subscription;
  private readonly stream: StableStream<Block>;
  /** Where the stream begins; null before any block was seen. */
  private firstHeight: number | null;
  private owed: readonly HeadChange[] = [];
  private gap = false;

  constructor(context: ChainContext, options: StableBlocksOptions, subscription: Subscription) {
    this.context = context;
    this.subscription = subscription;
    this.stream = new StableStream(options.depth);
    this.firstHeight = options.from ?? context.follower.head?.number ?? null;
    this.gap = this.firstHeight !== null;
  }

  /** What became stable since the last call. A chain that does not answer is asked again by the next call. */
  async next(): Promise<{ readonly stable: readonly Block[]; readonly brokeStability: boolean }> {
    const { items, gapPotential } = this.subscription.drain();
    this.owed = [...this.owed, ...items];
    this.gap ||= gapPotential && this.firstHeight !== null;
    const changes = this.gap ? await this.rescan() : this.owed;
    if (changes === null) return { stable: [], brokeStability: false };
    this.owed = [];
    this.gap = false;
    const results = changes.map((change) => this.stream.apply(this.sinceFirst(change)));
    return {
      stable: results.flatMap(({ stable }) => stable),
      brokeStability: results.some(({ brokeStability }) => brokeStability),
    };
  }

  private sinceFirst({ added, removed }: HeadChange): HeadChange {
    this.firstHeight ??= added[0]?.number ?? null;
    const first = this.firstHeight ?? 0;
    return { added: added.filter(({ number }) => number >= first), removed };
  }

  /** Everything from the last height that is sure to the head, read from the chain; null where it does not answer. */
  private async rescan(): Promise<readonly HeadChange[] | null> {
    const tip = this.context.follower.window.tip;
    if (tip === null || this.firstHeight === null) return null;
    const first = this.stream.emittedThrough === null ? this.firstHeight : this.stream.emittedThrough + 1;
    const added: Block[] = [];
    try {
      for (let from = first; from <= tip.number; from += READ_AT_ONCE) {
        const count = Math.min(READ_AT_ONCE, tip.number - from + 1);
        const blocks = await this.context.chain.blocksByNumber(
          Array.from({ length: count }, (_, index) => from + index),
        );
        added.push(...blocks.filter((block) => block !== null));
      }
    } catch (error) {
      if (error instanceof ChainUnavailable) return null;
      throw error;
    }
    // Read by number, while the follower goes by hash: unless both saw one chain, heights would come twice or not at all.
    const whole = added.length === Math.max(0, tip.number - first + 1) && isLinked(added);
    if (!whole || (added.at(-1)?.hash ?? tip.hash) !== tip.hash) return null;
    this.stream.forgetWaiting();
    return [{ added, removed: [] }];
  }
}

function alert(telemetry: Telemetry, chainId: number): void {
  const message = `a reorg on chain ${chainId} replaced blocks that had been streamed as stable`;
  telemetry.emit({ type: "alert", severity: "ERROR", code: "STABLE_BLOCKS_REPLACED", message });
}
