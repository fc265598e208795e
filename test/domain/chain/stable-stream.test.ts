import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BlockRef } from "../../../src/domain/chain/block-window.ts";
import { StableStream } from "../../../src/domain/chain/stable-stream.ts";
import { forks, NaiveChain } from "../../support/naive-chain.ts";

describe("the stable block stream", () => {
  it("emits a block once enough blocks are above it, or at once with depth 0", () => {
    const chain = new NaiveChain(5);
    const deep = new StableStream<BlockRef>(2);
    const shallow = new StableStream<BlockRef>(0);
    const first = { added: chain.blocks, removed: [] };
    expect([deep.apply(first).stable, shallow.apply(first).stable]).toEqual([[], chain.blocks]);
    const growth = chain.fork({ depth: 0, length: 3 });
    expect(deep.apply(growth).stable.map(({ number }) => number)).toEqual([5, 6]);
    expect(shallow.apply(growth).stable).toEqual(growth.added);
    expect(deep.emittedThrough).toBe(6);
  });

  it("never emits a block that a reorg removed before the depth was reached", () => {
    const chain = new NaiveChain(0);
    const stream = new StableStream<BlockRef>(3);
    stream.apply({ added: chain.blocks, removed: [] });
    const lost = chain.fork({ depth: 0, length: 2 });
    stream.apply(lost);
    const { stable } = stream.apply(chain.fork({ depth: 2, length: 6 }));
    expect(stable.map(({ number }) => number)).toEqual([0, 1, 2, 3]);
    expect(stable).toEqual(chain.blocks.slice(0, 4));
    for (const block of lost.added) expect(stable).not.toContainEqual(block);
  });

  it("reports a reorg below an emitted block", () => {
    const chain = new NaiveChain(0);
    const stream = new StableStream<BlockRef>(1);
    stream.apply({ added: chain.blocks, removed: [] });
    expect(stream.apply(chain.fork({ depth: 0, length: 4 })).brokeStability).toBe(false);
    expect(stream.emittedThrough).toBe(3);
    const deep = stream.apply(chain.fork({ depth: 3, length: 5 }));
    expect(deep.brokeStability).toBe(true);
    expect(deep.stable.map(({ number }) => number)).toEqual([4, 5]);
  });

  it("emits nothing if the chain only became shorter", () => {
    const chain = new NaiveChain(0, 4);
    const stream = new StableStream<BlockRef>(2);
    stream.apply({ added: chain.blocks, removed: [] });
    const removed = [...chain.blocks].slice(3);
    expect(stream.apply({ added: [], removed })).toEqual({ stable: [], brokeStability: false });
  });

  it("drops only blocks that were not emitted when blocks must be read again", () => {
    const chain = new NaiveChain(0, 6);
    const stream = new StableStream<BlockRef>(2);
    expect(stream.apply({ added: chain.blocks, removed: [] }).stable.length).toBe(4);
    stream.forgetWaiting();
    const again = chain.blocks.slice(2);
    const growth = chain.fork({ depth: 0, length: 1 }).added;
    expect(stream.apply({ added: [...again, ...growth], removed: [] }).stable.map(({ number }) => number)).toEqual([4]);
  });

  it("emits every height once and in order under any reorgs", () => {
    fc.assert(
      fc.property(forks, fc.integer({ min: 0, max: 8 }), fc.nat(100), (steps, depth, first) => {
        const chain = new NaiveChain(first);
        const stream = new StableStream<BlockRef>(depth);
        const emitted: BlockRef[] = [...stream.apply({ added: chain.blocks, removed: [] }).stable];
        for (const step of steps) {
          const through = stream.emittedThrough;
          const change = chain.fork(step);
          const { stable, brokeStability } = stream.apply(change);
          const lowest = change.removed.at(-1)?.number;
          expect(brokeStability).toBe(lowest !== undefined && through !== null && lowest <= through);
          for (const block of stable) {
            expect(chain.blocks).toContainEqual(block);
            expect(chain.tip.number - block.number).toBeGreaterThanOrEqual(depth);
          }
          emitted.push(...stable);
        }
        expect(emitted.map(({ number }) => number)).toEqual(emitted.map((_, index) => first + index));
        expect(stream.emittedThrough).toBe(emitted.at(-1)?.number ?? null);
      }),
    );
  });

  it("hides reorgs that are no deeper than its depth: emitted blocks are a prefix of the chain", () => {
    const shallow = fc.array(
      fc.record({ depth: fc.integer({ min: 0, max: 3 }), length: fc.integer({ min: 4, max: 8 }) }),
    );
    fc.assert(
      fc.property(shallow, (steps) => {
        const chain = new NaiveChain(0);
        const stream = new StableStream<BlockRef>(3);
        const emitted: BlockRef[] = [...stream.apply({ added: chain.blocks, removed: [] }).stable];
        for (const step of steps) {
          const { stable, brokeStability } = stream.apply(chain.fork(step));
          expect(brokeStability).toBe(false);
          emitted.push(...stable);
        }
        expect(emitted).toEqual(chain.blocks.slice(0, emitted.length));
      }),
    );
  });
});
