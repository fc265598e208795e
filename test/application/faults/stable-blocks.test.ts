import { afterEach, expect, it } from "vitest";
import { CHAIN_ID, POLL_MS, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

function collect(node: Awaited<ReturnType<World["startNode"]>>, options: { depth: number; from?: number }): number[] {
  const heights: number[] = [];
  const controller = new AbortController();
  void (async () => {
    for await (const block of node.node.blocks(CHAIN_ID, { ...options, signal: controller.signal }))
      heights.push(block.number);
  })();
  return heights;
}

it("the stream of stable blocks yields each height once during shallow reorgs", async () => {
  world = new World();
  const entry = await world.startNode();
  await world.until(() => world.chain.head.number >= 5);
  const first = world.chain.head.number;
  const heights = collect(entry, { depth: 4 });
  for (let round = 0; round < 10; round++) {
    await world.clock.advance(1_300);
    world.chain.reorg(1 + (round % 3));
  }
  await world.until(() => heights.length > 20);
  expect(heights).toEqual(heights.map((_, index) => (heights[0] as number) + index));
  expect(heights[0]).toBeGreaterThanOrEqual(first - 1);
});

it("the stream of stable blocks rereads blocks that a full buffer dropped", async () => {
  world = new World({ settings: { blockQueueLength: 2 } });
  const entry = await world.startNode();
  await world.until(() => world.chain.head.number >= 30);
  const heights = collect(entry, { depth: 2, from: 7 });
  await world.until(() => heights.length > 20);
  entry.faults.inject({ kind: "unavailable" }, { times: 40 });
  await world.clock.advance(POLL_MS * 60);
  await world.until(() => heights.length > 60);
  expect(heights).toEqual(heights.map((_, index) => 7 + index));
});

it("the stream of stable blocks raises an alert if a reorg replaces stable blocks", async () => {
  world = new World();
  const entry = await world.startNode();
  const heights = collect(entry, { depth: 1 });
  await world.until(() => heights.length > 6);
  world.chain.reorg(5);
  await world.until(() =>
    entry.events.some((event) => event.type === "alert" && event.code === "STABLE_BLOCKS_REPLACED"),
  );
  const seen = heights.length;
  await world.until(() => heights.length > seen + 5);
  expect(heights).toEqual(heights.map((_, index) => (heights[0] as number) + index));
});
