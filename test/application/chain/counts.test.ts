import { beforeEach, describe, expect, it } from "vitest";
import { type CountFact, Counts } from "../../../src/application/chain/counts.ts";
import { happened } from "../../../src/application/lane/tracked.ts";
import { nonceFloor } from "../../../src/application/stages/2-allocate/allocate.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { batchFailed } from "../../../src/domain/pace/count-events.ts";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { createChainBench, createOwnedLane } from "../../support/chain-bench.ts";
import { deferred } from "../../support/deferred.ts";
import { block } from "../../support/evm-bench.ts";
import { POLL_MS, SIGNER, SIGNERS } from "../../support/world.ts";

const [ONE, OTHER] = SIGNERS as [Address, Address];
const ANEW = { atMostMs: 0 };

let clock: ManualClock;
let asked: string[];
let answer: (signer: Address) => Promise<number>;
let counts: Counts;

beforeEach(() => {
  clock = createManualClock();
  asked = [];
  answer = async () => 7;
  const chain = {
    transactionCount: async (signer: Address, tag: string) => {
      asked.push(`${signer === ONE ? "one" : "other"} ${tag}`);
      return { count: await answer(signer), endpoint: "a" };
    },
    transactionCountEverywhere: async () => [{ kind: "silent" } as const, { kind: "says", count: 8 } as const],
    transactionCountAt: async () => null,
  };
  counts = new Counts({ chain, follower: { head: block(12) }, settings: { pollIntervalMs: POLL_MS } }, clock);
});

describe("a signer's transaction count", () => {
  it("is returned with endpoint, block and time of the request", async () => {
    await clock.advance(5);
    const fact = { count: 7, endpoint: "a", atBlock: 12, askedAtMs: 5 };
    expect(await counts.mined(ONE, ANEW)).toEqual(fact);
    expect(await counts.pending(ONE, ANEW)).toEqual(fact);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/answers.ts, src/application/stages/2-allocate/allocate.ts
  it("is reused while it is younger than the caller's limit", async () => {
    await counts.mined(ONE, ANEW);
    await clock.advance(99);
    await counts.mined(ONE, { atMostMs: 100 });
    expect(asked).toEqual(["one latest"]);
    await clock.advance(1);
    await counts.mined(ONE, { atMostMs: 100 });
    expect(asked).toEqual(["one latest", "one latest"]);
    await counts.mined(ONE, ANEW);
    await counts.pending(ONE, { atMostMs: 100 });
    await counts.mined(OTHER, { atMostMs: 100 });
    expect(asked.slice(2)).toEqual(["one latest", "one pending", "other latest"]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/answers.ts, src/adapters/evm/reads/read-sent.ts
  it("is shared by all callers while the request is pending", async () => {
    const failing = deferred();
    answer = () => failing.promise.then(() => Promise.reject(new ChainUnavailable("away")));
    const both = Promise.allSettled([counts.mined(ONE, ANEW), counts.mined(ONE, { atMostMs: 100 })]);
    failing.resolve();
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(asked).toEqual(["one latest"]);
    answer = async () => 9;
    expect(await counts.mined(ONE, { atMostMs: 100 })).toMatchObject({ count: 9 });
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/answers.ts, src/adapters/evm/reads/read-sent.ts
  it("delays no other signer if the response never arrives", async () => {
    answer = (signer) => (signer === ONE ? new Promise(() => undefined) : Promise.resolve(7));
    const hanging: CountFact[] = [];
    void counts.mined(ONE, ANEW).then((fact) => hanging.push(fact));
    expect(await counts.mined(OTHER, ANEW)).toMatchObject({ count: 7 });
    await clock.advance(100);
    answer = async () => 9;
    expect(await counts.mined(ONE, { atMostMs: 100 })).toMatchObject({ count: 9 });
    expect(hanging).toEqual([]);
  });

  it("is shown to operators as it was last read, whatever the reason for that read", async () => {
    expect(counts.lastKnown(ONE)).toEqual({ latest: null, pending: null, asOf: null });
    const asOf = clock.now();
    await counts.pending(ONE, ANEW);
    await clock.advance(4_000);
    await counts.everywhere(ONE, 0);
    expect(counts.lastKnown(ONE), "as old as the older of the two").toEqual({ latest: 8, pending: 7, asOf });
  });
});

describe("callers that wait for the next poll of the chain", () => {
  it("each wait for a whole poll interval", async () => {
    const over: string[] = [];
    const wait = (name: string) => void counts.nextPoll().then(() => over.push(name));
    wait("first");
    wait("second");
    expect(clock.armedTimers).toBe(1);
    await clock.advance(10);
    wait("third");
    await clock.advance(POLL_MS - 10);
    expect(over).toEqual(["first", "second"]);
    await clock.advance(10);
    expect(over).toEqual(["first", "second", "third"]);
  });
});

describe("the transaction count used to check a lane's next nonce", () => {
  const settings = { nonceStateTimeoutMs: 30_000 };

  // protects [Keys of the node, other chains, comparison] src/application/chain/answers.ts, src/application/stages/2-allocate/allocate.ts
  it("is not older than the lane's last failed batch", async () => {
    const bench = createChainBench({ settings });
    const read: number[] = [];
    bench.faults.lieAboutNonce((honest) => read.push(bench.clock.monotonicMs()) * 0 + honest);
    const lane = createOwnedLane({ cursor: 5 });
    const floor = () => nonceFloor(bench, bench.context, lane);
    await floor();
    await bench.clock.advance(29_000);
    await bench.context.counts.mined(SIGNER, ANEW);
    await bench.clock.advance(29_000);
    await floor();
    expect(read).toEqual([0, 29_000]);
    // The age of a cached count starts when it was read from the chain, not when it was last compared with a nonce.
    await bench.clock.advance(1_000);
    await floor();
    happened(lane, batchFailed);
    await floor();
    expect(read).toEqual([0, 29_000, 59_000, 59_000]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/counts.ts, src/application/lane/lanes.ts
  it("is not taken from a read that began before the lane was reloaded", async () => {
    const bench = createChainBench({ settings });
    bench.simulated.setNonce(SIGNER, 45);
    const before = nonceFloor(bench, bench.context, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(POLL_MS / 2);
    bench.simulated.setNonce(SIGNER, 5);
    const lane = createOwnedLane({ cursor: 5 });
    expect(await nonceFloor(bench, bench.context, lane)).toBeNull();
    bench.simulated.setNonce(SIGNER, 45);
    await bench.clock.advance(POLL_MS);
    expect(await before).toBe(45);
    expect(lane.pace.counts.proven).toBe(5);
    expect(await nonceFloor(bench, bench.context, lane)).toBeNull();
  });
});
