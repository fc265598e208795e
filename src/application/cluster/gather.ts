/**
 * Items that arrive in one turn of the event loop are handled together, each with its own result: a single create then costs
 * little more than one of a batch. No item waits for more to come; in a turn that brings many, the first of them leave while
 * the others are still being read.
 *
 * Reads, writes: nothing. A crash here leaves nothing behind.
 */
import type { Clock } from "../../ports/clock.ts";

interface Gathered<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Answers each item by its place, as soon as its result is known. */
type Together<Item, Result> = (items: readonly Item[], answer: (at: number, result: Result) => void) => Promise<void>;

export class Gathering<Item, Result> {
  private readonly clock;
  private readonly together;
  private readonly enough;
  private readonly weigh;
  private gathered: Gathered<Item, Result>[] = [];
  private weight = 0;

  /** `enough`: items of this weight leave at once. */
  constructor(
    clock: Pick<Clock, "soon">,
    together: Together<Item, Result>,
    enough: number,
    weigh: (item: Item) => number = () => 1,
  ) {
    this.clock = clock;
    this.together = together;
    this.enough = enough;
    this.weigh = weigh;
  }

  get isEmpty(): boolean {
    return this.gathered.length === 0;
  }

  add(item: Item): Promise<Result> {
    const weight = this.weigh(item);
    if (this.weight + weight > this.enough) void this.leave();
    return new Promise((resolve, reject) => {
      this.weight += weight;
      if (this.gathered.push({ item, resolve, reject }) === 1) this.clock.soon(() => void this.leave());
      if (this.weight >= this.enough) void this.leave();
    });
  }

  private async leave() {
    const leaving = this.gathered;
    if (leaving.length === 0) return;
    this.gathered = [];
    this.weight = 0;
    try {
      await this.together(
        leaving.map(({ item }) => item),
        (at, result) => leaving[at]?.resolve(result),
      );
    } catch (error) {
      for (const { reject } of leaving) reject(error);
    }
  }
}
