import { afterEach, describe, expect, it } from "vitest";
import { linearRepricing, marketRepricing } from "../../../src/domain/fees/repricing.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const GWEI = 1_000_000_000n;
const INTERVAL_MS = 2_000;
const STUCK_AFTER_MS = 20_000;

function patientWorld(options: WorldOptions = {}): World {
  return new World({
    ...options,
    settings: { resubmitIntervalMs: INTERVAL_MS, stuckAfterMs: STUCK_AFTER_MS, repricing: null, ...options.settings },
  });
}

async function create(entry: WorldNode, count: number): Promise<void> {
  await world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(transfer()))));
}

const states = (): readonly string[] => world.rows().map(({ state, subState }) => `${state}/${subState ?? "-"}`);
const feed = (): readonly string[] =>
  world.database.state.completions.map(({ state, settled }) => `${state} ${settled}`);
const sends = (nonce: number): number => world.chain.witness.filter((entry) => entry.nonce === nonce).length;

describe("a transaction that is not mined in time", () => {
  // protects [Sent again, priced again, stuck] src/application/loops/tend.ts
  it("is STALE after the resubmit interval", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 10_000_000 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 2);
    await world.clock.advance(INTERVAL_MS - 500);
    expect(states()).toEqual(["TRACKING/BROADCAST", "TRACKING/BROADCAST"]);
    await world.clock.advance(1_000);
    expect(states()).toEqual(["TRACKING/STALE", "TRACKING/STALE"]);
    await world.clock.advance(40 * INTERVAL_MS);
    expect(states()).toEqual(["TRACKING/STALE", "TRACKING/STALE"]);
    const [row] = world.rows();
    expect(row?.submitAttempts).toBeGreaterThan(20);
    expect(row?.history.map(({ event }) => event)).toEqual(["allocate", "sign", "broadcast", "stale", "resubmit"]);
    world.releaseBlocks();
    await world.allSettled(2);
    checkInvariants(world);
  });

  it("is reported only once as blocking its lane", async () => {
    world = patientWorld({ settings: { repricing: linearRepricing(20) } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 3);
    await world.clock.advance(6 * INTERVAL_MS);
    expect(entry.events.filter(({ type }) => type === "lane.blocked")).toEqual([
      {
        type: "lane.blocked",
        lane: { chainId: world.chain.chainId, signer: SIGNER },
        txId: world.rows()[0]?.txId,
        nonce: 0,
        behind: 2,
      },
    ]);
  });
});

describe("a lane's lowest open transaction that is not mined", () => {
  // protects [Sent again, priced again, stuck] src/application/loops/tend.ts, src/application/detours/another-attempt.ts
  it("becomes STUCK with a reason", async () => {
    world = patientWorld();
    const entry = await world.startNode();
    world.chain.setBaseFee(500n * GWEI);
    await create(entry, 3);
    await world.clock.advance(STUCK_AFTER_MS + 3_000);
    expect(states()).toEqual(["STUCK/-", "TRACKING/STALE", "TRACKING/STALE"]);
    expect(feed()).toEqual(["STUCK false"]);
    const stick = world.rows()[0]?.history.find(({ event }) => event === "stick");
    expect(stick?.reason).toMatch(/^not mined 2[0-9] s after it came to the head of its lane/);
    expect(entry.events).toContainEqual(
      expect.objectContaining({ type: "alert", code: "TX_STUCK", severity: "ERROR" }),
    );
    world.chain.setBaseFee(1n * GWEI);
    await world.allSettled(3);
    expect(feed()).toEqual(["STUCK false", "CONFIRMED true", "CONFIRMED true", "CONFIRMED true"]);
  });

  it("is broadcast less often while it is STUCK", async () => {
    world = patientWorld();
    const first = await world.startNode();
    world.chain.setBaseFee(500n * GWEI);
    await create(first, 1);
    await world.until(() => states()[0] === "STUCK/-");
    await world.clock.advance(INTERVAL_MS);
    const before = sends(0);
    await world.clock.advance(20 * INTERVAL_MS);
    expect(sends(0) - before).toBeGreaterThan(0);
    expect(sends(0) - before).toBeLessThan(4);
    world.crash(first);
    await world.startNode();
    await world.clock.advance(40 * INTERVAL_MS);
    expect(states()).toEqual(["STUCK/-"]);
    world.chain.dropAllTransactions();
    world.chain.setBaseFee(1n * GWEI);
    await world.allSettled(1);
    expect(feed()).toEqual(["STUCK false", "CONFIRMED true"]);
  });

  it("keeps its age when another node takes over", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 60_000 } });
    const first = await world.startNode();
    world.chain.setBaseFee(500n * GWEI);
    await create(first, 1);
    await world.clock.advance(50_000);
    world.crash(first);
    await world.startNode();
    const createdMs = world.rows()[0]?.createdAt.getTime() ?? 0;
    await world.until(() => states()[0] === "STUCK/-");
    expect(world.clock.now().getTime() - createdMs).toBeLessThan(70_000);
  });

  // protects [Sent again, priced again, stuck] src/application/loops/tend.ts
  it("becomes STUCK no earlier than one resubmit interval after a takeover", async () => {
    world = patientWorld({ settings: { resubmitIntervalMs: 15_000 } });
    const first = await world.startNode();
    world.holdBlocks();
    await create(first, 1);
    await world.until(() => states()[0] === "TRACKING/BROADCAST");
    world.crash(first);
    await world.clock.advance(10 * STUCK_AFTER_MS);
    await world.startNode();
    await world.clock.advance(14_000);
    expect(feed()).toEqual([]);
    await world.until(() => states()[0] === "STUCK/-");
  });

  it("becomes STUCK by its time as the lowest, not by its total age", async () => {
    world = patientWorld({ settings: { resubmitIntervalMs: null } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 2);
    await world.until(() => states()[0] === "STUCK/-");
    const [head, follower] = world.rows();
    world.chain.dropTransaction(follower?.attempts[0]?.txHash as `0x${string}`);
    world.releaseBlocks();
    await world.until(() => world.rows()[0]?.state === "CONFIRMED");
    await world.clock.advance(STUCK_AFTER_MS - 8_000);
    expect(states()[1]).toBe("TRACKING/BROADCAST");
    await world.until(() => states()[1] === "STUCK/-");
    expect(head?.nonce).toBe(0);
  });

  // protects [Explained, and said aloud] src/application/loops/tend.ts, src/domain/pace/lane-pace.ts
  it("becomes STUCK after the configured number of broadcasts", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 10_000_000, stuckAfterResubmits: 5 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 2);
    await world.until(() => states()[0] === "STUCK/-");
    const [head, follower] = world.rows();
    expect(head?.submitAttempts).toBeGreaterThanOrEqual(6);
    expect(head?.submitAttempts).toBeLessThan(9);
    const stick = head?.history.find(({ event }) => event === "stick");
    expect(stick?.reason).toMatch(/it was sent again 5 times since a node took it, and no block has it/);
    const codes = entry.events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
    expect(codes).toEqual(["RESENT_OFTEN", "TX_STUCK"]);
    const { causes, summary } = await world.settle(entry.node.api.explain(head?.txId ?? ""));
    expect(causes.map(({ code }) => code)).toEqual(["RESENT_OFTEN", "STUCK"]);
    expect(summary).toMatch(
      /^Nonce 0 is stuck: it was sent again \d times.*one nonce waits behind it\. What helps: offer more/,
    );
    // The transactions behind the lane's lowest unmined one were sent just as often. For each of them, counting towards
    // STUCK begins only when it becomes the lowest.
    expect(follower?.submitAttempts).toBeGreaterThan(3);
    world.chain.dropTransaction(follower?.attempts[0]?.txHash as `0x${string}`);
    world.chain.mine();
    world.releaseBlocks();
    await world.allSettled(2);
    expect(feed()).toEqual(["STUCK false", "CONFIRMED true", "CONFIRMED true"]);
    checkInvariants(world);
  });

  // protects [Explained, and said aloud] src/application/detours/another-attempt.ts
  it("does not become STUCK right after an operator's resubmit", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 10_000_000, stuckAfterResubmits: 3 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 1);
    await world.until(() => states()[0] === "STUCK/-");
    const [{ txId, submitAttempts } = { txId: "", submitAttempts: 0 }] = world.rows();
    const actionRequest = { action: "resubmit", txId, request: { reason: "r" }, actor: "operator:a" } as const;
    await world.settle(entry.node.api.act(actionRequest));
    await world.clock.advance(INTERVAL_MS + 500);
    expect(states()[0]).not.toBe("STUCK/-");
    await world.until(() => states()[0] === "STUCK/-");
    expect((world.rows()[0]?.submitAttempts ?? 0) - submitAttempts).toBeGreaterThanOrEqual(3);
  });

  // protects [Explained, and said aloud] src/application/loops/tend.ts, src/domain/pace/lane-pace.ts
  it("does not become STUCK because of broadcasts that no node accepted", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 10_000_000, stuckAfterResubmits: 3 } });
    const entry = await world.startNode();
    const back = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    world.holdBlocks();
    await create(entry, 1);
    await world.until(() => (world.rows()[0]?.submitAttempts ?? 0) > 6, 600_000);
    expect(feed()).toEqual([]);
    back();
    await world.until(() => states()[0] === "TRACKING/BROADCAST");
    const silent = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionReceipt" });
    await world.clock.advance(20 * INTERVAL_MS);
    silent();
    world.releaseBlocks();
    await world.allSettled(1);
  });

  it("becomes STUCK with a reason that names the fee ceiling", async () => {
    world = patientWorld({
      settings: { maxFeeWei: 21n * GWEI, repricing: marketRepricing },
    });
    const entry = await world.startNode();
    world.chain.setBaseFee(500n * GWEI);
    await create(entry, 1);
    await world.until(() => states()[0] === "STUCK/-");
    const stick = world.rows()[0]?.history.find(({ event }) => event === "stick");
    expect(stick?.reason).toContain("has reached the ceiling of 21000000000 wei per gas");
  });

  it.each([
    ["and a repeated send is answered with nonce too low", INTERVAL_MS],
    ["and nothing is sent again", null],
    // protects [Sent again, priced again, stuck] src/application/loops/tend.ts
  ])("is not STUCK while its outcome is unknown, %s", async (_, resubmitIntervalMs) => {
    world = patientWorld({ settings: { resubmitIntervalMs } });
    const entry = await world.startNode();
    await create(entry, 1);
    await world.until(() => states()[0] === "TRACKING/BROADCAST");
    const heal = [
      entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" }),
      entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionReceipt" }),
    ];
    await world.clock.advance(3 * STUCK_AFTER_MS);
    expect(feed()).toEqual([]);
    for (const each of heal) each();
    await world.allSettled(1);
    expect(feed()).toEqual(["CONFIRMED true"]);
    checkInvariants(world);
  });

  it("is no longer STUCK after a new attempt", async () => {
    world = patientWorld({ settings: { repricing: linearRepricing(20), maxAttempts: 2, resubmitIntervalMs: 30_000 } });
    const entry = await world.startNode();
    world.chain.setBaseFee(500n * GWEI);
    await create(entry, 1);
    await world.until(() => states()[0] === "STUCK/-");
    await world.until(() => states()[0] !== "STUCK/-", 400_000);
    expect(world.rows()[0]?.attempts.length).toBe(2);
    await world.clock.advance(STUCK_AFTER_MS - 5_000);
    expect(states()[0]).toMatch(/^TRACKING/);
    await world.until(() => states()[0] === "STUCK/-");
    expect(feed()).toEqual(["STUCK false", "STUCK false"]);
  });
});

describe("a signer without funds", () => {
  it("raises one alert", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 10_000_000 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 3);
    await world.until(() => states().every((state) => state === "TRACKING/BROADCAST"));
    world.chain.dropAllTransactions();
    world.chain.setBalance(SIGNER, 0n);
    await world.clock.advance(120_000);
    const alerts = entry.events.filter((event) => event.type === "alert" && event.code === "INSUFFICIENT_FUNDS");
    expect(alerts.length).toBe(1);
    world.chain.setBalance(SIGNER, 10n ** 20n);
    world.releaseBlocks();
    await world.allSettled(3, 300_000);
    checkInvariants(world);
  });
});

describe("a transaction that a node refuses as impossible", () => {
  it("raises one alert at the second refusal", async () => {
    world = patientWorld({ settings: { stuckAfterMs: 10_000_000 } });
    const entry = await world.startNode();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    await create(entry, 1);
    world.chain.setBlockGasLimit(20_000n);
    heal();
    const refusals = () => entry.events.filter((event) => event.type === "alert" && event.code === "TX_REFUSED").length;
    await world.until(() => sends(0) === 1);
    expect(refusals()).toBe(0);
    await world.until(() => refusals() === 1);
    expect(sends(0)).toBe(2);
    await world.clock.advance(60_000);
    expect(refusals()).toBe(1);
    world.chain.setBlockGasLimit(30_000_000n);
    await world.allSettled(1, 600_000);
    checkInvariants(world);
  });
});
