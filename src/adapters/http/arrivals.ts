/**
 * Whether connections keep coming in. libuv accepts one of them in a turn of the event loop (since 1.45: "don't accept()
 * connections in a loop"), so a thousand callers who connect at once arrive one by one, in a thousand turns. Whatever each
 * of them wants would be done alone, with a commit of its own.
 */
import type { Clock } from "../../ports/clock.ts";

export class Arrivals {
  private readonly clock: Pick<Clock, "soon">;
  private inARow = 0;
  private isNew = false;

  constructor(clock: Pick<Clock, "soon">) {
    this.clock = clock;
  }

  /** A connection was accepted. */
  readonly came = (): void => {
    this.inARow++;
    this.isNew = true;
    if (this.inARow === 1) this.clock.soon(() => this.turnEnded());
  };

  /** One in each of the last turns, so there may be more; a single one is let in as it comes. */
  get keepComing(): boolean {
    return this.inARow > 1;
  }

  private turnEnded(): void {
    if (!this.isNew) this.inARow = 0;
    else this.clock.soon(() => this.turnEnded());
    this.isNew = false;
  }
}
