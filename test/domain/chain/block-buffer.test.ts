import fc from "fast-check";
import { expect, it } from "vitest";
import { BlockBuffer } from "../../../src/domain/chain/block-buffer.ts";

it("a block buffer returns its items in order, once", () => {
  const buffer = new BlockBuffer<string>(3);
  buffer.push("a");
  buffer.push("b");
  expect(buffer.length).toBe(2);
  expect(buffer.drain()).toEqual({ items: ["a", "b"], gapPotential: false });
  expect(buffer.drain()).toEqual({ items: [], gapPotential: false });
});

it("a full block buffer drops its oldest items, and reports a gap at the next drain only", () => {
  const buffer = new BlockBuffer<number>(2);
  for (const item of [1, 2, 3, 4]) buffer.push(item);
  expect(buffer.drain()).toEqual({ items: [3, 4], gapPotential: true });
  buffer.push(5);
  expect(buffer.drain()).toEqual({ items: [5], gapPotential: false });
});

it("a block buffer reports a gap that was marked, whether or not it has items", () => {
  const buffer = new BlockBuffer<number>(2);
  buffer.markGap();
  expect(buffer.drain()).toEqual({ items: [], gapPotential: true });
  buffer.push(1);
  buffer.markGap();
  expect(buffer.drain()).toEqual({ items: [1], gapPotential: true });
});

it("a block buffer does not change a list of items that it has returned", () => {
  const buffer = new BlockBuffer<number>(5);
  buffer.push(1);
  const { items } = buffer.drain();
  buffer.push(2);
  buffer.drain();
  expect(items).toEqual([1]);
});

type Step = { readonly push: number } | "drain" | "markGap";

it("a block buffer reports a gap exactly if items since the previous drain are missing", () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.record({ push: fc.integer() }) },
      { weight: 2, arbitrary: fc.constant("drain" as const) },
      { weight: 1, arbitrary: fc.constant("markGap" as const) },
    ),
  );
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 6 }), (story: readonly Step[], capacity) => {
      const buffer = new BlockBuffer<number>(capacity);
      let pushed: number[] = [];
      let marked = false;
      for (const step of story) {
        if (step === "markGap") {
          buffer.markGap();
          marked = true;
        } else if (step === "drain") {
          const gapPotential = marked || pushed.length > capacity;
          expect(buffer.drain()).toEqual({ items: pushed.slice(-capacity), gapPotential });
          pushed = [];
          marked = false;
        } else {
          buffer.push(step.push);
          pushed.push(step.push);
          expect(buffer.length).toBe(Math.min(capacity, pushed.length));
        }
      }
    }),
  );
});
