import { describe, expect, it } from "vitest";
import {
  createClient,
  type FeedPlace,
  type FeedStore,
  FeedTruncatedError,
  type FencepostError,
} from "../../src/client/index.ts";
import { type Answering, lost, problem, scriptedFetch } from "../support/scripted-fetch.ts";

/** A feed store that keeps its position in memory and records every position that was saved. */
class MemoryFeedStore implements FeedStore {
  place: FeedPlace | null = null;
  readonly saved: string[] = [];

  load = () => this.place;
  save = async (place: FeedPlace) => {
    this.place = place;
    this.saved.push(`${place.seq}@${place.epoch}`);
  };
}

const page = (epoch: number, seqs: readonly number[], next: number) =>
  Response.json({ epoch, items: seqs.map((seq) => ({ seq, epoch, txId: `tx-${seq}` })), next });

/** Reads until `count` items were consumed. An item's position is saved when the next item is requested. */
async function read(answering: Answering, store: FeedStore, count: number, query: object = {}) {
  const { fetch, asked } = scriptedFetch(answering);
  const taken: number[] = [];
  const client = createClient({ url: "http://node.example", fetch, timeoutMs: 150 });
  for await (const { seq } of client.completions({ wait: 0, ...query, store })) {
    taken.push(seq);
    if (taken.length === count) break;
  }
  return { taken, asked: asked.map(({ path }) => path.replace("/api/v1/tx/completions?", "")) };
}

describe("reading completions with a position store", () => {
  // protects [The feed] src/client/follow.ts
  it("saves a position only after the item was consumed", async () => {
    const store = new MemoryFeedStore();
    const feed: Answering = (_, turn) => (turn === 0 ? page(5, [1, 2], 2) : page(5, [3], 3));
    expect(await read(feed, store, 3)).toEqual({ taken: [1, 2, 3], asked: ["wait=0", "wait=0&epoch=5&after=2"] });
    // The third item was delivered but the consumer did not ask for another one, so it is delivered again.
    expect(store.saved).toEqual(["1@5", "2@5"]);
    const again = await read((asked) => page(5, asked.path.includes("after=2") ? [3] : [], 3), store, 1);
    expect(again).toEqual({ taken: [3], asked: ["wait=0&after=2&epoch=5"] });
  });

  it("begins at the caller's position if nothing was saved", async () => {
    const { asked } = await read(() => page(5, [8], 8), new MemoryFeedStore(), 1, { after: 7 });
    expect(asked).toEqual(["wait=0&after=7"]);
  });

  // protects [The feed] src/client/follow.ts
  it("continues in a new epoch at the position that the node names", async () => {
    const store = new MemoryFeedStore();
    store.place = { seq: 40, epoch: 5 };
    const feed: Answering = ({ path }) =>
      path.includes("epoch=6") ? page(6, [91], 91) : problem("EPOCH_CHANGED", 409, { epoch: 6, resumeAfter: 90 });
    const { taken, asked } = await read(feed, store, 1);
    expect(taken).toEqual([91]);
    expect(asked).toEqual(["wait=0&after=40&epoch=5", "wait=0&after=90&epoch=6"]);
    expect(store.saved).toEqual(["90@6"]);
  });

  it("continues after lost connections and timeouts", async () => {
    const store = new MemoryFeedStore();
    store.place = { seq: 1, epoch: 5 };
    const feed: Answering = (_, turn) => {
      if (turn < 3) return lost();
      if (turn === 3) return new Promise(() => undefined);
      return turn === 4 ? problem("UNAVAILABLE", 503) : page(5, [2], 2);
    };
    const { taken, asked } = await read(feed, store, 1);
    expect(taken).toEqual([2]);
    expect(new Set(asked)).toEqual(new Set(["wait=0&after=1&epoch=5"]));
  });

  it("advances the saved position past items that are hidden from the API key", async () => {
    const store = new MemoryFeedStore();
    await read((_, turn) => (turn === 0 ? page(5, [2], 60) : page(5, [61], 61)), store, 2);
    expect(store.saved).toEqual(["2@5", "60@5"]);
  });

  it.each([
    ["UNAUTHENTICATED", 401],
    ["FEED_TRUNCATED", 410],
    // protects [The feed] src/client/follow.ts
  ])("stops after an error that a retry cannot fix: %s", async (code, status) => {
    const store = new MemoryFeedStore();
    const failed = read(() => problem(code, status, { resumeAfter: 9 }), store, 1).catch((error: unknown) => error);
    expect((await failed) as FencepostError).toMatchObject({ code });
    if (status === 410) expect(await failed).toBeInstanceOf(FeedTruncatedError);
    expect(store.saved, "nobody skips on the reader's behalf").toEqual([]);
  });

  it("stops if the position cannot be stored", async () => {
    const store = new MemoryFeedStore();
    store.save = () => Promise.reject(new Error("disk full"));
    await expect(read(() => page(5, [1, 2], 2), store, 2)).rejects.toThrow("disk full");
    const { fetch } = scriptedFetch(lost);
    const client = createClient({ url: "http://node.example", fetch });
    const signal = AbortSignal.abort(new Error("enough"));
    const reading = client.completions({ store: new MemoryFeedStore() }, { signal });
    await expect(reading.next()).rejects.toThrow("enough");
  });
});
