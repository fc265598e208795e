import { describe, expect, it } from "vitest";
import type { CompletionsPage, CompletionsQuery } from "../../../src/application/api.ts";
import { Feed } from "../../../src/application/queries/reads.ts";
import { SharedReads } from "../../../src/application/queries/shared-reads.ts";
import type { CompletionRecord, FeedPage, FeedPosition } from "../../../src/ports/query-store.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { type Deferred, deferred } from "../../support/deferred.ts";
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
    const answer: ReturnType<Bench["ask"]> = { page: null, error: null };
    feed.page(query).then(
      (page) => Object.assign(answer, { page }),
      (error) => Object.assign(answer, { error }),
    );
    return answer;
  };
  const made: Bench = { feed, clock, said, position, looks: 0, ask };
  return made;
}

function seqs(page: CompletionsPage | null): readonly number[] | undefined {
  return page?.items.map(({ seq }) => seq);
}

describe("a page of the completions feed", () => {
  it("holds the completions after the given sequence number, in order", async () => {
    const { ask, clock } = bench(5);
    const answer = ask({ after: 2 });
    await clock.advance(0);
    expect(seqs(answer.page)).toEqual([3, 4, 5]);
    expect(answer.page).toMatchObject({ epoch: 1, next: 5 });
  });

  it("holds a hundred items by default, or as many as `limit` asks for", async () => {
    const { ask, clock } = bench(150);
    const [usual, short] = [ask({ after: 0 }), ask({ after: 10, limit: 3 })];
    await clock.advance(0);
    expect(usual.page?.items.length).toBe(100);
    expect(usual.page?.next).toBe(100);
    expect(seqs(short.page)).toEqual([11, 12, 13]);
  });

  it.each([-1, 1.5, Number.NaN, "7" as unknown as number])("is refused if `after` is %s", async (after) => {
    const made = bench(5);
    const answer = made.ask({ after });
    await made.clock.advance(0);
    expect(answer.error).toMatchObject({ code: "INVALID_REQUEST", extras: { path: "after" } });
    expect(made.looks).toBe(0);
  });

  it("keeps its epoch if a new epoch begins after the page was read", async () => {
    const { ask, clock, said, position } = bench(2);
    const answer = ask({ after: 0, epoch: 1 });
    Object.assign(position, { epoch: 2, epochStartsAfter: 2 });
    said.push(completion(3, 2));
    await clock.advance(0);
    expect(answer.page?.epoch).toBe(1);
    expect(answer.page?.items.map(({ seq, epoch }) => [seq, epoch])).toEqual([
      [1, 1],
      [2, 1],
    ]);
  });

  it("returns the reader's own position as `next` if the page is empty", async () => {
    const { ask, clock } = bench(5);
    const answer = ask({ after: 5 });
    await clock.advance(0);
    expect(answer.page).toEqual({ epoch: 1, items: [], next: 5 });
  });

  it("leads to every completion exactly once if the reader follows `next`", async () => {
    const { ask, clock } = bench(23);
    const seen: number[] = [];
    for (let after = 0; ; ) {
      const answer = ask({ after, limit: 5 });
      await clock.advance(0);
      if (answer.page?.items.length === 0) break;
      seen.push(...(seqs(answer.page) ?? []));
      after = answer.page?.next ?? -1;
    }
    expect(seen).toEqual(Array.from({ length: 23 }, (_, index) => index + 1));
  });
});

describe("a long poll of the completions feed", () => {
  it("returns at once if there are new completions", async () => {
    const { ask, clock } = bench(1);
    const answer = ask({ after: 0, waitMs: 30_000 });
    await clock.advance(0);
    expect(seqs(answer.page)).toEqual([1]);
  });

  it("returns at once when this node appends a completion", async () => {
    const { ask, clock, said, feed } = bench(1);
    const answer = ask({ after: 1, waitMs: 30_000 });
    await clock.advance(100);
    expect(answer.page).toBeNull();
    said.push(completion(2));
    feed.grew();
    await clock.advance(0);
    expect(seqs(answer.page)).toEqual([2]);
    expect(clock.armedTimers).toBe(0);
  });

  it("returns the completions of other nodes at the next poll of the database", async () => {
    const { ask, clock, said } = bench(1);
    const answer = ask({ after: 1, waitMs: 30_000 });
    await clock.advance(100);
    said.push(completion(2));
    await clock.advance(149);
    expect(answer.page).toBeNull();
    await clock.advance(1);
    expect(seqs(answer.page)).toEqual([2]);
  });

  it("returns an empty page when its wait time is over, to the millisecond", async () => {
    const { ask, clock } = bench(1);
    const answer = ask({ after: 1, waitMs: 620 });
    await clock.advance(619);
    expect(answer.page).toBeNull();
    await clock.advance(1);
    expect(answer.page).toEqual({ epoch: 1, items: [], next: 1 });
  });

  it("returns an empty page and leaves no timer behind when the caller disconnects", async () => {
    const { ask, clock } = bench(1);
    const caller = new AbortController();
    const answer = ask({ after: 1, waitMs: 30_000, signal: caller.signal });
    await clock.advance(100);
    caller.abort();
    await clock.advance(0);
    expect(answer.page?.items).toEqual([]);
    expect(clock.armedTimers).toBe(0);
  });

  it("returns at once if the caller has already disconnected", async () => {
    const { ask, clock } = bench(1);
    const answer = ask({ after: 1, waitMs: 30_000, signal: AbortSignal.abort() });
    await clock.advance(0);
    expect(answer.page?.items).toEqual([]);
  });

  it("is resumed once per append, together with every other waiting reader", async () => {
    const made = bench(0);
    const waiting = [0, 0, 0].map(() => made.ask({ after: 0, waitMs: 30_000 }));
    await made.clock.advance(10);
    made.feed.grew();
    made.feed.grew();
    await made.clock.advance(0);
    // Each reads once by itself; when they are woken, the three read the same position, so they share one read.
    expect(made.looks).toBe(4);
    made.said.push(completion(1));
    made.feed.grew();
    await made.clock.advance(0);
    expect(waiting.map(({ page }) => seqs(page))).toEqual([[1], [1], [1]]);
  });
});

describe("many readers that follow the feed", () => {
  const follow = { waitMs: 30_000, follows: true } as const;

  // protects [The feed] src/application/queries/shared-reads.ts
  it("share the reads at the same position, from the first one on", async () => {
    const made = bench(1);
    const readers = Array.from({ length: 50 }, () => made.ask({ after: 1, ...follow }));
    await made.clock.advance(1_000);
    expect(made.looks).toBe(5);
    made.said.push(completion(2));
    made.feed.grew();
    await made.clock.advance(0);
    expect(readers.map(({ page }) => seqs(page))).toEqual(readers.map(() => [2]));
    expect([made.looks, made.clock.armedTimers]).toEqual([6, 0]);
  });

  // protects [The feed] src/application/queries/reads.ts
  it("share no first read with a caller who may know of a newer outcome", async () => {
    const made = bench(1);
    const answers = [made.ask({ after: 0 }), made.ask({ after: 0 }), made.ask({ after: 0, ...follow })];
    await made.clock.advance(0);
    expect(answers.map(({ page }) => page?.next)).toEqual([1, 1, 1]);
    expect(made.looks).toBe(3);
  });

  // protects [The feed] src/application/queries/shared-reads.ts
  it("do not join a read that began before the feed grew", async () => {
    const made = bench(0);
    const first = made.ask({ after: 0, ...follow });
    made.said.push(completion(1));
    made.feed.grew();
    const second = made.ask({ after: 0, ...follow });
    await made.clock.advance(0);
    expect([seqs(first.page), seqs(second.page)]).toEqual([[1], [1]]);
  });

  // protects [The feed] src/application/queries/reads.ts
  it("look again at once if the feed grew while they read", async () => {
    const made = bench(0);
    const answer = made.ask({ after: 0, ...follow });
    // The read above has its snapshot already; this outcome is appended before the reader waits.
    await Promise.resolve();
    made.said.push(completion(1));
    made.feed.grew();
    await made.clock.advance(0);
    expect(seqs(answer.page)).toEqual([1]);
  });

  // protects [The feed] src/application/queries/shared-reads.ts
  it("keep only a few reads of the database busy, in order, however many are far behind", async () => {
    const reading = Array.from({ length: 30 }, () => deferred<FeedPage>());
    const begun: number[] = [];
    const reads = new SharedReads({
      feed: (after) => {
        begun.push(after);
        return (reading[after] as Deferred<FeedPage>).promise;
      },
    });
    const page = { epoch: 1, lastSeq: 99, truncatedThrough: 0, epochStartsAfter: 0, items: [] };
    const answers = reading.map((_, after) => reads.read(after, 100));
    expect(begun).toEqual([0, 1, 2, 3]);
    for (const [at, each] of reading.entries()) {
      each.resolve(page);
      await answers[at];
      await Promise.resolve();
      expect(begun.length).toBeLessThanOrEqual(at + 5);
    }
    expect(begun).toEqual(reading.map((_, after) => after));
  });
});

describe("a feed reader with a wrong position", () => {
  it("gets EPOCH_CHANGED if the position names another epoch", async () => {
    const { ask, clock, position } = bench(20);
    Object.assign(position, { epoch: 3, epochStartsAfter: 15 });
    const answers = [ask({ after: 18, epoch: 2 }), ask({ after: 15, epoch: 4 })];
    await clock.advance(0);
    expect(answers.map(({ error }) => error)).toMatchObject([
      { code: "EPOCH_CHANGED", extras: { epoch: 3, resumeAfter: 15 } },
      { code: "EPOCH_CHANGED", extras: { epoch: 3, resumeAfter: 15 } },
    ]);
  });

  it("misses no completion of the old epoch if it resumes where EPOCH_CHANGED says", async () => {
    const { ask, clock, position } = bench(20);
    Object.assign(position, { epoch: 2, epochStartsAfter: 15 });
    const answer = ask({ after: 7, epoch: 1 });
    await clock.advance(0);
    expect(answer.error).toMatchObject({ extras: { epoch: 2, resumeAfter: 7 } });
    const again = ask({ after: 7, epoch: 2 });
    await clock.advance(0);
    expect(seqs(again.page)?.slice(0, 3)).toEqual([8, 9, 10]);
  });

  it("reads the current epoch if it names none", async () => {
    const { ask, clock, position } = bench(2);
    position.epoch = 9;
    const answer = ask({ after: 0 });
    await clock.advance(0);
    expect(answer.page?.epoch).toBe(9);
  });

  it("gets FEED_TRUNCATED if its position is below the oldest stored completion", async () => {
    const { ask, clock, position } = bench(20);
    position.truncatedThrough = 10;
    const [below, edge] = [ask({ after: 9 }), ask({ after: 10 })];
    await clock.advance(0);
    expect(below.error).toMatchObject({ code: "FEED_TRUNCATED", status: 410, extras: { resumeAfter: 10 } });
    expect(seqs(edge.page)?.[0]).toBe(11);
  });

  it("gets EPOCH_CHANGED if its epoch ends during a long poll", async () => {
    const { ask, clock, position } = bench(1);
    const answer = ask({ after: 1, epoch: 1, waitMs: 30_000 });
    await clock.advance(100);
    position.epoch = 2;
    await clock.advance(250);
    expect(answer.error).toMatchObject({ code: "EPOCH_CHANGED" });
  });
});
