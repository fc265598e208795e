/**
 * Stage 1: single creates that arrive together travel together. What was read from all connections in one turn of the
 * event loop is routed, admitted and committed as one batch, each with its own fate: a single create then costs little
 * more than one of a batch. No create waits for more to come; and where a turn brings many, the first of them leave while the
 * others are still being read.
 *
 * Reads, writes: nothing. A crash here leaves nothing behind.
 */
import type { Clock } from "../../../ports/clock.ts";

interface Gathered<Item, Fate> {
  readonly item: Item;
  readonly resolve: (fate: Fate) => void;
  readonly reject: (error: unknown) => void;
}

/** Tells one fate for each item, by its place, as soon as it is known. */
type Together<Item, Fate> = (items: readonly Item[], tell: (at: number, fate: Fate) => void) => Promise<void>;

export class Gathering<Item, Fate> {
  private readonly clock: Pick<Clock, "soon">;
  private readonly together: Together<Item, Fate>;
  private readonly enough: number;
  private gathered: Gathered<Item, Fate>[] = [];

  /** `enough`: so many leave at once. */
  constructor(clock: Pick<Clock, "soon">, together: Together<Item, Fate>, enough = Number.POSITIVE_INFINITY) {
    this.clock = clock;
    this.together = together;
    this.enough = enough;
  }

  add(item: Item): Promise<Fate> {
    return new Promise((resolve, reject) => {
      const gathered = this.gathered.push({ item, resolve, reject });
      if (gathered === 1) this.clock.soon(() => void this.leave());
      if (gathered >= this.enough) void this.leave();
    });
  }

  private async leave(): Promise<void> {
    const leaving = this.gathered;
    if (leaving.length === 0) return;
    this.gathered = [];
    try {
      await this.together(
        leaving.map(({ item }) => item),
        (at, fate) => leaving[at]?.resolve(fate),
      );
    } catch (error) {
      for (const { reject } of leaving) reject(error);
    }
  }
}
