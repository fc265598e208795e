import { describe, expect, it } from "vitest";
import type { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { Housekeeping, type HousekeepingPorts, type Retention } from "../../../src/application/loops/housekeeping.ts";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import { keptOf } from "../../../src/domain/ledger/index.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import type { RetentionStore } from "../../../src/ports/retention-store.ts";
import { noWakeUps } from "../../../src/ports/wake-ups.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { aLane } from "../../support/lane-samples.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";

const HOUR_MS = 3_600_000;
const ROUND_MS = 60_000;

interface Wishes {
  readonly lanes?: readonly Partial<OwnedLane>[];
  readonly requestIdAgeMs?: number | null;
  readonly store?: Partial<RetentionStore>;
}

function aHousehold({ lanes = [], requestIdAgeMs = null, store = {} }: Wishes = {}) {
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const calls: string[] = [];
  const stopping = new AbortController();
  const failures: unknown[] = [];
  const noted =
    <A extends unknown[], R>(name: string, work: (...args: A) => Promise<R>) =>
    (...args: A) => {
      calls.push(name);
      return work(...args);
    };
  const all: Retention["store"] = {
    shortenFeed: async () => ({ completions: 0, oldestAt: null }),
    lanesWithOld: async (asked) => asked,
    abandonedLanes: async () => [],
    removeOld: async () => 0,
    forgetRequestIds: async () => 0,
    forgetNotices: async () => 0,
    forgetSubscriberDecisions: async () => 0,
    ...store,
  };
  const named = Object.entries(all).map(([name, work]) => [name, noted(name, work as () => Promise<unknown>)]);
  const retention = {
    store: Object.fromEntries(named) as unknown as Retention["store"],
    ageMs: 90 * 24 * HOUR_MS,
    requestIdAgeMs,
  };
  const housekeeping = new Housekeeping(
    { clock, telemetry, retention, wakeUps: noWakeUps, store: leases(calls) },
    {
      lanes: () => lanes as readonly OwnedLane[],
      instanceId: () => "instance",
      signal: stopping.signal,
      onFailed: (error) => failures.push(error),
    },
  );
  return { housekeeping, clock, telemetry, calls, stopping, failures };
}

function anOwnedLane(wishes: Partial<OwnedLane> = {}): Partial<OwnedLane> {
  const lane: Lane = aLane();
  const fence: Fence = { lane, instanceId: "instance", token: 1 };
  return { lane, fence, ledger: ledgerOf(true), heldByHistory: false, ...wishes };
}

function ledgerOf(reconciled: boolean): OwnedLane["ledger"] {
  return keptOf({ cursor: 0, suspendedBy: null, reconciled, holes: [], reservations: [] });
}

/** A store in which every lane except those of chain 404 can be acquired. */
function leases(calls: string[]): HousekeepingPorts["store"] {
  return {
    acquireLane: async (lane, instanceId) => {
      calls.push("acquireLane");
      const owner = { instanceId: "other", nodeId: "other", url: "", expiresAt: new Date(0) };
      if (lane.chainId === 404) return { result: "notLeader", owner };
      return { result: "takenOver", fence: { lane, instanceId, token: 7 } };
    },
    releaseLane: async () => calls.push("releaseLane") > 0,
  };
}

describe("housekeeping (retention)", () => {
  // protects [Retention] src/application/loops/housekeeping.ts, src/adapters/postgres/stores/old-rows.ts
  it("deletes old rows of a lane whose key no node holds", async () => {
    const abandoned = [aLane(), { ...aLane(), chainId: 404 }];
    const left = [100, 100, 5];
    const fences: (readonly Fence[])[] = [];
    const store: Partial<RetentionStore> = {
      abandonedLanes: async () => abandoned,
      removeOld: async (asked) => {
        fences.push(asked);
        return left.shift() ?? 0;
      },
    };
    const { housekeeping, clock, calls, telemetry } = aHousehold({ store });
    housekeeping.look();
    await clock.runUntilIdle();
    const taken = { lane: abandoned[0], instanceId: "instance", token: 7 };
    expect(fences).toEqual(Array.from({ length: 5 }, () => [taken]));
    const [take, drop] = ["acquireLane", "releaseLane"];
    const worked = calls.filter((call) => call !== "shortenFeed");
    const removals = Array.from({ length: 4 }, () => "removeOld");
    const lookAgain = [take, "removeOld", drop];
    expect(worked).toEqual([
      "abandonedLanes",
      "lanesWithOld",
      take,
      ...removals,
      drop,
      ...lookAgain,
      take,
      "forgetNotices",
      "forgetSubscriberDecisions",
    ]);
    expect(telemetry.of("retention.round")).toMatchObject([{ transactions: 205 }]);
  });

  // protects [Retention] src/application/loops/housekeeping.ts, src/adapters/postgres/stores/old-rows.ts
  it("releases an acquired lane after some batches", async () => {
    let batches = 0;
    const removeOld = async () => {
      if (++batches > 15) throw new Error("gone");
      return 1;
    };
    const abandonedLanes = async () => [aLane()];
    const { housekeeping, clock, calls, failures } = aHousehold({ store: { abandonedLanes, removeOld } });
    housekeeping.look();
    await clock.runUntilIdle();
    const worked = calls.filter((call) => /Lane$/.test(call));
    expect(worked).toEqual(["acquireLane", "releaseLane", "acquireLane", "releaseLane"]);
    expect(batches).toBe(16);
    expect(failures).toHaveLength(1);
  });

  it("does nothing if retention is not configured", async () => {
    const clock = createManualClock();
    const instanceId = () => "instance";
    const household = { lanes: () => [], instanceId, signal: new AbortController().signal, onFailed: () => undefined };
    const ports = { clock, telemetry: recordTelemetry(), wakeUps: noWakeUps, store: leases([]) };
    const housekeeping = new Housekeeping(ports, household);
    housekeeping.look();
    await housekeeping.settled();
    expect(clock.armedTimers).toBe(0);
  });

  it("shortens the feed before it deletes transactions, once a minute", async () => {
    const { housekeeping, clock, calls, telemetry } = aHousehold({ lanes: [anOwnedLane()] });
    housekeeping.look();
    housekeeping.look();
    await clock.runUntilIdle();
    const { length } = calls;
    expect(calls).toEqual([
      ...["shortenFeed", "lanesWithOld", "removeOld", "abandonedLanes", "forgetNotices", "forgetSubscriberDecisions"],
    ]);
    await clock.advance(ROUND_MS - 1);
    housekeeping.look();
    await clock.runUntilIdle();
    expect(calls).toHaveLength(length);
    await clock.advance(1);
    housekeeping.look();
    await clock.runUntilIdle();
    expect(calls).toHaveLength(2 * length);
    expect(telemetry.of("retention.round")).toHaveLength(2);
  });

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/application/loops/housekeeping.ts
  it("deletes batch after batch until nothing is left, with a pause after each", async () => {
    const left = [500, 500, 3];
    const shortenFeed = async () => ({ completions: left.shift() ?? 0, oldestAt: new Date(0) });
    const { housekeeping, clock, calls, telemetry } = aHousehold({ store: { shortenFeed } });
    housekeeping.look();
    await clock.advance(0);
    expect(calls.filter((call) => call === "shortenFeed")).toHaveLength(1);
    expect(clock.armedTimers).toBe(1);
    await clock.runUntilIdle();
    expect(telemetry.of("retention.round")).toMatchObject([{ completions: 1_003 }]);
  });

  // protects [Retention] src/adapters/postgres/stores/old-rows.ts, src/application/loops/housekeeping.ts
  it("skips lanes suspended after the database's history changed", async () => {
    const [fine, unreconciled, held] = [
      anOwnedLane(),
      anOwnedLane({ ledger: ledgerOf(false) }),
      anOwnedLane({ heldByHistory: true }),
    ];
    const asked: (readonly Fence[])[] = [];
    const removeOld: RetentionStore["removeOld"] = async (fences) => {
      asked.push(fences);
      return 0;
    };
    const { housekeeping, clock } = aHousehold({ lanes: [fine, unreconciled, held], store: { removeOld } });
    housekeeping.look();
    await clock.runUntilIdle();
    expect(asked).toEqual([[fine.fence]]);
  });

  it("leaves a locked lane for the next round", async () => {
    const lanes = Array.from({ length: 9 }, () => anOwnedLane());
    let batches = 0;
    const removeOld: RetentionStore["removeOld"] = async () => {
      if (++batches === 1) throw new StoreUnavailable("locked", { busy: true });
      return batches === 2 ? 1 : 0;
    };
    const { housekeeping, clock, telemetry, failures } = aHousehold({ lanes, store: { removeOld } });
    housekeeping.look();
    await clock.runUntilIdle();
    expect(telemetry.of("retention.round")).toMatchObject([{ transactions: 1 }]);
    expect(failures).toEqual([]);
  });

  it("deletes request ids only if a maximum age is configured", async () => {
    const left = [2];
    const forgetting = aHousehold({
      requestIdAgeMs: HOUR_MS,
      store: { forgetRequestIds: async () => left.shift() ?? 0 },
    });
    forgetting.housekeeping.look();
    await forgetting.clock.runUntilIdle();
    expect(forgetting.telemetry.of("retention.round")).toMatchObject([{ requestIds: 2 }]);
    const keeping = aHousehold();
    keeping.housekeeping.look();
    await keeping.clock.runUntilIdle();
    expect(keeping.calls).not.toContain("forgetRequestIds");
  });

  it("reports a failure, and runs again in the next round", async () => {
    const shortenFeed = async () => Promise.reject(new StoreUnavailable("away"));
    const { housekeeping, clock, failures, calls } = aHousehold({ store: { shortenFeed } });
    housekeeping.look();
    await clock.runUntilIdle();
    expect(failures).toHaveLength(1);
    await clock.advance(ROUND_MS);
    housekeeping.look();
    await clock.runUntilIdle();
    expect(calls.filter((call) => call === "shortenFeed")).toHaveLength(2);
  });

  it("stops in the middle of a round if the node stops", async () => {
    const shortenFeed = async () => ({ completions: 500, oldestAt: null });
    const { housekeeping, clock, stopping, calls } = aHousehold({ lanes: [anOwnedLane()], store: { shortenFeed } });
    housekeeping.look();
    await clock.advance(30);
    stopping.abort();
    await housekeeping.settled();
    expect(calls).not.toContain("removeOld");
  });
});
