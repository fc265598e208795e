import type { World } from "../world.ts";

/** When the blocks of the chain were added: a reorg, or another program, adds several at once. */
export class BlockTimes {
  private readonly world: World;
  /** By number of the block. */
  private readonly addedAtMs: number[] = [];

  constructor(world: World) {
    this.world = world;
    world.chain.subscribe((event) => {
      if (event.type === "block") this.addedAtMs[event.block.number] = world.clock.monotonicMs();
    });
  }

  /** Number of the newest block that has been there for so long. */
  newestSince(ms: number): number {
    const { chain, clock } = this.world;
    const latestMs = clock.monotonicMs() - ms;
    let number = chain.head.number;
    while (number > 0 && (this.addedAtMs[number] ?? Number.NEGATIVE_INFINITY) > latestMs) number--;
    return number;
  }
}
