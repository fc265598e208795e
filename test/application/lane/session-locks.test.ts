import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BatchRefused, HistoryChanged, OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { type InstanceRegistration, SchemaTooNew } from "../../../src/ports/lease-store.ts";
import { MemorySessionLock } from "../../doubles/memory-session-lock.ts";
import { DURATION, type Holder, LANE, LeaseBench, RENEW } from "./lease-bench.ts";

let bench: LeaseBench;
beforeEach(() => {
  bench = new LeaseBench({ locks: true });
});
afterEach(() => bench.close());

/** Simulates kill −9: nothing that the node sends reaches the database any more, and its session ends. */
function kill({ store, lock }: Holder): void {
  store.cut();
  lock.cut();
}

const lost = (...holders: readonly Holder[]) => holders.flatMap(({ telemetry }) => telemetry.of("instance.lost"));
const declared = (...holders: readonly Holder[]) =>
  holders.flatMap(({ telemetry }) => telemetry.of("instance.declaredDead"));

/** Starts two nodes that have seen each other as live for a while. */
async function pair(): Promise<readonly [Holder, Holder]> {
  const both = [await bench.started("a"), await bench.started("b")] as const;
  await bench.clock.advance(5_000);
  return both;
}

describe("a node's crash", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/other-instances.ts
  it("is detected after two polls by the lost session lock", async () => {
    const [dying, heir] = await pair();
    await dying.store.acquireLane(LANE, dying.lease.instanceId);
    kill(dying);
    await bench.clock.advance(299);
    expect(declared(heir), "one look is not enough").toEqual([]);
    await bench.clock.advance(550);
    expect(declared(heir)).toMatchObject([{ instanceId: dying.lease.instanceId, evidence: "lock-gone" }]);
    expect(await heir.store.acquireLane(LANE, heir.lease.instanceId)).toMatchObject({ result: "takenOver" });
  });

  it("is detected sooner if a caller found the node unreachable", async () => {
    const [dying, heir] = await pair();
    await bench.clock.advance(150);
    kill(dying);
    heir.lease.suspect();
    await bench.clock.advance(310);
    expect(declared(heir)).toHaveLength(1);
  });

  it("causes at most ten polls of other instances a second", async () => {
    const [dying, heir] = await pair();
    await bench.clock.advance(150);
    let looks = 0;
    const instances = heir.store.instances.bind(heir.store);
    heir.store.instances = () => {
      looks++;
      return instances();
    };
    kill(dying);
    for (let i = 0; i < 100; i++) {
      heir.lease.suspect();
      await bench.clock.advance(1);
    }
    expect(looks).toBe(1);
  });

  it("is detected at once by a process that has just started", async () => {
    const dying = await bench.started("a");
    await bench.clock.advance(1_000);
    kill(dying);
    const heir = await bench.started("a");
    await bench.clock.advance(320);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
    expect(heir.noted).toEqual(["acquainted"]);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts, src/application/lane/other-instances.ts
  it("is detected in a new process's first poll if the lock was already gone", async () => {
    const dying = await bench.started("a");
    await bench.clock.advance(1_000);
    kill(dying);
    const heir = bench.holder("a");
    await bench.clock.advance(299);
    await heir.lease.start();
    expect(declared(heir), "that look was a moment too early").toEqual([]);
    await bench.clock.advance(6);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
    expect(heir.noted).toEqual(["acquainted"]);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts, src/application/lane/other-instances.ts
  it("is not assumed if the node's heartbeat counter moved after the observer's own session had begun", async () => {
    const living = await bench.started("a");
    await bench.clock.advance(1_000);
    living.lock.vanish();
    const observer = bench.holder("b");
    const row = bench.database.state.instances.get(living.lease.instanceId);
    await bench.clock.advance(400);
    if (row !== undefined) row.counter++;
    await observer.lease.start();
    await bench.clock.advance(200);
    expect(declared(observer)).toEqual([]);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("is detected only at the end of the lease if the database server has just started", async () => {
    const living = await bench.started("a");
    await bench.clock.advance(1_000);
    bench.database.restarted();
    living.store.pause();
    living.lock.cut();
    const observer = await bench.started("b");
    await bench.clock.advance(5_000);
    expect(declared(observer), "it may only not have come back yet").toEqual([]);
    living.store.resume();
    living.lock.heal();
    await bench.clock.advance(20_000);
    expect([...declared(observer), ...lost(living)]).toEqual([]);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/statements/node-instance.ts, src/application/lane/other-instances.ts
  it("is detected only at the end of the lease if the node held no session lock", async () => {
    const [dying, heir] = await pair();
    dying.lock.cut();
    await bench.clock.advance(100);
    dying.store.cut();
    await bench.clock.advance(2_000);
    expect(declared(heir)).toEqual([]);
    await bench.clock.advance(DURATION);
    expect(declared(heir)).toMatchObject([{ evidence: "expired" }]);
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("is detected only by the end of its lease at a node without a session lock", async () => {
    const [dying, heir] = await pair();
    heir.lock.cut();
    kill(dying);
    await bench.clock.advance(DURATION - RENEW - 1);
    expect(declared(heir)).toEqual([]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts
  it("is detected only at the end of the lease by a node whose own lock is not visible", async () => {
    const [dying, heir] = await pair();
    heir.store.publishLock = async () => "unseen";
    heir.lock.interrupt();
    await bench.clock.advance(3_000);
    kill(dying);
    await bench.clock.advance(1_500);
    expect(declared(heir)).toEqual([]);
  });

  it("is not assumed after two polls if the node's heartbeat counter moved between them", async () => {
    const [cut, observer] = await pair();
    cut.lock.vanish();
    const clock = bench.clock;
    for (let i = 0; i < 10; i++) {
      await clock.advance(250);
      const row = bench.database.state.instances.get(cut.lease.instanceId);
      if (row !== undefined) row.counter++;
    }
    expect(declared(observer)).toEqual([]);
  });
});

describe("when every database session of the server ends", () => {
  it.each(["and begins anew at once", "and it is minutes before one of them is back"])(
    "%s: no live node is declared dead",
    async (how) => {
      const nodes = [await bench.started("a"), await bench.started("b"), await bench.started("c")];
      await bench.clock.advance(5_000);
      const [slow, ...others] = nodes as [Holder, Holder, Holder];
      for (const { lock } of others) lock.interrupt();
      if (how.includes("minutes")) slow.lock.cut();
      else slow.lock.interrupt();
      await bench.clock.advance(120_000);
      slow.lock.heal();
      await bench.clock.advance(5_000);
      expect([...declared(...nodes), ...lost(...nodes)]).toEqual([]);
    },
  );

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts, src/application/lane/other-instances.ts
  it("a process without CPU time is not declared dead", async () => {
    const nodes = [await bench.started("a"), await bench.started("b"), await bench.started("c")];
    await bench.clock.advance(5_000);
    const [starved, ...others] = nodes as [Holder, Holder, Holder];
    bench.database.restarted();
    starved.store.pause();
    starved.lock.cut();
    for (const { lock } of others) lock.interrupt();
    await bench.clock.advance(5_000);
    starved.store.resume();
    starved.lock.heal();
    await bench.clock.advance(30_000);
    expect([...declared(...nodes), ...lost(...nodes)]).toEqual([]);
    expect(bench.database.state.locks.size).toBe(3);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts
  it("a starting process that lost its session declares no other process dead", async () => {
    const starved = await bench.started("a");
    await bench.clock.advance(5_000);
    const lock = new MemorySessionLock(bench.database);
    starved.store.pause();
    starved.lock.cut();
    lock.interrupt();
    await bench.clock.advance(100);
    const starting = await bench.started("b", lock);
    await bench.clock.advance(3_000);
    starved.store.resume();
    starved.lock.heal();
    await bench.clock.advance(30_000);
    expect([...declared(starting), ...lost(starved)]).toEqual([]);
  });

  it("later crashes are detected as before", async () => {
    const [dying, heir] = await pair();
    dying.lock.interrupt();
    heir.lock.interrupt();
    await bench.clock.advance(3_000);
    kill(dying);
    await bench.clock.advance(900);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
  });
});

describe("a live process that loses its database session", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts, src/application/stages/4-broadcast/broadcast.ts
  it("broadcasts nothing until the loss is published in the database", async () => {
    const [cut, observer] = await pair();
    expect(cut.lease.maySend()).toBe(true);
    cut.lock.cut();
    expect(cut.lease.maySend(), "at once").toBe(false);
    expect(cut.lease.mayAct(), "what is fenced goes on").toBe(true);
    await bench.clock.advance(10);
    expect(cut.lease.maySend(), "the others know that it holds none").toBe(true);
    await bench.clock.advance(60_000);
    expect([...declared(observer), ...lost(cut)]).toEqual([]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts, src/application/stages/4-broadcast/broadcast.ts
  it("broadcasts again only after a successful lease renewal", async () => {
    const [cut] = await pair();
    cut.store.publishLock = () => Promise.reject(new Error("no"));
    let release: () => void = () => undefined;
    const renew = cut.store.renewInstance.bind(cut.store);
    cut.store.renewInstance = async (...call) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return renew(...call);
    };
    await bench.clock.advance(RENEW);
    cut.lock.cut();
    release();
    await bench.clock.advance(100);
    expect(cut.lease.maySend(), "that one began before").toBe(false);
    await bench.clock.advance(RENEW);
    release();
    await bench.clock.advance(10);
    expect(cut.lease.maySend()).toBe(true);
  });

  it("publishes its next session lock at once", async () => {
    const [dying, heir] = await pair();
    dying.lock.interrupt();
    await bench.clock.advance(3_000);
    expect(dying.lease.maySend()).toBe(true);
    kill(dying);
    await bench.clock.advance(900);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts
  it("notices the loss by polling if it is not notified", async () => {
    const [deaf, observer] = await pair();
    const first = deaf.lock.held?.key;
    deaf.lock.vanish();
    deaf.lease.look();
    await bench.clock.advance(1_000);
    expect(deaf.lock.held?.key).not.toBe(first);
    await bench.clock.advance(30_000);
    expect([...declared(observer), ...lost(deaf)]).toEqual([]);
  });

  it("publishes its session lock again when a new instance is registered", async () => {
    const [one, other] = await pair();
    const first = one.lease.instanceId;
    Object.assign(bench.row(first) ?? {}, { dead: true });
    await bench.clock.advance(RENEW + 1_000);
    expect(one.lease.instanceId).not.toBe(first);
    expect(one.noted).toContain("silent");
    const rows = await other.store.instances();
    expect(rows.find(({ instanceId }) => instanceId === one.lease.instanceId)?.lock).toBe("held");
  });
});

describe("the loss of an instance", () => {
  it("is reported once, however often the registration of the next instance fails", async () => {
    const [silent] = await pair();
    const register = silent.store.registerInstance.bind(silent.store);
    silent.store.registerInstance = () => Promise.reject(new Error("away"));
    Object.assign(bench.row(silent.lease.instanceId) ?? {}, { dead: true });
    await bench.clock.advance(RENEW + 5_000);
    silent.store.registerInstance = register;
    await bench.clock.advance(1_000);
    expect(silent.telemetry.of("instance.registered")).toHaveLength(2);
    expect(silent.noted.filter((word) => word === "silent")).toHaveLength(1);
  });
});

describe("an instance registration whose response was lost", () => {
  // protects [Short of time] src/application/lane/lease.ts
  it("leaves no unused live instance behind", async () => {
    const [silent, other] = await pair();
    const register = silent.store.registerInstance.bind(silent.store);
    const unanswered: string[] = [];
    silent.store.registerInstance = async (registration) => {
      unanswered.push(registration.instanceId);
      await register(registration);
      silent.store.registerInstance = register;
      throw new OutcomeUnknown("no answer");
    };
    Object.assign(bench.row(silent.lease.instanceId) ?? {}, { dead: true });
    await bench.clock.advance(RENEW + 1_000);
    const alive = (await other.store.instances()).filter(({ dead }) => !dead).map(({ instanceId }) => instanceId);
    expect(unanswered).toHaveLength(1);
    expect(alive.toSorted()).toEqual([silent.lease.instanceId, other.lease.instanceId].toSorted());
  });

  // protects [Short of time] src/application/lane/lease.ts
  it("is remembered for a limited time", async () => {
    const { before, tries } = await failing(new OutcomeUnknown("no answer"));
    const [last, previous] = tries.toReversed();
    expect(tries.length).toBeGreaterThan(200);
    expect(last?.replaces, "what it was, and what it may have become last").toEqual(
      expect.arrayContaining([before, previous?.instanceId]),
    );
    expect(last?.replaces?.length).toBeLessThanOrEqual(20);
  });

  it.each([
    new SchemaTooNew("upgrade"),
    new StoreUnavailable("refused"),
    new BatchRefused("a name that is too long"),
    new HistoryChanged("another timeline"),
    // protects [Short of time] src/application/lane/lease.ts
  ])("is not remembered after $name", async (error) => {
    const { before, tries } = await failing(error);
    expect(tries.length).toBeGreaterThan(200);
    expect(tries.map(({ replaces }) => replaces)).toEqual(tries.map(() => [before]));
  });
});

/**
 * Counts how often a node tries to register within a minute, if it was declared dead and cannot register as a new
 * instance.
 */
async function failing(error: Error): Promise<{ before: string; tries: readonly InstanceRegistration[] }> {
  const { lease, store } = await bench.started("a");
  const tries: InstanceRegistration[] = [];
  store.registerInstance = async (registration) => {
    tries.push(registration);
    throw error;
  };
  Object.assign(bench.row(lease.instanceId) ?? {}, { dead: true });
  await bench.clock.advance(60_000);
  return { before: lease.instanceId, tries };
}

describe("a starting node's wait for the state of other instances", () => {
  it("ends at once if every other instance holds a lock", async () => {
    await bench.started("a");
    await bench.clock.advance(1_000);
    const comer = await bench.started("b");
    await bench.clock.advance(1);
    expect(comer.noted).toEqual(["acquainted"]);
  });

  it("lasts until an instance without a lock has renewed once", async () => {
    const silent = await bench.started("a");
    silent.lock.cut();
    await bench.clock.advance(1_000);
    const comer = await bench.started("b");
    await bench.clock.advance(RENEW - 1_100);
    expect(comer.noted).toEqual([]);
    await bench.clock.advance(1_000);
    expect(comer.noted).toEqual(["acquainted"]);
  });

  it("lasts until the lease of a dead instance without a lock expires", async () => {
    const dead = await bench.started("a");
    dead.lock.cut();
    await bench.clock.advance(100);
    dead.store.cut();
    const comer = await bench.started("b");
    await bench.clock.advance(DURATION - 200);
    expect(comer.noted).toEqual([]);
    await bench.clock.advance(700);
    expect(comer.noted).toEqual(["acquainted"]);
  });
});
