import { afterEach, describe, expect, it } from "vitest";
import { checkInvariants } from "../../support/invariants.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

/** Number of blocks to mine: more than a node reads below the chain's newest block when it starts. */
const LONG = 120;

let world: World;
afterEach(() => world.close());

async function create(entry: WorldNode, count: number): Promise<void> {
  await world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(transfer()))));
}

/** Starts a new node after the crashed node's lease has expired. */
async function heir(): Promise<WorldNode> {
  await world.clock.advance(11_000);
  return world.startNode();
}

function words(): readonly string[] {
  return world.database.state.completions.map(({ state }) => state);
}

/** True if a request is for a block older than all blocks that a newly started node has in memory. */
const belowWindow = (params: readonly unknown[]): boolean =>
  params.some((height) => typeof height === "number" && height < world.chain.head.number - LONG + 20);

describe("after a time without a running node,", () => {
  it("receipts in blocks that no node read are found by transaction hash", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 3);
    await world.until(() => world.chain.witness.length === 3);
    world.crash(first);
    world.chain.mine(LONG);
    await heir();
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("receipts from a branch that a reorg removed are not used", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 3);
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    world.crash(first);
    const depth = world.chain.head.number - (world.rows()[0]?.receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all", keepInPool: false, newBlocks: LONG });
    const second = await heir();
    await world.allSettled(3);
    checkInvariants(world);
    expect(second.events).toContainEqual(expect.objectContaining({ type: "tx.transition", event: "withdraw" }));
    expect(words()).toEqual(["CONFIRMED", "CONFIRMED", "CONFIRMED"]);
  });

  it("the next owner reports REORGED if a reorg dropped a confirmed transaction", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 2);
    await world.allSettled(2);
    world.crash(first);
    const depth = world.chain.head.number - (world.rows()[0]?.receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all", keepInPool: false, newBlocks: LONG });
    await heir();
    await world.until(() => words().length === 6);
    checkInvariants(world);
    expect(words()).toEqual(["CONFIRMED", "CONFIRMED", "REORGED", "REORGED", "CONFIRMED", "CONFIRMED"]);
  });

  it("the check for reorgs does not end before the old blocks can be read", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 2);
    await world.allSettled(2);
    world.crash(first);
    const depth = world.chain.head.number - (world.rows()[0]?.receipt?.blockNumber ?? 0) + 1;
    world.chain.reorg(depth, { drop: "all", keepInPool: false, newBlocks: LONG });
    await world.clock.advance(11_000);
    const second = world.addNode();
    const heal = second.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockByNumber", when: belowWindow });
    await world.settle(second.node.start());
    await world.clock.advance(20_000);
    expect(words()).toEqual(["CONFIRMED", "CONFIRMED"]);
    expect(world.rows().every(({ live }) => live)).toBe(true);
    heal();
    await world.until(() => words().length === 6);
    checkInvariants(world);
  });

  it("the check for reorgs ends once the outcome is confirmed again", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 2);
    await world.allSettled(2);
    world.crash(first);
    world.chain.mine(LONG);
    const second = await heir();
    await world.until(() => world.rows().every(({ live }) => !live));
    expect(words()).toEqual(["CONFIRMED", "CONFIRMED"]);
    const asked: unknown[] = [];
    second.store.loadWatched = async (...parameters) => {
      asked.push(parameters);
      return [];
    };
    await world.clock.advance(10_000);
    expect(asked).toEqual([]);
  });
});

describe("blocks missed by a running node", () => {
  it("cause a lookup of all pending transactions by hash", async () => {
    world = new World({
      settings: { blockQueueLength: 1, staleReceiptTimeoutMs: 3_600_000, resubmitIntervalMs: null },
    });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 2);
    await world.until(() => world.chain.witness.length === 2);
    await world.clock.advance(1_000);
    const hashes = world.chain.witness.map(({ hash }) => hash);
    entry.store.pause(); // The lane's work on the next block now waits for its commit, while the node continues to read new blocks.
    world.chain.dropTransaction(hashes[1] as `0x${string}`);
    world.chain.mine();
    await world.clock.advance(500);
    world.chain.submit(world.chain.witness[1]?.raw as `0x${string}`);
    for (let block = 0; block < 3; block++) {
      world.chain.mine();
      await world.clock.advance(300);
    }
    entry.store.resume();
    world.releaseBlocks();
    await world.allSettled(2, 20_000);
    checkInvariants(world);
  });

  it("cause a new broadcast of transactions that a deep reorg dropped", async () => {
    world = new World({ settings: { confirmations: 400, staleReceiptTimeoutMs: 3_600_000 } });
    const entry = await world.startNode();
    world.chain.mine(5);
    await create(entry, 2);
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    world.chain.reorg(world.chain.head.number - 4, { drop: "all", keepInPool: false, newBlocks: 30 });
    await world.until(() => world.rows().every(({ history }) => history.some(({ event }) => event === "withdraw")));
    world.chain.mine(420);
    await world.allSettled(2);
    checkInvariants(world);
  });
});

describe("block receipts that the endpoint cannot return", () => {
  it("are fetched by block when the endpoint responds again", async () => {
    world = new World({ settings: { staleReceiptTimeoutMs: 3_600_000, resubmitIntervalMs: null } });
    const entry = await world.startNode();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts", times: 3 });
    await create(entry, 2);
    await world.allSettled(2, 20_000);
    checkInvariants(world);
  });

  it("are no longer requested if a reorg removed the block", async () => {
    world = new World({ settings: { staleReceiptTimeoutMs: 3_600_000 } });
    const entry = await world.startNode();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    await create(entry, 2);
    await world.until(() => entry.node.gauges().receiptBacklog === 1);
    world.chain.reorg(3, { drop: "all", keepInPool: true });
    heal();
    await world.allSettled(2, 30_000);
    checkInvariants(world);
    expect(entry.node.gauges().receiptBacklog).toBe(0);
  });
});
