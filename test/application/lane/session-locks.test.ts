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

/** Kill −9: nothing of it reaches the database any more, and its session ends. */
function kill({ store, lock }: Holder): void {
  store.cut();
  lock.cut();
}

const lost = (...holders: readonly Holder[]) => holders.flatMap(({ telemetry }) => telemetry.of("instance.lost"));
const declared = (...holders: readonly Holder[]) =>
  holders.flatMap(({ telemetry }) => telemetry.of("instance.declaredDead"));

/** Two nodes that have known each other for a while. */
async function pair(): Promise<readonly [Holder, Holder]> {
  const both = [await bench.started("a"), await bench.started("b")] as const;
  await bench.clock.advance(5_000);
  return both;
}

describe("a crash", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/other-instances.ts
  it("is noticed by the end of the session lock, after two looks, long before the lease has run out", async () => {
    const [dying, heir] = await pair();
    await dying.store.acquireLane(LANE, dying.lease.instanceId);
    kill(dying);
    await bench.clock.advance(299);
    expect(declared(heir), "one look is not enough").toEqual([]);
    await bench.clock.advance(550);
    expect(declared(heir)).toMatchObject([{ instanceId: dying.lease.instanceId, evidence: "lock-gone" }]);
    expect(await heir.store.acquireLane(LANE, heir.lease.instanceId)).toMatchObject({ result: "takenOver" });
  });

  it("is noticed sooner where a caller found the node unreachable", async () => {
    const [dying, heir] = await pair();
    await bench.clock.advance(150);
    kill(dying);
    heir.lease.suspect();
    await bench.clock.advance(310);
    expect(declared(heir)).toHaveLength(1);
  });

  it("however many find it unreachable: others are looked at ten times a second, no more", async () => {
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

  it("is noticed at once by a process that has just started, if the server has been up for long enough", async () => {
    const dying = await bench.started("a");
    await bench.clock.advance(1_000);
    kill(dying);
    const heir = await bench.started("a");
    await bench.clock.advance(320);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
    expect(heir.noted).toEqual(["acquainted"]);
  });

  // protects [Processes that end, and those that only seem to] src/adapters/postgres/session/session-lock.ts, src/application/lane/other-instances.ts
  it("is noticed in its first look by a process that had missed the lock when its own session began", async () => {
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
  it("is not seen where there was a sign of life after the observer's own session had begun", async () => {
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
  it("is left to the lease by a process that has just started on a server that has, too", async () => {
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
  it("of an instance that told of no lock is seen by its lease alone", async () => {
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
  it("is seen by its lease alone by a node without a session lock", async () => {
    const [dying, heir] = await pair();
    heir.lock.cut();
    kill(dying);
    await bench.clock.advance(DURATION - RENEW - 1);
    expect(declared(heir)).toEqual([]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts
  it("is seen by its lease alone by a node that holds its lock on a server that the others do not look at", async () => {
    const [dying, heir] = await pair();
    heir.store.publishLock = async () => "unseen";
    heir.lock.interrupt();
    await bench.clock.advance(3_000);
    kill(dying);
    await bench.clock.advance(1_500);
    expect(declared(heir)).toEqual([]);
  });

  it("is not seen in two looks between which there was a sign of life", async () => {
    const [cut, observer] = await pair();
    cut.lock.vanish();
    const tell = bench.clock;
    for (let i = 0; i < 10; i++) {
      await tell.advance(250);
      const row = bench.database.state.instances.get(cut.lease.instanceId);
      if (row !== undefined) row.counter++;
    }
    expect(declared(observer)).toEqual([]);
  });
});

describe("every session of the server ends", () => {
  it.each(["and begins anew at once", "and it is minutes before one of them is back"])(
    "%s: no node is taken for dead",
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
  it("and one process is starved, so that it is silent for longer than all others need: none is declared dead", async () => {
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
  it("while a process starts and another is starved: one that lost a session before its first look judges no other", async () => {
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

  it("and afterwards a crash is noticed as before", async () => {
    const [dying, heir] = await pair();
    dying.lock.interrupt();
    heir.lock.interrupt();
    await bench.clock.advance(3_000);
    kill(dying);
    await bench.clock.advance(900);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
  });
});

describe("a live process that loses its session", () => {
  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts, src/application/stages/4-broadcast/broadcast.ts
  it("sends nothing until the database has heard of it again, and is not taken for dead", async () => {
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
  it("sends again once a renewal that began afterwards has succeeded, and by no other", async () => {
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

  it("tells of the next lock as soon as it holds one, and a crash after that is noticed", async () => {
    const [dying, heir] = await pair();
    dying.lock.interrupt();
    await bench.clock.advance(3_000);
    expect(dying.lease.maySend()).toBe(true);
    kill(dying);
    await bench.clock.advance(900);
    expect(declared(heir)).toMatchObject([{ evidence: "lock-gone" }]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/lease.ts
  it("and does not hear of it finds out by looking, as the others do, and begins another", async () => {
    const [deaf, observer] = await pair();
    const first = deaf.lock.held?.key;
    deaf.lock.vanish();
    deaf.lease.look();
    await bench.clock.advance(1_000);
    expect(deaf.lock.held?.key).not.toBe(first);
    await bench.clock.advance(30_000);
    expect([...declared(observer), ...lost(deaf)]).toEqual([]);
  });

  it("tells of the lock once more under a new instance", async () => {
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

describe("a silence", () => {
  it("is told once, however often the next instance could not be registered", async () => {
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

describe("a registration whose answer was lost", () => {
  // protects [Short of time] src/application/lane/lease.ts
  it("leaves no instance behind that others would place lanes on", async () => {
    const [silent, other] = await pair();
    const register = silent.store.registerInstance.bind(silent.store);
    const unheard: string[] = [];
    silent.store.registerInstance = async (registration) => {
      unheard.push(registration.instanceId);
      await register(registration);
      silent.store.registerInstance = register;
      throw new OutcomeUnknown("no answer");
    };
    Object.assign(bench.row(silent.lease.instanceId) ?? {}, { dead: true });
    await bench.clock.advance(RENEW + 1_000);
    const alive = (await other.store.instances()).filter(({ dead }) => !dead).map(({ instanceId }) => instanceId);
    expect(unheard).toHaveLength(1);
    expect(alive.toSorted()).toEqual([silent.lease.instanceId, other.lease.instanceId].toSorted());
  });

  // protects [Short of time] src/application/lane/lease.ts
  it("is remembered only while it matters: where the database never answers, the list does not grow", async () => {
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
  ])("is not what one is that certainly was not made: after $name nothing is remembered of it", async (error) => {
    const { before, tries } = await failing(error);
    expect(tries.length).toBeGreaterThan(200);
    expect(tries.map(({ replaces }) => replaces)).toEqual(tries.map(() => [before]));
  });
});

/** A node that was taken for dead and cannot become another instance: what it tried within a minute. */
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

describe("a node that comes", () => {
  it("knows where it stands at once where every instance shows a lock", async () => {
    await bench.started("a");
    await bench.clock.advance(1_000);
    const comer = await bench.started("b");
    await bench.clock.advance(1);
    expect(comer.noted).toEqual(["acquainted"]);
  });

  it("waits for a sign of life of an instance that shows none, and no longer", async () => {
    const silent = await bench.started("a");
    silent.lock.cut();
    await bench.clock.advance(1_000);
    const comer = await bench.started("b");
    await bench.clock.advance(RENEW - 1_100);
    expect(comer.noted).toEqual([]);
    await bench.clock.advance(1_000);
    expect(comer.noted).toEqual(["acquainted"]);
  });

  it("waits out the lease of an instance that is dead and never showed a lock", async () => {
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
