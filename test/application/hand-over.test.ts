import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../src/domain/lane.ts";
import { StoreUnavailable } from "../../src/ports/lane-store.ts";
import { checkInvariants } from "../support/invariants.ts";
import { expectConsecutive, isBalanced, isOwner, lanesOf, startNodes, TWENTY } from "../support/spread-lanes.ts";
import { SIGNER, transfer, World, type WorldNode } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

function tokens(): readonly number[] {
  return [...world.database.state.lanes.values()].map(({ token }) => token);
}

/** How often the lane that moved most was taken since. */
function mostMoves(before: readonly number[]): number {
  return Math.max(...tokens().map((token, lane) => token - (before[lane] as number)));
}

/** A node that joins and is slow to take anything by itself. */
async function joinSlowly(): Promise<WorldNode> {
  const joining = world.addNode();
  joining.store.claimLanes = async () => [];
  await world.settle(joining.node.start());
  return joining;
}

describe("hand-over", () => {
  it("that the database does not answer leaves no lane without an owner: it is had again, and handed over later", async () => {
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

  it("on shutdown: no create fails, none waits longer than 250 ms", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 3);
    const leaving = nodes[0] as WorldNode;
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
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

  it("to a node that joins: it gets its share while creates go on unharmed", async () => {
    world = new World({ signers: TWENTY });
    const nodes = [...(await startNodes(world, 2))];
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    nodes.push(await world.startNode());
    await world.until(() => isBalanced(world, nodes), 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    expectConsecutive(world, TWENTY);
    checkInvariants(world);
  });

  it("to a node that is slow to take its share moves no lane twice: the node that gave one away sends creates after it", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 2);
    const before = tokens();
    const joining = await joinSlowly();
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    await world.until(() => isBalanced(world, [...nodes, joining]), 30_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(mostMoves(before)).toBe(1);
    expect(Math.max(...waits)).toBeLessThanOrEqual(250);
    await world.allSettled(waits.length, 600_000);
    checkInvariants(world);
  });

  it("to a node that crashes as soon as it has joined: what it never took is taken back, once, and no create fails", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 1);
    const before = tokens();
    world.crash(await joinSlowly());
    const waits: number[] = [];
    const steady = keepSending(nodes, waits);
    await world.clock.advance(12_000);
    steady.stop();
    await world.settle(steady.ended);
    expect(Math.max(...waits)).toBeGreaterThan(250);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_250);
    expect(mostMoves(before)).toBe(1);
    await world.allSettled(waits.length, 600_000);
    checkInvariants(world);
  });

  it("of a lane whose release failed is tried again at once, not after a lease", async () => {
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

  it("from a node that lost the chain for a lease, to one that has it", async () => {
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

describe("takeover", () => {
  it("of a crashed node's lanes in fair shares, within lease duration + 1 s", async () => {
    world = new World({ signers: TWENTY });
    const nodes = await startNodes(world, 4);
    const crashed = nodes[0] as WorldNode;
    const others = nodes.slice(1);
    const atMs = world.clock.monotonicMs();
    world.crash(crashed);
    await world.until(() => isBalanced(world, others), 30_000);
    expect(world.clock.monotonicMs() - atMs).toBeLessThanOrEqual(11_000);
  });

  it("of everything at once, after a database that was away for longer than the lease: spread evenly", async () => {
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

/** A caller that sends one create after another to nodes that listen, and notes how long each took. */
function keepSending(nodes: readonly WorldNode[], waits: number[]): { stop(): void; readonly ended: Promise<void> } {
  let stopped = false;
  const caller = async (offset: number): Promise<void> => {
    for (let n = offset; !stopped; n++) {
      const startedMs = world.clock.monotonicMs();
      await (nodes[n % nodes.length] as WorldNode).node.api.create(transfer({ signer: TWENTY[n % 20] as Address }));
      waits.push(world.clock.monotonicMs() - startedMs);
      await world.clock.sleep(20);
    }
  };
  const ended = Promise.all([0, 1, 2].map(caller)).then(() => undefined);
  ended.catch(() => undefined);
  return {
    stop: () => {
      stopped = true;
    },
    ended,
  };
}
