import type { CallOptions } from "../client/deadline.ts";
import type { FencepostFace } from "../client/face.ts";
import type { FeedPlace, FollowedCompletion } from "../client/follow.ts";

/** Position in the feeds of all cells, by the cell's name. A cell without an entry is read from its beginning. */
export type FleetPlace = Readonly<Record<string, FeedPlace>>;

/** Storage of a reader's position in all feeds. */
export interface FleetStore {
  /** Loads the saved position; null or undefined if none was saved yet. */
  load(): Promise<FleetPlace | null | undefined> | FleetPlace | null | undefined;
  /** Saves the position; the next item of that cell is delivered once this resolves. */
  save(place: FleetPlace): Promise<unknown> | unknown;
}

export interface FleetOutcomesQuery {
  /** Position to begin behind, if there is no `store`, or nothing is saved in it. */
  readonly after?: FleetPlace;
  /** Where the position is saved: then a changed epoch of a cell ends nothing. */
  readonly store?: FleetStore;
}

/** An outcome, and the cell whose feed it is in. `seq` and `feedEpoch` count in that feed. */
export type FleetCompletion = FollowedCompletion & { readonly cell: string };

type Cells = Readonly<Record<string, Pick<FencepostFace, "outcomes">>>;
type Step = { readonly cell: string; readonly result: IteratorResult<FollowedCompletion, void> };

/**
 * Receives the outcomes of all cells, as they happen. The order of one cell's feed is kept; between two cells there is
 * none. A cell that does not answer delays only its own outcomes.
 */
export async function* followCells(
  cells: Cells,
  { after, store }: FleetOutcomesQuery,
  call: CallOptions,
): AsyncGenerator<FleetCompletion, void, undefined> {
  const place = new Place((await store?.load()) ?? after ?? {}, store);
  const feeds = Object.entries(cells).map(
    ([cell, client]) => [cell, client.outcomes(place.queryOf(cell), call)[Symbol.asyncIterator]()] as const,
  );
  const waiting = new Map<string, Promise<Step>>();
  const ask = ([cell, feed]: (typeof feeds)[number]) =>
    waiting.set(
      cell,
      feed.next().then((result) => ({ cell, result })),
    );
  try {
    for (const feed of feeds) ask(feed);
    while (waiting.size > 0) {
      const { cell, result } = await Promise.race(waiting.values());
      waiting.delete(cell);
      if (result.done === true) continue;
      yield { ...result.value, cell };
      const feed = feeds.find(([name]) => name === cell);
      if (feed !== undefined) ask(feed);
    }
  } finally {
    // A feed that waits for its next outcome ends with its connection: nobody waits for that.
    for (const [, feed] of feeds) feed.return?.().catch(() => undefined);
    for (const step of waiting.values()) step.catch(() => undefined);
  }
}

/** The position in all feeds, saved as a whole: two cells may save theirs at once. */
class Place {
  private place: FleetPlace;
  private readonly store: FleetStore | undefined;
  private saved: Promise<unknown> = Promise.resolve();

  constructor(place: FleetPlace, store: FleetStore | undefined) {
    this.place = place;
    this.store = store;
  }

  queryOf(cell: string) {
    const own = this.place[cell];
    if (this.store === undefined) return own === undefined ? {} : { after: own.seq, epoch: own.epoch };
    return { store: { load: () => own, save: (next: FeedPlace) => this.save(cell, next) } };
  }

  private save(cell: string, next: FeedPlace) {
    this.place = { ...this.place, [cell]: next };
    const save = () => this.store?.save(this.place);
    this.saved = this.saved.then(save, save);
    return this.saved;
  }
}
