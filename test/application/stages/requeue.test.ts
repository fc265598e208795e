import { serializeTransaction } from "viem/utils";
import { afterEach, describe, expect, it } from "vitest";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { SimulatedTransaction } from "../../doubles/simulated-chain/transaction.ts";
import { CHAIN_ID, SIGNER, TO, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const REQUEUE = { settings: { externalUsePolicy: "requeue" } } as const;

async function create(entry: WorldNode, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await world.settle(entry.node.api.create(transfer()));
}

async function knownLane(options: ConstructorParameters<typeof World>[0]): Promise<WorldNode> {
  world = new World(options);
  const entry = await world.startNode();
  await create(entry, 1);
  await world.allSettled(1);
  world.holdBlocks();
  return entry;
}

/** The transaction at nonce 1 loses it to another program. */
async function losesItsNonce(entry: WorldNode, ours = 1): Promise<void> {
  await create(entry, ours);
  await world.until(() => world.chain.pool.size === ours);
  world.chain.mineForeign(SIGNER);
  await world.until(() => world.rows()[1]?.subState === "MINED");
}

type Said = Partial<Pick<SimulatedTransaction, "to" | "value" | "data">>;

/** Another program's transaction with the content of ours, but for this. */
function sayTheSame(world: World, but: Said = {}): void {
  const mine = world.chain.mineForeign.bind(world.chain);
  world.chain.mineForeign = (address, count) => {
    const block = mine(address, count);
    for (const executed of block.transactions) {
      Object.assign(executed.transaction as { -readonly [K in keyof SimulatedTransaction]: SimulatedTransaction[K] }, {
        to: TO,
        value: 1n,
        data: "0x",
        ...but,
      });
    }
    return block;
  };
}

/** As `FakeSigner` would sign it, if it signed blobs. */
function blobAt(nonce: number): Hex {
  const fees = { maxFeePerGas: 20n ** 9n, maxPriorityFeePerGas: 1n, maxFeePerBlobGas: 5n };
  const said = { type: "eip4844", chainId: CHAIN_ID, nonce, to: TO, value: 0n, gas: 21_000n, ...fees } as const;
  const signature = { r: `0x${SIGNER.slice(2).padStart(64, "0")}`, s: `0x${"1".padStart(64, "0")}` } as const;
  const blobVersionedHashes = [`0x01${"00".repeat(31)}` as const];
  return serializeTransaction({ ...said, blobVersionedHashes }, { ...signature, yParity: 0 });
}

describe("requeue after external use", () => {
  it("gives the transaction another nonce once the foreign one is past finalized, and confirms it there", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: { safe: 5, finalized: 10 } } });
    await losesItsNonce(entry, 2);
    const lost = world.rows()[1]?.txId;
    world.chain.mine(8);
    await world.clock.advance(5_000);
    expect(world.rows()[1]).toMatchObject({ txId: lost, subState: "MINED" });
    world.chain.mine(3);
    await world.until(() => world.rows().at(-1)?.txId === lost);
    world.releaseBlocks();
    await world.allSettled(3);
    const row = world.rows().at(-1);
    expect(row).toMatchObject({ txId: lost, nonce: 3, state: "CONFIRMED", subState: null });
    expect(row?.attempts.map(({ kind, ordinal }) => [ordinal, kind])).toEqual([
      [1, "initial"],
      [2, "external"],
      [3, "initial"],
    ]);
    expect(row?.receipt?.txHash).toBe(row?.attempts[2]?.txHash);
    const step = row?.history.find(({ event }) => event === "requeue");
    expect(step).toMatchObject({ decision: { actor: "policy", audit: { policy: "requeue", nonce: 1 } } });
    const alerts = entry.events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
    expect(alerts).toEqual(["EXTERNAL_KEY_USE", "EXTERNAL_USE_REQUEUED"]);
    const told = world.database.state.completions.filter(({ txId }) => txId === lost);
    expect(told.map(({ state, nonce }) => [state, nonce])).toEqual([["CONFIRMED", 3]]);
  });

  it("waits for twice the confirmations where the chain has no such tag", async () => {
    const entry = await knownLane({ settings: { ...REQUEUE.settings, confirmations: 3 }, chain: { tagDepths: null } });
    await losesItsNonce(entry);
    world.chain.mine(5);
    await world.clock.advance(10_000);
    expect(world.rows()[1]).toMatchObject({ subState: "MINED", nonce: 1 });
    world.chain.mine(1);
    await world.until(() => world.rows()[1]?.nonce === 2);
  });

  it("is not done where the foreign transaction says the same as ours: it would run twice", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    sayTheSame(world);
    await losesItsNonce(entry);
    world.chain.mine(10);
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 1 });
  });

  it("is judged anew where a reorg puts another foreign transaction in the first one's place", async () => {
    const entry = await knownLane({ settings: { ...REQUEUE.settings, confirmations: 3 }, chain: { tagDepths: null } });
    await losesItsNonce(entry);
    world.chain.mine(4);
    await world.clock.advance(10_000);
    expect(world.rows()[1]).toMatchObject({ subState: "MINED", nonce: 1 });
    world.chain.reorg(5, { drop: "all", keepInPool: false });
    await world.until(() => world.rows()[1]?.subState !== "MINED");
    sayTheSame(world);
    world.chain.mineForeign(SIGNER);
    world.chain.mine(10);
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 1 });
  });

  it.each<[string, Said]>([
    ["recipient", { to: SIGNER }],
    ["value", { value: 2n }],
    ["data", { data: "0x01" }],
  ])("is done where the foreign transaction differs from ours in its %s alone", async (_, but) => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    sayTheSame(world, but);
    await losesItsNonce(entry);
    world.chain.mine(10);
    await world.until(() => world.rows()[1]?.nonce === 2);
  });

  it("is not done where the foreign transaction says what an earlier payload of ours said", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    sayTheSame(world);
    await create(entry, 1);
    await world.until(() => world.chain.pool.size === 1);
    const request = { reason: "another", payload: { to: SIGNER, value: "3", gas: 21_000 } };
    const order = {
      action: "replace",
      txId: world.rows()[1]?.txId as string,
      request,
      actor: "operator:test",
    } as const;
    await world.settle(entry.node.api.act(order));
    expect(world.rows()[1]?.attempts.map(({ kind }) => kind)).toEqual(["initial", "replace"]);
    world.chain.mineForeign(SIGNER);
    world.chain.mine(10);
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 1 });
  });

  it("is not done for a key that the chain node holds", async () => {
    const signer: Address = `0x${"5e".repeat(20)}`;
    world = new World({ ...REQUEUE, signers: [], nodeSigners: [signer], chain: { tagDepths: null } });
    const entry = await world.startNode();
    world.holdBlocks();
    await world.settle(entry.node.api.create(transfer({ signer })));
    await world.until(() => world.chain.pool.size === 1);
    world.chain.mineForeign(signer);
    world.chain.mine(10);
    await world.allSettled(1);
    expect(world.rows()[0]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 0 });
  });

  it("is not done for what its caller sent itself, nor for blobs that it handed in: neither can be signed here", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    const reserve = async () => (await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }))).reservation;
    const [sent, handedIn] = [await reserve(), await reserve()];
    await world.settle(entry.node.api.markUsed(sent.reservationId, { txHash: `0x${"ab".repeat(32)}` }));
    const rawTransaction = blobAt(handedIn.nonce);
    await world.settle(entry.node.api.submitReserved(handedIn.reservationId, { rawTransaction }));
    world.chain.mineForeign(SIGNER, 2);
    world.chain.mine(10);
    await world.allSettled(3, 300_000);
    expect(world.rows().map(({ nonce, subState }) => [nonce, subState])).toEqual([
      [0, null],
      [1, "NONCE_CONSUMED_EXTERNALLY"],
      [2, "NONCE_CONSUMED_EXTERNALLY"],
    ]);
  });

  it("is not done where the database may have lost commits since the nonce was given", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    await create(entry, 1);
    await world.until(() => world.chain.pool.size === 1);
    world.crash(entry);
    world.database.changeHistory();
    await world.startNode();
    world.chain.mineForeign(SIGNER);
    world.chain.mine(10);
    await world.allSettled(2, 300_000);
    expect(world.rows()[1]).toMatchObject({ subState: "NONCE_CONSUMED_EXTERNALLY", nonce: 1 });
  });

  it("decides nothing while the foreign transaction cannot be read", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    await losesItsNonce(entry);
    const heal = entry.faults.inject(
      { kind: "unavailable" },
      { method: "eth_getBlockByNumber", when: (params) => params[1] === true },
    );
    world.chain.mine(10);
    await world.clock.advance(60_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", subState: "MINED", nonce: 1 });
    heal();
    await world.until(() => world.rows()[1]?.nonce === 2);
  });

  it("survives a crash right after it: the next owner signs at the new nonce, with the next ordinal", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    await losesItsNonce(entry);
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    world.chain.mine(10);
    await world.until(() => world.rows()[1]?.nonce === 2);
    world.crash(entry);
    await world.startNode();
    world.releaseBlocks();
    await world.allSettled(2);
    expect(world.rows()[1]).toMatchObject({ state: "CONFIRMED", nonce: 2 });
    expect(world.rows()[1]?.attempts.map(({ ordinal }) => ordinal)).toEqual([1, 2, 3]);
  });

  it("leaves the transaction where it was put: what was signed once moves down into no hole", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    await losesItsNonce(entry);
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    const lane = (action: "suspend" | "resume") => {
      const order = { action, signer: SIGNER, actor: "operator:test", request: { reason: "test" } } as const;
      return world.settle(entry.node.api.actOnLane(order));
    };
    await lane("suspend");
    world.chain.mine(10);
    await world.until(() => world.rows()[1]?.nonce === 3);
    await world.settle(entry.node.api.releaseNonce(reservation.reservationId));
    await lane("resume");
    await world.until(() => world.rows()[1]?.state === "STUCK");
    expect(world.rows()[1]).toMatchObject({ nonce: 3, attempts: [{}, { foreign: true }, { kind: "initial" }] });
    await create(entry, 1);
    world.releaseBlocks();
    await world.allSettled(3);
    expect(world.rows().map(({ nonce, state }) => [nonce, state])).toEqual([
      [0, "CONFIRMED"],
      [2, "CONFIRMED"],
      [3, "CONFIRMED"],
    ]);
  });

  it("never mistakes the foreign transaction of the old nonce for an outcome of the new one", async () => {
    const entry = await knownLane({ ...REQUEUE, chain: { tagDepths: null } });
    await losesItsNonce(entry);
    world.chain.mine(10);
    await world.until(() => world.rows()[1]?.state === "TRACKING" && world.rows()[1]?.nonce === 2);
    await world.clock.advance(180_000);
    expect(world.rows()[1]).toMatchObject({ state: "TRACKING", receipt: null, nonce: 2 });
    world.crash(entry);
    await world.startNode();
    await world.clock.advance(180_000);
    expect(world.rows()[1]).toMatchObject({ receipt: null, nonce: 2 });
    world.releaseBlocks();
    await world.allSettled(2);
    expect(world.rows()[1]?.state).toBe("CONFIRMED");
  });
});
