import { describe, expect, it } from "vitest";
import type { OwnedLane } from "../../../../src/application/lane/owned-lane.ts";
import { nonceFloor } from "../../../../src/application/stages/2-allocate/allocate.ts";
import { type ChainBench, createChainBench, createOwnedLane } from "../../../support/chain-bench.ts";
import { hashNumber } from "../../../support/naive-chain.ts";
import { due } from "../../../support/stage-bench.ts";
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

describe("a chain's nonce count", () => {
  it.each([
    [0, 5],
    [5, 5],
    [3, 5],
  ])("changes nothing if it is not above the lane's next nonce (count %i, next nonce %i)", async (count, cursor) => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, count);
    const asked = ask(bench, createOwnedLane({ cursor }));
    await bench.clock.advance(0);
    expect(asked.floor).toBeNull();
    expect(drifts(bench)).toEqual([]);
  });

  it("becomes the first nonce of a new lane", async () => {
    const bench = createChainBench();
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked.floor).toBe(0);
  });
});

describe("the first nonce of a new lane", () => {
  it("is not 0 while only one of two endpoints answers", async () => {
    const bench = createChainBench({ endpoints: 2 });
    const heal = bench.elsewhere.inject({ kind: "unavailable" });
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked).toEqual({ floor: undefined, error: null });
    heal();
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(0);
  });
});

describe("a chain's nonce count above the lane's next nonce", () => {
  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts, src/application/detours/reconcile.ts
  it("is read a second time before it is used", async () => {
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

  it("is used only up to its first value if it grew meanwhile", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, 10);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(1);
    bench.simulated.setNonce(SIGNER, 12);
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(10);
  });

  it("is not used if the second read contradicts the first read", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    let lies = 1;
    bench.faults.lieAboutNonce((honest) => (lies-- > 0 ? honest + 633 : honest));
    const asked = ask(bench, createOwnedLane({ cursor: 0 }));
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
  });

  it("is read again if it drops", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    const counts = [20, 15, 15];
    bench.faults.lieAboutNonce(() => counts.shift() ?? 15);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(2 * POLL_MS);
    expect(asked.floor).toBe(15);
  });

  it("makes the create fail with 503 if it never becomes stable", async () => {
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
  it("is verified by a second read for a new lane too", async () => {
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

/**
 * The chain's transaction count is 10, but the lane's next nonce is 5. The second endpoint is stopped below the block
 * in which the other five transactions were mined.
 */
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

describe("a second endpoint that checks the nonce count", () => {
  async function proveAgainst(other: (honest: number) => number): Promise<Asked> {
    const bench = createChainBench({ settings: ALWAYS, endpoints: 2 });
    bench.simulated.setNonce(SIGNER, 10);
    bench.elsewhere.lieAboutNonce(other);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(3 * POLL_MS);
    return asked;
  }

  it("proves the count by reporting at least the same count", async () => {
    expect((await proveAgainst((honest) => honest)).floor).toBe(10);
    expect((await proveAgainst((honest) => honest + 2)).floor).toBe(10);
  });

  it("does not prove the count by reporting a lower count", async () => {
    expect((await proveAgainst(() => 9)).error).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("makes the create fail with 503 if the endpoint keeps lagging", async () => {
    const { bench, lane } = await claimed();
    const asked = ask(bench, lane);
    await bench.clock.advance(3 * POLL_MS - 1);
    expect(asked).toEqual({ floor: undefined, error: null });
    await bench.clock.advance(1);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
    expect([lane.cursor, lane.pace.counts.comparedAtMs]).toEqual([5, null]);
  });

  it("proves the count as soon as it no longer lags", async () => {
    const { bench, lane } = await claimed();
    const asked = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    bench.elsewhere.heal();
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(10);
  });

  it("proves the nonces that it has seen mined", async () => {
    const { bench, lane } = await claimed();
    bench.elsewhere.heal();
    bench.elsewhere.trail(1);
    const asked = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(10);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("proves nothing if it does not respond", async () => {
    for (const cursor of [5, null]) {
      const { bench } = await claimed();
      bench.elsewhere.heal();
      bench.elsewhere.inject({ kind: "unavailable" });
      const asked = ask(bench, createOwnedLane({ cursor }));
      await bench.clock.advance(4 * POLL_MS);
      expect(asked.error, String(cursor)).toMatchObject({ code: "UNAVAILABLE" });
    }
  });

  it("makes the create fail with 503 if the endpoint hangs", async () => {
    const { bench, lane } = await claimed();
    bench.chain.transactionCountEverywhere = () => new Promise(() => undefined);
    const asked = ask(bench, lane);
    await bench.clock.advance(Math.max(1_000, 4 * POLL_MS) + POLL_MS);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/rpc/endpoints.ts
  it("cannot confirm its own false count", async () => {
    const bench = createChainBench({ settings: ALWAYS, endpoints: 2 });
    bench.chain.transactionCount = async () => ({ count: 45, endpoint: "a liar" });
    bench.elsewhere.lieAboutNonce((honest) => honest + 40);
    bench.faults.inject({ kind: "unavailable" });
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(3 * POLL_MS);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
  it("blocks a new lane by reporting a lower count", async () => {
    for (const liar of ["faults", "elsewhere"] as const) {
      const bench = createChainBench({ endpoints: 2 });
      bench.simulated.setNonce(SIGNER, 41);
      bench[liar].lieAboutNonce(() => 0);
      const asked = ask(bench, createOwnedLane());
      await bench.clock.advance(3 * POLL_MS);
      expect(asked.error, liar).toMatchObject({ code: "UNAVAILABLE" });
    }
  });

  it("does not delay a new signer at nonce 0", async () => {
    const bench = createChainBench({ endpoints: 2 });
    bench.simulated.mine(3);
    await bench.context.follower.advance();
    bench.elsewhere.trail(1);
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked.floor).toBe(0);
  });
});

describe("two endpoints beside a third with a false nonce count", () => {
  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("outvote the third endpoint", async () => {
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

describe("an outage of the chain during nonce allocation", () => {
  it("blocks no create on a lane with a known next nonce", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.faults.inject({ kind: "unavailable" });
    const lane = createOwnedLane({ cursor: 5 });
    const asked = ask(bench, lane);
    await bench.clock.advance(0);
    expect(asked.floor).toBeNull();
    expect(lane.pace.counts.comparedAtMs).toBeNull();
  });

  it("makes a create on a new lane fail with 503", async () => {
    const bench = createChainBench();
    bench.faults.inject({ kind: "unavailable" });
    const asked = ask(bench, createOwnedLane());
    await bench.clock.advance(0);
    expect(asked.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("leaves the nonce count unproven", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.simulated.setNonce(SIGNER, 10);
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(1);
    bench.faults.inject({ kind: "unavailable" });
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
  });

  it("is not assumed if an internal error occurs", async () => {
    const bench = createChainBench({ settings: ALWAYS });
    bench.faults.lieAboutNonce(() => {
      throw new TypeError("a mistake of ours");
    });
    const asked = ask(bench, createOwnedLane({ cursor: 5 }));
    await bench.clock.advance(0);
    expect(asked.error).toBeInstanceOf(TypeError);
  });
});

describe("the chain's nonce count", () => {
  function counting(settings: { nonceStateTimeoutMs: number }): ChainBench & { readonly reads: () => number } {
    const bench = createChainBench({ settings });
    let reads = 0;
    bench.faults.lieAboutNonce((honest) => {
      reads++;
      return honest;
    });
    return { ...bench, reads: () => reads };
  }

  it("is not read again within nonceStateTimeoutMs", async () => {
    const bench = counting({ nonceStateTimeoutMs: 30_000 });
    const lane = createOwnedLane({ cursor: 0 });
    for (const waitMs of [0, 29_999, 1]) {
      await bench.clock.advance(waitMs);
      ask(bench, lane);
      await bench.clock.advance(0);
    }
    expect(bench.reads()).toBe(2);
  });

  it("is read before every batch if nonceStateTimeoutMs is 0, once for simultaneous batches", async () => {
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

  it("is never read if nonceChainQuery is off, and a new lane starts at 0", async () => {
    const bench = createChainBench({ settings: { nonceChainQuery: "off" } });
    bench.faults.inject({ kind: "unavailable" });
    const asked = [ask(bench, createOwnedLane()), ask(bench, createOwnedLane({ cursor: 5 }))];
    await bench.clock.advance(0);
    expect(asked.map(({ floor }) => floor)).toEqual([0, null]);
  });
});

describe("a verified nonce count", () => {
  it("applies to every create until the lane's next nonce reaches it", async () => {
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

  it("still applies if the chain has become unreachable since", async () => {
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

describe("nonce allocation with pending counts", () => {
  const settings = { nonceChainQuery: "pending", nonceStateTimeoutMs: 0 } as const;

  it("looks up at most a thousand mempool transactions at a time", async () => {
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

  it("skips nonces of other programs' transactions in the mempool", async () => {
    const bench = createChainBench({ settings });
    bench.simulated.injectForeign(SIGNER);
    bench.simulated.injectForeign(SIGNER);
    const asked = ask(bench, createOwnedLane({ cursor: 0 }));
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBe(2);
  });

  it.each(["faults", "elsewhere"] as const)(
    // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts
    "uses the lower pending count of two endpoints (false endpoint: %s)",
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
  it("ignores the pending count while one of two endpoints does not respond", async () => {
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

  it.each([
    ["that are ours", (nonces: readonly number[]) => nonces.map(hashNumber)],
    ["that the endpoint does not list", () => null],
  ])("skips no nonces of transactions in the mempool %s", async (_, pooled) => {
    const bench = createChainBench({ settings });
    bench.faults.lieAboutNonce((honest, _, tag) => (tag === "pending" ? honest + 2 : honest));
    bench.chain.pooled = async (_, nonces) => pooled(nonces);
    const lane = createOwnedLane({ cursor: 0 });
    for (const nonce of [0, 1]) bench.context.hashes.set(hashNumber(nonce), { lane, tx: due(nonce) });
    const asked = ask(bench, lane);
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
  });

  it("ignores a pending count without matching transactions in the mempool", async () => {
    const bench = createChainBench({ settings });
    bench.faults.lieAboutNonce((honest, _, tag) => (tag === "pending" ? honest + 3 : honest));
    const asked = ask(bench, createOwnedLane({ cursor: 0 }));
    await bench.clock.advance(POLL_MS);
    expect(asked.floor).toBeNull();
    expect(drifts(bench)).toEqual(["0 3 false"]);
  });
});
