import { afterEach, describe, expect, it } from "vitest";
import { expectConsecutive, isBalanced, startNodes, TWENTY } from "../../support/spread-lanes.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

describe("takeover of lanes", () => {
  it("gives the other nodes fair shares within lease duration + 1 s after a node's crash", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 4);
    const crashed = nodes[0] as WorldNode;
    const others = nodes.slice(1);
    const atMs = world.clock.monotonicMs();
    world.crash(crashed);
    await world.until(() => isBalanced(world, others), 30_000);
    expect(world.clock.monotonicMs() - atMs).toBeLessThanOrEqual(11_000);
  });

  it("spreads all lanes evenly after a database outage longer than the lease", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 3);
    for (const { store } of nodes) store.cut();
    await world.clock.advance(15_000);
    for (const { store } of nodes) store.heal();
    await world.until(() => isBalanced(world, nodes), 30_000);
    await world.settle(Promise.all(TWENTY.map((signer) => nodes[0]?.node.api.create(transfer({ signer })))));
    await world.allSettled(20);
    expectConsecutive(world, TWENTY);
  });
});
