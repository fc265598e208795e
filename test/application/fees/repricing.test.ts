import { afterEach, describe, expect, it } from "vitest";
import { linearRepricing } from "../../../src/domain/fees/repricing.ts";
import type { FeeMarket } from "../../../src/domain/transaction/fees.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { GETH_POOL } from "../../doubles/simulated-chain/pool.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const GWEI = 1_000_000_000n;
const INTERVAL_MS = 5_000;

function busyWorld(options: WorldOptions = {}): World {
  return new World({
    ...options,
    settings: { resubmitIntervalMs: INTERVAL_MS, ...options.settings },
    chain: { pool: GETH_POOL, ...options.chain },
  });
}

async function create(entry: WorldNode, count: number, payload = {}): Promise<void> {
  const request = transfer().payload as Record<string, unknown>;
  const calls = Array.from({ length: count }, () =>
    entry.node.api.create(transfer({ payload: { ...request, ...payload } })),
  );
  await world.settle(Promise.all(calls));
}

function alerts(entry: WorldNode): readonly string[] {
  return entry.events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
}

function offers(row: TransactionRow | undefined): readonly (readonly [bigint, bigint])[] {
  return (row?.attempts ?? []).map(({ fees }) =>
    fees.type === "eip1559" ? [fees.maxFeePerGas, fees.maxPriorityFeePerGas] : [fees.gasPrice, fees.gasPrice],
  );
}

function events(row: TransactionRow | undefined): readonly string[] {
  return (row?.history ?? []).map(({ event }) => event);
}

describe("a market fee above the fee of sent transactions", () => {
  // protects [Sent again, priced again, stuck] src/domain/fees/repricing.ts
  it("causes repricing in nonce order", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 4);
    await world.allSettled(4);
    checkInvariants(world);
    for (const row of world.rows()) {
      expect(row.attempts.map(({ kind }) => kind)).toEqual(["initial", "reprice"]);
      const [[cap, tip], [newCap, newTip]] = offers(row) as [[bigint, bigint], [bigint, bigint]];
      expect(newCap * 10n).toBeGreaterThanOrEqual(cap * 11n);
      expect(newTip * 10n).toBeGreaterThanOrEqual(tip * 11n);
      expect(newCap).toBeLessThanOrEqual(cap * 5n);
      expect(events(row)).toEqual(expect.arrayContaining(["stale", "reprice"]));
    }
    const order = entry.events.flatMap((event) =>
      event.type === "tx.transition" && event.event === "reprice" ? [event.nonce] : [],
    );
    expect(order).toEqual([0, 1, 2, 3]);
  });

  it("causes no repricing before the resubmit interval", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 2);
    await world.clock.advance(INTERVAL_MS - 500);
    expect(world.rows().map(({ attempts }) => attempts.length)).toEqual([1, 1]);
  });

  // protects [Sent again, priced again, stuck] src/application/loops/tend.ts, src/application/lane/owned-lane.ts
  it("causes no repricing of a transaction behind a missing nonce", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    entry.faults.lieAboutNonce(() => 7);
    await create(entry, 1);
    entry.faults.lieAboutNonce(null);
    world.chain.setBaseFee(50n * GWEI);
    await world.clock.advance(10 * INTERVAL_MS);
    const [row] = world.rows();
    expect(row?.nonce).toBe(7);
    expect(row?.attempts.length).toBe(1);
    expect(row?.submitAttempts).toBeGreaterThan(5);
  });

  it("causes no repricing if repricing is disabled", async () => {
    world = busyWorld({ settings: { repricing: null } });
    const entry = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 1);
    await world.clock.advance(4 * INTERVAL_MS);
    expect(world.rows()[0]).toMatchObject({ state: "TRACKING", subState: "STALE", attempts: [{}] });
    expect(world.rows()[0]?.submitAttempts).toBeGreaterThan(2);
    world.chain.setBaseFee(1n * GWEI);
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Sent again, priced again, stuck] src/application/lane/owned-lane.ts
  it("may fall again and let the older, cheaper attempt be mined", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 1);
    world.chain.setBaseFee(500n * GWEI);
    await world.until(() => (world.rows()[0]?.attempts.length ?? 0) === 2);
    await world.until(() => (world.rows()[0]?.acceptedOrdinal ?? 0) === 2);
    const [first] = world.rows()[0]?.attempts ?? [];
    world.chain.setBaseFee(1n * GWEI);
    world.chain.dropAllTransactions();
    world.chain.reorg(1, { include: [first?.rawTransaction as `0x${string}`] });
    await world.allSettled(1);
    checkInvariants(world);
    expect(world.rows()[0]?.receipt?.txHash).toBe(first?.txHash);
  });

  it("causes repricing of legacy transactions on a chain without base fees", async () => {
    world = busyWorld({ chain: { baseFee: null, minimumTip: 3n * GWEI } });
    const entry = await world.startNode();
    await create(entry, 2, { maxFeePerGas: undefined, maxPriorityFeePerGas: undefined, gasPrice: String(2n * GWEI) });
    await world.allSettled(2);
    checkInvariants(world);
    for (const row of world.rows()) {
      expect(row.attempts.length).toBeGreaterThan(1);
      expect(row.attempts.every(({ fees }) => fees.type === "legacy")).toBe(true);
    }
  });
});

describe("repricing with two endpoints that report different fees", () => {
  const LOW: FeeMarket = { baseFees: [7n], priorityFees: [0n], gasPrice: 7n };
  const UNPRICED = { maxFeePerGas: undefined, maxPriorityFeePerGas: undefined, gas: "21000" };

  /**
   * Two endpoints with different fee markets: one reports the lower price, the other the higher one. All blocks require
   * the higher one.
   */
  async function differing(market: FeeMarket, chain: WorldOptions["chain"] = {}): Promise<WorldNode> {
    world = busyWorld({ chain, settings: { resubmitIntervalMs: 60_000 } });
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: new Faults() } });
    entry.rpc.feeMarket = async () => market;
    return entry;
  }

  // protects [Sent again, priced again, stuck] src/domain/fees/climbing.ts, src/application/loops/tend.ts
  it("offers the lower fee first", async () => {
    const dearer = { baseFee: 50n * GWEI, tip: GWEI, gasPrice: 51n * GWEI };
    const entry = await differing({ ...LOW, dearer });
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 1, UNPRICED);
    await world.until(() => world.rows()[0]?.acceptedOrdinal === 1);
    const sentAt = world.chain.head.number;
    await world.until(() => (world.rows()[0]?.receipt ?? null) !== null);
    expect((world.rows()[0]?.receipt?.blockNumber ?? 0) - sentAt).toBeLessThanOrEqual(10);
    const caps = offers(world.rows()[0]).map(([cap]) => cap);
    expect(caps.length).toBeLessThanOrEqual(4);
    expect(caps[0]).toBe(14n);
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("raises the fee gradually if a node refuses it as underpriced", async () => {
    const dearer = { baseFee: 7n, tip: 3n * GWEI, gasPrice: 3n * GWEI };
    const entry = await differing({ ...LOW, agreed: true, dearer }, { minimumTip: 2n * GWEI });
    await create(entry, 1, UNPRICED);
    await world.allSettled(1);
    checkInvariants(world);
    expect(offers(world.rows()[0]).length).toBeLessThanOrEqual(4);
  });

  // protects [Sent again, priced again, stuck] src/application/chain/disputes.ts, src/application/queries/node-reports.ts
  it("raises one alert per minute", async () => {
    const disputed = ["a asks 7 wei for a unit of gas", "b asks 900 wei for a unit of gas"];
    const entry = await differing({ ...LOW, disputed });
    world.holdBlocks();
    await create(entry, 2, UNPRICED);
    expect(alerts(entry).filter((code) => code === "RPC_DISAGREES")).toHaveLength(1);
    const { api } = entry.node;
    const attention = async () => (await world.settle(api.attention({}))).items.map(({ code }) => code);
    expect(await attention()).toContain("RPC_DISAGREES");
    const [row] = world.rows();
    const explained = async () => (await world.settle(api.explain(row?.txId ?? ""))).causes.map(({ code }) => code);
    expect(await explained()).toContain("RPC_DISAGREES");
    entry.rpc.feeMarket = async () => LOW;
    world.releaseBlocks();
    await world.clock.advance(10_000);
    await create(entry, 1, UNPRICED);
    expect(await attention()).not.toContain("RPC_DISAGREES");
  });

  it("does not raise the fee if blocks accept the lower fee", async () => {
    const dearer = { baseFee: 50n * GWEI, tip: 900n * GWEI, gasPrice: 950n * GWEI };
    const entry = await differing({
      baseFees: [50n * GWEI],
      priorityFees: [GWEI],
      gasPrice: 51n * GWEI,
      agreed: true,
      dearer,
    });
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 3, UNPRICED);
    await world.allSettled(3);
    for (const row of world.rows()) expect(offers(row)).toEqual([[101n * GWEI, GWEI]]);
  });
});

describe("the limit of automatic repricing", () => {
  // protects [Sent again, priced again, stuck] src/domain/fees/repricing.ts, src/application/detours/reprice.ts, src/domain/fees/ceilings.ts
  it("is five times the first fee by default", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(1_000n * GWEI);
    await create(entry, 1);
    await world.clock.advance(30 * INTERVAL_MS);
    const [row] = world.rows();
    const caps = offers(row).map(([cap]) => cap);
    expect(caps.at(-1)).toBe(100n * GWEI);
    expect(alerts(entry).filter((code) => code === "FEE_CEILING_REACHED")).toEqual(["FEE_CEILING_REACHED"]);
    world.chain.setBaseFee(90n * GWEI);
    await world.allSettled(1);
    checkInvariants(world);
  });

  it("is the configured maximum fee, if there is one", async () => {
    world = busyWorld({ settings: { maxFeeWei: 30n * GWEI } });
    const entry = await world.startNode();
    world.chain.setBaseFee(1_000n * GWEI);
    await create(entry, 1);
    await world.clock.advance(30 * INTERVAL_MS);
    const caps = offers(world.rows()[0]).map(([cap]) => cap);
    expect(caps.every((cap) => cap <= 30n * GWEI)).toBe(true);
  });

  // protects [Sent again, priced again, stuck] src/application/detours/reprice.ts
  it("may be a number of attempts", async () => {
    world = busyWorld({ settings: { maxAttempts: 3, repricing: linearRepricing(20) } });
    const entry = await world.startNode();
    world.chain.setBaseFee(90n * GWEI);
    await create(entry, 1);
    await world.clock.advance(20 * INTERVAL_MS);
    expect(world.rows()[0]?.attempts.length).toBe(3);
    expect(alerts(entry).filter((code) => code === "MAX_ATTEMPTS_REACHED").length).toBe(1);
    expect(world.rows()[0]?.submitAttempts).toBeGreaterThan(10);
    world.chain.setBaseFee(1n * GWEI);
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("a chain node's response `underpriced`", () => {
  it("causes one attempt with a higher fee, not a loop", async () => {
    world = busyWorld({ chain: { refuseUnderBaseFee: true } });
    const entry = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 2);
    await world.allSettled(2);
    checkInvariants(world);
    expect(world.rows()[0]?.attempts.length).toBe(2);
    const refused = entry.events.filter((event) => event.type === "submit.answered" && event.answer === "underpriced");
    expect(refused.length).toBeLessThan(6);
  });

  // protects [Sent again, priced again, stuck] src/application/detours/reprice.ts
  it("raises the fee gradually if another program's transaction has the nonce", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.holdBlocks();
    const foreign = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
    const injected = world.chain.injectForeign(SIGNER, 0);
    Object.assign(injected, foreign);
    await create(entry, 1);
    await world.until(() => (world.rows()[0]?.acceptedOrdinal ?? 0) > 1);
    world.releaseBlocks();
    await world.allSettled(1);
    checkInvariants(world);
    expect(offers(world.rows()[0]).at(-1)?.[0]).toBeLessThanOrEqual(100n * GWEI);
  });

  it("causes no further attempt if it answers a rebroadcast", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(25n * GWEI);
    await create(entry, 1);
    await world.until(() => world.rows()[0]?.subState === "BROADCAST");
    world.holdBlocks();
    const heal = entry.faults.inject({ kind: "loseReply" }, { method: "eth_sendRawTransaction" });
    await world.until(() => world.rows()[0]?.attempts.length === 2);
    world.chain.setBaseFee(60n * GWEI);
    world.chain.mine();
    await world.clock.advance(12 * INTERVAL_MS);
    expect(world.rows()[0]?.attempts.length).toBe(2);
    heal();
    world.releaseBlocks();
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("a reprice that fails", () => {
  it("lets the earlier attempt be broadcast again if funds are missing", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    await create(entry, 1);
    await world.until(() => world.rows()[0]?.subState === "BROADCAST");
    world.holdBlocks();
    world.chain.setBalance(SIGNER, 21_000n * 20n * GWEI + 10n);
    world.chain.setBaseFee(50n * GWEI);
    world.releaseBlocks();
    await world.clock.advance(20 * INTERVAL_MS);
    const [row] = world.rows();
    expect(row?.attempts.length).toBe(2);
    expect(entry.events.filter(({ type }) => type === "lane.stopped")).toEqual([]);
    expect(alerts(entry).filter((code) => code === "INSUFFICIENT_FUNDS").length).toBeGreaterThan(0);
    world.chain.dropAllTransactions();
    world.chain.setBaseFee(1n * GWEI);
    await world.allSettled(1);
    checkInvariants(world);
    expect(world.rows()[0]?.receipt?.txHash).toBe(row?.attempts[0]?.txHash);
  });

  it("lets the earlier attempt be broadcast again if the fee market cannot be read", async () => {
    world = busyWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(entry, 1);
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_feeHistory" });
    await world.clock.advance(4 * INTERVAL_MS);
    expect(world.rows()[0]?.attempts.length).toBe(1);
    expect(world.rows()[0]?.submitAttempts).toBeGreaterThan(2);
    heal();
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("repricing after a takeover", () => {
  it("continues above the last fee that a chain node accepted", async () => {
    world = busyWorld();
    const first = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(first, 2);
    world.chain.setBaseFee(75n * GWEI);
    await world.until(() => world.rows().every(({ acceptedOrdinal }) => acceptedOrdinal === 2));
    world.holdBlocks();
    world.crash(first);
    world.chain.setBaseFee(99n * GWEI);
    await world.startNode();
    world.releaseBlocks();
    await world.allSettled(2, 300_000);
    checkInvariants(world);
    const caps = offers(world.rows()[0]).map(([cap]) => cap);
    expect(caps).toEqual([...caps].sort((a, b) => (a < b ? -1 : 1)));
  });

  // protects [Sent again, priced again, stuck] src/application/stages/5-receipt/receipt.ts
  it("recognises whichever attempt was mined while no node was running", async () => {
    world = busyWorld({ settings: { confirmations: 0 } });
    const first = await world.startNode();
    world.chain.setBaseFee(50n * GWEI);
    await create(first, 1);
    world.chain.setBaseFee(75n * GWEI);
    await world.until(() => world.rows()[0]?.acceptedOrdinal === 2);
    const [cheapest] = world.rows()[0]?.attempts ?? [];
    world.holdBlocks();
    world.crash(first);
    world.chain.setBaseFee(1n * GWEI);
    world.chain.dropAllTransactions();
    world.chain.reorg(1, { include: [cheapest?.rawTransaction as `0x${string}`] });
    world.chain.mine(600);
    await world.startNode();
    await world.allSettled(1);
    expect(world.rows()[0]).toMatchObject({ state: "CONFIRMED", receipt: { txHash: cheapest?.txHash } });
    expect(world.rows()[0]?.attempts).toHaveLength(2);
  });
});
