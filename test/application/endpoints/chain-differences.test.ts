/** Chains that differ from the usual development chain, each tested with the whole application. */
import { afterEach, describe, expect, it } from "vitest";
import type { SubmitAnswer } from "../../../src/domain/chain/answers.ts";
import { ROOMY_POOL } from "../../doubles/simulated-chain/pool.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function create(entry: WorldNode, count: number, payload?: Record<string, unknown>): Promise<void> {
  const request = () => transfer(payload === undefined ? {} : { payload });
  await world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(request()))));
}

function answered(entry: WorldNode, answer: SubmitAnswer): number {
  return entry.events.filter((event) => event.type === "submit.answered" && event.answer === answer).length;
}

describe("a chain node that refuses future nonces", () => {
  // protects [Chains that differ] src/domain/pace/lane-pace.ts
  it("is sent one nonce at a time", async () => {
    world = new World({ chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } } });
    const entry = await world.startNode();
    await create(entry, 40);
    await world.allSettled(40, 600_000);
    checkInvariants(world);
    // Sends refused because their nonce is too high: those of the first batch, plus one each time the node tries again
    // to send more than one nonce at a time.
    expect(answered(entry, "nonceTooHigh")).toBeLessThan(60);
    const arrivals = world.chain.witness.filter(({ submission }) => submission.accepted).map(({ nonce }) => nonce);
    expect(arrivals).toEqual([...arrivals].sort((a, b) => (a ?? 0) - (b ?? 0)));
  });

  it("still mines a transaction in nearly every block", async () => {
    world = new World({ chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } } });
    const entry = await world.startNode();
    await create(entry, 10);
    await world.until(() => world.rows().filter(({ receipt }) => receipt !== null).length >= 3);
    await world.until(() => world.rows().every(({ receipt }) => receipt !== null));
    const blocks = world.rows().map(({ receipt }) => receipt?.blockNumber ?? 0);
    expect((blocks.at(-1) ?? 0) - (blocks[0] ?? 0)).toBeLessThan(2 * blocks.length);
  });

  // protects [Chains that differ] src/application/loops/chain-loop.ts, src/application/stages/4-broadcast/note-answer.ts
  it("is sent each nonce as soon as the previous nonce is mined", async () => {
    world = new World({
      chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } },
      settings: { pollIntervalMs: 1_000 },
    });
    world.holdBlocks();
    world.chain.subscribe((event) => {
      if (event.type === "arrival" && event.entry.submission.accepted) world.clock.after(100, () => world.chain.mine());
    });
    const entry = await world.startNode();
    let looks = 0;
    const head = entry.rpc.head.bind(entry.rpc);
    entry.rpc.head = (tag) => {
      if (tag === "latest") looks++;
      return head(tag);
    };
    const minedAfter = async (count: number): Promise<number> => {
      const startedMs = world.clock.monotonicMs();
      await create(entry, count);
      await world.until(() => world.rows().every(({ receipt }) => receipt !== null));
      return world.clock.monotonicMs() - startedMs;
    };
    await minedAfter(3);
    expect(await minedAfter(20)).toBeLessThan(20 * 400);
    world.releaseBlocks();
    await world.allSettled(23);
    looks = 0;
    await world.clock.advance(60_000);
    expect(looks).toBeLessThanOrEqual(61);
  });

  // protects [Chains that differ] src/domain/pace/lane-pace.ts
  it("is sent many nonces at once when it begins to accept future nonces", async () => {
    world = new World({ chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } } });
    const entry = await world.startNode();
    await create(entry, 3);
    await world.allSettled(3, 600_000);
    world.chain.pool.change({ futureNonces: "queue" });
    world.holdBlocks();
    await create(entry, 20);
    await world.until(() => world.chain.pool.size === 20, 600_000);
    world.releaseBlocks();
    await world.allSettled(23, 600_000);
    checkInvariants(world);
  });

  // protects [Chains that differ] src/application/stages/4-broadcast/note-answer.ts
  it("is sent the transactions that it dropped again", async () => {
    world = new World({
      chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseGaps" } },
      settings: { resubmitIntervalMs: 600_000 },
    });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 5);
    await world.until(() => world.chain.pool.size === 5);
    world.chain.dropAllTransactions();
    await create(entry, 1);
    await world.until(() => answered(entry, "nonceTooHigh") > 0);
    world.releaseBlocks();
    await world.allSettled(6, 120_000);
    checkInvariants(world);
    const events = world.rows().flatMap(({ history }) => history.map(({ event }) => event));
    expect(events, "sent again because the node asked for it, not for its age").not.toContain("stale");
  });
});

describe("a chain whose blocks are final at once", () => {
  // protects [Chains that differ] src/domain/chain/finality.ts
  it("completes transactions without waiting for more blocks", async () => {
    world = new World({ settings: { confirmations: 0 } });
    world.holdBlocks();
    world.chain.subscribe((event) => {
      if (event.type === "arrival" && event.entry.submission.accepted) world.chain.mine();
    });
    const entry = await world.startNode();
    await create(entry, 12);
    await world.allSettled(12);
    checkInvariants(world);
    expect(world.database.state.completions.length).toBe(12);
  });
});

describe("a chain without the configured finality tag", () => {
  // protects [Chains that differ] src/application/stages/6-finality/finality.ts, src/application/chain/chain-context.ts
  it("makes no transaction final, and raises one alert", async () => {
    world = new World({ chain: { tagDepths: null }, settings: { finality: "finalized" } });
    const entry = await world.startNode();
    await create(entry, 2);
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    await world.clock.advance(200_000);
    expect(world.rows().map(({ state }) => state)).toEqual(["TRACKING", "TRACKING"]);
    const alerts = entry.events.filter((event) => event.type === "alert" && event.code === "FINALITY_TAG_MISSING");
    expect(alerts).toMatchObject([{ severity: "ERROR", message: expect.stringContaining("finalized") }]);
  });

  it("completes transactions if finality is configured by confirmations", async () => {
    world = new World({ chain: { tagDepths: null } });
    const entry = await world.startNode();
    await create(entry, 2);
    await world.allSettled(2);
    checkInvariants(world);
  });
});

describe("a chain without base fees", () => {
  // protects [Chains that differ] src/domain/transaction/fees.ts
  it("gets legacy transactions with a gas price if the caller sets no fees", async () => {
    world = new World({ chain: { baseFee: null } });
    const entry = await world.startNode();
    await create(entry, 3, { to: transfer().signer, value: "1" });
    await world.allSettled(3);
    checkInvariants(world);
    expect(world.rows().flatMap(({ attempts }) => attempts.map(({ fees }) => fees.type))).toEqual([
      "legacy",
      "legacy",
      "legacy",
    ]);
  });
});

describe("nodes at different heights behind one URL", () => {
  it.each([1, 3, 10])("are not mistaken for a reorg if their heights differ by %i blocks", async (lag) => {
    world = new World({ settings: { resubmitIntervalMs: 3_000, nonceStateTimeoutMs: 0, confirmations: 3 } });
    world.chain.mine(20);
    const entry = await world.startNode();
    entry.faults.alternate(lag);
    for (let i = 0; i < 5; i++) {
      await create(entry, 3);
      await world.clock.advance(1_100);
    }
    await world.allSettled(15, 300_000);
    checkInvariants(world);
    const events = world.rows().flatMap(({ history }) => history.map(({ event }) => event));
    expect(events).not.toContain("withdraw");
    expect(events).not.toContain("reorg");
    expect(world.rows().every(({ attempts }) => attempts.length === 1)).toBe(true);
  });

  it("do not prevent transactions from completing if one node has stopped", async () => {
    world = new World({ settings: { confirmations: 2 } });
    world.chain.mine(20);
    const entry = await world.startNode();
    entry.faults.alternate(15);
    await create(entry, 4);
    await world.allSettled(4, 300_000);
    checkInvariants(world);
  });
});
