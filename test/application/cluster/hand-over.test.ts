import { afterEach, describe, expect, it } from "vitest";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { slowWire } from "../../support/slow-wire.ts";
import {
  expectConsecutive,
  isBalanced,
  isOwner,
  keepSending,
  lanesOf,
  startNodes,
  TWENTY,
} from "../../support/spread-lanes.ts";
import { SIGNER, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("hand-over of lanes", () => {
  it("leaves no lane without an owner if the release gets no database response", async () => {
    world = new World({ signers: TWENTY });
    const first = await world.startNode();
    await world.settle(Promise.all(TWENTY.map((signer) => first.node.api.create(transfer({ signer })))));
    const release = first.store.releaseLane.bind(first.store);
    let failures = 3;
    first.store.releaseLane = async (fence) => {
      if (failures-- > 0) throw new StoreUnavailable("no answer");
      return release(fence);
    };
    const second = await world.startNode();
    await world.until(() => isBalanced(world, [first, second]), 30_000);
    expect(failures).toBeLessThan(0);
    await world.allSettled(TWENTY.length, 600_000);
    checkInvariants(world);
  });

  it("makes no create fail on shutdown, and delays none by more than 250 ms", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 3);
    const leaving = nodes[0] as WorldNode;
    const waits: number[] = [];
    const steady = keepSending(world, nodes, waits);
    await world.clock.advance(500);
    const closed = leaving.node.close();
    await world.settle(closed, 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    expect(waits.length).toBeGreaterThan(300);
    expect(lanesOf(leaving)).toBe(0);
    await world.allSettled(waits.length, 600_000);
    expectConsecutive(world, TWENTY);
    checkInvariants(world);
  });

  it("gives a joining node its share, and delays no create by more than 250 ms", async () => {
    world = new World({ signers: TWENTY });
    const nodes = [...(await startNodes(world, 2))];
    const waits: number[] = [];
    const steady = keepSending(world, nodes, waits);
    nodes.push(await world.startNode());
    await world.until(() => isBalanced(world, nodes), 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    expectConsecutive(world, TWENTY);
    checkInvariants(world);
  });

  it.each([
    [
      "a node that shuts down",
      async (nodes: WorldNode[]) => world.settle((nodes[0] as WorldNode).node.close(), 30_000),
    ],
    ["a node that joins", async (nodes: WorldNode[]) => void nodes.push(await world.startNode())],
    // protects [Processes that end, and those that only seem to] src/application/lane/lanes.ts, src/application/loops/node.ts
  ])("does not wait for broadcasts that hang, with %s", async (_, change) => {
    world = new World({ signers: TWENTY, node: { drainTimeoutMs: 1_000 } });
    const nodes = [...(await startNodes(world, 2))];
    const ends = nodes.map((node) => slowWire(world, node, 1, () => world.clock.sleep(8_000)));
    const waits: number[] = [];
    const steady = keepSending(world, nodes, waits);
    await world.clock.advance(500);
    await change(nodes);
    await world.clock.advance(1_500);
    steady.stop();
    await world.settle(steady.ended);
    for (const end of ends) end();
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    expectConsecutive(world, TWENTY);
    checkInvariants(world);
  });

  it("is retried at once after a failed release, not after a lease duration", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 1);
    const [giver] = nodes as [WorldNode];
    const release = giver.store.releaseLane.bind(giver.store);
    giver.store.releaseLane = () => Promise.reject(new StoreUnavailable("the database is away"));
    const joined = await world.startNode();
    await world.clock.advance(2_000);
    expect(lanesOf(joined)).toBe(0);
    giver.store.releaseLane = release;
    const atMs = world.clock.monotonicMs();
    await world.until(() => isBalanced(world, [giver, joined]), 30_000);
    expect(world.clock.monotonicMs() - atMs).toBeLessThanOrEqual(5_000);
  });

  it("moves lanes to another node if their owner has not reached the chain for a lease duration", async () => {
    world = new World();
    const nodes = await startNodes(world, 2);
    const cut = nodes.find((node) => isOwner(world, node, SIGNER)) as WorldNode;
    cut.faults.inject({ kind: "unavailable" });
    await world.until(() => lanesOf(cut) === 0, 30_000);
    const created = await world.settle(cut.node.api.create(transfer()));
    expect(created.outcome).toBe("created");
    await world.allSettled(1);
    checkInvariants(world);
  });
});
