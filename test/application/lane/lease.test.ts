import { afterEach, describe, expect, it } from "vitest";
import { Lease } from "../../../src/application/lane/lease.ts";
import type { Failpoint } from "../../../src/ports/failpoints.ts";
import type { InstanceRecord } from "../../../src/ports/lease-store.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { MemoryDatabase, type MemoryStore } from "../../doubles/memory-store.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { type RecordedTelemetry, recordTelemetry } from "../../support/recorded-telemetry.ts";
import { NODE_SETTINGS, SIGNER } from "../../support/world.ts";

const DURATION = 10_000;
const RENEW = 3_000;
const SKEW = 1_000;
const LANE = { chainId: 1, signer: SIGNER };

interface Holder {
  readonly lease: Lease;
  readonly store: MemoryStore;
  readonly telemetry: RecordedTelemetry;
  /** What the node was told, and whether it might act at that moment. */
  readonly heard: string[];
  readonly passed: Failpoint[];
}

let clock: ManualClock;
let database: MemoryDatabase;
const holders: Holder[] = [];

function holder(name: string): Holder {
  const store = database.connect();
  const telemetry = recordTelemetry();
  const heard: string[] = [];
  const passed: Failpoint[] = [];
  const lease = new Lease(
    {
      store,
      clock,
      entropy: createSeededEntropy(holders.length + 1, clock),
      telemetry,
      failpoint: (failpoint) => void passed.push(failpoint),
      serving: () => ({ signers: [], chains: [] }),
    },
    { ...NODE_SETTINGS, nodeId: name, url: `http://${name}` },
    {
      onInstances: async () => undefined,
      onLost: () => heard.push(`lost, may act: ${lease.mayAct()}`),
      onFreed: () => heard.push("freed"),
      onHistoryChanged: (error) => heard.push(error.message),
    },
  );
  const made = { lease, store, telemetry, heard, passed };
  holders.push(made);
  return made;
}

function begin(): void {
  clock = createManualClock();
  database = new MemoryDatabase(clock);
}

async function started(name: string): Promise<Holder> {
  const made = holder(name);
  await made.lease.start();
  return made;
}

afterEach(async () => {
  for (const { lease, store } of holders.splice(0)) {
    store.resume();
    const over = lease.abandon();
    await clock.advance(1_000);
    await over;
  }
});

function row(instanceId: string): Omit<InstanceRecord, "expired" | "lanes"> | undefined {
  return database.state.instances.get(instanceId);
}

describe("an instance", () => {
  it("is none before it has started", () => {
    begin();
    const { lease } = holder("a");
    expect(lease.mayAct()).toBe(false);
    expect(() => lease.instanceId).toThrow("no instance yet");
  });

  it("is registered at the start, and renewed on its beat", async () => {
    begin();
    const { lease, telemetry, passed } = await started("a");
    expect(row(lease.instanceId)).toMatchObject({ nodeId: "a", url: "http://a", counter: 1, dead: false });
    expect(telemetry.of("instance.registered")).toMatchObject([{ instanceId: lease.instanceId, nodeId: "a" }]);
    await clock.advance(RENEW - 1);
    expect(row(lease.instanceId)?.counter).toBe(1);
    await clock.advance(1);
    expect(row(lease.instanceId)?.counter).toBe(2);
    await clock.advance(10 * RENEW);
    expect(row(lease.instanceId)?.counter).toBe(12);
    expect(passed.filter((name) => name === "lease.renewed").length).toBe(11);
    expect(lease.mayAct()).toBe(true);
  });

  it("that cannot be registered has not started", async () => {
    begin();
    const { lease, store } = holder("a");
    store.cut();
    await expect(lease.start()).rejects.toThrow("the database is away");
    expect(lease.mayAct()).toBe(false);
  });
});

describe("the deadline", () => {
  it("is the lease less the skew, counted from where the last renewal began", async () => {
    begin();
    const { lease, store } = await started("a");
    await clock.advance(RENEW);
    store.cut();
    await clock.advance(DURATION - SKEW - 1);
    expect(lease.mayAct()).toBe(true);
    await clock.advance(1);
    expect(lease.mayAct()).toBe(false);
  });

  it("counts from the beginning of a renewal that took long, not from its end", async () => {
    begin();
    const { lease, store } = await started("a");
    store.pause();
    await clock.advance(RENEW + 5_000);
    store.resume();
    await clock.advance(0);
    expect(row(lease.instanceId)?.counter).toBe(2);
    store.cut();
    await clock.advance(DURATION - SKEW - 5_000 - 1);
    expect(lease.mayAct()).toBe(true);
    await clock.advance(1);
    expect(lease.mayAct()).toBe(false);
  });

  it("counts from the beginning of the registration too", async () => {
    begin();
    const { lease, store } = holder("a");
    store.pause();
    const starting = lease.start();
    await clock.advance(DURATION - SKEW);
    store.resume();
    await clock.advance(0);
    await starting;
    expect(lease.mayAct()).toBe(false);
  });

  it("does not move while the database is away, which is asked more often meanwhile", async () => {
    begin();
    const { lease, store } = await started("a");
    let asked = 0;
    const renew = store.renewInstance.bind(store);
    store.renewInstance = (...parameters) => {
      asked++;
      return renew(...parameters);
    };
    store.cut();
    await clock.advance(RENEW + 1_000);
    expect(asked).toBe(5);
    store.heal();
    await clock.advance(250);
    expect(row(lease.instanceId)?.counter).toBe(2);
    await clock.advance(DURATION - SKEW - 1);
    expect(lease.mayAct()).toBe(true);
  });

  it("is not moved by the wall clock", async () => {
    begin();
    const { lease, store } = await started("a");
    store.cut();
    clock.stepWallClock(-3_600_000);
    await clock.advance(DURATION);
    expect(lease.mayAct()).toBe(false);
  });
});

describe("an instance that missed its renewal", () => {
  async function expire(): Promise<Holder> {
    begin();
    const made = await started("a");
    made.store.cut();
    await clock.advance(DURATION + 1);
    return made;
  }

  it("is over: the node goes on as a new one, and drops what it held before anything may act again", async () => {
    const { lease, store, heard, telemetry } = await expire();
    const first = lease.instanceId;
    store.heal();
    await clock.advance(250);
    expect(lease.instanceId).not.toBe(first);
    expect(telemetry.of("instance.lost")).toMatchObject([{ instanceId: first }]);
    expect(heard.filter((word) => word.startsWith("lost"))).toEqual(["lost, may act: false"]);
    expect(lease.mayAct()).toBe(true);
  });

  it("may not act while no new one is registered, however often that fails", async () => {
    const { lease, store } = await expire();
    store.registerInstance = () => Promise.reject(new Error("no room"));
    store.heal();
    await clock.advance(2_000);
    expect(lease.mayAct()).toBe(false);
  });

  it("by the word of others is over too, although its own deadline has not come", async () => {
    begin();
    const { lease, heard } = await started("a");
    const first = lease.instanceId;
    const record = row(first);
    if (record !== undefined) Object.assign(record, { dead: true });
    await clock.advance(RENEW);
    expect(lease.instanceId).not.toBe(first);
    expect(heard).toContain("lost, may act: false");
  });
});

describe("a database with another history", () => {
  it("is reported by whoever renews, also where nobody writes", async () => {
    begin();
    const { lease, heard } = await started("a");
    database.changeHistory();
    await clock.advance(RENEW);
    expect(heard).toEqual(["the database has another history"]);
    await clock.advance(DURATION);
    expect(lease.mayAct()).toBe(false);
  });
});

describe("other instances", () => {
  it("that are past by the database's clock are declared dead, soon after", async () => {
    begin();
    const dying = await started("a");
    const heir = await started("b");
    await dying.store.acquireLane(LANE, dying.lease.instanceId);
    dying.store.cut();
    await clock.advance(DURATION - 1);
    expect(heir.heard).toEqual([]);
    await clock.advance(501);
    expect(heir.telemetry.of("instance.declaredDead")).toMatchObject([
      { instanceId: dying.lease.instanceId, evidence: "expired" },
    ]);
    expect(heir.heard).toContain("freed");
    expect(await heir.store.acquireLane(LANE, heir.lease.instanceId)).toMatchObject({ result: "takenOver" });
  });

  it("whose counter stands still for lease and skew on our own clock are declared dead, whatever theirs says", async () => {
    begin();
    const dying = await started("a");
    const heir = await started("b");
    const record = row(dying.lease.instanceId);
    if (record !== undefined) Object.assign(record, { expiresAt: new Date(record.expiresAt.getTime() + 3_600_000) });
    dying.store.cut();
    await clock.advance(DURATION + SKEW);
    expect(heir.telemetry.of("instance.declaredDead")).toEqual([]);
    await clock.advance(1_000);
    expect(heir.telemetry.of("instance.declaredDead")).toMatchObject([{ evidence: "stood-still" }]);
  });

  it("that renew are left alone for ever", async () => {
    begin();
    const [one, other] = [await started("a"), await started("b")];
    await clock.advance(120_000);
    expect([one.heard, other.heard]).toEqual([[], []]);
    expect(one.telemetry.of("instance.declaredDead")).toEqual([]);
  });

  it("are not taken for dead because of a pause of our own", async () => {
    begin();
    const patient = await started("a");
    const paused = await started("b");
    await clock.advance(1_000);
    paused.store.pause();
    await clock.advance(60_000);
    paused.store.resume();
    await clock.advance(5_000);
    expect(paused.telemetry.of("instance.declaredDead").map(({ instanceId }) => instanceId)).not.toContain(
      patient.lease.instanceId,
    );
  });

  it("that renewed in the very instant are not declared dead: the counter decides", async () => {
    begin();
    const rival = await started("a");
    const judge = await started("b");
    const declare = judge.store.declareDead.bind(judge.store);
    const verdicts: boolean[] = [];
    judge.store.declareDead = async (instanceId, counter, evidence) => {
      const record = row(instanceId);
      if (record !== undefined) Object.assign(record, { counter: record.counter + 1 });
      const verdict = await declare(instanceId, counter, evidence);
      verdicts.push(verdict);
      return verdict;
    };
    rival.store.cut();
    await clock.advance(DURATION + 1_000);
    expect(verdicts[0]).toBe(false);
    expect(judge.heard).toEqual([]);
  });

  it("that ended by their own word free their lanes too, and somebody must notice", async () => {
    begin();
    const leaving = await started("a");
    const heir = await started("b");
    await clock.advance(1_000);
    await leaving.lease.stop();
    await clock.advance(500);
    expect(heir.heard).toEqual(["freed"]);
    await clock.advance(60_000);
    expect(heir.heard).toEqual(["freed"]);
  });

  it("that came and went between two looks are noticed as well", async () => {
    begin();
    const heir = await started("b");
    await clock.advance(600);
    const brief = await started("a");
    await brief.lease.stop();
    await clock.advance(500);
    expect(heir.heard).toEqual(["freed"]);
  });

  it("whose row is gone altogether are noticed as well", async () => {
    begin();
    const heir = await started("b");
    const vanished = await started("a");
    await clock.advance(600);
    vanished.store.cut();
    database.state.instances.delete(vanished.lease.instanceId);
    await clock.advance(600);
    expect(heir.heard).toEqual(["freed"]);
  });

  it("are all tried, and those that were freed are told of, although one of them fails", async () => {
    begin();
    const heir = await started("c");
    const dying = [await started("a"), await started("b")];
    const declare = heir.store.declareDead.bind(heir.store);
    let calls = 0;
    heir.store.declareDead = (...parameters) =>
      ++calls === 2 ? Promise.reject(new Error("away")) : declare(...parameters);
    for (const { store } of dying) store.cut();
    await clock.advance(DURATION + 600);
    expect(heir.heard.filter((word) => word === "freed").length).toBeGreaterThanOrEqual(2);
    expect(heir.telemetry.of("instance.declaredDead").length).toBe(2);
  });

  it("are judged by nobody who is past its own deadline", async () => {
    begin();
    const [one, other] = [await started("a"), await started("b")];
    let looks = 0;
    const instances = other.store.instances.bind(other.store);
    other.store.instances = () => {
      looks++;
      return instances();
    };
    other.store.renewInstance = () => Promise.reject(new Error("no"));
    await clock.advance(DURATION - SKEW);
    const before = looks;
    await clock.advance(5_000);
    expect(looks).toBe(before);
    expect(one.lease.mayAct()).toBe(true);
  });
});

describe("the end", () => {
  it("by stop: lanes released, the instance dead, nothing more may act", async () => {
    begin();
    const { lease, store } = await started("a");
    await store.acquireLane(LANE, lease.instanceId);
    await lease.stop();
    expect(row(lease.instanceId)?.dead).toBe(true);
    expect([...database.state.lanes.values()].map(({ owner }) => owner)).toEqual([null]);
    expect(lease.mayAct()).toBe(false);
    await clock.advance(60_000);
    expect(row(lease.instanceId)?.counter).toBe(1);
  });

  it("by abandon: not a word to the database", async () => {
    begin();
    const { lease, store } = await started("a");
    await store.acquireLane(LANE, lease.instanceId);
    await lease.abandon();
    expect(row(lease.instanceId)?.dead).toBe(false);
    expect([...database.state.lanes.values()].map(({ owner }) => owner)).toEqual([lease.instanceId]);
    expect(lease.mayAct()).toBe(false);
  });

  it("before a beginning has nothing to retire", async () => {
    begin();
    await holder("a").lease.stop();
    expect(database.state.instances.size).toBe(0);
  });
});
