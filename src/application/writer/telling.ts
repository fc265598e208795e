import type { Fence } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import type { HistoryChanged, LaneChanges, LaneWrite, WriteOutcome } from "../../ports/lane-store.ts";
import type { Entry, Untold } from "./batch.ts";

export interface CommitterEvents {
  /** A commit was acknowledged: told before its writers are, and of each lane in the order of its commits. */
  onCommitted(changes: LaneChanges): void;
  /** A write found its fence broken: another node owns the lane. */
  onFenced(fence: Fence, write: LaneWrite["kind"]): void;
  onHistoryChanged(error: HistoryChanged): void;
  /** A write was not made, and will not be tried again: the database did not take it in time. */
  onGivenUp(fence: Fence, write: LaneWrite["kind"]): void;
}

interface Told {
  readonly entry: Entry;
  readonly outcome: WriteOutcome;
}

/** What goes on behind so many moves keeps the event loop busy for a few milliseconds. */
const TOLD_AT_ONCE = 16;

/**
 * Tells what became of writes. Lanes hear of it at once, in the order of their commits, and so do callers. What goes on behind
 * a move takes its time on the event loop, and no caller waits for it: of many moves a few are told at a time.
 */
export class Telling {
  private readonly clock: Pick<Clock, "soon">;
  private readonly events: Pick<CommitterEvents, "onCommitted" | "onFenced">;
  private moves: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, "soon">, events: Pick<CommitterEvents, "onCommitted" | "onFenced">) {
    this.clock = clock;
    this.events = events;
  }

  /** Resolves when everybody was told, but for those whose write goes on. */
  async tell(untold: readonly Untold[]): Promise<void> {
    for (const { changes } of untold) for (const each of changes) this.events.onCommitted(each);
    const told = untold.flatMap(({ entries, outcomes }) =>
      entries.flatMap((entry, index): Told[] => {
        const outcome = outcomes[index] as WriteOutcome;
        return outcome.status === "unfinished" ? [] : [{ entry, outcome }];
      }),
    );
    for (const each of told) if (each.entry.sort !== "move") this.tellOne(each);
    const moves = told.filter(({ entry }) => entry.sort === "move");
    if (moves.length === 0) return;
    const tellThese = () => this.tellInTurns(moves);
    this.moves = this.moves.then(tellThese, tellThese);
    await this.moves;
  }

  private async tellInTurns(moves: readonly Told[]): Promise<void> {
    for (let from = 0; from < moves.length; from += TOLD_AT_ONCE) {
      if (from > 0) await new Promise<void>((resolve) => this.clock.soon(resolve));
      for (const each of moves.slice(from, from + TOLD_AT_ONCE)) this.tellOne(each);
    }
  }

  private tellOne({ entry, outcome }: Told): void {
    if (outcome.status === "fenced") this.events.onFenced(entry.write.fence, entry.write.kind);
    entry.resolve(outcome);
  }
}
