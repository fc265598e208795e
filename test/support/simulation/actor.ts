import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { World, WorldNode } from "../world.ts";

/**
 * A simulated user who sends requests to any node that is up. A simulation does not end while any user waits for a
 * response.
 */
export abstract class Actor {
  /** Responses that a user must never get. */
  readonly absurd: string[] = [];
  protected readonly world: World;
  protected readonly dice: Dice;
  protected readonly nodes: () => readonly WorldNode[];
  private readonly open = new Set<Promise<void>>();

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[]) {
    this.world = world;
    this.dice = dice;
    this.nodes = nodes;
  }

  get waiting(): number {
    return this.open.size;
  }

  protected begin(work: Promise<void>): void {
    const story: Promise<void> = work.finally(() => this.open.delete(story));
    this.open.add(story);
  }
}
