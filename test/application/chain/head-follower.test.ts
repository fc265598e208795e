import { describe, expect, it } from "vitest";
import { HeadFollower } from "../../../src/application/chain/head-follower.ts";
import { isLinked } from "../../../src/domain/chain/block-window.ts";
import { type Block, type Chain, ChainUnavailable } from "../../../src/ports/chain.ts";
import { type ChainBench, createChainBench } from "../../support/chain-bench.ts";
import { CHAIN_SETTINGS } from "../../support/world.ts";

/**
 * Number of blocks below the newest one that a node reads when it starts to follow a chain: the larger of twice the
 * confirmations and 64, plus 16.
 */
const DEPTH = 80;
const CAPACITY = 256;

async function following(
  height: number,
  overrides: Partial<Chain> = {},
): Promise<ChainBench & { follower: HeadFollower }> {
  const bench = createChainBench();
  bench.simulated.mine(height);
  const chain = overriding(bench.chain, overrides);
  return { ...bench, follower: new HeadFollower(chain, bench.telemetry, CHAIN_SETTINGS) };
}

/** The chain port with some of its methods replaced. */
function overriding(chain: Chain, overrides: Partial<Chain>): Chain {
  return new Proxy(chain, {
    get(target, name) {
      const replaced: unknown = Reflect.get(overrides, name);
      if (replaced !== undefined) return replaced;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

function numbers(blocks: readonly { readonly number: number }[]): readonly number[] {
  return blocks.map(({ number }) => number);
}

describe("the follower of new blocks, on a fast chain,", () => {
  /** Returns the requests of each poll. Requests sent before the first response count as one batch. */
  async function looks(blocks: readonly number[]) {
    const asked: string[][] = [];
    const bench = await following(100);
    const { chain, simulated } = bench;
    const note = (word: string) => asked.at(-1)?.push(word);
    const follower = new HeadFollower(
      overriding(chain, {
        head: (tag) => {
          note("head");
          return chain.head(tag);
        },
        blocksByNumber: (numbers) => {
          note(`${numbers[0]} to ${numbers.at(-1)}`);
          return chain.blocksByNumber(numbers);
        },
      }),
      bench.telemetry,
      CHAIN_SETTINGS,
    );
    await follower.advance();
    for (const count of blocks) {
      simulated.mine(count);
      asked.push([]);
      const looking = follower.advance();
      note("|");
      await looking;
      expect(follower.window.tip).toMatchObject({ number: simulated.head.number, hash: simulated.head.hash });
    }
    return asked.map((words) => words.join(" "));
  }

  // protects [Many lanes] src/application/chain/head-follower.ts
  it("requests as many blocks at once as the previous poll found", async () => {
    expect(await looks([4, 4, 6, 3, 1, 0, 1])).toEqual([
      "head | 101 to 103",
      "head 105 to 107 |",
      "head 109 to 111 | 112 to 113",
      "head 115 to 119 |",
      "head 118 to 119 |",
      "head |",
      "head |",
    ]);
  });

  // protects [Many lanes] src/application/chain/head-follower.ts
  it("continues if a request for several blocks fails", async () => {
    const { simulated, chain, telemetry } = await following(100);
    let fails = false;
    const follower = new HeadFollower(
      overriding(chain, {
        blocksByNumber: async (numbers) => {
          fails = !fails;
          if (fails && numbers[0] === 105) throw new ChainUnavailable("not now");
          return chain.blocksByNumber(numbers);
        },
      }),
      telemetry,
      CHAIN_SETTINGS,
    );
    for (const count of [0, 4, 4]) {
      simulated.mine(count);
      await follower.advance();
    }
    expect(follower.window.tip?.hash).toBe(simulated.head.hash);
  });
});

describe("the follower of new blocks, without pending transactions,", () => {
  async function resting() {
    const asked: string[] = [];
    const bench = await following(100);
    const { chain } = bench;
    const blocksByNumber: Chain["blocksByNumber"] = (numbers) => {
      asked.push(`${numbers[0]} to ${numbers.at(-1)}`);
      return chain.blocksByNumber(numbers);
    };
    const blockByHash: Chain["blockByHash"] = (hash) => {
      asked.push("by hash");
      return chain.blockByHash(hash);
    };
    const counting = overriding(chain, { blocksByNumber, blockByHash });
    const follower = new HeadFollower(counting, bench.telemetry, CHAIN_SETTINGS);
    const subscription = follower.subscribe();
    await follower.advance();
    subscription.drain();
    asked.length = 0;
    return { ...bench, follower, subscription, asked };
  }
  const nothing = (): boolean => false;

  it("requests only the newest block", async () => {
    const { follower, simulated, subscription, asked } = await resting();
    for (const count of [4, 4, 1, 7]) {
      simulated.mine(count);
      expect(await follower.advance(nothing)).toBe(true);
    }
    expect(asked).toEqual([]);
    expect(follower.head?.hash).toBe(simulated.head.hash);
    const { items, gapPotential } = subscription.drain();
    expect(gapPotential).toBe(false);
    expect(items.flatMap(({ added }) => numbers(added))).toEqual([104, 108, 109, 116]);
    expect(follower.takeDiscontinuity()).toBe(false);
  });

  it("reads every block as soon as a transaction is pending", async () => {
    const { follower, simulated, subscription, asked } = await resting();
    simulated.mine(4);
    await follower.advance(nothing);
    simulated.mine(4);
    let answers = 0;
    await follower.advance(() => answers++ > 0);
    simulated.mine(2);
    await follower.advance();
    expect(asked).toEqual(["105 to 107", "109 to 111"]);
    const { items, gapPotential } = subscription.drain();
    expect(gapPotential).toBe(false);
    expect(items.flatMap(({ added }) => numbers(added))).toEqual([104, 105, 106, 107, 108, 109, 110]);
  });

  it("reads every block if there is a second subscriber", async () => {
    const { follower, simulated, asked } = await resting();
    const other = follower.subscribe();
    simulated.mine(4);
    await follower.advance(nothing);
    expect(asked).toEqual(["101 to 103"]);
    expect(other.drain().items.flatMap(({ added }) => numbers(added))).toEqual([101, 102, 103, 104]);
  });

  it("reports a gap if a reorg goes below the skipped blocks", async () => {
    const { follower, simulated, subscription, asked } = await resting();
    simulated.mine(4);
    await follower.advance(nothing);
    subscription.drain();
    simulated.reorg(3);
    simulated.mine(1);
    expect(await follower.advance()).toBe(true);
    expect(asked.filter((question) => question === "by hash").length).toBeLessThanOrEqual(1);
    expect(subscription.drain().gapPotential).toBe(true);
    expect(follower.window.tip?.hash).toBe(simulated.head.hash);
  });
});

describe("the first poll of the follower of new blocks", () => {
  it("reads a window of blocks below the newest block", async () => {
    const { follower, simulated, telemetry } = await following(500);
    const subscription = follower.subscribe();
    expect([follower.head, follower.window.tip]).toEqual([null, null]);
    expect(await follower.advance()).toBe(true);
    expect(follower.window.size).toBe(DEPTH);
    expect(follower.window.tip).toMatchObject({ number: 500, hash: simulated.head.hash });
    expect(follower.head?.number).toBe(500);
    const { items, gapPotential } = subscription.drain();
    expect(gapPotential).toBe(true);
    expect(items.map(({ added }) => numbers(added))).toEqual([[500]]);
    expect(telemetry.of("chain.head")).toMatchObject([{ number: 500 }]);
    expect(telemetry.of("chain.gap")).toEqual([]);
  });

  it("reads down to the first block if the chain is young", async () => {
    const { follower } = await following(3);
    await follower.advance();
    expect(follower.window.oldest?.number).toBe(0);
  });

  it("fails if a block is missing or the chain changes during the read", async () => {
    const none = await following(3, { head: async () => null });
    await expect(none.follower.advance()).rejects.toThrow("no latest block");
    const holes = await following(3, { blocksByNumber: async (asked) => asked.map(() => null) });
    await expect(holes.follower.advance()).rejects.toThrow("missing at this endpoint");
    const moved = await following(3);
    const other = moved.simulated.reorg(2);
    const torn = overriding(moved.chain, { blocksByNumber: async (asked) => asked.map(() => other[0] as never) });
    await expect(new HeadFollower(torn, moved.telemetry, CHAIN_SETTINGS).advance()).rejects.toThrow(
      "changed while they were read",
    );
    expect(moved.follower.window.tip).toBeNull();
  });
});

describe("the follower of new blocks, on a growing chain,", () => {
  it("reports nothing if the newest block is the same", async () => {
    const { follower } = await following(10);
    await follower.advance();
    const subscription = follower.subscribe();
    expect(await follower.advance()).toBe(false);
    expect(subscription.drain()).toEqual({ items: [], gapPotential: false });
  });

  it.each([1, 2, 65, 130])("reports all of %i new blocks, in order", async (count) => {
    const { follower, simulated } = await following(10);
    await follower.advance();
    const subscription = follower.subscribe();
    simulated.mine(count);
    expect(await follower.advance()).toBe(true);
    const { items, gapPotential } = subscription.drain();
    expect(gapPotential).toBe(false);
    expect(items.length).toBe(1);
    expect(numbers(items[0]?.added ?? [])).toEqual(Array.from({ length: count }, (_, index) => 11 + index));
    expect(isLinked(items[0]?.added ?? [])).toBe(true);
    expect(items[0]?.removed).toEqual([]);
  });

  it("keeps no more blocks than the capacity of the window", async () => {
    const { follower, simulated } = await following(200);
    for (let round = 0; round < 10; round++) {
      simulated.mine(50);
      await follower.advance();
    }
    expect(follower.window.size).toBe(CAPACITY);
  });

  it("reports a gap if more blocks are new than the window can hold", async () => {
    const { follower, simulated, telemetry } = await following(10);
    await follower.advance();
    const subscription = follower.subscribe();
    simulated.mine(CAPACITY + 2);
    expect(await follower.advance()).toBe(true);
    expect(subscription.drain().gapPotential).toBe(true);
    expect(follower.window.size).toBe(DEPTH);
    expect(telemetry.of("chain.gap").length).toBe(1);
  });
});

describe("the follower of new blocks, after a reorg,", () => {
  it.each([1, 3, 20])("reports the removed and the added blocks in order (depth %i)", async (depth) => {
    const { follower, simulated, telemetry } = await following(60);
    await follower.advance();
    const before = follower.window;
    const subscription = follower.subscribe();
    simulated.reorg(depth);
    await follower.advance();
    const [change] = subscription.drain().items;
    expect(numbers(change?.removed ?? [])).toEqual(Array.from({ length: depth }, (_, index) => 60 - index));
    expect(numbers(change?.added ?? [])).toEqual(Array.from({ length: depth + 1 }, (_, index) => 61 - depth + index));
    expect(change?.removed.every((block) => before.contains(block))).toBe(true);
    expect(follower.window.tip?.hash).toBe(simulated.head.hash);
    expect(telemetry.of("chain.reorg")).toMatchObject([{ depth, fromBlock: 61 - depth }]);
  });

  it("detects a new branch that is not longer than the old branch", async () => {
    const { follower, simulated } = await following(60);
    await follower.advance();
    simulated.reorg(3, { newBlocks: 3 });
    expect(await follower.advance()).toBe(true);
    simulated.reorg(5, { newBlocks: 2 });
    expect(await follower.advance()).toBe(true);
    expect(follower.window.tip).toMatchObject({ number: 57, hash: simulated.head.hash });
    expect(follower.window.hashAt(58)).toBeNull();
  });

  it("reports a gap if the reorg is deeper than the window of blocks", async () => {
    const { follower, simulated, telemetry } = await following(400);
    await follower.advance();
    const subscription = follower.subscribe();
    simulated.reorg(DEPTH + 5, { newBlocks: DEPTH + 6 });
    expect(await follower.advance()).toBe(true);
    const { items, gapPotential } = subscription.drain();
    expect(gapPotential).toBe(true);
    expect(items.map(({ added, removed }) => [added.length, removed.length])).toEqual([[1, 0]]);
    expect(follower.window.tip?.hash).toBe(simulated.head.hash);
    expect(telemetry.of("chain.gap").length).toBe(1);
  });

  it("reports a gap if the endpoint lacks blocks of the new branch", async () => {
    const { follower, simulated } = await following(60, { blockByHash: async () => null });
    await follower.advance();
    const subscription = follower.subscribe();
    simulated.reorg(4);
    expect(await follower.advance()).toBe(true);
    expect(subscription.drain().gapPotential).toBe(true);
    expect(follower.window.tip?.hash).toBe(simulated.head.hash);
  });
});

describe("the follower of new blocks, with a faulty endpoint,", () => {
  // protects [Chains that differ] src/application/chain/head-follower.ts, src/application/stages/6-finality/finality.ts
  it("keeps its blocks if the endpoint falls behind", async () => {
    const { follower, simulated, faults } = await following(200);
    await follower.advance();
    for (const height of [199, 150, 5]) {
      faults.pinHead(height);
      expect(await follower.advance()).toBe(false);
      expect(follower.window.tip?.hash).toBe(simulated.head.hash);
    }
  });

  it("changes nothing while the endpoint does not respond", async () => {
    const { follower, simulated, faults } = await following(20);
    await follower.advance();
    const subscription = follower.subscribe();
    simulated.mine(3);
    for (const failing of [1, 2]) {
      faults.inject({ kind: "unavailable" }, { method: "eth_getBlockByNumber", times: failing });
      for (let i = 0; i < failing; i++) await expect(follower.advance()).rejects.toThrow("simulated fault");
    }
    expect(follower.window.tip?.number).toBe(20);
    await follower.advance();
    expect(numbers(subscription.drain().items[0]?.added ?? [])).toEqual([21, 22, 23]);
  });

  it("reads again if the chain changes during a read", async () => {
    const bench = await following(20);
    let torn = 1;
    const blocksByNumber = async (asked: readonly number[]): Promise<readonly (Block | null)[]> => {
      const blocks = await bench.chain.blocksByNumber(asked);
      if (torn-- > 0) bench.simulated.reorg(3);
      return torn >= 0 ? await bench.chain.blocksByNumber(asked) : blocks;
    };
    const chain = overriding(bench.chain, { blocksByNumber });
    const follower = new HeadFollower(chain, bench.telemetry, CHAIN_SETTINGS);
    torn = 0;
    await follower.advance();
    bench.simulated.mine(3);
    torn = 1;
    await expect(follower.advance()).rejects.toThrow("changed while they were read");
    expect(follower.window.tip?.number).toBe(20);
    await follower.advance();
    expect(follower.window.tip?.hash).toBe(bench.simulated.head.hash);
  });
});

describe("subscribers of the follower of new blocks", () => {
  it("do not affect each other if a subscriber is slow", async () => {
    const bench = createChainBench({ settings: { blockQueueLength: 3 } });
    bench.simulated.mine(10);
    const { follower } = bench.context;
    await follower.advance();
    const slow = follower.subscribe();
    const quick = follower.subscribe();
    const seen: number[] = [];
    for (let round = 0; round < 8; round++) {
      bench.simulated.mine();
      await follower.advance();
      const { items, gapPotential } = quick.drain();
      expect(gapPotential).toBe(false);
      seen.push(...items.flatMap(({ added }) => numbers(added)));
    }
    expect(seen).toEqual([11, 12, 13, 14, 15, 16, 17, 18]);
    const late = slow.drain();
    expect(late.gapPotential).toBe(true);
    expect(late.items.flatMap(({ added }) => numbers(added))).toEqual([16, 17, 18]);
    expect(slow.drain().gapPotential).toBe(false);
  });

  it("receive nothing after they unsubscribe", async () => {
    const { follower, simulated } = await following(10);
    await follower.advance();
    const gone = follower.subscribe();
    follower.unsubscribe(gone);
    simulated.mine();
    await follower.advance();
    expect(gone.drain()).toEqual({ items: [], gapPotential: false });
  });
});
