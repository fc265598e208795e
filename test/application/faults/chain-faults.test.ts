import { afterEach, describe, expect, it } from "vitest";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { BLOCK_MS, CHAIN_ID, POLL_MS, SIGNER, transfer, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const HEAD = "eth_getBlockByNumber";

async function create(node: Awaited<ReturnType<World["startNode"]>>, count: number): Promise<void> {
  await world.settle(Promise.all(Array.from({ length: count }, () => node.node.api.create(transfer()))));
}

describe("the only RPC endpoint of a chain", () => {
  it("is not needed for creates with gas and fees on a known lane", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 1);
    await world.allSettled(1);
    const heal = entry.faults.inject({ kind: "unavailable" });
    await create(entry, 3);
    const bare = transfer({ payload: { to: SIGNER, value: 1 } });
    await expect(world.settle(entry.node.api.create(bare))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await world.clock.advance(60_000);
    expect(world.rows().length).toBe(4);
    const readiness = await world.settle(entry.node.api.readiness());
    expect(readiness).toMatchObject({ ready: false, database: true, chains: [{ reachable: false }] });
    heal();
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("makes a create on a new lane fail with 503 while the endpoint is down", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.faults.inject({ kind: "unavailable" });
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(world.rows()).toEqual([]);
  });

  it.each([
    ["is unreachable: nothing is sent before its chain is checked again", { kind: "unavailable" }, 0],
    ["limits the rate: it counts as up, and sends continue", { kind: "httpError", status: 429 }, 3],
    // protects [Chains that differ] src/application/loops/chain-loop.ts
  ] as const)("stops or permits sends, depending on its fault: it %s", async (_, fault, sent) => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 1);
    await world.allSettled(1);
    const before = world.chain.witness.length;
    const heals = [HEAD, "eth_chainId"].map((method) => entry.faults.inject(fault, { method }));
    await world.clock.advance(5 * POLL_MS);
    await create(entry, 3);
    await world.clock.advance(10 * POLL_MS);
    expect(world.chain.witness.length - before).toBe(sent);
    for (const heal of heals) heal();
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("delays every outcome while it does not return receipts", async () => {
    world = new World();
    const entry = await world.startNode();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    await create(entry, 2);
    await world.clock.advance(20_000);
    expect(world.rows().every(({ state }) => state === "TRACKING")).toBe(true);
    heal();
    await world.allSettled(2);
    checkInvariants(world);
  });
});

describe("reorgs", () => {
  it("only delay the mined transactions that they drop (depth 3)", async () => {
    world = new World({ settings: { confirmations: 5 } });
    const entry = await world.startNode();
    await create(entry, 30);
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    const before = world.rows().map(({ txId, nonce }) => ({ txId, nonce }));
    world.chain.reorg(3, { drop: "all", keepInPool: false });
    await world.until(() => world.rows().some(({ history }) => history.some(({ event }) => event === "withdraw")));
    await world.allSettled(30);
    checkInvariants(world);
    expect(world.rows().map(({ txId, nonce }) => ({ txId, nonce }))).toEqual(before);
    expect(world.database.state.completions.every(({ state }) => state === "CONFIRMED")).toBe(true);
  });

  it.each([1, 10])("let an attempt that reverted in a removed block succeed later (depth %i)", async (depth) => {
    world = new World({ settings: { confirmations: 12 } });
    const entry = await world.startNode();
    let reverts = true;
    world.chain.revertMined(() => reverts);
    await create(entry, 1);
    await world.until(() => world.rows()[0]?.receipt?.status === "reverted");
    world.holdBlocks();
    const height = world.rows()[0]?.receipt?.blockNumber ?? 0;
    world.chain.mine(height + depth - 1 - world.chain.head.number);
    await world.clock.advance(2_000);
    reverts = false;
    world.chain.reorg(depth, { drop: "all", keepInPool: false });
    await world.until(() => world.rows()[0]?.receipt === null);
    expect(world.database.state.completions).toEqual([]);
    world.releaseBlocks();
    await world.allSettled(1);
    expect(world.rows()[0]).toMatchObject({ state: "CONFIRMED", subState: null, receipt: { status: "success" } });
    expect(world.rows()[0]?.attempts).toHaveLength(1);
    expect(world.database.state.completions.map(({ state }) => state)).toEqual(["CONFIRMED"]);
    checkInvariants(world);
  });

  it("cause no new broadcast of a transaction that moves to another block", async () => {
    world = new World({ settings: { confirmations: 6 } });
    const entry = await world.startNode();
    await create(entry, 3);
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    const sent = world.chain.witness.length;
    world.chain.reorg(2);
    await world.allSettled(3);
    checkInvariants(world);
    expect(world.chain.witness.length).toBe(sent);
  });

  it("are reported as REORGED in the feed if they are deeper than finality", async () => {
    world = new World({ settings: { confirmations: 2 } });
    const entry = await world.startNode();
    await create(entry, 4);
    await world.allSettled(4);
    const height = Math.min(...world.rows().map(({ receipt }) => receipt?.blockNumber ?? 0));
    world.chain.reorg(world.chain.head.number - height + 1, { drop: "all", keepInPool: false });
    await world.until(() => world.database.state.completions.length >= 12);
    checkInvariants(world);
    const words = world.database.state.completions.map(({ state, settled }) => `${state} ${settled}`);
    expect(words.slice(4, 8)).toEqual(Array(4).fill("REORGED false"));
    expect(words.slice(8)).toEqual(Array(4).fill("CONFIRMED true"));
    expect(entry.events).toContainEqual(expect.objectContaining({ type: "alert", code: "DEEP_REORG" }));
  });

  it("are reported as a new fork if they affect stored confirmations", async () => {
    world = new World({ settings: { confirmations: 4 } });
    const entry = await world.startNode();
    await create(entry, 1);
    await world.until(() => world.rows().every(({ subState }) => subState === "MINED"));
    await world.clock.advance(1_200);
    world.chain.reorg(1);
    await world.allSettled(1);
    expect(entry.events).toContainEqual(expect.objectContaining({ type: "confirmations.newFork", chainId: CHAIN_ID }));
    await world.until(() => world.rows().every(({ live }) => !live), 120_000);
    checkInvariants(world);
  });
});

describe("the chain's transaction count", () => {
  it("delays the next create if the count is above our next nonce", async () => {
    world = new World({ settings: { nonceStateTimeoutMs: 0 } });
    const entry = await world.startNode();
    await create(entry, 5);
    await world.allSettled(5);
    world.chain.mineForeign(SIGNER, 5);
    const startedMs = world.clock.monotonicMs();
    const created = await world.settle(entry.node.api.create(transfer()));
    expect(created.nonce).toBe(10);
    expect(world.clock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(POLL_MS);
    expect(entry.events).toContainEqual(
      expect.objectContaining({ type: "nonce.drift", cursor: 5, chainCount: 10, proved: true }),
    );
  });

  it("does not move the next nonce if it is too high in a single read", async () => {
    world = new World({ settings: { nonceStateTimeoutMs: 0 } });
    const entry = await world.startNode();
    await create(entry, 2);
    await world.allSettled(2);
    let lies = 1;
    entry.faults.lieAboutNonce((honest) => (lies-- > 0 ? honest + 633 : honest));
    const created = await world.settle(entry.node.api.create(transfer()));
    expect(created.nonce).toBe(2);
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("is not used if endpoints disagree", async () => {
    world = new World({ settings: { nonceStateTimeoutMs: 0 } });
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: new Faults() } });
    entry.faults.lieAboutNonce((honest) => honest + 7);
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(world.rows()).toEqual([]);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/chain/counts.ts, src/application/stages/2-allocate/allocate.ts
  it("is not used if only one of two endpoints reports it", async () => {
    world = new World({ settings: { nonceStateTimeoutMs: 0 } });
    const late = new Faults();
    late.trail(1);
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: late } });
    await create(entry, 3);
    await world.allSettled(3);
    entry.faults.lieAboutNonce((honest) => honest + 40);
    for (let times = 0; times < 5; times++) {
      await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await world.clock.advance(BLOCK_MS);
    }
    entry.faults.lieAboutNonce(null);
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(3);
    await world.allSettled(4);
    checkInvariants(world);
  });

  it("sets a new lane's first nonce even if one endpoint is a block behind", async () => {
    world = new World();
    world.chain.mineForeign(SIGNER, 41);
    const late = new Faults();
    late.trail(1);
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: late } });
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(41);
  });
});

describe("nonce allocation with pending counts", () => {
  const settings = { nonceChainQuery: "pending", nonceStateTimeoutMs: 0 } as const;

  it("skips nonces of other programs' transactions that are found in the mempool", async () => {
    world = new World({ settings });
    world.holdBlocks();
    const entry = await world.startNode();
    world.chain.injectForeign(SIGNER);
    world.chain.injectForeign(SIGNER);
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(2);
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(3);
    world.releaseBlocks();
    await world.allSettled(2);
  });

  it("ignores a pending count if no endpoint can return the pending transactions", async () => {
    world = new World({ settings });
    const entry = await world.startNode();
    entry.faults.lieAboutNonce((honest, _, tag) => (tag === "pending" ? honest + 9 : honest));
    expect((await world.settle(entry.node.api.create(transfer()))).nonce).toBe(0);
    expect(entry.events).toContainEqual(expect.objectContaining({ type: "nonce.drift", chainCount: 9, proved: false }));
    expect(entry.events).not.toContainEqual(expect.objectContaining({ type: "nonce.drift", proved: true }));
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("receipts requested by transaction hash", () => {
  it("are requested right after the send, if that is configured", async () => {
    world = new World({ settings: { fetchReceiptUponEntry: true, staleReceiptTimeoutMs: 3_600_000 } });
    const entry = await world.startNode();
    world.holdBlocks();
    await create(entry, 1);
    await world.until(
      () =>
        entry.events.some(
          (event) => event.type === "receipt.checked" && event.result === "notFound" && event.count === 1,
        ),
      2_000,
    );
    world.releaseBlocks();
    await world.allSettled(1);
  });

  it("find a transaction that block receipts never contained", async () => {
    world = new World({ settings: { staleReceiptTimeoutMs: 5_000 } });
    const entry = await world.startNode();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    await create(entry, 3);
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("show whose transaction was mined with one of our nonces", async () => {
    world = new World({ settings: { staleReceiptTimeoutMs: 3_600_000, resubmitIntervalMs: 4_000 } });
    const entry = await world.startNode();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    await create(entry, 2);
    await world.allSettled(2, 60_000);
    checkInvariants(world);
    expect(entry.events).toContainEqual(expect.objectContaining({ type: "submit.answered", answer: "nonceConsumed" }));
  });
});

describe("finality by tag", () => {
  it("waits for `finalized`, however many blocks follow", async () => {
    world = new World({ settings: { finality: "finalized", confirmations: 0 } });
    const entry = await world.startNode();
    await create(entry, 1);
    await world.until(() => world.rows()[0]?.subState === "MINED");
    const mined = world.rows()[0]?.receipt?.blockNumber as number;
    await world.until(() => world.chain.head.number >= mined + 60);
    expect(world.rows()[0]?.state).toBe("TRACKING");
    await world.allSettled(1);
    expect(world.chain.head.number - mined).toBeGreaterThanOrEqual(64);
  });

  it("waits for a second endpoint that is at another block", async () => {
    world = new World();
    const elsewhere = new Faults();
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: elsewhere } });
    elsewhere.pinHead(world.chain.head.number);
    await create(entry, 1);
    await world.until(() => world.rows()[0]?.subState === "MINED");
    await world.clock.advance(10_000);
    expect(world.rows()[0]?.state).toBe("TRACKING");
    elsewhere.pinHead(null);
    await world.allSettled(1);
    checkInvariants(world);
  });
});
