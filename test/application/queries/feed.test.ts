import { describe, expect, it } from "vitest";
import type { CompletionsPage, CompletionsQuery } from "../../../src/application/api.ts";
import { Feed } from "../../../src/application/queries/reads.ts";
import type { CompletionRecord, FeedPosition } from "../../../src/ports/query-store.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { CHAIN_ID, SIGNER } from "../../support/world.ts";

function completion(seq: number, epoch = 1): CompletionRecord {
  const nothing = { requestId: null, subState: null, txHash: null, at: new Date(0) } as const;
  const lane = { chainId: CHAIN_ID, signer: SIGNER };
  return { seq, epoch, txId: `tx ${seq}`, lane, nonce: seq, state: "CONFIRMED", settled: true, ...nothing };
}

interface Bench {
  readonly feed: Feed;
  readonly clock: ManualClock;
  readonly said: CompletionRecord[];
  readonly position: { -readonly [Key in keyof FeedPosition]: FeedPosition[Key] };
  looks: number;
  ask(query: CompletionsQuery): { page: CompletionsPage | null; error: unknown };
}

function bench(length: number): Bench {
  const clock = createManualClock();
  const said = Array.from({ length }, (_, index) => completion(index + 1));
  const position = { epoch: 1, lastSeq: length, truncatedThrough: 0, epochStartsAfter: 0 };
  const store = {
    feed: async (after: number, limit: number) => {
      made.looks++;
      return { ...position, items: said.filter(({ seq }) => seq > after).slice(0, limit) };
    },
  };
  const feed = new Feed({ store, clock });
  const ask: Bench["ask"] = (query) => {
    const heard: ReturnType<Bench["ask"]> = { page: null, error: null };
    feed.page(query).then(
      (page) => Object.assign(heard, { page }),
      (error) => Object.assign(heard, { error }),
    );
    return heard;
  };
  const made: Bench = { feed, clock, said, position, looks: 0, ask };
  return made;
}

function seqs(page: CompletionsPage | null): readonly number[] | undefined {
  return page?.items.map(({ seq }) => seq);
}

describe("a page", () => {
  it("is what comes after, in order, with where to go on", async () => {
    const { ask, clock } = bench(5);
    const heard = ask({ after: 2 });
    await clock.advance(0);
    expect(seqs(heard.page)).toEqual([3, 4, 5]);
    expect(heard.page).toMatchObject({ epoch: 1, next: 5 });
  });

  it("is a hundred long by default, else as long as asked", async () => {
    const { ask, clock } = bench(150);
    const [usual, short] = [ask({ after: 0 }), ask({ after: 10, limit: 3 })];
    await clock.advance(0);
    expect(usual.page?.items.length).toBe(100);
    expect(usual.page?.next).toBe(100);
    expect(seqs(short.page)).toEqual([11, 12, 13]);
  });

  it.each([-1, 1.5, Number.NaN, "7" as unknown as number])(
    "after %s is refused by name, and nothing is read",
    async (after) => {
      const made = bench(5);
      const heard = made.ask({ after });
      await made.clock.advance(0);
      expect(heard.error).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "after" } });
      expect(made.looks).toBe(0);
    },
  );

  it("is one look: an epoch that begins right after it changes neither its epoch nor its items", async () => {
    const { ask, clock, said, position } = bench(2);
    const heard = ask({ after: 0, epoch: 1 });
    Object.assign(position, { epoch: 2, epochStartsAfter: 2 });
    said.push(completion(3, 2));
    await clock.advance(0);
    expect(heard.page?.epoch).toBe(1);
    expect(heard.page?.items.map(({ seq, epoch }) => [seq, epoch])).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  it("that is empty leaves the reader where it was", async () => {
    const { ask, clock } = bench(5);
    const heard = ask({ after: 5 });
    await clock.advance(0);
    expect(heard.page).toEqual({ epoch: 1, items: [], next: 5 });
  });

  it("followed by its next, gives every number once", async () => {
    const { ask, clock } = bench(23);
    const seen: number[] = [];
    for (let after = 0; ; ) {
      const heard = ask({ after, limit: 5 });
      await clock.advance(0);
      if (heard.page?.items.length === 0) break;
      seen.push(...(seqs(heard.page) ?? []));
      after = heard.page?.next ?? -1;
    }
    expect(seen).toEqual(Array.from({ length: 23 }, (_, index) => index + 1));
  });
});

describe("a long poll", () => {
  it("does not wait where there is something", async () => {
    const { ask, clock } = bench(1);
    const heard = ask({ after: 0, waitMs: 30_000 });
    await clock.advance(0);
    expect(seqs(heard.page)).toEqual([1]);
  });

  it("ends at once when this node appends", async () => {
    const { ask, clock, said, feed } = bench(1);
    const heard = ask({ after: 1, waitMs: 30_000 });
    await clock.advance(100);
    expect(heard.page).toBeNull();
    said.push(completion(2));
    feed.grew();
    await clock.advance(0);
    expect(seqs(heard.page)).toEqual([2]);
    expect(clock.armedTimers).toBe(0);
  });

  it("sees what other nodes append at the next look", async () => {
    const { ask, clock, said } = bench(1);
    const heard = ask({ after: 1, waitMs: 30_000 });
    await clock.advance(100);
    said.push(completion(2));
    await clock.advance(149);
    expect(heard.page).toBeNull();
    await clock.advance(1);
    expect(seqs(heard.page)).toEqual([2]);
  });

  it("ends empty after its time, to the millisecond", async () => {
    const { ask, clock } = bench(1);
    const heard = ask({ after: 1, waitMs: 620 });
    await clock.advance(619);
    expect(heard.page).toBeNull();
    await clock.advance(1);
    expect(heard.page).toEqual({ epoch: 1, items: [], next: 1 });
  });

  it("ends empty, and leaves nothing behind, when the caller hangs up", async () => {
    const { ask, clock } = bench(1);
    const caller = new AbortController();
    const heard = ask({ after: 1, waitMs: 30_000, signal: caller.signal });
    await clock.advance(100);
    caller.abort();
    await clock.advance(0);
    expect(heard.page?.items).toEqual([]);
    expect(clock.armedTimers).toBe(0);
  });

  it("of a caller that has hung up already is no wait at all", async () => {
    const { ask, clock } = bench(1);
    const heard = ask({ after: 1, waitMs: 30_000, signal: AbortSignal.abort() });
    await clock.advance(0);
    expect(heard.page?.items).toEqual([]);
  });

  it("wakes every waiting reader, and none twice", async () => {
    const made = bench(0);
    const waiting = [0, 0, 0].map(() => made.ask({ after: 0, waitMs: 30_000 }));
    await made.clock.advance(10);
    made.feed.grew();
    made.feed.grew();
    await made.clock.advance(0);
    expect(made.looks).toBe(6);
    made.said.push(completion(1));
    made.feed.grew();
    await made.clock.advance(0);
    expect(waiting.map(({ page }) => seqs(page))).toEqual([[1], [1], [1]]);
  });
});

describe("a reader in the wrong place", () => {
  it("of another epoch is told which it is, and where to go on", async () => {
    const { ask, clock, position } = bench(20);
    Object.assign(position, { epoch: 3, epochStartsAfter: 15 });
    const heard = [ask({ after: 18, epoch: 2 }), ask({ after: 15, epoch: 4 })];
    await clock.advance(0);
    expect(heard.map(({ error }) => error)).toMatchObject([
      { code: "EPOCH_CHANGED", extras: { epoch: 3, resumeAfter: 15 } },
      { code: "EPOCH_CHANGED", extras: { epoch: 3, resumeAfter: 15 } },
    ]);
  });

  it("who had not read the old epoch to its end misses nothing by going where it is told", async () => {
    const { ask, clock, position } = bench(20);
    Object.assign(position, { epoch: 2, epochStartsAfter: 15 });
    const heard = ask({ after: 7, epoch: 1 });
    await clock.advance(0);
    expect(heard.error).toMatchObject({ extras: { epoch: 2, resumeAfter: 7 } });
    const again = ask({ after: 7, epoch: 2 });
    await clock.advance(0);
    expect(seqs(again.page)?.slice(0, 3)).toEqual([8, 9, 10]);
  });

  it("who names no epoch reads the current one", async () => {
    const { ask, clock, position } = bench(2);
    position.epoch = 9;
    const heard = ask({ after: 0 });
    await clock.advance(0);
    expect(heard.page?.epoch).toBe(9);
  });

  it("below what is kept is told so; at its edge everything is there", async () => {
    const { ask, clock, position } = bench(20);
    position.truncatedThrough = 10;
    const [below, edge] = [ask({ after: 9 }), ask({ after: 10 })];
    await clock.advance(0);
    expect(below.error).toMatchObject({ code: "FEED_TRUNCATED", status: 410, extras: { resumeAfter: 10 } });
    expect(seqs(edge.page)?.[0]).toBe(11);
  });

  it("whose epoch ends while it waits hears of it", async () => {
    const { ask, clock, position } = bench(1);
    const heard = ask({ after: 1, epoch: 1, waitMs: 30_000 });
    await clock.advance(100);
    position.epoch = 2;
    await clock.advance(250);
    expect(heard.error).toMatchObject({ code: "EPOCH_CHANGED" });
  });
});
