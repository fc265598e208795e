import { describe, expect, it } from "vitest";
import type { OwnedLane } from "../../../../src/application/lane/owned-lane.ts";
import { nonceFloor } from "../../../../src/application/stages/2-allocate/allocate.ts";
import { type ChainBench, createChainBench, createOwnedLane } from "../../../support/chain-bench.ts";
import { hashNumber } from "../../../support/naive-chain.ts";
import { POLL_MS, SIGNER } from "../../../support/world.ts";

const ALWAYS = { nonceStateTimeoutMs: 0 };

interface Asked {
  floor: number | null | undefined;
  error: unknown;
}

function ask(bench: ChainBench, lane: OwnedLane): Asked {
  const asked: Asked = { floor: undefined, error: null };
  nonceFloor(bench, bench.context, lane).then(
    (floor) => {
      asked.floor = floor;
    },
    (error) => {
      asked.error = error;
    },
  );
  return asked;
}

function drifts(bench: ChainBench): readonly string[] {
  return bench.telemetry.of("nonce.drift").map(({ cursor, chainCount, proved }) => `${cursor} ${chainCount} ${proved}`);
}

describe("a count that is not above the cursor", () => {
  it.each([
    [0, 5],
    [5, 5],
    [3, 5],
  ])("(%i against %i) changes nothing", async (count, cursor) => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, count);
    const asked = ask(bench, createOwnedLane({ cursor }));
    await bench.clock.advance(0);
    expect(asked.floor).toBeNull();
    expect(drifts(bench)).toEqual([]);
  });

  it("is what a new lane begins with", async () => {
    const bench = createChainBench();
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked.floor).toBe(0);
  });
});

describe("a count above the cursor", () => {
  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts, src/application/detours/reconcile.ts
  it("waits for a second look a poll interval later", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, 10);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(POLL_MS - 1);
    expect(asked.floor).toBeUndefined();
    await bench.clock.advance(1);
    expect(asked.floor).toBe(10);
    expect(drifts(bench)).toEqual(["5 10 false", "5 10 true"]);
    expect(bench.telemetry.of("alert").map(({ code }) => code)).toEqual(["NONCE_DRIFT", "NONCE_DRIFT"]);
  });

  it("that grew meanwhile is believed as far as the first look", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, 10);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(1);
    bench.simulated.setNonce(SIGNER, 12);
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(10);
  });

  it("that was a lie is not believed", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    let lies = 1;
    bench.faults.lieAboutNonce((honest) => (lies-- > 0 ? honest + 633 : honest));
    const asked = ask(bench, createOwnedLane({ cursor: 0 }));
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
  });

  it("that sinks is asked again, and believed where it stands", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    const counts = [20, 15, 15];
    bench.faults.lieAboutNonce(() => counts.shift() ?? 15);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(2 * POLL_MS);
    expect(asked.floor).toBe(15);
  });

  it("that never stands is 503 after three intervals, and consumes nothing", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    let count = 1_000;
    bench.faults.lieAboutNonce(() => --count);
    const lane = createOwnedLane({ cursor: 5 });
    const asked = ask(bench, lane);
    await bench.clock.advance(3 * POLL_MS);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
    expect([lane.cursor, lane.pace.counts.comparedAtMs]).toEqual([5, null]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
  it("of a new lane is proved the same way, without an alarm", async () => {
    const bench = createChainBench();
    bench.simulated.setNonce(SIGNER, 41);
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(POLL_MS - 1);
    expect(asked.floor).toBeUndefined();
    await bench.clock.advance(1);
    expect(asked.floor).toBe(41);
    expect(bench.telemetry.events.map(({ type }) => type)).toEqual(["nonce.firstCount"]);
    expect(bench.telemetry.of("nonce.firstCount")).toMatchObject([{ chainCount: 41 }]);
  });
});

/** The chain counts 10 and we gave 5; the other endpoint is pinned below the block in which the rest was mined. */
async function claimed(): Promise<{ readonly bench: ChainBench; readonly lane: OwnedLane }> {
  const bench = createChainBench({ settings: ALWAYS, endpoints: 2 });
  bench.simulated.mineForeign(SIGNER, 5);
  bench.simulated.mine(3);
  bench.elsewhere.pinHead(bench.simulated.head.number);
  bench.simulated.mineForeign(SIGNER, 5);
  bench.simulated.mine();
  await bench.context.follower.advance();
  return { bench, lane: createOwnedLane({ cursor: 5 }) };
}

describe("another endpoint", () => {
  async function proveAgainst(other: (honest: number) => number): Promise<Asked> {
    const bench = createChainBench({ settings: ALWAYS, endpoints: 2 });
    bench.simulated.setNonce(SIGNER, 10);
    bench.elsewhere.lieAboutNonce(other);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(3 * POLL_MS);
    return asked;
  }

  it("that agrees, or knows more, proves it", async () => {
    expect((await proveAgainst((honest) => honest)).floor).toBe(10);
    expect((await proveAgainst((honest) => honest + 2)).floor).toBe(10);
  });

  it("that knows less does not", async () => {
    expect((await proveAgainst(() => 9)).error).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("that is behind is waited for, three intervals at most; then 503, and nothing is consumed", async () => {
    const { bench, lane } = await claimed();
    const asked = ask(bench, lane);
    await bench.clock.advance(3 * POLL_MS - 1);
    expect(asked).toEqual({ floor: undefined, error: null });
    await bench.clock.advance(1);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
    expect([lane.cursor, lane.pace.counts.comparedAtMs]).toEqual([5, null]);
  });

  it("that is behind proves it when it gets there", async () => {
    const { bench, lane } = await claimed();
    const asked = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    bench.elsewhere.heal();
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(10);
  });

  it("that is always a block late proves what it has seen mined", async () => {
    const { bench, lane } = await claimed();
    bench.elsewhere.heal();
    bench.elsewhere.trail(1);
    const asked = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(10);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("that gives no answer has proved nothing, whether the lane is new or not", async () => {
    for (const cursor of [5, null]) {
      const { bench } = await claimed();
      bench.elsewhere.heal();
      bench.elsewhere.inject({ kind: "unavailable" });
      const asked = ask(bench, createOwnedLane({ cursor }));
      await bench.clock.advance(4 * POLL_MS);
      expect(asked.error, String(cursor)).toMatchObject({ code: "UNAVAILABLE" });
    }
  });

  it("that hangs keeps no create waiting beyond that, or for more than a second where polls come often", async () => {
    const { bench, lane } = await claimed();
    bench.chain.transactionCountEverywhere = () => new Promise(() => undefined);
    const asked = ask(bench, lane);
    await bench.clock.advance(Math.max(1_000, 4 * POLL_MS) + POLL_MS);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/rpc/endpoints.ts
  it("does not confirm itself where the one that is read first fails to answer now and then", async () => {
    const bench = createChainBench({ settings: ALWAYS, endpoints: 2 });
    bench.chain.transactionCount = async () => ({ count: 45, endpoint: "a liar" });
    bench.elsewhere.lieAboutNonce((honest) => honest + 40);
    bench.faults.inject({ kind: "unavailable" });
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(3 * POLL_MS);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
  it("that counts fewer stops a new lane, whichever of the two is asked first", async () => {
    for (const liar of ["faults", "elsewhere"] as const) {
      const bench = createChainBench({ endpoints: 2 });
      bench.simulated.setNonce(SIGNER, 41);
      bench[liar].lieAboutNonce(() => 0);
      const asked = ask(bench, createOwnedLane());
      await bench.clock.advance(3 * POLL_MS);
      expect(asked.error, liar).toMatchObject({ code: "UNAVAILABLE" });
    }
  });

  it("gives a new signer its first nonce at once, also where it is a block late", async () => {
    const bench = createChainBench({ endpoints: 2 });
    bench.simulated.mine(3);
    await bench.context.follower.advance();
    bench.elsewhere.trail(1);
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked.floor).toBe(0);
  });
});

describe("two other endpoints", () => {
  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("outvote one that lies for good, as soon as they have come to the block at which it was first met lying", async () => {
    const bench = createChainBench({ settings: ALWAYS, endpoints: 2 });
    bench.simulated.mine(3);
    await bench.context.follower.advance();
    const claimedAt: number[] = [];
    const heads = { late: 2 };
    bench.faults.lieAboutNonce((honest) => honest + 40);
    bench.chain.transactionCountEverywhere = async (_, atBlock) => {
      claimedAt.push(atBlock);
      const late = { kind: heads.late < atBlock ? "behind" : "says", count: 0 } as const;
      return [{ kind: "says", count: 40 }, late, late];
    };
    const lane = createOwnedLane({ cursor: 0 });
    const first = ask(bench, lane);
    await bench.clock.advance(3 * POLL_MS);
    expect(first.error).toMatchObject({ code: "UNAVAILABLE" });
    bench.simulated.mine();
    heads.late++;
    await bench.context.follower.advance();
    const second = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    expect(second).toEqual({ floor: null, error: null });
    expect(new Set(claimedAt)).toEqual(new Set([3]));
    expect(lane.pace.counts.claim).toBeNull();
  });
});

describe("a chain that is away", () => {
  it("stops no create whose lane has a cursor", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.faults.inject({ kind: "unavailable" });
    const lane = createOwnedLane({ cursor: 5 });
    const asked = ask(bench, lane);
    await bench.clock.advance(0);
    expect(asked.floor).toBeNull();
    expect(lane.pace.counts.comparedAtMs).toBeNull();
  });

  it("stops a new lane: 503", async () => {
    const bench = createChainBench();
    bench.faults.inject({ kind: "unavailable" });
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("in the middle of a proof has proved nothing", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, 10);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(1);
    bench.faults.inject({ kind: "unavailable" });
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
  });

  it("any other failure is not hidden", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.faults.lieAboutNonce(() => {
      throw new TypeError("a mistake of ours");
    });
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(0);
    expect(asked.error).toBeInstanceOf(TypeError);
  });
});

describe("how often the chain is asked", () => {
  function counting(settings: { nonceStateTimeoutMs: number }): ChainBench & { readonly reads: () => number } {
    const bench = createChainBench({ settings });
    let reads = 0;
    bench.faults.lieAboutNonce((honest) => {
      reads++;
      return honest;
    });
    return { ...bench, reads: () => reads };
  }

  it("not again while the last look is fresh", async () => {
    const bench = counting({ nonceStateTimeoutMs: 30_000 });
    const lane = createOwnedLane({ cursor: 0 });
    for (const waitMs of [0, 29_999, 1]) {
      await bench.clock.advance(waitMs);
      ask(bench, lane);
      await bench.clock.advance(0);
    }
    expect(bench.reads()).toBe(2);
  });

  it("before every batch where the setting is 0; those at the same time share one look", async () => {
    const bench = counting({ nonceStateTimeoutMs: 0 });
    const lane = createOwnedLane({ cursor: 0 });
    const asked = [ask(bench, lane), ask(bench, lane), ask(bench, lane)];
    await bench.clock.advance(0);
    expect(bench.reads()).toBe(1);
    expect(asked.map(({ floor }) => floor)).toEqual([null, null, null]);
    ask(bench, lane);
    await bench.clock.advance(0);
    expect(bench.reads()).toBe(2);
  });

  it("never where the setting is off: a new lane begins at 0", async () => {
    const bench = createChainBench({ settings: { nonceChainQuery: "off" } });
    bench.faults.inject({ kind: "unavailable" });
    const asked = [ask(bench, createOwnedLane()), ask(bench, createOwnedLane({ cursor: 5 }))];
    await bench.clock.advance(0);
    expect(asked.map(({ floor }) => floor)).toEqual([0, null]);
  });
});

describe("what was proved", () => {
  it("binds everyone until the cursor has followed: the create that brought the proof may still fail", async () => {
    const bench = createChainBench({ settings: { nonceStateTimeoutMs: 30_000 } });
    bench.simulated.setNonce(SIGNER, 10);
    const lane = createOwnedLane({ cursor: 5 });
    ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    const next = ask(bench, lane);
    await bench.clock.advance(0);
    expect(next.floor).toBe(10);
    lane.fold([{ kind: "cursor", cursor: 11 }]);
    const later = ask(bench, lane);
    await bench.clock.advance(0);
    expect(later.floor).toBeNull();
  });

  it("holds also where the chain has gone away since", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, 10);
    const lane = createOwnedLane({ cursor: 5 });
    ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    bench.faults.inject({ kind: "unavailable" });
    const next = ask(bench, lane);
    await bench.clock.advance(0);
    expect(next.floor).toBe(10);
  });
});

describe("the pending count, where it is asked for", () => {
  const settings = { nonceChainQuery: "pending", nonceStateTimeoutMs: 0 } as const;

  it("is looked into a thousand transactions at a time, however many are claimed", async () => {
    const bench = createChainBench({ settings });
    bench.faults.lieAboutNonce((honest, _, tag) => (tag === "pending" ? Number.MAX_SAFE_INTEGER : honest));
    const looks: number[] = [];
    const pooled = bench.chain.pooled.bind(bench.chain);
    bench.chain.pooled = (signer, nonces) => {
      looks.push(nonces.length);
      return pooled(signer, nonces);
    };
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(POLL_MS);
    expect(asked).toEqual({ floor: null, error: null });
    expect(looks).toEqual([1_000]);
  });

  it("steps over what others have in the pool, once every one of them was found", async () => {
    const bench = createChainBench({ settings });
    bench.simulated.injectForeign(SIGNER);
    bench.simulated.injectForeign(SIGNER);
    const asked = ask(bench, createOwnedLane({ cursor: 0 }));
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(2);
  });

  it.each(["faults", "elsewhere"] as const)(
    // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
    "is believed as far as both of two endpoints count, whatever one of them shows in its pool (%s)",
    async (liar) => {
      const bench = createChainBench({ settings, endpoints: 2 });
      bench.simulated.injectForeign(SIGNER);
      bench[liar].lieAboutNonce((honest, _, tag) => (tag === "pending" ? honest + 40 : honest));
      bench.chain.pooled = async (_, nonces) => nonces.map(hashNumber);
      const asked = ask(bench, createOwnedLane({ cursor: 0 }));
      await bench.clock.advance(POLL_MS);
      expect(asked.floor).toBe(1);
    },
  );

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
  it("is not believed while one of two endpoints is silent, and holds no create up", async () => {
    const bench = createChainBench({ settings, endpoints: 2 });
    bench.simulated.injectForeign(SIGNER);
    const heal = bench.elsewhere.inject({ kind: "unavailable" });
    const lane = createOwnedLane({ cursor: 0 });
    const asked = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    expect(asked).toEqual({ floor: null, error: null });
    heal();
    const again = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    expect(again.floor).toBe(1);
  });

  it("that nothing in the pool explains is reported, and not believed", async () => {
    const bench = createChainBench({ settings });
    bench.faults.lieAboutNonce((honest, _, tag) => (tag === "pending" ? honest + 3 : honest));
    const asked = ask(bench, createOwnedLane({ cursor: 0 }));
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
    expect(drifts(bench)).toEqual(["0 3 false"]);
  });
});
