import type { Hash } from "../../../src/domain/lane.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import type { World } from "../world.ts";
import { TAG_DEPTHS } from "./crew.ts";

/** Time within which a mined transaction has its receipt in the database once nothing is broken any more, in ms. */
const PROMPT_MS = 20_000;
const LEAST_WATCHED = 64;

/**
 * Checks against the real chain what nodes write about blocks: a receipt is of a block that exists, an outcome that was
 * reported is withdrawn only if its block has left the chain, and blocks are watched for reorgs for as long as they
 * should be. Once nothing is broken, receipts are found soon.
 */
export class ChainWatch {
  readonly violations: string[] = [];
  /** True if a node may have missed receipts, and finds them only after the time for stale ones. */
  mayMiss = false;
  private readonly world: World;
  private readonly canonical: Hash[] = [];
  /** Blocks that have left the chain. */
  private readonly left = new Set<Hash>();
  private readonly addedAtMs = new Map<Hash, number>();
  private readonly minedAtMs = new Map<string, number>();
  private healedAtMs = Number.POSITIVE_INFINITY;

  constructor(world: World) {
    this.world = world;
    const { chain, clock } = world;
    chain.subscribe((event) => {
      if (event.type === "rollback")
        for (const hash of this.canonical.splice(chain.head.number + 1)) this.left.add(hash);
      if (event.type !== "block") return;
      this.canonical[event.block.number] = event.block.hash;
      this.addedAtMs.set(event.block.hash, clock.monotonicMs());
    });
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.committed(each);
    });
  }

  /** Call this when nothing is broken any more. */
  healed(): void {
    this.healedAtMs = this.world.clock.monotonicMs();
  }

  /** Everything that was wrong. Call this at rest. */
  settled(): readonly string[] {
    const late = this.world.rows().flatMap(({ txId, receipt }) => {
      const foundMs = this.minedAtMs.get(txId);
      const addedMs = this.addedAtMs.get(receipt?.blockHash ?? "0x");
      if (this.mayMiss || foundMs === undefined || addedMs === undefined) return [];
      const lateMs = foundMs - Math.max(addedMs, this.healedAtMs);
      return lateMs > PROMPT_MS ? [`the receipt of ${txId} was found ${lateMs} ms late`] : [];
    });
    return [...this.violations, ...late];
  }

  private committed({ write, before }: Applied): void {
    if (write.kind === "unwatch") this.endOfWatch(write.throughBlock);
    if (write.kind !== "transition") return;
    const { blocks } = this.world.chain;
    for (const { txId, event, receipt } of write.items) {
      if (event === "mine" && receipt != null) {
        this.minedAtMs.set(txId, this.world.clock.monotonicMs());
        if (blocks.byHash(receipt.blockHash) === null)
          this.violations.push(`${txId} has a receipt of a block that never was`);
      }
      const was = event === "reorg" ? (before.transactions.get(txId)?.details?.receipt?.blockHash ?? null) : null;
      if (was !== null && this.canonical.includes(was) && !this.left.has(was))
        this.violations.push(`${txId} was settled and withdrawn, and its block ${was} never left the chain`);
    }
  }

  private endOfWatch(throughBlock: number): void {
    const { chain, settings } = this.world;
    const { finality, confirmations } = settings;
    const depth = finality === "finalized" ? TAG_DEPTHS.finalized : Math.max(2 * confirmations, LEAST_WATCHED);
    if (throughBlock > chain.head.number - depth)
      this.violations.push(`block ${throughBlock} is watched no more at block ${chain.head.number}`);
  }
}
