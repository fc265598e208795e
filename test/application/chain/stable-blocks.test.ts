import { afterEach, describe, expect, it } from "vitest";
import { stableBlocks } from "../../../src/application/chain/stable-blocks.ts";
import type { Block } from "../../../src/ports/chain.ts";
import { type ChainBench, type ChainBenchOptions, createChainBench } from "../../support/chain-bench.ts";
import { POLL_MS } from "../../support/world.ts";

const controllers: AbortController[] = [];
afterEach(() => {
  for (const controller of controllers.splice(0)) controller.abort();
});

interface Stream {
  readonly blocks: Block[];
  readonly stop: () => void;
  ended: unknown;
}

function follow(bench: ChainBench, options: { readonly depth: number; readonly from?: number }): Stream {
  const controller = new AbortController();
  controllers.push(controller);
  const stream: Stream = { blocks: [], stop: () => controller.abort(), ended: null };
  const read = async (): Promise<void> => {
    for await (const block of stableBlocks(bench, bench.context, { ...options, signal: controller.signal })) {
      stream.blocks.push(block);
    }
  };
  read().then(
    () => {
      stream.ended = "over";
    },
    (error) => {
      stream.ended = error;
    },
  );
  return stream;
}

async function at(height: number, options: ChainBenchOptions = {}): Promise<ChainBench> {
  const bench = createChainBench(options);
  bench.simulated.mine(height);
  await bench.context.follower.advance();
  return bench;
}

function heights({ blocks }: Stream): readonly number[] {
  return blocks.map(({ number }) => number);
}

/** Checks that the stream delivered canonical, consecutive blocks, each once. */
function expectCanonical(bench: ChainBench, stream: Stream, first: number): void {
  expect(heights(stream)).toEqual(stream.blocks.map((_, index) => first + index));
  for (const block of stream.blocks) expect(bench.simulated.blocks.byNumber(block.number)?.hash).toBe(block.hash);
}

describe("the stream of stable blocks", () => {
  it("reads page by page if it begins far back", async () => {
    const bench = await at(3_000);
    const asked: number[] = [];
    const blocksByNumber = bench.chain.blocksByNumber.bind(bench.chain);
    bench.chain.blocksByNumber = (numbers) => {
      asked.push(...numbers);
      return blocksByNumber(numbers);
    };
    const failing = {
      method: "eth_getBlockByNumber",
      times: 1,
      when: (params: readonly unknown[]) => params.includes(2_000),
    };
    bench.faults.inject({ kind: "unavailable" }, failing);
    const stream = follow(bench, { depth: 5, from: 0 });
    await bench.clock.advance(0);
    expect(stream.blocks.length).toBeGreaterThan(1_000);
    expect(stream.blocks.length).toBeLessThan(2_000);
    await bench.clock.advance(POLL_MS);
    expectCanonical(bench, stream, 0);
    expect(heights(stream).at(-1)).toBe(2_995);
    expect(asked.filter((number) => number === 500)).toHaveLength(1);
  });

  it("begins at the newest block, or at the first block if the chain is still empty", async () => {
    const bench = await at(10);
    const [stream, early] = [follow(bench, { depth: 0 }), createChainBench()];
    const waiting = follow(early, { depth: 0 });
    await bench.clock.advance(0);
    await early.clock.advance(POLL_MS);
    expect([heights(stream), heights(waiting)]).toEqual([[10], []]);
    await early.context.follower.advance();
    await early.clock.advance(POLL_MS);
    expect(heights(waiting)).toEqual([0]);
  });

  it("begins at a past height if requested, and catches up in pages", async () => {
    const bench = await at(150);
    const stream = follow(bench, { depth: 2, from: 3 });
    await bench.clock.advance(0);
    expectCanonical(bench, stream, 3);
    expect(heights(stream).at(-1)).toBe(148);
  });

  it("begins at a future height if that is requested", async () => {
    const bench = await at(5);
    const stream = follow(bench, { depth: 0, from: 8 });
    for (let round = 0; round < 5; round++) {
      await bench.clock.advance(POLL_MS);
      bench.simulated.mine();
      await bench.context.follower.advance();
    }
    await bench.clock.advance(POLL_MS);
    expect(heights(stream)).toEqual([8, 9, 10]);
  });

  it("ends when its reader stops, and leaves no timer", async () => {
    const bench = await at(10);
    const stream = follow(bench, { depth: 0 });
    await bench.clock.advance(0);
    stream.stop();
    await bench.clock.advance(POLL_MS);
    expect(stream.ended).toBe("over");
    expect(bench.clock.armedTimers).toBe(0);
  });
});

describe("the stream of stable blocks, reading missed blocks,", () => {
  it("loses no block while the chain is unavailable", async () => {
    const bench = await at(20);
    bench.faults.inject({ kind: "unavailable" });
    const stream = follow(bench, { depth: 1, from: 15 });
    await bench.clock.advance(5 * POLL_MS);
    expect(heights(stream)).toEqual([]);
    bench.faults.heal();
    bench.simulated.mine();
    await bench.context.follower.advance();
    await bench.clock.advance(POLL_MS);
    expectCanonical(bench, stream, 15);
    expect(heights(stream).at(-1)).toBe(20);
  });

  it("yields no height twice during a reorg", async () => {
    const bench = await at(20);
    bench.simulated.reorg(2);
    const stream = follow(bench, { depth: 1, from: 15 });
    await bench.clock.advance(0);
    await bench.context.follower.advance();
    await bench.clock.advance(POLL_MS);
    bench.simulated.mine(3);
    await bench.context.follower.advance();
    await bench.clock.advance(POLL_MS);
    expectCanonical(bench, stream, 15);
    expect(heights(stream).at(-1)).toBe(23);
    expect(bench.telemetry.of("alert")).toEqual([]);
  });

  it("leaves out no height if an endpoint lacks a block", async () => {
    const bench = await at(20);
    bench.faults.pinHead(17);
    const stream = follow(bench, { depth: 1, from: 15 });
    await bench.clock.advance(POLL_MS);
    bench.faults.pinHead(null);
    await bench.clock.advance(POLL_MS);
    expectCanonical(bench, stream, 15);
    expect(heights(stream).at(-1)).toBe(19);
  });

  it("continues at the right height after a gap", async () => {
    const bench = await at(20, { settings: { blockQueueLength: 1 } });
    const stream = follow(bench, { depth: 3 });
    await bench.clock.advance(0);
    for (let round = 0; round < 5; round++) {
      bench.simulated.mine(2);
      await bench.context.follower.advance();
    }
    await bench.clock.advance(POLL_MS);
    expectCanonical(bench, stream, 20);
    expect(heights(stream).at(-1)).toBe(27);
  });

  it("ends with an error if a read fails although the chain is available", async () => {
    const bench = await at(20);
    const broken = { blocksByNumber: () => Promise.reject(new TypeError("a mistake of ours")) };
    const stream = follow(
      { ...bench, context: Object.assign(Object.create(bench.context), { chain: broken }) },
      { depth: 0 },
    );
    await bench.clock.advance(0);
    expect(stream.ended).toBeInstanceOf(TypeError);
  });
});

it("the stream of stable blocks raises an alert if a reorg replaces stable blocks", async () => {
  const bench = await at(20);
  const stream = follow(bench, { depth: 1, from: 18 });
  await bench.clock.advance(0);
  expect(heights(stream)).toEqual([18, 19]);
  bench.simulated.reorg(3);
  await bench.context.follower.advance();
  await bench.clock.advance(POLL_MS);
  expect(heights(stream)).toEqual([18, 19, 20]);
  expect(bench.telemetry.of("alert")).toMatchObject([{ code: "STABLE_BLOCKS_REPLACED", severity: "ERROR" }]);
});
