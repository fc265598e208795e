import { afterEach, describe, expect, it } from "vitest";
import { checkInvariants } from "../support/invariants.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

async function create(entry: WorldNode, count: number): Promise<void> {
  await world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(transfer()))));
}

function token(signer = SIGNER): number {
  return [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer)?.token ?? 0;
}

describe("two nodes", () => {
  it("one lane, basic mode: the second tells who acts for it", async () => {
    world = new World({ node: { mode: "basic" } });
    const first = await world.startNode();
    const second = await world.startNode();
    await create(first, 1);
    await expect(world.settle(second.node.api.create(transfer()))).rejects.toMatchObject({
      code: "NOT_LEADER",
      extras: { ownerUrl: "http://node-1" },
    });
    expect(token()).toBe(1);
  });

  it("the first closes gracefully: the second takes over at once and everything is confirmed once", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 40);
    const second = await world.startNode();
    await world.settle(first.node.close());
    expect((await world.settle(second.node.api.create(transfer()))).nonce).toBe(40);
    await world.allSettled(41);
    checkInvariants(world);
    expect(token()).toBe(2);
  });

  it("the first is cut from the database past its lease: its late writes are fenced, its sends stop, it re-joins as a new instance", async () => {
    world = new World({ settings: { resubmitIntervalMs: 1_000 } });
    const first = await world.startNode();
    await create(first, 10);
    world.holdBlocks();
    first.store.pause();
    await world.clock.advance(12_000);
    const second = await world.startNode();
    await world.until(() => second.events.some(({ type }) => type === "lane.resumed"));
    first.store.resume();
    await world.clock.advance(500);
    await create(second, 10);
    world.releaseBlocks();
    await world.allSettled(20);
    checkInvariants(world);
    expect(first.events.filter(({ type }) => type === "instance.registered").length).toBe(2);
    expect(token()).toBeGreaterThan(1);
  });

  it("a claimant whose database clock stands still trusts its own: the dead node's lanes are taken all the same", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 3);
    const instance = [...world.database.state.instances.values()][0];
    world.crash(first);
    // The database's clock jumped back an hour when its successor was promoted: nothing expires by it for a long time.
    if (instance !== undefined) instance.expiresAt = new Date(instance.expiresAt.getTime() + 3_600_000);
    const second = await world.startNode();
    await world.until(() => second.events.some(({ type }) => type === "instance.declaredDead"), 30_000);
    expect(second.events).toContainEqual(
      expect.objectContaining({ type: "instance.declaredDead", evidence: "stood-still" }),
    );
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("a crashed node's lanes are claimed within lease duration + 1 s", async () => {
    world = new World();
    const first = await world.startNode();
    const second = await world.startNode();
    await create(first, 3);
    const crashedAt = world.clock.monotonicMs();
    world.crash(first);
    await world.until(() => second.events.filter(({ type }) => type === "lane.resumed").length === SIGNERS.length);
    expect(world.clock.monotonicMs() - crashedAt).toBeLessThanOrEqual(11_000);
    await world.allSettled(3);
    checkInvariants(world);
  });
});

describe("a node without a key", () => {
  it("never takes the lane", async () => {
    world = new World();
    const entry = await world.startNode({ signers: SIGNERS.slice(1) });
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
    expect([...world.database.state.lanes.values()].map(({ lane }) => lane.signer)).not.toContain(SIGNER);
  });
});
