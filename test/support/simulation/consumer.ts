import { FencepostError } from "../../../src/domain/errors.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { CompletionRecord } from "../../../src/ports/query-store.ts";
import type { World, WorldNode } from "../world.ts";

/**
 * Reads the feed of completions during all faults, at any node that responds. Checks that each sequence number comes
 * once, in order, without a gap.
 */
export class Consumer {
  readonly seen: CompletionRecord[] = [];
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly dice: Dice;
  private readonly nodes: () => readonly WorldNode[];
  private after = 0;
  /** Number of jumps in the feed's sequence numbers; one is allowed per new epoch. */
  private jumps = 0;
  private epoch: number | undefined;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[]) {
    this.world = world;
    this.dice = dice;
    this.nodes = nodes;
  }

  /** Runs until the simulation ends. */
  async follow(): Promise<never> {
    for (;;) {
      const nodes = this.nodes();
      if (nodes.length > 0) await this.poll(this.dice.pick(nodes));
      await this.world.clock.sleep(this.dice.int(10, 400));
    }
  }

  private async poll({ node }: WorldNode): Promise<void> {
    const { after, epoch } = this;
    const query = { after, limit: this.dice.int(1, 20), waitMs: this.dice.pick([0, 500, 2_000]) };
    try {
      const page = await Promise.race([
        node.api.completions({ ...query, ...(epoch === undefined ? {} : { epoch }) }),
        this.world.clock.sleep(4_000).then(() => null),
      ]);
      if (page === null) return;
      if (epoch === undefined) this.jumps = page.epoch - 1;
      this.epoch = page.epoch;
      for (const item of page.items) this.take(item, page.epoch);
      if (page.next !== this.after) this.violations.push(`next is ${page.next} after ${this.after}`);
    } catch (error) {
      this.complain(error);
    }
  }

  private take(item: CompletionRecord, epoch: number): void {
    if (item.epoch > epoch) this.violations.push(`${item.seq} of epoch ${item.epoch} came under epoch ${epoch}`);
    const jumps = item.seq !== this.after + 1;
    if (jumps && this.jumps-- <= 0) this.violations.push(`${item.seq} came after ${this.after}`);
    this.after = item.seq;
    this.seen.push(item);
  }

  private complain(error: unknown): void {
    if (!(error instanceof FencepostError)) this.violations.push(`the feed threw ${String(error)}`);
    else if (error.code === "EPOCH_CHANGED") {
      this.epoch = error.extras.epoch;
      this.jumps++;
      this.after = error.extras.resumeAfter ?? this.after;
    } else if (error.code !== "UNAVAILABLE") this.violations.push(`the feed answered ${error.code}`);
  }
}
