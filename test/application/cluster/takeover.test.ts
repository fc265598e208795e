import { afterEach, describe, expect, it } from "vitest";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNER, SIGNERS, transfer, World, type WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function create(entry: WorldNode, count: number): Promise<void> {
  await world.settle(Promise.all(Array.from({ length: count }, () => entry.node.api.create(transfer()))));
}

describe("two nodes", () => {
  it("do not share a lane in basic mode", async () => {
    world = new World({ node: { mode: "basic" } });
    const first = await world.startNode();
    const second = await world.startNode();
    await create(first, 1);
    await expect(world.settle(second.node.api.create(transfer()))).rejects.toMatchObject({
      code: "NOT_LEADER",
      extras: { ownerUrl: "http://node-1" },
    });
    expect(world.tokenOf(SIGNER)).toBe(1);
  });

  it("confirm every transaction once if the first node closes gracefully", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 40);
    const second = await world.startNode();
    await world.settle(first.node.close());
    expect((await world.settle(second.node.api.create(transfer()))).nonce).toBe(40);
    await world.allSettled(41);
    checkInvariants(world);
    expect(world.tokenOf(SIGNER)).toBe(2);
  });

  it("confirm every transaction once if the first node loses the database past its lease", async () => {
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
    expect(world.tokenOf(SIGNER)).toBeGreaterThan(1);
  });

  it("replace each other even if the database's clock jumps back", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 3);
    const instance = [...world.database.state.instances.values()][0];
    world.crash(first);
    // The database's clock is an hour behind after a standby was promoted, so no lease expires by that clock for a long
    // time.
    const later = (time: Date) => new Date(time.getTime() + 3_600_000);
    const { heartbeatAt, expiresAt } = instance as NonNullable<typeof instance>;
    Object.assign(instance as object, { heartbeatAt: later(heartbeatAt), expiresAt: later(expiresAt) });
    const second = await world.startNode();
    await world.until(() => second.events.some(({ type }) => type === "instance.declaredDead"), 30_000);
    expect(second.events).toContainEqual(
      expect.objectContaining({ type: "instance.declaredDead", evidence: "stood-still" }),
    );
    await world.allSettled(3);
    checkInvariants(world);
  });

  it("replace each other within the lease duration + 1 s after a crash", async () => {
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

describe("crashed, restarted and joining nodes:", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/other-instances.ts
  it("after a crash, another node accepts creates within a second", async () => {
    world = new World({ sessionLocks: true });
    const first = await world.startNode();
    const second = await world.startNode();
    await create(first, 3);
    await world.clock.advance(5_000);
    const crashedAt = world.clock.monotonicMs();
    world.crash(first);
    await create(second, 1);
    expect(world.clock.monotonicMs() - crashedAt).toBeLessThanOrEqual(1_000);
    await world.allSettled(4);
    checkInvariants(world);
  });

  // protects [Processes that end, and those that only seem to] src/application/loops/reception.ts, src/application/queries/readiness.ts
  it("a node restarted after a crash is ready within half a second", async () => {
    world = new World({ sessionLocks: true });
    const first = await world.startNode();
    await create(first, 3);
    await world.clock.advance(5_000);
    world.crash(first);
    const again = await world.startNode();
    const startedAt = world.clock.monotonicMs();
    expect((await again.node.api.readiness()).ready, "not before it knows what became of the one before").toBe(false);
    await world.settle(again.node.settlingIn.whenOver());
    expect((await again.node.api.readiness()).ready).toBe(true);
    const readyAt = world.clock.monotonicMs();
    expect(readyAt - startedAt).toBeLessThanOrEqual(500);
    await create(again, 1);
    expect(world.clock.monotonicMs() - readyAt, "at once").toBeLessThanOrEqual(20);
    await world.allSettled(4);
    checkInvariants(world);
  });

  // protects [Processes that end, and those that only seem to] src/application/loops/reception.ts, src/application/queries/reads.ts
  it("a node behind a connection pooler is ready only when it can accept creates", async () => {
    world = new World();
    const first = await world.startNode();
    await create(first, 1);
    await world.clock.advance(1_000);
    world.crash(first);
    const again = await world.startNode();
    for (let ready = false; !ready; ready = (await again.node.api.readiness()).ready) await world.clock.advance(100);
    const readyAt = world.clock.monotonicMs();
    await create(again, 1);
    expect(world.clock.monotonicMs() - readyAt).toBeLessThanOrEqual(20);
  });

  it("a node that joins a live node is ready at once", async () => {
    world = new World({ sessionLocks: true });
    const first = await world.startNode();
    await create(first, 1);
    await world.clock.advance(1_000);
    const joining = await world.startNode();
    await world.clock.advance(50);
    expect((await joining.node.api.readiness()).ready).toBe(true);
    await create(joining, 1);
  });
});

describe("a live node that loses its database session", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts, src/application/stages/4-broadcast/broadcast.ts
  it("broadcasts nothing until its heartbeat is renewed", async () => {
    world = new World({ sessionLocks: true });
    const first = await world.startNode();
    const second = await world.startNode();
    await world.clock.advance(5_000);
    const publish = first.store.publishLock.bind(first.store);
    const renew = first.store.renewInstance.bind(first.store);
    first.store.publishLock = () => Promise.reject(new StoreUnavailable("away"));
    first.store.renewInstance = () => Promise.reject(new StoreUnavailable("away"));
    const signer = SIGNERS.find((each) => world.ownerOf(each) === "node-1") ?? SIGNER;
    first.lock?.cut();
    second.lock?.cut();
    const sent = world.chain.witness.length;
    await world.settle(first.node.api.create(transfer({ signer })));
    await world.clock.advance(2_000);
    expect(world.chain.witness.length).toBe(sent);
    Object.assign(first.store, { publishLock: publish, renewInstance: renew });
    await world.until(() => world.chain.witness.length > sent, 4_000);
    await world.allSettled(1);
    const lost = [first, second].flatMap(({ events }) => events.filter(({ type }) => type === "instance.lost"));
    expect(lost).toEqual([]);
    checkInvariants(world);
  });
});

describe("a node without a signer's key", () => {
  it("never acquires the signer's lane", async () => {
    world = new World();
    const entry = await world.startNode({ signers: SIGNERS.slice(1) });
    await expect(world.settle(entry.node.api.create(transfer()))).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
    expect([...world.database.state.lanes.values()].map(({ lane }) => lane.signer)).not.toContain(SIGNER);
  });
});
