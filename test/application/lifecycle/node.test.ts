import { afterEach, describe, expect, it } from "vitest";
import type { Admittance } from "../../../src/application/loops/reception.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { CHAIN_ID, SIGNERS, TO, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function create(entry: WorldNode, count: number, signer?: string): Promise<void> {
  const request = () => transfer(signer === undefined ? {} : { signer });
  await world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(request()))));
}

function owners(): readonly (string | null)[] {
  return [...world.database.state.lanes.values()].map(({ owner }) => owner);
}

describe("a draining node", () => {
  it("refuses creates but finishes its pending transactions", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 3);
    entry.node.drain();
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const batch = await world.settle(entry.node.api.createBatch([transfer(), transfer()]));
    expect(batch).toMatchObject([{ code: "UNAVAILABLE" }, { code: "UNAVAILABLE" }]);
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({
      ready: false,
      draining: true,
      database: true,
    });
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("reads no more rows of the intake table", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.node.drain();
    const loads: number[] = [];
    entry.store.whatWaits = async () => {
      loads.push(1);
      return { intents: false, requests: false };
    };
    await world.clock.advance(1_000);
    expect(loads).toEqual([]);
  });
});

describe("closing a node", () => {
  it("answers pending creates", async () => {
    world = new World();
    const entry = await world.startNode();
    const creates = Promise.all(Array.from({ length: 30 }, () => entry.node.api.create(transfer())));
    await world.settle(entry.node.close());
    expect((await creates).map(({ nonce }) => nonce)).toEqual(Array.from({ length: 30 }, (_, nonce) => nonce));
    expect(owners().every((owner) => owner === null)).toBe(true);
    expect([...world.database.state.instances.values()].every(({ dead }) => dead)).toBe(true);
    const sent = world.chain.witness.length;
    await world.clock.advance(60_000);
    expect(world.chain.witness.length).toBe(sent);
    expect(world.clock.armedTimers).toBe(1); // The only remaining timer is that of the simulated chain's next block.
  });

  it("ends in time if the database hangs", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 2);
    entry.store.pause();
    void entry.node.api.create(transfer()).catch(() => undefined);
    const startedMs = world.clock.monotonicMs();
    await world.settle(entry.node.close());
    expect(world.clock.monotonicMs() - startedMs).toBeLessThan(9_000);
  });

  it("ends in time if the chain does not respond at all", async () => {
    world = new World();
    let hang = false;
    const entry = await world.startNode({ latency: () => (hang ? new Promise(() => undefined) : Promise.resolve()) });
    await create(entry, 2);
    hang = true;
    await world.clock.advance(1_000);
    const startedMs = world.clock.monotonicMs();
    await world.settle(entry.node.close());
    expect(world.clock.monotonicMs() - startedMs).toBeLessThan(9_000);
  });

  it("hands over its lanes: another node claims them and finishes their transactions", async () => {
    world = new World();
    const leaving = await world.startNode();
    const heir = await world.startNode();
    for (const signer of SIGNERS) await create(leaving, 3, signer);
    world.holdBlocks();
    const closedAtMs = world.clock.monotonicMs();
    const closing = leaving.node.close();
    await world.until(() => heir.node.gauges().lanesHeld === SIGNERS.length, 5_000);
    expect(world.clock.monotonicMs() - closedAtMs).toBeLessThan(1_500);
    await world.settle(closing);
    world.releaseBlocks();
    await world.allSettled(9);
    checkInvariants(world);
  });

  it("ends at once if the node did nothing, and later creates get UNAVAILABLE", async () => {
    world = new World();
    const entry = await world.startNode();
    await world.settle(entry.node.close());
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("abandoning a node (closing it without a shutdown)", () => {
  it("releases no lane", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 3);
    const before = owners();
    await world.settle(entry.node.abandon());
    expect(owners()).toEqual(before);
    expect([...world.database.state.instances.values()].every(({ dead }) => !dead)).toBe(true);
    const sent = world.chain.witness.length;
    await world.clock.advance(60_000);
    expect(world.chain.witness.length).toBe(sent);
  });
});

describe("a node's gauges", () => {
  it("are zero at rest, except the number of lanes", async () => {
    world = new World();
    const { node } = await world.startNode();
    expect(node.gauges()).toEqual({
      lanesHeld: 3,
      writerQueueDepth: 0,
      signersAway: 0,
      pendingDepth: 0,
      noncesReserved: 0,
      oldestPendingAgeSeconds: 0,
      receiptBacklog: 0,
      killsInForce: 0,
      webhookLag: 0,
      webhookOldestSeconds: 0,
    });
  });

  it("count pending transactions", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_getBlockReceipts" });
    await create(entry, 4);
    await world.clock.advance(3_000);
    const gauges = entry.node.gauges();
    expect(gauges).toMatchObject({ pendingDepth: 4, receiptBacklog: 1 });
    expect(gauges.oldestPendingAgeSeconds).toBeGreaterThanOrEqual(3);
    expect(gauges.oldestPendingAgeSeconds).toBeLessThan(4);
  });

  it("count the writes that wait for the database", async () => {
    world = new World();
    const entry = await world.startNode();
    await create(entry, 1);
    entry.store.pause();
    const waiting = Promise.all(Array.from({ length: 5 }, () => entry.node.api.create(transfer({ requestId: null }))));
    await world.clock.advance(50);
    void entry.node.api.create(transfer({ requestId: null })).catch(() => undefined);
    await world.clock.advance(50);
    expect(entry.node.gauges().writerQueueDepth).toBeGreaterThan(0);
    entry.store.resume();
    await world.settle(waiting);
  });
});

describe("a node's readiness", () => {
  it("requires database and chain, and names what is missing", async () => {
    world = new World();
    const entry = await world.startNode();
    await world.clock.advance(500);
    const ready = await world.settle(entry.node.api.readiness());
    expect(ready).toMatchObject({ ready: true, database: true, draining: false });
    expect(ready.chains).toMatchObject([{ chainId: CHAIN_ID, reachable: true, head: world.chain.head.number }]);
    entry.faults.inject({ kind: "unavailable" });
    await world.clock.advance(500);
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({
      ready: false,
      chains: [{ reachable: false }],
    });
    entry.faults.heal();
    await world.clock.advance(500);
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({ ready: true });
    expect(entry.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["chain.unreachable", "chain.reachable"]),
    );
  });

  it("is false while the chain has never responded", async () => {
    world = new World();
    const entry = world.addNode();
    entry.faults.inject({ kind: "unavailable" });
    await world.settle(entry.node.start());
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({ ready: false, chains: [{ head: null }] });
  });

  it("is false past the node's own lease deadline, even if the database responds", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.store.renewInstance = () => Promise.reject(new Error("no"));
    await world.clock.advance(9_000);
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({ ready: false, database: false });
  });
});

describe("admission of creates at a node", () => {
  it("is open while the node holds its lease", async () => {
    world = new World();
    const entry = await world.startNode();
    expect(entry.node.reception.admittance()).toEqual({ kind: "open" });
  });

  // protects [Short of time] src/adapters/http/admission/admission-queue.ts, src/application/loops/reception.ts
  it("delays creates while the node recovers from a pause past its lease", async () => {
    world = new World();
    const entry = await world.startNode();
    const { monotonicMs } = world.clock;
    Object.assign(world.clock, { monotonicMs: () => monotonicMs() + 12_000 });
    const admittance = entry.node.reception.admittance();
    expect(admittance).toMatchObject({ kind: "soon" });
    expect(refusalOf(admittance)).toMatch(/^this node was not scheduled for 1\d{4} ms, and its lease ran out; nothing/);
    await world.clock.advance(3_500);
    expect(entry.node.reception.admittance()).toEqual({ kind: "open" });
  });

  it("is closed if the lease could not be renewed", async () => {
    world = new World();
    const entry = await world.startNode();
    entry.store.renewInstance = () => Promise.reject(new Error("no"));
    await world.clock.advance(9_000);
    expect(entry.node.reception.admittance()).toMatchObject({ kind: "closed" });
    expect(refusalOf(entry.node.reception.admittance())).toBe("this node's lease is not renewed; nothing was accepted");
    entry.node.drain();
    expect(refusalOf(entry.node.reception.admittance())).toBe("this node is shutting down");
  });

  it("is closed while the maximum number of creates is pending", async () => {
    world = new World({ node: { queueLimit: 0 } });
    const entry = await world.startNode();
    expect(entry.node.reception.admittance()).toMatchObject({ kind: "closed" });
    expect(refusalOf(entry.node.reception.admittance())).toBe("too many creates are waiting; nothing was accepted");
  });

  it("stays open without a lease if other nodes are live", async () => {
    world = new World();
    const entry = await world.startNode();
    await world.startNode();
    await world.clock.advance(2_000);
    entry.store.renewInstance = () => Promise.reject(new Error("no"));
    await world.clock.advance(9_000);
    expect(entry.node.reception.admittance()).toEqual({ kind: "open" });
  });
});

function refusalOf(admittance: Admittance): string {
  if (admittance.kind === "open") throw new Error("no create is refused");
  return admittance.refusal().message;
}

describe("a database whose history changed", () => {
  it("is noticed by the next lease renewal even without writes", async () => {
    world = new World();
    const entry = await world.startNode();
    world.database.changeHistory();
    await world.clock.advance(3_000);
    const alerts = () => entry.events.filter((event) => event.type === "alert");
    expect(alerts()).toMatchObject([{ code: "DATABASE_HISTORY_CHANGED", severity: "CRITICAL" }]);
    await world.clock.advance(60_000);
    expect(alerts()).toHaveLength(1);
    expect(await world.settle(entry.node.api.readiness())).toMatchObject({ ready: true });
    expect(entry.node.gauges().lanesHeld).toBe(SIGNERS.length);
  });
});

describe("claiming lanes after a takeover", () => {
  it("is retried until it succeeds, if the database is unavailable at first", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 3);
    world.holdBlocks();
    const heir = await world.startNode();
    const claim = heir.store.claimLanes.bind(heir.store);
    let failures = 3;
    heir.store.claimLanes = (...parameters) =>
      failures-- > 0 ? Promise.reject(new Error("away")) : claim(...parameters);
    world.crash(first);
    await world.until(() => heir.events.some(({ type }) => type === "lane.resumed"), 30_000);
    world.releaseBlocks();
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("retries the load of a claimed lane", async () => {
    world = new World();
    const first = await world.startNode();
    for (const signer of SIGNERS) await create(first, 2, signer);
    world.holdBlocks();
    const heir = await world.startNode();
    const load = heir.store.loadLane.bind(heir.store);
    let failures = 2;
    heir.store.loadLane = (fence) => (failures-- > 0 ? Promise.reject(new Error("away")) : load(fence));
    world.crash(first);
    await world.until(() => heir.node.gauges().lanesHeld === SIGNERS.length, 30_000);
    world.releaseBlocks();
    await world.allSettled(6);
    checkInvariants(world);
  });
});

describe("a node's stream of blocks", () => {
  it("is refused for a chain that is not configured", async () => {
    world = new World();
    const { node } = await world.startNode();
    const { signal } = new AbortController();
    expect(() => node.blocks(5, { depth: 1, signal })).toThrow(expect.objectContaining({ code: "UNKNOWN_CHAIN" }));
  });
});

it("an invalid request in a batch is refused alone, whatever is wrong with it", async () => {
  world = new World();
  const { node } = await world.startNode();
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const results = await world.settle(
    node.api.createBatch([transfer(), { signer: SIGNERS[0], payload: { to: TO }, metadata: circle }, transfer()]),
  );
  expect(results).toMatchObject([
    { nonce: 0 },
    { code: "INVALID_REQUEST", extras: { path: "metadata" } },
    { nonce: 1 },
  ]);
});
