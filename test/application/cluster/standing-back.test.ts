/** A node that stalled and so lost its lanes, and the time at which it may claim lanes again. */
import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

const LEASE_MS = 10_000;

/** Pauses the node until its lease has expired and another node has taken its lanes, then resumes it. */
async function pause(entry: WorldNode, takenBy: string, signer = SIGNER): Promise<void> {
  entry.store.pause();
  await world.until(() => world.ownerOf(signer) === takenBy, 60_000);
  entry.store.resume();
}

/** Two nodes with every key, and a lane that was assigned to the first node. */
async function pair(): Promise<{ first: WorldNode; second: WorldNode; signer: (typeof SIGNERS)[number] }> {
  world = new World();
  const first = await world.startNode();
  const second = await world.startNode();
  await world.clock.advance(10_000);
  const signer = SIGNERS.find((each) => world.ownerOf(each) === "node-1");
  if (signer === undefined) throw new Error("the first node was given no lane");
  return { first, second, signer };
}

/**
 * Stalls the node repeatedly, until it is barred from claiming lanes for the duration of four leases. When this
 * function resolves, more than one of the four has passed.
 */
async function standingBackForLong(first: WorldNode, signer: (typeof SIGNERS)[number]): Promise<void> {
  for (const _ of [1, 2]) {
    await pause(first, "node-2", signer);
    await world.until(() => world.ownerOf(signer) === "node-1", 60_000);
  }
  await pause(first, "node-2", signer);
  await world.clock.advance(LEASE_MS + 1_000);
}

describe("a node whose lease expired during a pause", () => {
  // protects [Processes that end, and those that only seem to] src/domain/cluster/stand-back.ts, src/domain/cluster/placement.ts
  it("leaves its lane to the new owner for one lease duration", async () => {
    const { first, signer } = await pair();
    await pause(first, "node-2", signer);
    const wokeMs = world.clock.monotonicMs();
    const taken = world.tokenOf(signer);
    await world.clock.advance(LEASE_MS - 500);
    expect(world.ownerOf(signer)).toBe("node-2");
    expect(world.tokenOf(signer), "it did not even wander").toBe(taken);
    await world.until(() => world.ownerOf(signer) === "node-1", 10_000);
    expect(world.clock.monotonicMs() - wokeMs).toBeLessThan(LEASE_MS + 5_000);
  });

  // protects [Processes that end, and those that only seem to] src/domain/cluster/stand-back.ts, src/domain/cluster/placement.ts
  it("leaves its lane to the new owner for twice as long after a second pause", async () => {
    const { first, signer } = await pair();
    await pause(first, "node-2", signer);
    await world.until(() => world.ownerOf(signer) === "node-1", 30_000);
    await pause(first, "node-2", signer);
    await world.clock.advance(2 * LEASE_MS - 500);
    expect(world.ownerOf(signer)).toBe("node-2");
    await world.until(() => world.ownerOf(signer) === "node-1", 10_000);
  });

  it("forwards creates to the new owner", async () => {
    const { first, signer } = await pair();
    await pause(first, "node-2", signer);
    await world.clock.advance(1_000);
    await world.settle(first.node.api.create(transfer({ signer })));
    expect(world.ownerOf(signer)).toBe("node-2");
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Processes that end, and those that only seem to] src/application/cluster/cluster.ts
  it("does not reclaim its former lane when a create arrives", async () => {
    const { first, second, signer } = await pair();
    await pause(first, "node-2", signer);
    await world.clock.advance(2_000);
    const fence = [...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer);
    const claim = second.store.claimLanes.bind(second.store);
    second.store.claimLanes = async () => [];
    if (fence !== undefined) fence.owner = null;
    const created = first.node.create(
      [{ txId: "019b76da-a800-749a-9400-258a4494ceee", request: { ...transfer({ signer }) } }],
      { repeat: false },
    );
    const [answer] = await world.settle(created);
    expect(answer).toMatchObject({ code: "NOT_LEADER" });
    expect(world.ownerOf(signer)).toBeUndefined();
    second.store.claimLanes = claim;
  });

  // protects [Processes that end, and those that only seem to] src/application/cluster/membership.ts, src/application/cluster/cluster.ts
  it("claims lanes that stay unowned for one lease duration", async () => {
    const { first, second, signer } = await pair();
    for (const _ of [1, 2]) {
      await pause(first, "node-2", signer);
      await world.until(() => world.ownerOf(signer) === "node-1", 60_000);
    }
    // The second node does not claim the lane, because placement assigns it to the node that stalled.
    const claim = second.store.claimLanes.bind(second.store);
    second.store.claimLanes = async (lanes, ...rest) => {
      const others = lanes.filter((lane) => lane.signer !== signer);
      return claim(others, ...rest);
    };
    const before = world.tokenOf(signer);
    first.store.pause();
    await world.clock.advance(LEASE_MS + 2_000);
    first.store.resume();
    const wokeMs = world.clock.monotonicMs();
    await world.clock.advance(LEASE_MS - 500);
    expect(world.tokenOf(signer), "for a lease it is left to the other").toBe(before);
    await world.until(() => world.tokenOf(signer) > before, 4 * LEASE_MS);
    expect(world.clock.monotonicMs() - wokeMs).toBeLessThanOrEqual(2 * LEASE_MS + 1_000);
    await world.clock.advance(LEASE_MS);
    expect([world.ownerOf(signer), world.tokenOf(signer)], "and is kept").toEqual(["node-1", before + 1]);
  });

  // protects [Processes that end, and those that only seem to] src/application/cluster/membership.ts, src/application/cluster/cluster.ts
  it("claims no other free lane while it leaves its former lane to others", async () => {
    const { first, second, signer } = await pair();
    await standingBackForLong(first, signer);
    const third = await world.startNode();
    await world.clock.advance(1_500);
    const claim = third.store.claimLanes.bind(third.store);
    third.store.claimLanes = async () => [];
    const freed = SIGNERS.filter((each) => world.ownerOf(each) === "node-2");
    expect(freed.length).toBeGreaterThan(0);
    await world.settle(second.node.close());
    await world.clock.advance(3_000);
    expect(
      freed.map((each) => world.ownerOf(each)),
      "the other is slow",
    ).toEqual(freed.map(() => undefined));
    third.store.claimLanes = claim;
    await world.clock.advance(1_500);
    expect(SIGNERS.map((each) => world.ownerOf(each))).toEqual(SIGNERS.map(() => "node-3"));
  });

  // protects [Processes that end, and those that only seem to] src/application/cluster/membership.ts, src/application/cluster/cluster.ts
  it("claims all lanes if it becomes the last live node", async () => {
    const { first, second, signer } = await pair();
    await standingBackForLong(first, signer);
    await world.settle(second.node.close());
    await world.until(() => SIGNERS.every((each) => world.ownerOf(each) === "node-1"), 1_500);
    await world.startNode();
    await world.until(() => SIGNERS.every((each) => world.ownerOf(each) === "node-3"), 5_000);
  });

  // protects [Processes that end, and those that only seem to] src/application/cluster/membership.ts, src/application/cluster/cluster.ts
  it("reads the leases at most six times until it owns its lane again", async () => {
    const { first, signer } = await pair();
    let looks = 0;
    const leases = first.store.leases.bind(first.store);
    first.store.leases = () => {
      looks++;
      return leases();
    };
    await world.clock.advance(LEASE_MS);
    expect(looks).toBe(0);
    await pause(first, "node-2", signer);
    await world.until(() => world.ownerOf(signer) === "node-1", 30_000);
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThanOrEqual(6);
    looks = 0;
    await world.clock.advance(LEASE_MS);
    expect(looks).toBe(0);
  });

  // protects [Processes that end, and those that only seem to] src/domain/cluster/placement.ts
  it("claims at once the lanes that no other node can serve", async () => {
    world = new World();
    const [mine, ...others] = SIGNERS as [Address, ...Address[]];
    const first = await world.startNode();
    await world.startNode({ signers: others });
    await world.clock.advance(10_000);
    first.store.pause();
    await world.clock.advance(LEASE_MS + 2_000);
    const before = world.tokenOf(mine);
    first.store.resume();
    await world.until(() => world.tokenOf(mine) > before, 1_500);
    expect(world.ownerOf(mine)).toBe("node-1");
    await world.clock.advance(LEASE_MS - 3_000);
    expect(
      others.map((signer) => world.ownerOf(signer)),
      "and leaves the rest",
    ).toEqual(others.map(() => "node-2"));
  });

  // protects [Processes that end, and those that only seem to] src/domain/cluster/placement.ts
  it("claims all lanes at once if it is the only node", async () => {
    world = new World();
    const only = await world.startNode();
    only.store.pause();
    await world.clock.advance(LEASE_MS + 2_000);
    only.store.resume();
    await world.until(() => SIGNERS.every((signer) => world.tokenOf(signer) === 2), 1_500);
  });

  it("claims its lanes at once if the new owner leaves", async () => {
    const { first, second, signer } = await pair();
    await pause(first, "node-2", signer);
    await world.clock.advance(500);
    await world.settle(second.node.close());
    await world.until(() => world.ownerOf(signer) === "node-1", 1_500);
  });

  it("gets a share of the lanes again if all other nodes were paused too", async () => {
    const { first, second } = await pair();
    for (const { store } of [first, second]) store.pause();
    await world.clock.advance(LEASE_MS + 2_000);
    for (const { store } of [first, second]) store.resume();
    await world.clock.advance(4_000);
    expect(new Set(SIGNERS.map((signer) => world.ownerOf(signer)))).toEqual(new Set(["node-1", "node-2"]));
  });
});
