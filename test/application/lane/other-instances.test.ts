import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DURATION, type Holder, LANE, LeaseBench, SKEW } from "./lease-bench.ts";

const LONG_LEASE = { durationMs: 60_000, renewIntervalMs: 20_000, clockSkewMs: SKEW };

let bench: LeaseBench;
beforeEach(() => {
  bench = new LeaseBench();
});
afterEach(() => bench.close());

/**
 * Stops an instance's renewals, but makes its row expire only in an hour, as if the database's clock had jumped back by
 * an hour.
 */
function stayUnexpired({ lease, store }: Holder): void {
  const later = (time: Date) => new Date(time.getTime() + 3_600_000);
  const record = bench.row(lease.instanceId);
  if (record !== undefined)
    Object.assign(record, { heartbeatAt: later(record.heartbeatAt), expiresAt: later(record.expiresAt) });
  store.cut();
}

describe("other instances of the cluster", () => {
  it("are declared dead soon after they have expired by the database's clock", async () => {
    const dying = await bench.started("a");
    const heir = await bench.started("b");
    await dying.store.acquireLane(LANE, dying.lease.instanceId);
    dying.store.cut();
    await bench.clock.advance(DURATION - 1);
    expect(heir.received).toEqual([]);
    await bench.clock.advance(501);
    expect(heir.telemetry.of("instance.declaredDead")).toMatchObject([
      { instanceId: dying.lease.instanceId, evidence: "expired" },
    ]);
    expect(heir.received).toContain("freed");
    expect(await heir.store.acquireLane(LANE, heir.lease.instanceId)).toMatchObject({ result: "takenOver" });
  });

  it("are declared dead if their counter is unchanged for a lease plus clock skew", async () => {
    const dying = await bench.started("a");
    const heir = await bench.started("b");
    stayUnexpired(dying);
    await bench.clock.advance(DURATION + SKEW - 1);
    expect(heir.telemetry.of("instance.declaredDead")).toEqual([]);
    await bench.clock.advance(1_000);
    expect(heir.telemetry.of("instance.declaredDead")).toMatchObject([{ evidence: "stood-still" }]);
  });

  it("are never declared dead if they renew in time", async () => {
    const [one, other] = [await bench.started("a"), await bench.started("b")];
    await bench.clock.advance(120_000);
    expect([one.received, other.received]).toEqual([[], []]);
    expect(one.telemetry.of("instance.declaredDead")).toEqual([]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/other-instances.ts
  it("are not declared dead early if their lease is longer than this node's lease", async () => {
    const slow = await bench.started("a", undefined, LONG_LEASE);
    const quick = await bench.started("b");
    await bench.clock.advance(180_000);
    expect(quick.telemetry.of("instance.declaredDead")).toEqual([]);
    expect([slow.received, quick.received]).toEqual([[], []]);
  });

  // protects [Processes that end, and those that only seem to] src/application/lane/other-instances.ts
  it("are declared dead after their own lease even if this node's lease is longer", async () => {
    const dying = await bench.started("a");
    const heir = await bench.started("b", undefined, LONG_LEASE);
    stayUnexpired(dying);
    await bench.clock.advance(DURATION + SKEW - 1);
    expect(heir.telemetry.of("instance.declaredDead")).toEqual([]);
    await bench.clock.advance(1_000);
    expect(heir.telemetry.of("instance.declaredDead")).toMatchObject([{ evidence: "stood-still" }]);
  });

  it("are declared dead after their own lease even if this node's lease is shorter", async () => {
    const dying = await bench.started("a", undefined, LONG_LEASE);
    const heir = await bench.started("b");
    stayUnexpired(dying);
    await bench.clock.advance(LONG_LEASE.durationMs + SKEW - 1);
    expect(heir.telemetry.of("instance.declaredDead")).toEqual([]);
    await bench.clock.advance(1_000);
    expect(heir.telemetry.of("instance.declaredDead")).toMatchObject([{ evidence: "stood-still" }]);
  });

  it("are not declared dead after a pause of this node itself", async () => {
    const patient = await bench.started("a");
    const paused = await bench.started("b");
    await bench.clock.advance(1_000);
    paused.store.pause();
    await bench.clock.advance(60_000);
    paused.store.resume();
    await bench.clock.advance(5_000);
    expect(paused.telemetry.of("instance.declaredDead").map(({ instanceId }) => instanceId)).not.toContain(
      patient.lease.instanceId,
    );
  });

  it("are not declared dead if their row was read slowly", async () => {
    await bench.started("a");
    const slow = await bench.started("b");
    const instances = slow.store.instances.bind(slow.store);
    let reads = 0;
    slow.store.instances = async () => {
      const read = await instances();
      if (++reads === 2) await bench.clock.sleep(DURATION + 2 * SKEW);
      return read;
    };
    const verdicts: string[] = [];
    slow.store.declareDead = async (instanceId) => {
      verdicts.push(instanceId);
      return false;
    };
    await bench.clock.advance(60_000);
    expect(reads).toBeGreaterThan(2);
    expect(verdicts).toEqual([]);
  });

  it("stay alive if they renew just before they are declared dead", async () => {
    const rival = await bench.started("a");
    const judge = await bench.started("b");
    const declare = judge.store.declareDead.bind(judge.store);
    const verdicts: boolean[] = [];
    judge.store.declareDead = async (instanceId, counter, evidence) => {
      const record = bench.row(instanceId);
      if (record !== undefined) Object.assign(record, { counter: record.counter + 1 });
      const verdict = await declare(instanceId, counter, evidence);
      verdicts.push(verdict);
      return verdict;
    };
    rival.store.cut();
    await bench.clock.advance(DURATION + 1_000);
    expect(verdicts[0]).toBe(false);
    expect(judge.received).toEqual([]);
  });

  it("free their lanes when they shut down gracefully", async () => {
    const leaving = await bench.started("a");
    const heir = await bench.started("b");
    await bench.clock.advance(1_000);
    await leaving.lease.stop();
    await bench.clock.advance(500);
    expect(heir.received).toEqual(["freed"]);
    await bench.clock.advance(60_000);
    expect(heir.received).toEqual(["freed"]);
  });

  it("are noticed even if they started and stopped between two polls", async () => {
    const heir = await bench.started("b");
    await bench.clock.advance(600);
    const brief = await bench.started("a");
    await brief.lease.stop();
    await bench.clock.advance(1_000);
    expect(heir.received).toEqual(["freed"]);
  });

  it("are treated as gone if their row was deleted", async () => {
    const heir = await bench.started("b");
    const vanished = await bench.started("a");
    await bench.clock.advance(600);
    vanished.store.cut();
    bench.database.state.instances.delete(vanished.lease.instanceId);
    await bench.clock.advance(600);
    expect(heir.received).toEqual(["freed"]);
  });

  it("are all processed even if one instance cannot be declared dead", async () => {
    const heir = await bench.started("c");
    const dying = [await bench.started("a"), await bench.started("b")];
    const declare = heir.store.declareDead.bind(heir.store);
    let calls = 0;
    heir.store.declareDead = (...parameters) =>
      ++calls === 2 ? Promise.reject(new Error("away")) : declare(...parameters);
    for (const { store } of dying) store.cut();
    await bench.clock.advance(DURATION + 600);
    expect(heir.received.filter((word) => word === "freed").length).toBeGreaterThanOrEqual(2);
    expect(heir.telemetry.of("instance.declaredDead").length).toBe(2);
  });

  it("are not declared dead by a node that is past its own lease deadline", async () => {
    const [one, other] = [await bench.started("a"), await bench.started("b")];
    let looks = 0;
    const instances = other.store.instances.bind(other.store);
    other.store.instances = () => {
      looks++;
      return instances();
    };
    other.store.renewInstance = () => Promise.reject(new Error("no"));
    await bench.clock.advance(DURATION - SKEW);
    const before = looks;
    await bench.clock.advance(5_000);
    expect(looks).toBe(before);
    expect(one.lease.mayAct()).toBe(true);
  });
});
