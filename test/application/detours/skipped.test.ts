import { afterEach, describe, expect, it } from "vitest";
import { Faults } from "../../doubles/simulated-chain/faults.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const SETTINGS = { nonceStateTimeoutMs: 0, staleReceiptTimeoutMs: 5_000, reconciliationIntervalMs: null };

async function create({ node }: WorldNode): Promise<number | null> {
  return (await world.settle(node.api.create(transfer()))).nonce;
}

/**
 * Mines nonce 0. Then the chain falsely reports a transaction count that is `by` too high, so the next transaction gets
 * a nonce that leaves a gap.
 */
async function liedTo(by: number, holePolicy: "heal" | "move"): Promise<WorldNode> {
  world = new World({ settings: { ...SETTINGS, holePolicy } });
  const entry = await world.startNode();
  await create(entry);
  await world.allSettled(1);
  entry.faults.lieAboutNonce((honest) => honest + by);
  expect(await create(entry)).toBe(1 + by);
  await world.until(() => world.rows()[1]?.subState === "BROADCAST");
  entry.faults.lieAboutNonce((honest) => honest);
  return entry;
}

const holes = () => world.database.state.holes();

describe("nonces skipped because of a false transaction count", () => {
  it("are filled by placeholders under the policy heal", async () => {
    await liedTo(3, "heal");
    await world.allSettled(5);
    expect(world.rows().map(({ nonce, state, subState }) => [nonce, state, subState])).toEqual([
      [0, "CONFIRMED", null],
      ...[1, 2, 3].map((nonce) => [nonce, "FAILED_FINAL", "CANCELLED"]),
      [4, "CONFIRMED", null],
    ]);
    expect(holes()).toEqual([]);
    checkInvariants(world);
  });

  it("make the transaction above them STUCK under the policy move", async () => {
    const entry = await liedTo(2, "move");
    await world.until(() => world.rows()[1]?.state === "STUCK");
    const said = world.rows()[1]?.history.find(({ event }) => event === "stick")?.reason;
    expect(said).toBe("nonce 1 below it is held by nothing: the chain was said to have passed it, and has not");
    expect(holes()).toMatchObject([
      { nonce: 1, why: "givenUp" },
      { nonce: 2, why: "givenUp" },
    ]);
    expect([await create(entry), await create(entry), await create(entry)]).toEqual([1, 2, 4]);
    await world.allSettled(5);
    expect(world.rows().every(({ state }) => state === "CONFIRMED")).toBe(true);
    checkInvariants(world);
  });

  it("are found by the next owner after a crash", async () => {
    const entry = await liedTo(1, "heal");
    world.crash(entry);
    await world.startNode();
    await world.allSettled(3);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0, 1, 2]);
    checkInvariants(world);
  });
});

describe("nonces skipped because another program used them", () => {
  it("are not treated as nonce gaps if one endpoint's count is too low", async () => {
    world = new World({ settings: { ...SETTINGS, holePolicy: "heal" } });
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: new Faults() } });
    await create(entry);
    await world.allSettled(1);
    world.chain.mineForeign(SIGNER);
    world.chain.mineForeign(SIGNER);
    world.holdBlocks();
    expect(await create(entry)).toBe(3);
    await world.until(() => world.rows()[1]?.subState === "BROADCAST");
    entry.faults.lieAboutNonce((honest) => honest - 2);
    await world.clock.advance(60_000);
    expect(holes()).toEqual([]);
    expect(world.rows()).toHaveLength(2);
  });
});

describe("nonces that may have been used by another program", () => {
  // protects [Keys of the node, other chains, comparison] src/application/detours/skipped-nonces.ts
  it("are not treated as nonce gaps while a second endpoint lags behind", async () => {
    world = new World({ settings: { ...SETTINGS, holePolicy: "heal" } });
    const late = new Faults();
    const entry = await world.startNode({ elsewhere: { chain: world.chain, faults: late } });
    await create(entry);
    await world.allSettled(1);
    world.chain.mineForeign(SIGNER, 2);
    expect(await create(entry)).toBe(3);
    await world.until(() => world.rows()[1]?.receipt !== null);
    late.pinHead(world.rows()[0]?.receipt?.blockNumber ?? 0);
    world.holdBlocks();
    expect(await create(entry)).toBe(4);
    entry.faults.lieAboutNonce((honest) => honest - 3);
    await world.clock.advance(60_000);
    expect(holes()).toEqual([]);
    entry.faults.lieAboutNonce(null);
    late.pinHead(null);
    world.releaseBlocks();
    await world.allSettled(3);
    expect(world.rows().map(({ nonce }) => nonce)).toEqual([0, 3, 4]);
  });
});

describe("a lane's lowest open transaction", () => {
  it("is not reported as blocked by a nonce gap if the endpoint's count is too low", async () => {
    world = new World({ settings: { ...SETTINGS, holePolicy: "heal" } });
    const entry = await world.startNode();
    for (let index = 0; index < 3; index++) await create(entry);
    await world.allSettled(3);
    world.holdBlocks();
    await create(entry);
    await world.until(() => world.rows()[3]?.subState === "BROADCAST");
    entry.faults.lieAboutNonce((honest) => honest - 2);
    await world.clock.advance(60_000);
    expect(holes()).toEqual([]);
    expect(world.rows()).toHaveLength(4);
    entry.faults.lieAboutNonce((honest) => honest);
    world.releaseBlocks();
    await world.allSettled(4);
    checkInvariants(world);
    expect(world.rows().map(({ lane }) => lane.signer)).toEqual(Array(4).fill(SIGNER));
  });
});
