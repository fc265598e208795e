import { describe, expect, it } from "vitest";
import { COMPARE_EVERY_MS, type Header, HeadWatch } from "../../../../src/adapters/evm/rpc/head-watch.ts";
import type { Hash } from "../../../../src/domain/lane.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";

const hashOf = (number: number, fork = 0): Hash => `0x${fork.toString(16)}${number.toString(16).padStart(63, "0")}`;

/**
 * A fake endpoint. Its blocks above `real` are invented, with other hashes for each `fork`; those up to `real` are
 * blocks of the chain.
 */
class Fake {
  behind = false;
  head: number;
  real: number;
  fork = 0;
  answers = true;
  hasHead = true;
  asked = 0;

  constructor(head: number) {
    this.head = head;
    this.real = head;
  }

  /** Advances the endpoint along the real chain. */
  go(to: number): void {
    this.head = to;
    this.real = to;
  }

  header(number: number): Header | null {
    if (number > this.head) return null;
    return { number, hash: this.hashAt(number), parentHash: this.hashAt(number - 1) };
  }

  private hashAt(number: number): Hash {
    return number > this.real ? hashOf(number, this.fork) : hashOf(number);
  }
}

function bench(...endpoints: readonly Fake[]) {
  const clock = createManualClock();
  const found: string[] = [];
  const watch = new HeadWatch<Fake>({
    clock,
    blockNumber: async (endpoint) => (endpoint.hasHead ? endpoint.head : null),
    headers: async (endpoint, numbers) => {
      endpoint.asked += numbers.length;
      try {
        return numbers.map((number) => endpoint.header(number));
      } catch {
        return null;
      }
    },
    onBehind: (endpoint, { head, ahead }) => found.push(`${endpoints.indexOf(endpoint)} ${head} ${ahead}`),
  });
  /** Polls this many times. `between` is called before each poll. */
  const looks = async (count: number, between: (look: number) => void = () => undefined): Promise<void> => {
    for (let look = 0; look < count; look++) {
      between(look);
      await watch.look(endpoints.filter(({ answers }) => answers));
      await clock.advance(COMPARE_EVERY_MS);
    }
  };
  return { looks, found };
}

const MINUTE = 60_000 / COMPARE_EVERY_MS;

describe("an endpoint that gets no new blocks", () => {
  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts, src/adapters/evm/rpc/endpoints.ts
  it("counts as down after a minute in which another endpoint got new blocks", async () => {
    const [still, moving] = [new Fake(100), new Fake(100)];
    const { looks, found } = bench(still, moving);
    await looks(1 + MINUTE, (look) => moving.go(100 + look));
    expect([still.behind, moving.behind, found]).toEqual([false, false, []]);
    await looks(2, (look) => moving.go(200 + look));
    expect([still.behind, moving.behind, found]).toEqual([true, false, ["0 100 101"]]);
  });

  it("is used again when it has caught up", async () => {
    const [still, moving] = [new Fake(100), new Fake(100)];
    const { looks } = bench(still, moving);
    await looks(2 + MINUTE, (look) => moving.go(100 + look));
    expect(still.behind).toBe(true);
    await looks(1, () => still.go(moving.head - 1));
    expect(still.behind).toBe(false);
  });

  it.each([
    ["its head number", (rival: Fake) => Object.assign(rival, { hasHead: false })],
    [
      "its blocks",
      (rival: Fake) => {
        rival.head = 1_000_000;
        rival.header = () => {
          throw new Error("it does not answer");
        };
      },
    ],
    // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  ])("is used again if the endpoint that was ahead no longer returns %s", async (_, silence) => {
    const [still, rival] = [new Fake(100), new Fake(100)];
    const { looks } = bench(still, rival);
    await looks(2 + MINUTE, (look) => rival.go(100 + look));
    silence(rival);
    await looks(MINUTE - 1, (look) => still.go(150 + look));
    expect(still.behind, "no other endpoint has said otherwise yet").toBe(true);
    await looks(2, (look) => still.go(200 + look));
    expect(still.behind).toBe(false);
  });

  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  it("stays down while it still returns the old block", async () => {
    const [still, moving] = [new Fake(100), new Fake(100)];
    const { looks, found } = bench(still, moving);
    await looks(2 + MINUTE, (look) => moving.go(100 + look));
    still.answers = false;
    await looks(2, (look) => moving.go(200 + look));
    still.answers = true;
    expect(still.behind).toBe(true);
    await looks(2, (look) => moving.go(300 + look));
    expect([still.behind, found.length]).toEqual([true, 1]);
    await looks(1, () => still.go(moving.head));
    expect(still.behind).toBe(false);
  });

  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  it("does not count as down if no endpoint gets new blocks", async () => {
    const endpoints = [new Fake(100), new Fake(100), new Fake(100)];
    const { looks } = bench(...endpoints);
    await looks(10 * MINUTE);
    expect(endpoints.map(({ behind }) => behind)).toEqual([false, false, false]);
    expect(endpoints.map(({ asked }) => asked)).toEqual([0, 0, 0]);
  });

  it("stays down while the newest block of the other endpoint is unknown", async () => {
    const [still, moving] = [new Fake(100), new Fake(100)];
    const { looks } = bench(still, moving);
    await looks(2 + MINUTE, (look) => moving.go(100 + look));
    const { header } = moving;
    moving.header = () => {
      throw new Error("it does not answer");
    };
    await looks(3, (look) => moving.go(200 + look));
    expect(still.behind).toBe(true);
    moving.header = header;
    moving.hasHead = false;
    await looks(1);
    expect(still.behind).toBe(true);
    moving.answers = false;
    await looks(1);
    expect(still.behind).toBe(false);
  });
});

describe("an endpoint that is some blocks behind another one", () => {
  it("counts as up if it is always one block behind", async () => {
    const [late, moving] = [new Fake(99), new Fake(100)];
    const { looks } = bench(late, moving);
    await looks(10 * MINUTE, (look) => {
      moving.go(100 + Math.floor(look / 2));
      late.go(moving.head - 1);
    });
    expect([late.behind, moving.behind]).toEqual([false, false]);
  });

  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts, src/adapters/evm/rpc/endpoints.ts
  it("counts as up at twenty blocks behind", async () => {
    for (const [late, isDown] of [
      [20, false],
      [21, true],
    ] as const) {
      const [slow, moving] = [new Fake(100 - late), new Fake(100)];
      const { looks } = bench(slow, moving);
      await looks(2 + MINUTE, (look) => {
        moving.go(100 + 3 * look);
        slow.go(moving.head - late);
      });
      expect(slow.behind, String(late)).toBe(isDown);
    }
  });

  it("counts as down if it catches up too slowly", async () => {
    const [slow, moving] = [new Fake(1_000), new Fake(5_000)];
    const { looks } = bench(slow, moving);
    await looks(2 + MINUTE, (look) => {
      moving.go(5_000 + 40 * look);
      slow.go(1_000 + 40 * look);
    });
    expect(slow.behind).toBe(true);
  });
});

describe("an endpoint that claims a false block height", () => {
  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  it("cannot make another endpoint count as down by the height alone", async () => {
    const [honest, liar] = [new Fake(100), new Fake(100)];
    const { looks } = bench(honest, liar);
    const header = liar.header.bind(liar);
    liar.header = (number) => (number > honest.head ? null : header(number));
    await looks(3 * MINUTE, (look) => {
      honest.go(100 + look);
      liar.go(honest.head);
      liar.head = 1_000_000;
    });
    expect(honest.behind).toBe(false);
  });

  it.each([
    ["always the same blocks", () => 1],
    ["different blocks at each check", (look: number) => 1 + (look % 9)],
    // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  ])("cannot make an honest endpoint count as down by inventing %s", async (_, forkAt) => {
    const [honest, liar] = [new Fake(100), new Fake(100)];
    const { looks } = bench(honest, liar);
    await looks(10 * MINUTE, (look) => {
      // The chain grows by one block every second poll, so the honest endpoint often reports the same block twice.
      honest.go(100 + Math.floor(look / 2));
      Object.assign(liar, { real: honest.head, head: honest.head + 1_000, fork: forkAt(look) });
      expect(honest.behind, String(look)).toBe(false);
    });
    expect(honest.behind).toBe(false);
  });

  // protects [Chains that differ] src/adapters/evm/rpc/head-watch.ts
  it("cannot make an honest endpoint count as down by mixing real and false blocks", async () => {
    const [honest, liar] = [new Fake(100), new Fake(100)];
    const { looks } = bench(honest, liar);
    await looks(10 * MINUTE, (look) => {
      honest.go(100 + Math.floor(look / 2));
      Object.assign(liar, { real: honest.head + 1, head: honest.head + 1_000, fork: 1 });
    });
    expect(honest.behind).toBe(false);
  });

  it("cannot hide that another endpoint is really down", async () => {
    const [still, liar, moving] = [new Fake(100), new Fake(100), new Fake(100)];
    const { looks, found } = bench(still, liar, moving);
    await looks(2 + MINUTE, (look) => {
      moving.go(100 + look);
      Object.assign(liar, { real: moving.head, head: moving.head + 1_000, fork: 1 + (look % 9) });
    });
    expect([still.behind, moving.behind, found.length]).toEqual([true, false, 1]);
  });
});
