import { afterEach, describe, expect, it } from "vitest";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

/**
 * Polls once a second instead of four times, so that several simulated minutes without any event are tested in a
 * quarter of the time.
 */
const SLOW_POLLS = { pollIntervalMs: 1_000 };

async function create(entry: WorldNode, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await world.settle(entry.node.api.create(transfer()));
}

/** Starts a node and settles one transaction, so that the node has the lane in memory. Then mining stops. */
async function knownLane(options: ConstructorParameters<typeof World>[0] = {}): Promise<WorldNode> {
  world = new World(options);
  const entry = await world.startNode();
  await create(entry, 1);
  await world.allSettled(1);
  world.holdBlocks();
  return entry;
}

function alerts(entry: WorldNode, code: string): readonly unknown[] {
  return entry.events.filter((event) => event.type === "alert" && event.code === code);
}

/** Our transactions wait at the node; another program's transactions are mined at the same nonces instead. */
async function losesNonces(entry: WorldNode, ours: number, foreign: number): Promise<readonly string[]> {
  await create(entry, ours);
  await world.until(() => world.chain.pool.size === ours);
  const block = world.chain.mineForeign(SIGNER, foreign);
  return block.transactions.map(({ transaction }) => transaction.hash);
}

describe("a nonce that another program used", () => {
  // protects [Another program at the key] src/application/stages/5-receipt/receipt.ts
  it("fails our transaction with the hash of the other transaction", async () => {
    const entry = await knownLane();
    const [foreign] = await losesNonces(entry, 3, 1);
    world.releaseBlocks();
    await world.allSettled(4);
    const [, lost, ...others] = world.rows();
    expect(lost).toMatchObject({ state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 1 });
    expect(lost?.receipt?.txHash).toBe(foreign);
    expect(lost?.attempts.at(-1)).toMatchObject({
      kind: "external",
      foreign: true,
      txHash: foreign,
      rawTransaction: null,
    });
    expect(others.map(({ state, nonce }) => [state, nonce])).toEqual([
      ["CONFIRMED", 2],
      ["CONFIRMED", 3],
    ]);
    const completion = world.database.state.completions.find(({ txId }) => txId === lost?.txId);
    expect(completion).toMatchObject({ state: "FAILED_FINAL", settled: true, txHash: foreign });
    expect(alerts(entry, "EXTERNAL_KEY_USE")).toHaveLength(1);
    expect(world.wire.violations).toEqual([]);
  });

  // protects [Another program at the key] src/application/stages/6-finality/finality.ts
  it("fails our transaction only once the other transaction has all confirmations", async () => {
    const entry = await knownLane();
    await losesNonces(entry, 1, 1);
    await world.until(() => world.rows()[1]?.subState === "MINED");
    await world.clock.advance(30_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", subState: "MINED" });
    world.chain.mine(2);
    await world.allSettled(2);
  });

  it("is matched to the right transaction in a block with several candidates", async () => {
    const entry = await knownLane();
    const foreign = await losesNonces(entry, 5, 3);
    world.releaseBlocks();
    await world.allSettled(6);
    expect(
      world
        .rows()
        .slice(1, 4)
        .map(({ receipt }) => receipt?.txHash),
    ).toEqual(foreign);
    expect(
      world
        .rows()
        .slice(4)
        .every(({ state }) => state === "CONFIRMED"),
    ).toBe(true);
  });

  it("is stored even if the chain becomes unreachable before the next search", async () => {
    const entry = await knownLane();
    const [foreign] = await losesNonces(entry, 2, 2);
    const second = world.rows()[2]?.attempts[0]?.txHash;
    const receipts = entry.rpc.receipts.bind(entry.rpc);
    Object.assign(entry.rpc, {
      receipts: async (hashes: Parameters<typeof receipts>[0]) => {
        if (hashes.length === 1 && hashes[0] === second) throw new ChainUnavailable("silent");
        return receipts(hashes);
      },
    });
    await world.clock.advance(120_000);
    expect(world.rows().map(({ subState, receipt }) => [subState, receipt?.txHash])).toMatchObject([
      [null, expect.any(String)],
      ["MINED", foreign],
      ["STALE", undefined],
    ]);
  });

  it.each([
    ["by the node's own look-up", (faults: Faults) => faults.lookUpByNonce()],
    ["by counts of old blocks", () => undefined],
    ["by reading block after block if the node is pruned", (faults: Faults) => faults.prune(1)],
    // protects [Another program at the key] src/application/chain/find-sent.ts
    // protects [Keys of the node, other chains, comparison] src/application/chain/find-sent.ts
  ])("is found far back in the chain %s", async (_, ability) => {
    const entry = await knownLane();
    ability(entry.faults);
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    await create(entry, 1);
    const foreign = world.chain.mineForeign(SIGNER).transactions[0]?.transaction.hash;
    world.chain.mine(90);
    await world.clock.advance(1_000);
    expect(world.rows()[1]?.receipt).toBeNull();
    const { keptState } = entry.faults;
    entry.faults.heal();
    entry.faults.prune(keptState);
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", receipt: { txHash: foreign } });
  });

  it.each([
    ["has its state again", (faults: Faults) => faults.heal()],
    ["supports look-ups by sender and nonce", (faults: Faults) => faults.lookUpByNonce()],
    // protects [Another program at the key] src/application/chain/find-sent.ts
  ])("raises an alert until the pruned node %s", async (_, learn) => {
    const entry = await knownLane({ settings: { grayZoneLookback: 10, ...SLOW_POLLS } });
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    await create(entry, 1);
    world.chain.mineForeign(SIGNER);
    world.chain.mine(50);
    entry.faults.prune(1);
    heal();
    await world.until(() => alerts(entry, "NONCE_CONSUMED_UNSEEN").length > 0);
    await world.clock.advance(600_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    const code = "NONCE_CONSUMED_UNSEEN";
    const over = () => entry.events.filter((event) => event.type === "alert.resolved" && event.code === code);
    expect([alerts(entry, "NONCE_CONSUMED_UNSEEN").length, over()]).toEqual([1, []]);
    learn(entry.faults);
    await world.allSettled(2, 300_000);
    expect(over()).toMatchObject([{ txId: world.rows()[1]?.txId }]);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY" });
  });

  // protects [Another program at the key] src/application/stages/5-receipt/receipt.ts
  it("is detected by the nonce count alone, without resubmission or reconciliation", async () => {
    const entry = await knownLane({ settings: { resubmitIntervalMs: null, reconciliationIntervalMs: null } });
    const [foreign] = await losesNonces(entry, 1, 1);
    world.releaseBlocks();
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", receipt: { txHash: foreign } });
  });

  it("is free again after a reorg: our transaction is resent and mined", async () => {
    const entry = await knownLane();
    await losesNonces(entry, 1, 1);
    await world.until(() => world.rows()[1]?.subState === "MINED");
    world.chain.reorg(1, { drop: "all", keepInPool: false });
    await world.until(() => world.rows()[1]?.subState === "BROADCAST");
    world.releaseBlocks();
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED", subState: null });
    expect(world.rows()[1]?.receipt?.txHash).toBe(world.rows()[1]?.attempts[0]?.txHash);
  });

  it("can still be used by our transaction after a reorg past finality", async () => {
    const entry = await knownLane();
    await losesNonces(entry, 1, 1);
    world.chain.mine(3);
    await world.allSettled(2);
    world.chain.reorg(4, { drop: "all", keepInPool: false });
    world.releaseBlocks();
    await world.until(() => world.rows()[1]?.state === "CONFIRMED");
    const completions = world.database.state.completions.filter(({ txId }) => txId === world.rows()[1]?.txId);
    expect(completions.map(({ state, subState }) => [state, subState])).toEqual([
      ["FAILED_FINAL", "NONCE_CONSUMED_EXTERNALLY"],
      ["REORGED", "PENDING"],
      ["CONFIRMED", null],
    ]);
    expect(entry.events.some((event) => event.type === "chain.reorg")).toBe(true);
  });
});

/** Alters the receipts that the chain node returns, until the returned function is called. */
function bendReceipts({ rpc }: WorldNode, bend: (hash: string, receipt: Receipt | null) => Receipt | null): () => void {
  const honest = rpc.receipts.bind(rpc);
  rpc.receipts = async (hashes) =>
    (await honest(hashes)).map((receipt, index) => bend(hashes[index] as string, receipt));
  return () => {
    rpc.receipts = honest;
  };
}

const ELSEWHERE = `0x${"ee".repeat(32)}` as const;

describe("a nonce that seems to be used by another program", () => {
  it.each<[string, (receipt: Receipt | null) => Receipt | null]>([
    ["has no receipt", () => null],
    ["is in a block of another branch", (receipt) => receipt && { ...receipt, blockHash: ELSEWHERE }],
    // protects [Another program at the key] src/application/chain/find-sent.ts
  ])("does not fail our transaction while the other transaction %s", async (_, bend) => {
    const entry = await knownLane();
    const [foreign] = await losesNonces(entry, 1, 1);
    const straighten = bendReceipts(entry, (hash, receipt) => (hash === foreign ? bend(receipt) : receipt));
    world.chain.mine(10);
    await world.clock.advance(120_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    expect(world.rows()[1]?.attempts).toHaveLength(1);
    expect(alerts(entry, "NONCE_CONSUMED_UNSEEN").length).toBeGreaterThan(0);
    expect(alerts(entry, "PASS_FAILED")).toEqual([]);
    straighten();
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", receipt: { txHash: foreign } });
  });

  // protects [Another program at the key] src/application/stages/5-receipt/receipt.ts
  it("does not fail our transaction while our receipt is also reported", async () => {
    const entry = await knownLane();
    const [foreign] = await losesNonces(entry, 1, 1);
    const ours = world.rows()[1]?.attempts[0]?.txHash;
    const nothing = { gasUsed: 0n, effectiveGasPrice: null, contractAddress: null, transactionIndex: 0 } as const;
    const phantom = { blockNumber: 4, blockHash: ELSEWHERE, status: "success", ...nothing } as const;
    const straighten = bendReceipts(entry, (hash, receipt) =>
      typeof ours === "string" && hash === ours ? { ...phantom, txHash: ours } : receipt,
    );
    world.chain.mine(10);
    await world.clock.advance(120_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    expect(alerts(entry, "EXTERNAL_KEY_USE")).toEqual([]);
    straighten();
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]?.receipt?.txHash).toBe(foreign);
  });

  it("does not fail our transaction while receipts cannot be read", async () => {
    const entry = await knownLane({ settings: SLOW_POLLS });
    await create(entry, 2);
    await world.until(() => world.chain.pool.size === 2);
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionReceipt" });
    world.chain.mine(10);
    await world.clock.advance(300_000);
    const waiting = world.rows().slice(1);
    expect(
      waiting.every(
        ({ state, receipt, attempts }) => state === "TRACKING" && receipt === null && attempts.length === 1,
      ),
    ).toBe(true);
    entry.faults.heal();
    await world.allSettled(3);
    expect(world.rows().every(({ state, attempts }) => state === "CONFIRMED" && attempts.length === 1)).toBe(true);
    checkInvariants(world);
  });

  it("does not fail our transaction if the endpoint's nonce count is false", async () => {
    const entry = await knownLane({ settings: SLOW_POLLS });
    await create(entry, 1);
    await world.until(() => world.chain.pool.size === 1);
    entry.faults.lieAboutNonce((honest) => honest + 40);
    world.chain.dropAllTransactions();
    await world.clock.advance(600_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    expect(alerts(entry, "EXTERNAL_KEY_USE")).toEqual([]);
    entry.faults.heal();
    world.releaseBlocks();
    await world.allSettled(2, 600_000);
    expect(world.rows()[1]?.state).toBe("CONFIRMED");
  });

  it("is recognised as used by our own transaction", async () => {
    const entry = await knownLane();
    entry.faults.inject({ kind: "loseReply" }, { method: "eth_sendRawTransaction", times: 1 });
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    await create(entry, 1);
    world.chain.mine(5);
    await world.clock.advance(5_000);
    heal();
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED" });
    expect(world.rows()[1]?.attempts).toHaveLength(1);
  });

  it("does not fail our transaction while the other transaction is unmined", async () => {
    const entry = await knownLane();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction", times: 3 });
    await create(entry, 1);
    const foreign = world.chain.injectForeign(SIGNER);
    await world.clock.advance(120_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    world.chain.dropTransaction(foreign.hash);
    world.releaseBlocks();
    await world.allSettled(2, 600_000);
    expect(world.rows()[1]?.state).toBe("CONFIRMED");
  });
});

describe("the use of a nonce by another program", () => {
  it("is found by the next owner if the previous owner crashed before it searched", async () => {
    const entry = await knownLane();
    await losesNonces(entry, 1, 1);
    world.crash(entry);
    const next = await world.startNode();
    world.releaseBlocks();
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY" });
    expect(alerts(next, "EXTERNAL_KEY_USE")).toHaveLength(1);
  });

  // protects [Another program at the key] src/application/stages/5-receipt/receipt.ts
  it("is withdrawn if the transaction with that nonce has another signer", async () => {
    world = new World();
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: new Faults() } });
    await create(entry, 1);
    await world.allSettled(1);
    world.holdBlocks();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    await create(entry, 1);
    world.chain.mineForeign(`0x${"0d".repeat(20)}`);
    const honest = entry.rpc.sentInBlock.bind(entry.rpc);
    const [stranger] = (await honest(`0x${"0d".repeat(20)}`, world.chain.head.number)) ?? [];
    if (stranger === undefined) throw new Error("nothing was mined");
    entry.rpc.sentInBlock = async () => [{ ...stranger, from: SIGNER, nonce: 1 }];
    entry.faults.lieAboutNonce((count) => count + 1);
    await world.until(() => world.rows()[1]?.subState === "MINED");
    entry.faults.lieAboutNonce((count) => count);
    entry.rpc.sentInBlock = honest;
    world.chain.mine(5);
    await world.until(() => world.rows()[1]?.subState !== "MINED");
    await world.clock.advance(180_000);
    const steps = () => world.rows()[1]?.history.filter(({ event }) => event === "mine") ?? [];
    expect(steps()).toHaveLength(1);
    heal();
    world.releaseBlocks();
    await world.allSettled(2, 600_000);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED", nonce: 1 });
  });

  it("is final only if a second endpoint shows the same block", async () => {
    world = new World();
    const lagging = new Faults();
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: lagging } });
    await create(entry, 1);
    await world.allSettled(1);
    world.holdBlocks();
    await losesNonces(entry, 1, 1);
    lagging.pinHead(world.chain.head.number - 1);
    world.chain.mine(5);
    await world.clock.advance(90_000);
    expect(world.rows()[1]).toMatchObject({ subState: "MINED" });
    lagging.pinHead(null);
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY" });
  });
});
