import { type Clock, fewAtATime } from "../../ports/clock.ts";
import type { WriteOutcome } from "../../ports/lane-store.ts";
import type { Entry, Untold } from "./batch.ts";
import type { CommitterEvents } from "./committer.ts";
import { isMove } from "./turn.ts";

interface Told {
  readonly entry: Entry;
  readonly outcome: WriteOutcome;
}

/**
 * Tells what became of writes. Lanes hear of it at once, in the order of their commits, and so do callers. What goes on behind
 * a move takes its time on the event loop, and no caller waits for it: of many moves a few are told at a time.
 */
export class Telling {
  private readonly clock: Pick<Clock, "soon" | "monotonicMs">;
  private readonly events: Pick<CommitterEvents, "onCommitted" | "onFenced">;
  private moves: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, "soon" | "monotonicMs">, events: Pick<CommitterEvents, "onCommitted" | "onFenced">) {
    this.clock = clock;
    this.events = events;
  }

  /** Resolves when everybody was told. */
  async tell(untold: readonly Untold[]): Promise<void> {
    for (const { changes } of untold) for (const each of changes) this.events.onCommitted(each);
    const told = untold.flatMap(({ entries, outcomes }) =>
      entries.map((entry, index): Told => ({ entry, outcome: outcomes[index] as WriteOutcome })),
    );
    for (const each of told) if (!isMove(each.entry.write)) this.tellOne(each);
    const moves = told.filter(({ entry }) => isMove(entry.write));
    if (moves.length === 0) return;
    this.moves = this.moves.then(() => fewAtATime(this.clock, moves, (each) => this.tellOne(each)));
    await this.moves;
  }

  private tellOne({ entry, outcome }: Told): void {
    if (outcome.status === "fenced") this.events.onFenced(entry.write.fence, entry.write.kind);
    entry.resolve(outcome);
  }
}
