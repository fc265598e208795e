import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HistoryChanged } from "../../../src/ports/lane-store.ts";
import { SchemaTooNew } from "../../../src/ports/lease-store.ts";
import { DURATION, type Holder, LANE, LeaseBench, RENEW, SKEW } from "./lease-bench.ts";

let bench: LeaseBench;
beforeEach(() => {
  bench = new LeaseBench();
});
afterEach(() => bench.close());

describe("an instance of a node", () => {
  it("does not exist before the lease is started", () => {
    const { lease } = bench.holder("a");
    expect(lease.mayAct()).toBe(false);
    expect(() => lease.instanceId).toThrow("not registered an instance yet");
  });

  it("is registered at the start, and renewed at its interval", async () => {
    const { lease, telemetry, passed } = await bench.started("a");
    expect(bench.row(lease.instanceId)).toMatchObject({ nodeId: "a", url: "http://a", counter: 1, dead: false });
    expect(telemetry.of("instance.registered")).toMatchObject([{ instanceId: lease.instanceId, nodeId: "a" }]);
    await bench.clock.advance(RENEW - 1);
    expect(bench.row(lease.instanceId)?.counter).toBe(1);
    await bench.clock.advance(1);
    expect(bench.row(lease.instanceId)?.counter).toBe(2);
    await bench.clock.advance(10 * RENEW);
    expect(bench.row(lease.instanceId)?.counter).toBe(12);
    expect(passed.filter((name) => name === "lease.renewed").length).toBe(11);
    expect(lease.mayAct()).toBe(true);
  });

  it("makes the start fail if it cannot be registered", async () => {
    const { lease, store } = bench.holder("a");
    store.cut();
    await expect(lease.start()).rejects.toThrow("the database is away");
    expect(lease.mayAct()).toBe(false);
  });
});

describe("polling of other instances", () => {
  it.each([
    ["alone", [], 10],
    ["beside another", ["b"], 20],
    // protects [Many lanes] src/application/lane/lease.ts, src/application/lane/other-instances.ts
  ] as const)("by a node %s (other nodes: %s) happens %s times in ten seconds", async (_, others, looks) => {
    const { store } = await bench.started("a");
    for (const name of others) await bench.started(name);
    await bench.clock.advance(2_000);
    let asked = 0;
    const instances = store.instances.bind(store);
    store.instances = () => {
      asked++;
      return instances();
    };
    await bench.clock.advance(10_000);
    expect(asked).toBe(looks);
  });
});

describe("the lease deadline", () => {
  it("is the lease less the clock skew, counted from the start of the last renewal", async () => {
    const { lease, store } = await bench.started("a");
    await bench.clock.advance(RENEW);
    store.cut();
    await bench.clock.advance(DURATION - SKEW - 1);
    expect(lease.mayAct()).toBe(true);
    await bench.clock.advance(1);
    expect(lease.mayAct()).toBe(false);
  });

  it("is counted from the start of a slow renewal, not from its end", async () => {
    const { lease, store } = await bench.started("a");
    store.pause();
    await bench.clock.advance(RENEW + 5_000);
    store.resume();
    await bench.clock.advance(0);
    expect(bench.row(lease.instanceId)?.counter).toBe(2);
    store.cut();
    await bench.clock.advance(DURATION - SKEW - 5_000 - 1);
    expect(lease.mayAct()).toBe(true);
    await bench.clock.advance(1);
    expect(lease.mayAct()).toBe(false);
  });

  it("is counted, before the first renewal, from the start of the registration", async () => {
    const { lease, store } = bench.holder("a");
    store.pause();
    const starting = lease.start();
    await bench.clock.advance(DURATION - SKEW);
    store.resume();
    await bench.clock.advance(0);
    await starting;
    expect(lease.mayAct()).toBe(false);
  });

  it("does not move while the database is unavailable", async () => {
    const { lease, store } = await bench.started("a");
    let asked = 0;
    const renew = store.renewInstance.bind(store);
    store.renewInstance = (...parameters) => {
      asked++;
      return renew(...parameters);
    };
    store.cut();
    await bench.clock.advance(RENEW + 1_000);
    expect(asked).toBeGreaterThanOrEqual(5);
    store.heal();
    await bench.clock.advance(250);
    expect(bench.row(lease.instanceId)?.counter).toBe(2);
    await bench.clock.advance(DURATION - SKEW - 1);
    expect(lease.mayAct()).toBe(true);
  });

  it("is not affected by the wall clock", async () => {
    const { lease, store } = await bench.started("a");
    store.cut();
    bench.clock.stepWallClock(-3_600_000);
    await bench.clock.advance(DURATION);
    expect(lease.mayAct()).toBe(false);
  });
});

describe("an instance that can no longer be renewed", () => {
  async function expire(): Promise<Holder> {
    const made = await bench.started("a");
    made.store.cut();
    await bench.clock.advance(DURATION + 1);
    return made;
  }

  it("is replaced by a new instance before anything is signed or sent", async () => {
    const { lease, store, received, telemetry } = await expire();
    const first = lease.instanceId;
    store.heal();
    await bench.clock.advance(250);
    expect(lease.instanceId).not.toBe(first);
    expect(telemetry.of("instance.lost")).toMatchObject([{ instanceId: first }]);
    expect(received.filter((word) => word.startsWith("lost"))).toEqual(["lost, may act: false"]);
    expect(lease.mayAct()).toBe(true);
  });

  it("may sign nothing while no new instance can be registered", async () => {
    const { lease, store } = await expire();
    store.registerInstance = () => Promise.reject(new Error("no room"));
    store.heal();
    await bench.clock.advance(2_000);
    expect(lease.mayAct()).toBe(false);
  });

  it("raises one alert if the database schema is now too new", async () => {
    const { lease, store, telemetry } = await expire();
    store.registerInstance = () => Promise.reject(new SchemaTooNew("upgrade"));
    store.heal();
    await bench.clock.advance(2_000);
    expect(lease.mayAct()).toBe(false);
    const alerts = telemetry.of("alert").map(({ code, severity, message }) => [code, severity, message]);
    expect(alerts).toEqual([["SCHEMA_TOO_NEW", "CRITICAL", "upgrade"]]);
  });

  it("resolves its alert when the database schema is supported again", async () => {
    const { lease, store, telemetry } = await expire();
    const real = store.registerInstance;
    store.registerInstance = () => Promise.reject(new SchemaTooNew("upgrade"));
    store.heal();
    await bench.clock.advance(2_000);
    expect(telemetry.of("alert.resolved")).toEqual([]);
    store.registerInstance = real;
    await bench.clock.advance(2_000);
    expect(lease.mayAct()).toBe(true);
    expect(telemetry.of("alert.resolved")).toMatchObject([{ code: "SCHEMA_TOO_NEW" }]);
  });

  it("has ended if other instances declared it dead", async () => {
    const { lease, received } = await bench.started("a");
    const first = lease.instanceId;
    const record = bench.row(first);
    if (record !== undefined) Object.assign(record, { dead: true });
    await bench.clock.advance(RENEW);
    expect(lease.instanceId).not.toBe(first);
    expect(received).toContain("lost, may act: false");
  });
});

describe("a database whose history changed", () => {
  it("is noticed by a lease renewal even without writes", async () => {
    const { lease, received, telemetry } = await bench.started("a");
    const before = lease.instanceId;
    bench.database.changeHistory(true);
    await bench.clock.advance(RENEW);
    expect(received.slice(0, 2)).toEqual(["lost, may act: false", "lost, may act: false"]);
    expect(lease.instanceId).not.toBe(before);
    expect(lease.mayAct()).toBe(true);
    const codes = telemetry.events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
    expect(codes).toEqual(["DATABASE_HISTORY_CHANGED", "COMMITS_MAY_BE_LOST"]);
    expect(telemetry.events).toContainEqual({ type: "feed.epochBegun", epoch: 2, mayHaveLost: true });
  });

  it("leads to only one new instance if two writes notice the change", async () => {
    const { lease, telemetry } = await bench.started("a");
    const before = lease.instanceId;
    bench.database.changeHistory();
    lease.historyChanged(new HistoryChanged("a"));
    lease.historyChanged(new HistoryChanged("b"));
    expect(lease.mayAct(), "at once").toBe(false);
    await bench.clock.advance(10);
    expect(lease.instanceId).not.toBe(before);
    expect(telemetry.events.filter(({ type }) => type === "store.historyChanged")).toHaveLength(1);
    expect(telemetry.events.filter(({ type }) => type === "alert")).toHaveLength(1);
  });

  it("gets registration attempts at random intervals", async () => {
    const { lease, store } = await bench.started("a");
    bench.database.changeHistory();
    store.cut();
    lease.historyChanged(new HistoryChanged("a"));
    await bench.clock.advance(2_000);
    expect(lease.mayAct()).toBe(false);
    store.heal();
    await bench.clock.advance(375);
    expect(lease.mayAct()).toBe(true);
  });
});

describe("ending a lease", () => {
  it("releases the lanes and marks the instance dead if the lease is stopped", async () => {
    const { lease, store } = await bench.started("a");
    await store.acquireLane(LANE, lease.instanceId);
    await lease.stop();
    expect(bench.row(lease.instanceId)?.dead).toBe(true);
    expect([...bench.database.state.lanes.values()].map(({ owner }) => owner)).toEqual([null]);
    expect(lease.mayAct()).toBe(false);
    await bench.clock.advance(60_000);
    expect(bench.row(lease.instanceId)?.counter).toBe(1);
  });

  it("writes nothing to the database if the lease is abandoned", async () => {
    const { lease, store } = await bench.started("a");
    await store.acquireLane(LANE, lease.instanceId);
    await lease.abandon();
    expect(bench.row(lease.instanceId)?.dead).toBe(false);
    expect([...bench.database.state.lanes.values()].map(({ owner }) => owner)).toEqual([lease.instanceId]);
    expect(lease.mayAct()).toBe(false);
  });

  it("has nothing to release if the lease was never started", async () => {
    await bench.holder("a").lease.stop();
    expect(bench.database.state.instances.size).toBe(0);
  });
});
