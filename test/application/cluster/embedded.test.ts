import { afterEach, describe, expect, it } from "vitest";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

/** Nodes embedded in other processes have no URL: they can send requests to other nodes but cannot receive any. */

let world: World;
afterEach(() => world.close());

const lanesOf = ({ node }: WorldNode): number => node.gauges().lanesHeld;

describe("an embedded node beside a node with a URL", () => {
  it("owns no lane whose signer key is also on the other node", async () => {
    world = new World();
    const embedded = await world.startNode({ embedded: true });
    const reachable = await world.startNode();
    await world.until(() => lanesOf(reachable) === SIGNERS.length && lanesOf(embedded) === 0, 30_000);
    for (const signer of SIGNERS) {
      await world.settle(embedded.node.api.create(transfer({ signer })));
      await world.settle(reachable.node.api.create(transfer({ signer })));
    }
    expect(world.network.forwards.map(({ to }) => to)).toEqual(SIGNERS.map(() => reachable.url));
    await world.allSettled(2 * SIGNERS.length);
    checkInvariants(world);
  });

  it("takes over the lanes when the other node dies", async () => {
    world = new World();
    const embedded = await world.startNode({ embedded: true });
    const first = await world.startNode();
    await world.until(() => lanesOf(first) === SIGNERS.length, 30_000);
    world.crash(first);
    await world.until(() => lanesOf(embedded) === SIGNERS.length, 12_000);
    await world.settle(embedded.node.api.create(transfer()));
    const second = await world.startNode();
    await world.until(() => lanesOf(second) === SIGNERS.length, 30_000);
    await world.settle(embedded.node.api.create(transfer()));
    await world.allSettled(2);
    checkInvariants(world);
  });

  it.each(["worker-queue", "basic"] as const)(
    "owns the lane of a signer whose key only the embedded node has (%s)",
    async (mode) => {
      world = new World({ node: { mode }, hints: true });
      const embedded = await world.startNode({ embedded: true, signers: SIGNERS.slice(0, 1) });
      const reachable = await world.startNode({ signers: SIGNERS.slice(1) });
      await world.until(() => lanesOf(embedded) === 1, 30_000);
      await world.clock.advance(1_000);
      await world.settle(embedded.node.api.create(transfer()));
      const { nonce, txId } = await world.settle(reachable.node.api.create(transfer({ requestId: "left" })));
      expect(nonce).toBe(1);
      const repeated = await world.settle(embedded.node.api.create(transfer({ requestId: "left" })));
      expect(repeated).toMatchObject({ outcome: "existing", txId });
      expect(world.network.forwards).toEqual([]);
      await world.allSettled(2);
      checkInvariants(world);
    },
  );
});

describe("an embedded node that closes beside a node with a URL", () => {
  /** The last create is in progress when the node closes. Returns how long closing took, in simulated milliseconds. */
  async function closes(embedded: WorldNode) {
    await world.settle(embedded.node.api.create(transfer({ requestId: "before" })));
    const last = embedded.node.api.create(transfer({ requestId: "last" }));
    const startedMs = world.clock.monotonicMs();
    await world.settle(embedded.node.close(), 30_000);
    const tookMs = world.clock.monotonicMs() - startedMs;
    expect(await world.settle(last)).toMatchObject({ outcome: "created", nonce: 1 });
    return tookMs;
  }

  it.each([
    ["its own lane", SIGNERS.slice(1)],
    ["a lane of the other node", SIGNERS],
    // protects [Replicas that embed the library] src/application/loops/node.ts
  ])("answers the create in progress on %s, and does not wait out the drain timeout", async (_, others) => {
    world = new World({ hints: true });
    const reachable = await world.startNode({ signers: others });
    const embedded = await world.startNode({ embedded: true, signers: SIGNERS.slice(0, 1) });
    await world.until(() => lanesOf(reachable) === others.length && held([embedded, reachable]) === 3, 30_000);
    expect(await closes(embedded)).toBeLessThan(1_000);
    const successor = await world.startNode({ embedded: true });
    await world.until(() => held([successor, reachable]) === SIGNERS.length, 1_500);
    await world.allSettled(2);
    checkInvariants(world);
  });
});

describe("embedded nodes without other nodes", () => {
  // protects [Replicas that embed the library] src/application/cluster/route.ts, src/application/cluster/pending-requests.ts
  it("share the lanes", async () => {
    world = new World();
    const nodes = [await world.startNode({ embedded: true }), await world.startNode({ embedded: true })];
    await world.until(() => nodes.every((node) => lanesOf(node) > 0) && held(nodes) === SIGNERS.length, 30_000);
    for (const signer of SIGNERS) {
      for (const { node } of nodes) {
        const created = await world.settle(node.api.create(transfer({ signer })));
        expect(created).toMatchObject({ outcome: "created", nonce: expect.any(Number) });
      }
    }
    expect(world.network.forwards).toEqual([]);
    await world.allSettled(2 * SIGNERS.length);
    checkInvariants(world);
  });

  it("take over each other's lanes", async () => {
    world = new World();
    const [first, second] = [await world.startNode({ embedded: true }), await world.startNode({ embedded: true })];
    await world.until(() => held([first, second]) === SIGNERS.length, 30_000);
    await world.settle(first.node.close(), 30_000);
    await world.until(() => lanesOf(second) === SIGNERS.length, 1_500);
    const third = await world.startNode({ embedded: true });
    world.crash(second);
    await world.until(() => lanesOf(third) === SIGNERS.length, 12_000);
    await world.settle(third.node.api.create(transfer({ signer: SIGNER })));
    await world.allSettled(1);
  });
});

function held(nodes: readonly WorldNode[]): number {
  return nodes.reduce((sum, node) => sum + lanesOf(node), 0);
}
