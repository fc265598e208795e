import { afterEach, describe, expect, it } from "vitest";
import { SimulatedChain } from "../../doubles/simulated-chain/core.ts";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { ROOMY_POOL } from "../../doubles/simulated-chain/pool.ts";
import { senderFromFakeSignature } from "../../doubles/simulated-chain/sender.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const OFTEN = { reconciliationIntervalMs: 10_000 };
const SELDOM = { alertLowBalanceWei: 10n ** 18n, reconciliationIntervalMs: 3_600_000 };
const ONE_SIGNER = { signers: [SIGNER] };

async function create(entry: WorldNode, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await world.settle(entry.node.api.create(transfer()));
}

async function settledLane(options: ConstructorParameters<typeof World>[0] = {}): Promise<WorldNode> {
  world = new World({ ...ONE_SIGNER, ...options, settings: { ...OFTEN, ...options.settings } });
  const entry = await world.startNode();
  await create(entry, 1);
  await world.allSettled(1);
  return entry;
}

function alerts(entry: WorldNode, code: string) {
  return entry.events.filter((event) => event.type === "alert" && event.code === code);
}

function over(entry: WorldNode, code: string) {
  return entry.events.filter((event) => event.type === "alert.resolved" && event.code === code);
}

function resolved(entry: WorldNode): readonly string[] {
  return entry.events.flatMap((event) => (event.type === "alert.resolved" ? [event.code] : []));
}

function results(entry: WorldNode): readonly string[] {
  return entry.events.flatMap((event) => (event.type === "lane.reconciled" ? [event.result] : []));
}

function cursor(): number | null | undefined {
  return [...world.database.state.lanes.values()][0]?.cursor;
}

function anotherChain(overrides: Partial<ConstructorParameters<typeof SimulatedChain>[0]> = {}): SimulatedChain {
  const chain = new SimulatedChain({
    chainId: CHAIN_ID,
    recoverSender: senderFromFakeSignature,
    pool: ROOMY_POOL,
    seed: "another",
    ...overrides,
  });
  chain.mine(5);
  return chain;
}

describe("the comparison of a lane with the chain", () => {
  it("runs at the configured interval", async () => {
    const entry = await settledLane();
    await world.clock.advance(60_000);
    expect(results(entry).length).toBeGreaterThanOrEqual(5);
    expect(new Set(results(entry))).toEqual(new Set(["agreed"]));
    const balances = entry.events.filter((event) => event.type === "signer.balance");
    expect(balances.at(-1)).toMatchObject({ balance: world.chain.account(SIGNER).balance });
  });

  it("does not run if it is disabled", async () => {
    const entry = await settledLane({ settings: { reconciliationIntervalMs: null, pollIntervalMs: 1_000 } });
    await world.clock.advance(600_000);
    expect(results(entry)).toEqual([]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/detours/reconcile.ts, src/domain/ledger/standing.ts
  it("moves the next nonce past other programs' mined transactions", async () => {
    const entry = await settledLane();
    world.holdBlocks();
    world.chain.mineForeign(SIGNER, 4);
    await world.until(() => cursor() === 5);
    expect(results(entry)).toContain("aligned");
    expect(alerts(entry, "NONCE_DRIFT").length).toBeGreaterThan(0);
    await create(entry, 1);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0, 5]);
    world.releaseBlocks();
    await world.allSettled(2);
  });

  it("skips nonces of other programs' pending transactions if configured", async () => {
    const entry = await settledLane({ settings: { nonceChainQuery: "pending" } });
    world.holdBlocks();
    await create(entry, 1);
    await world.until(() => world.rows()[1]?.subState === "BROADCAST");
    const before = structuredClone(world.rows()[1]);
    world.chain.injectForeign(SIGNER);
    const sent = world.chain.witness.length;
    await world.until(() => cursor() === 3, 600_000);
    expect(world.rows()).toHaveLength(2);
    const { nonce, attempts, receipt, nonceMoves } = {
      ...world.rows()[1],
      nonceMoves: world.database.state.holes().length,
    };
    expect({ nonce, attempts, receipt, nonceMoves }).toEqual({
      nonce: before?.nonce,
      attempts: before?.attempts,
      receipt: null,
      nonceMoves: 0,
    });
    expect(world.chain.witness.slice(sent).every((entry) => entry.nonce === before?.nonce)).toBe(true);
    world.releaseBlocks();
    await create(entry, 1);
    await world.allSettled(3);
    expect(world.rows().map((row) => row.nonce)).toEqual([0, 1, 3]);
  });

  it("ignores a count that is not confirmed by a second read", async () => {
    const entry = await settledLane();
    let lies = 0;
    entry.faults.lieAboutNonce((honest, _, tag) => (tag === "latest" && lies++ === 3 ? honest + 600 : honest));
    await world.clock.advance(120_000);
    expect(cursor()).toBe(1);
    expect(lies).toBeGreaterThan(3);
  });

  // protects [Keys of the node, other chains, comparison] src/application/stages/2-allocate/allocate.ts, src/application/detours/reconcile.ts
  it("raises an alert for other programs' pending transactions", async () => {
    const entry = await settledLane();
    world.holdBlocks();
    const foreign = [world.chain.injectForeign(SIGNER), world.chain.injectForeign(SIGNER)];
    await world.until(() => alerts(entry, "FOREIGN_PENDING").length > 0);
    expect(cursor()).toBe(1);
    expect(results(entry)).toContain("drift");
    // The alert is raised once while the condition lasts; its end is reported once.
    await world.clock.advance(120_000);
    expect(alerts(entry, "FOREIGN_PENDING")).toHaveLength(1);
    expect(over(entry, "FOREIGN_PENDING")).toEqual([]);
    for (const { hash } of foreign) world.chain.dropTransaction(hash);
    await world.until(() => over(entry, "FOREIGN_PENDING").length > 0);
    expect(over(entry, "FOREIGN_PENDING")).toHaveLength(1);
  });

  // protects [Another program at the key] src/application/detours/reconcile.ts
  it("raises one alert if another program's transaction replaces ours", async () => {
    const entry = await settledLane({ settings: { resubmitIntervalMs: null } });
    world.holdBlocks();
    await create(entry, 2);
    await world.until(() => world.chain.pool.size === 2);
    await world.clock.advance(30_000);
    expect(alerts(entry, "FOREIGN_REPLACEMENT")).toEqual([]);
    const ours = world.rows()[1]?.attempts[0]?.txHash;
    world.chain.dropTransaction(ours as `0x${string}`);
    const foreign = world.chain.injectForeign(SIGNER, 1);
    await world.until(() => alerts(entry, "FOREIGN_REPLACEMENT").length > 0);
    expect(alerts(entry, "FOREIGN_REPLACEMENT")[0]).toMatchObject({
      txId: world.rows()[1]?.txId,
      message: expect.stringContaining(foreign.hash),
    });
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    await world.clock.advance(120_000);
    expect(alerts(entry, "FOREIGN_REPLACEMENT")).toHaveLength(1);
    world.chain.dropTransaction(foreign.hash);
    await world.until(() => over(entry, "FOREIGN_REPLACEMENT").length > 0);
    expect(over(entry, "FOREIGN_REPLACEMENT")).toMatchObject([{ txId: world.rows()[1]?.txId }]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/loops/stuck-watch.ts
  it("warns of a low balance before transactions fail", async () => {
    const entry = await settledLane({ settings: { alertLowBalanceWei: 10n ** 18n } });
    await world.clock.advance(30_000);
    expect(alerts(entry, "LOW_BALANCE")).toEqual([]);
    world.chain.setBalance(SIGNER, 10n ** 17n);
    await world.until(() => alerts(entry, "LOW_BALANCE").length > 0);
    expect(alerts(entry, "LOW_BALANCE")[0]).toMatchObject({ lane: { signer: SIGNER } });
    await world.clock.advance(60_000);
    expect(alerts(entry, "LOW_BALANCE")).toHaveLength(1);
    world.chain.setBalance(SIGNER, 10n ** 19n);
    await world.until(() => resolved(entry).includes("LOW_BALANCE"));
  });

  it("warns of a low balance of a signer that has sent nothing, before the lane's turn", async () => {
    world = new World({ ...ONE_SIGNER, settings: SELDOM });
    world.chain.setBalance(SIGNER, 10n ** 17n);
    const entry = await world.startNode();
    await world.until(() => alerts(entry, "LOW_BALANCE").length > 0, 30_000);
    expect(alerts(entry, "LOW_BALANCE")).toMatchObject([
      { lane: { signer: SIGNER }, message: `${SIGNER} holds 0.1 ETH on chain ${CHAIN_ID}, less than 1 ETH` },
    ]);
  });

  it("warns of a low balance that a create has read, before the lane's turn", async () => {
    const entry = await settledLane({ settings: SELDOM });
    await world.clock.advance(30_000);
    expect(alerts(entry, "LOW_BALANCE")).toEqual([]);
    world.chain.setBalance(SIGNER, 10n ** 17n);
    await create(entry, 1);
    await world.until(() => alerts(entry, "LOW_BALANCE").length > 0, 10_000);
  });

  // protects [Signals] src/application/detours/reconcile.ts
  it("raises an alert if the chain cannot be read", async () => {
    const entry = await settledLane();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getTransactionCount" });
    world.chain.mineForeign(SIGNER, 3);
    await world.until(() => results(entry).includes("unavailable"));
    await world.until(() => alerts(entry, "RECONCILIATION_FAILED").length > 0);
    expect(alerts(entry, "RECONCILIATION_FAILED")).toMatchObject([
      { severity: "CRITICAL", chainId: world.chain.chainId, message: expect.stringContaining(SIGNER) },
    ]);
    expect(cursor()).toBe(1);
    entry.faults.heal();
    await world.until(() => cursor() === 4);
    await world.until(() => resolved(entry).includes("RECONCILIATION_FAILED"));
  });

  it("finds a nonce that another program used while the lane was idle", async () => {
    const entry = await settledLane({ settings: { resubmitIntervalMs: null, staleReceiptTimeoutMs: 3_600_000 } });
    world.holdBlocks();
    await create(entry, 1);
    await world.until(() => world.chain.pool.size === 1);
    world.chain.mineForeign(SIGNER);
    world.chain.mine(3);
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY" });
  });
});

describe("a different chain at the same endpoint", () => {
  it.each([
    ["was reset and has another first block", () => anotherChain()],
    ["has another chain id", () => anotherChain({ chainId: 5, seed: "simulated" })],
    // protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts, src/application/lane/owned-lane.ts, src/domain/chain/doubt.ts
  ])("receives no transactions if it %s", async (_, other) => {
    const entry = await settledLane({ settings: { pollIntervalMs: 1_000 } });
    world.holdBlocks();
    await create(entry, 2);
    await world.until(() => world.chain.pool.size === 2);
    world.chain.mine(1);
    await world.until(() => world.rows()[2]?.subState === "MINED");
    const before = structuredClone(world.database.state.completions);
    const impostor = other();
    entry.rpc.serve(impostor);
    await world.until(() => alerts(entry, "CHAIN_DISTRUSTED").length > 0);
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const realign = {
      action: "realign",
      signer: SIGNER,
      actor: "operator:test",
      request: { reason: "why not" },
    } as const;
    await expect(world.settle(entry.node.api.actOnLane(realign))).rejects.toMatchObject({ code: "CONFLICT" });
    const why = await world.settle(entry.node.api.explain(world.rows()[1]?.txId as string));
    expect(why.causes.map(({ code }) => code)).toContain("CHAIN_DOUBTED");
    impostor.mine(200);
    await world.clock.advance(300_000);
    expect(impostor.witness).toEqual([]);
    expect(world.rows().map(({ state, subState }) => [state, subState])).toEqual([
      ["CONFIRMED", null],
      ["TRACKING", "MINED"],
      ["TRACKING", "MINED"],
    ]);
    expect(world.database.state.completions).toEqual(before);
    expect(alerts(entry, "CHAIN_DISTRUSTED")).toHaveLength(1);
    entry.rpc.serve(world.chain);
    await world.until(() => alerts(entry, "CHAIN_TRUSTED_AGAIN").length > 0);
    world.releaseBlocks();
    await create(entry, 1);
    await world.allSettled(4);
    checkInvariants(world);
  });

  it.each(["chainId", "genesisHash"] as const)(
    // protects [Keys of the node, other chains, comparison] src/application/loops/chain-loop.ts, src/application/chain/trust.ts
    "is detected by its %s when the endpoint responds again",
    async (field) => {
      const entry = await settledLane({ settings: { reconciliationIntervalMs: null } });
      const honest = entry.rpc.identity.bind(entry.rpc);
      const lies = { chainId: 5, genesisHash: `0x${"ee".repeat(32)}` } as const;
      for (const isAnother of [false, true]) {
        const back = entry.faults.inject({ kind: "unavailable" });
        await world.clock.advance(2_000);
        if (isAnother) {
          const lie = async () => ({ ...(await honest(null)), [field]: lies[field] });
          entry.rpc.identity = lie;
          entry.rpc.identityEverywhere = async () => [{ kind: "says", answer: await lie() }];
        }
        back();
        await world.clock.advance(5_000);
        expect(alerts(entry, "CHAIN_DISTRUSTED")).toHaveLength(isAnother ? 1 : 0);
      }
      const sent = world.chain.witness.length;
      await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(world.chain.witness).toHaveLength(sent);
    },
  );

  // protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts
  it("is not assumed while a second endpoint does not respond", async () => {
    const entry = await settledLane();
    const another = { chainId: 5, genesisHash: null };
    entry.rpc.identity = async () => another;
    entry.rpc.identityEverywhere = async () => [{ kind: "says", answer: another }, { kind: "silent" }];
    await world.clock.advance(60_000);
    expect(alerts(entry, "CHAIN_DISTRUSTED")).toEqual([]);
    entry.rpc.identityEverywhere = async () => [{ kind: "says", answer: another }];
    await world.until(() => alerts(entry, "CHAIN_DISTRUSTED").length === 1);
  });

  it("is detected if another node stored a different genesis hash", async () => {
    world = new World({ ...ONE_SIGNER, settings: OFTEN });
    const entry = world.addNode();
    const identity = entry.rpc.identity.bind(entry.rpc);
    entry.rpc.identity = (known) => {
      world.database.state.geneses.set(CHAIN_ID, `0x${"ee".repeat(32)}`);
      return identity(known);
    };
    await world.settle(entry.node.start());
    await world.clock.advance(60_000);
    expect(alerts(entry, "CHAIN_DISTRUSTED")).toHaveLength(1);
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(world.chain.witness).toEqual([]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts
  it("is detected if the new blocks do not connect to the known blocks", async () => {
    const entry = await settledLane({ settings: { reconciliationIntervalMs: null, resubmitIntervalMs: 1_000 } });
    world.holdBlocks();
    await create(entry, 2);
    await world.until(() => world.chain.pool.size === 2);
    const impostor = anotherChain();
    impostor.mine(100);
    entry.rpc.serve(impostor);
    await world.until(() => alerts(entry, "CHAIN_DISTRUSTED").length > 0);
    await world.clock.advance(30_000);
    expect(impostor.witness, "what is due again is not sent there").toEqual([]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts, src/application/lane/owned-lane.ts, src/domain/chain/doubt.ts
  it("receives no queued transactions, even if an operator resumes the lane", async () => {
    const entry = await settledLane();
    const lane = (action: "suspend" | "resume") => {
      const actionRequest = { action, signer: SIGNER, actor: "operator:test", request: { reason: "test" } } as const;
      return world.settle(entry.node.api.actOnLane(actionRequest));
    };
    await lane("suspend");
    await create(entry, 2);
    const impostor = anotherChain();
    entry.rpc.serve(impostor);
    await world.until(() => alerts(entry, "CHAIN_DISTRUSTED").length > 0);
    await lane("resume");
    await world.clock.advance(30_000);
    expect(impostor.witness).toEqual([]);
    expect(world.rows().map(({ state }) => state)).toEqual(["CONFIRMED", "ALLOCATED", "ALLOCATED"]);
    entry.rpc.serve(world.chain);
    await world.allSettled(3);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/pace/lane-pace.ts
  it("is also detected by a new owner", async () => {
    const entry = await settledLane();
    world.holdBlocks();
    await create(entry, 1);
    world.crash(entry);
    const impostor = anotherChain();
    const next = world.addNode();
    next.rpc.serve(impostor);
    await world.settle(next.node.start());
    await world.until(() => alerts(next, "CHAIN_DISTRUSTED").length > 0);
    impostor.mine(100);
    await world.clock.advance(120_000);
    expect(impostor.witness).toEqual([]);
    expect(world.database.state.completions).toHaveLength(1);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/trust.ts
  it("is detected by a transaction count below final nonces", async () => {
    const entry = await settledLane();
    world.holdBlocks();
    world.chain.mine(100);
    await world.until(() => world.rows()[0]?.live === false);
    await create(entry, 1);
    await world.until(() => world.chain.pool.size === 1);
    const reset = anotherChain({ seed: "simulated" });
    reset.mine(300);
    entry.rpc.serve(reset);
    await world.until(() => alerts(entry, "CHAIN_DISTRUSTED").length > 0);
    await world.clock.advance(60_000);
    expect(reset.witness).toEqual([]);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null });
    entry.rpc.serve(world.chain);
    world.releaseBlocks();
    await world.allSettled(2, 600_000);
    expect(world.rows()[1]?.state).toBe("CONFIRMED");
  });

  it.each<[string, (entry: WorldNode) => void]>([
    ["count", ({ faults }) => faults.lieAboutNonce(() => 0)],
    [
      "chain id",
      ({ rpc }) => {
        const honest = rpc.identity.bind(rpc);
        rpc.identity = async (known) => ({ ...(await honest(known)), chainId: 5 });
      },
    ],
    // protects [Keys of the node, other chains, comparison] src/domain/chain/doubt.ts, src/application/chain/trust.ts
  ])("is not assumed if a second endpoint contradicts the first endpoint's %s", async (_, lie) => {
    world = new World({ ...ONE_SIGNER, settings: OFTEN });
    const second = new Faults();
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: second } });
    await create(entry, 1);
    await world.allSettled(1);
    world.chain.mine(200);
    await world.until(() => world.rows()[0]?.live === false);
    world.holdBlocks();
    await create(entry, 1);
    lie(entry);
    await world.clock.advance(60_000);
    expect(alerts(entry, "CHAIN_DISTRUSTED")).toEqual([]);
    expect(results(entry).at(-1)).not.toBe("distrusted");
    world.releaseBlocks();
    await world.allSettled(2);
  });

  it("is not assumed because of a low transaction count that a reorg could explain", async () => {
    const entry = await settledLane();
    world.holdBlocks();
    await create(entry, 1);
    entry.faults.lieAboutNonce(() => 0);
    await world.clock.advance(60_000);
    expect(alerts(entry, "CHAIN_DISTRUSTED")).toEqual([]);
    expect(world.rows()[0]?.live).toBe(true);
  });

  // protects [Keys of the node, other chains, comparison] src/domain/chain/doubt.ts, src/application/chain/trust.ts
  it("is not assumed after a single observation", async () => {
    const entry = await settledLane();
    await create(entry, 1);
    const impostor = anotherChain();
    let asked = 0;
    const identity = entry.rpc.identity.bind(entry.rpc);
    entry.rpc.identity = async (known) =>
      asked++ === 1 ? { chainId: CHAIN_ID, genesisHash: impostor.blocks.byNumber(0)?.hash ?? null } : identity(known);
    await world.clock.advance(60_000);
    expect(asked).toBeGreaterThan(2);
    expect(alerts(entry, "CHAIN_DISTRUSTED")).toEqual([]);
    await world.allSettled(2);
  });
});
