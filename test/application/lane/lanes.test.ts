import { beforeEach, describe, expect, it } from "vitest";
import { Lanes } from "../../../src/application/lane/lanes.ts";
import type { OwnedLane } from "../../../src/application/lane/owned-lane.ts";
import { TermOver } from "../../../src/application/lane/term.ts";
import { happened } from "../../../src/application/lane/tracked.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { type Lane, laneKey } from "../../../src/domain/lane.ts";
import { skippedHole } from "../../../src/domain/nonces/holes.ts";
import { countClaimed, countCompared, countReported, usedBelow } from "../../../src/domain/pace/count-events.ts";
import { HistoryChanged } from "../../../src/ports/lane-store.ts";
import { MemoryDatabase, type MemoryStore } from "../../doubles/memory-store.ts";
import { createChainBench, ENDLESS } from "../../support/chain-bench.ts";
import { type Deferred, deferred } from "../../support/deferred.ts";
import { CHAIN_ID, SIGNERS } from "../../support/world.ts";

const LANES: readonly Lane[] = SIGNERS.map((signer) => ({ chainId: CHAIN_ID, signer }));
const LANE = LANES[0] as Lane;
const REGISTRATION = {
  signers: [],
  chains: [],
  nodeId: "n",
  url: "http://n",
  version: "0",
  mode: "basic",
  leaseDurationMs: 1_000_000,
  standsBack: false,
  keysAway: [],
  publicKey: "k",
  keyProof: null,
} as const;

let bench: ReturnType<typeof createChainBench>;
let database: MemoryDatabase;
let store: MemoryStore;
let lanes: Lanes;
let resumed: OwnedLane[];
let mayAct: boolean;
let histories: HistoryChanged[];
let instanceId: string;
let writing: Deferred<void> | null;
let isForAnother: boolean;

beforeEach(async () => {
  bench = createChainBench();
  database = new MemoryDatabase(bench.clock);
  store = database.connect();
  resumed = [];
  mayAct = true;
  histories = [];
  writing = null;
  isForAnother = false;
  await register("mine");
  lanes = new Lanes({
    store,
    signer: { addresses: () => SIGNERS },
    clock: bench.clock,
    telemetry: bench.telemetry,
    failpoint: () => undefined,
    kills: { holds: () => false },
    lease: {
      get instanceId() {
        return instanceId;
      },
      mayAct: () => mayAct,
      maySend: () => mayAct,
      historyChanged: (error) => histories.push(error),
    },
    writer: { write: ENDLESS.writer.write, idle: async () => writing?.promise },
    chains: new Map([[CHAIN_ID, bench.context]]),
    placement: {
      isOurs: () => true,
      unownedAmong: async () => [],
      isForAnother: async () => isForAnother,
      refusal: async () => new FencepostError("UNKNOWN_SIGNER", "no live node holds the key"),
    },
    onResumed: (lane) => resumed.push(lane),
  });
});

async function register(name: string): Promise<void> {
  instanceId = name;
  await database.connect().registerInstance({ ...REGISTRATION, instanceId: name });
}

/** Makes another node the lane's owner. */
async function taken(lane: Lane = LANE): Promise<void> {
  const rival = database.connect();
  await rival.registerInstance({ ...REGISTRATION, instanceId: "rival", url: "http://rival" });
  await rival.acquireLane(lane, "rival");
}

function tokenOf(lane: Lane = LANE): number | undefined {
  return database.state.lanes.get(laneKey(lane))?.token;
}

function rest(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe("acquiring a lane", () => {
  it("succeeds for a free lane, and later calls return the lane from memory", async () => {
    const owned = await lanes.own(LANE);
    expect(owned.fence).toEqual({ lane: LANE, instanceId: "mine", token: 1 });
    expect(await lanes.own(LANE)).toBe(owned);
    expect([lanes.size, resumed]).toEqual([1, [owned]]);
    expect(bench.telemetry.of("lease.acquire")).toMatchObject([{ result: "acquired", token: 1 }]);
    expect(bench.telemetry.of("lane.resumed").length).toBe(1);
  });

  it("makes one attempt for any number of concurrent callers", async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => lanes.own(LANE)));
    expect(new Set(all).size).toBe(1);
    expect(bench.telemetry.of("lease.acquire").length).toBe(1);
  });

  it("is refused with the owner's URL if another node owns it", async () => {
    await taken();
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "NOT_LEADER", extras: { ownerUrl: "http://rival" } });
    expect(bench.telemetry.of("lease.acquire")).toMatchObject([{ result: "notLeader", token: null }]);
    expect(lanes.size).toBe(0);
  });

  it("is refused if the database's history changed", async () => {
    const error = new HistoryChanged("another timeline");
    store.acquireLane = () => Promise.reject(error);
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(histories).toEqual([error]);
  });

  it("is refused if placement assigns the lane to another node", async () => {
    isForAnother = true;
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
    expect(tokenOf()).toBeUndefined();
  });

  it("is refused for a signer whose key this node does not hold", async () => {
    const stranger = { chainId: CHAIN_ID, signer: `0x${"9".repeat(40)}` } as const;
    await expect(lanes.own(stranger)).rejects.toMatchObject({ code: "UNKNOWN_SIGNER" });
  });

  it("is refused past the node's own lease deadline, even for a lane it holds", async () => {
    await lanes.own(LANE);
    mayAct = false;
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is refused with the reason after the node was closed, except for lanes already held", async () => {
    const owned = await lanes.own(LANE);
    lanes.close("shutting down");
    expect(await lanes.own(LANE)).toBe(owned);
    await expect(lanes.own(LANES[1] as Lane)).rejects.toThrow("shutting down");
  });

  it("waits until earlier writes to the lane have ended", async () => {
    writing = deferred();
    const owning = lanes.own(LANE);
    await rest();
    expect(tokenOf()).toBeUndefined();
    writing.resolve();
    expect((await owning).fence.token).toBe(1);
  });

  it("fails with NOT_LEADER if the lane is lost between acquiring and loading", async () => {
    const acquire = store.acquireLane.bind(store);
    store.acquireLane = async (...parameters) => {
      const acquisition = await acquire(...parameters);
      const row = database.state.lanes.get(laneKey(LANE));
      if (row !== undefined) row.token++;
      return acquisition;
    };
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "NOT_LEADER", extras: { ownerUrl: null } });
  });

  it("fails if the node closes meanwhile, and no work on the lane begins", async () => {
    const load = store.loadLane.bind(store);
    store.loadLane = async (fence) => {
      lanes.close("shutting down");
      return load(fence);
    };
    await expect(lanes.own(LANE)).rejects.toThrow("shutting down");
    expect([lanes.size, resumed]).toEqual([0, []]);
  });

  it("fails if the instance ended meanwhile, and is retried under the new instance", async () => {
    const load = store.loadLane.bind(store);
    store.loadLane = async (fence) => {
      const snapshot = await load(fence);
      if (instanceId === "mine") {
        const old = database.state.instances.get("mine");
        if (old !== undefined) old.dead = true;
        await register("mine again");
        lanes.dropAll("the instance is over", "lost");
      }
      return snapshot;
    };
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(lanes.size).toBe(0);
    await lanes.retryWanted();
    expect(lanes.all().map(({ fence }) => fence)).toMatchObject([{ instanceId: "mine again", token: 2 }]);
  });
});

describe("claiming all free lanes", () => {
  it("acquires the lanes that no other node holds, and resumes them", async () => {
    await taken(LANES[1]);
    await lanes.claimAll();
    expect(lanes.all().map(({ lane }) => lane.signer)).toEqual(expect.arrayContaining([SIGNERS[0], SIGNERS[2]]));
    expect(lanes.size).toBe(2);
    expect(lanes.onChain(CHAIN_ID).length).toBe(2);
    expect(lanes.onChain(CHAIN_ID + 1)).toEqual([]);
  });

  it("sends no request for lanes that are already held", async () => {
    await lanes.claimAll();
    store.claimLanes = () => Promise.reject(new Error("asked again"));
    await lanes.claimAll();
    expect(lanes.claimOwed).toBe(false);
  });

  it("is repeated until it has succeeded", async () => {
    store.cut();
    await expect(lanes.claimAll()).rejects.toThrow("away");
    expect(lanes.claimOwed).toBe(true);
    store.heal();
    await lanes.claimAll();
    expect([lanes.claimOwed, lanes.size]).toEqual([false, 3]);
  });

  it("is repeated if a single acquisition was in progress", async () => {
    await taken();
    const acquire = store.acquireLane.bind(store);
    store.acquireLane = async (...parameters) => {
      const refused = await acquire(...parameters);
      const rival = database.state.instances.get("rival");
      if (rival !== undefined) rival.dead = true;
      await lanes.claimAll();
      return refused;
    };
    await expect(lanes.own(LANE)).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect([lanes.size, lanes.claimOwed]).toEqual([2, true]);
    await lanes.claimAll();
    expect([lanes.size, lanes.claimOwed]).toEqual([3, false]);
  });

  it("is not repeated after the node was closed", async () => {
    store.cut();
    await lanes.claimAll().catch(() => undefined);
    lanes.close("shutting down");
    await lanes.claimAll();
    expect(lanes.claimOwed).toBe(false);
  });

  it("does not reload a lane that a create has loaded meanwhile", async () => {
    const claim = store.claimLanes.bind(store);
    store.claimLanes = async (...parameters) => {
      const claimed = await claim(...parameters);
      await lanes.own(LANE);
      return claimed;
    };
    await lanes.claimAll();
    expect(resumed.filter(({ lane }) => lane.signer === LANE.signer).length).toBe(1);
    expect(resumed.every(({ term }) => !term.hasEnded)).toBe(true);
  });

  it("retries the load of a claimed lane later", async () => {
    const load = store.loadLane.bind(store);
    let failures = 1;
    store.loadLane = (fence) => (failures-- > 0 ? Promise.reject(new Error("away")) : load(fence));
    await lanes.claimAll();
    expect(lanes.size).toBe(2);
    await lanes.retryWanted();
    expect(lanes.size).toBe(3);
  });
});

describe("reloading a lane", () => {
  it("drops the state in memory and loads it again, with the same fencing token", async () => {
    const owned = await lanes.own(LANE);
    lanes.reload(owned, "a write failed");
    expect(owned.term.hasEnded).toBe(true);
    expect(lanes.size).toBe(0);
    expect(bench.telemetry.of("lane.stopped")).toMatchObject([{ reason: "a write failed" }]);
    await lanes.retryWanted();
    const again = await lanes.own(LANE);
    expect(again).not.toBe(owned);
    expect(again.fence).toEqual(owned.fence);
    expect(bench.telemetry.of("lease.acquire").map(({ result }) => result)).toEqual(["acquired", "kept"]);
  });

  // protects [Keys of the node, other chains, comparison] src/application/chain/counts.ts, src/application/lane/lanes.ts
  it("forgets all transaction counts read before the reload", async () => {
    const owned = await lanes.own(LANE);
    happened(owned, countCompared, { proven: 45, askedAtMs: 0, after: 0 });
    happened(owned, countClaimed, 45, 3);
    happened(owned, countReported, 45);
    lanes.reload(owned, "an operator lowered the cursor that a lie had raised");
    await lanes.retryWanted();
    const { pace } = await lanes.own(LANE);
    expect([pace.counts.comparedAtMs, pace.counts.claim, usedBelow(pace)]).toEqual([null, null, 0]);
  });

  it("works even if placement now assigns the lane to another node", async () => {
    const owned = await lanes.own(LANE);
    isForAnother = true;
    lanes.reload(owned, "a write failed");
    await lanes.retryWanted();
    expect((await lanes.own(LANE)).fence).toEqual(owned.fence);
  });

  it("does nothing if the loaded state was already dropped", async () => {
    const owned = await lanes.own(LANE);
    lanes.reload(owned, "first");
    await lanes.retryWanted();
    lanes.reload(owned, "second");
    expect(lanes.size).toBe(1);
    expect(bench.telemetry.of("lane.stopped").length).toBe(1);
  });

  it("is retried until the database responds", async () => {
    const owned = await lanes.own(LANE);
    store.cut();
    lanes.reload(owned, "away");
    await lanes.retryWanted();
    await lanes.retryWanted();
    expect(lanes.size).toBe(0);
    store.heal();
    await lanes.retryWanted();
    expect(lanes.size).toBe(1);
  });

  it("is given up if another node now owns the lane", async () => {
    const owned = await lanes.own(LANE);
    const row = database.state.lanes.get(laneKey(LANE));
    if (row !== undefined) row.owner = null;
    await taken();
    lanes.reload(owned, "a write failed");
    await lanes.retryWanted();
    const before = bench.telemetry.of("lease.acquire").length;
    await lanes.retryWanted();
    expect(bench.telemetry.of("lease.acquire").length).toBe(before);
  });

  it("waits while the node is past its own lease deadline", async () => {
    const owned = await lanes.own(LANE);
    lanes.reload(owned, "away");
    mayAct = false;
    await lanes.retryWanted();
    expect(lanes.size).toBe(0);
    mayAct = true;
    await lanes.retryWanted();
    expect(lanes.size).toBe(1);
  });

  it("only drops the lane after the node was closed", async () => {
    const owned = await lanes.own(LANE);
    lanes.close("shutting down");
    lanes.reload(owned, "away");
    await lanes.retryWanted();
    expect(lanes.size).toBe(0);
  });
});

describe("a commit's changes to a lane", () => {
  const left = { kind: "holeLeft", hole: skippedHole(3, new Date(0)) } as const;

  it("are applied to the owner's memory", async () => {
    const owned = await lanes.own(LANE);
    lanes.fold({ lane: LANE, token: 1, changes: [{ kind: "cursor", cursor: 9 }, left] });
    expect([owned.cursor, owned.nonces.holes]).toEqual([9, [left.hole]]);
  });

  it("are not applied to memory if the lane's fencing token differs", async () => {
    const owned = await lanes.own(LANE);
    lanes.fold({ lane: LANE, token: 2, changes: [left] });
    lanes.reload(owned, "again");
    lanes.fold({ lane: LANE, token: 1, changes: [left] });
    expect(owned.nonces.isWhole).toBe(true);
  });

  // protects [Reads] src/application/lane/lanes.ts
  it("cause a reload if they contradict the owner's memory", async () => {
    await lanes.own(LANE);
    lanes.fold({ lane: LANE, token: 1, changes: [left, left] });
    expect(bench.telemetry.of("lane.stopped")).toMatchObject([
      { reason: "memory and database differ: hole 3 exists already" },
    ]);
    await lanes.retryWanted();
    expect(lanes.size).toBe(1);
  });
});

describe("losing lanes", () => {
  it("drops a lane after a fenced write, and counts the event", async () => {
    const owned = await lanes.own(LANE);
    lanes.lose(owned.fence, "allocate");
    expect([owned.term.hasEnded, lanes.size]).toEqual([true, 0]);
    expect(bench.telemetry.of("lease.fenced")).toMatchObject([{ token: 1, write: "allocate", stoppedBy: "database" }]);
    await expect(owned.term.write({ kind: "expire" })).rejects.toThrow(TermOver);
    expect(bench.telemetry.of("lease.fenced"), "what comes later is too late").toHaveLength(2);
    expect(bench.telemetry.of("lane.stopped")).toMatchObject([{ reason: "fenced" }]);
  });

  it("ignores a late message about an older fencing token, and keeps the lane", async () => {
    const owned = await lanes.own(LANE);
    lanes.lose({ ...owned.fence, token: 0 }, "transition");
    expect([owned.term.hasEnded, lanes.size]).toEqual([false, 1]);
    expect(bench.telemetry.of("lease.fenced").length).toBe(1);
  });

  it("counts a write that was skipped past the node's own lease deadline as fenced", async () => {
    const { fence } = await lanes.own(LANE);
    lanes.giveUp(fence, "allocate");
    expect(bench.telemetry.of("lease.fenced"), "put off").toEqual([]);
    mayAct = false;
    lanes.giveUp(fence, "allocate");
    mayAct = true;
    await register("mine again");
    lanes.giveUp(fence, "transition");
    const late = { lane: LANE, token: 1, stoppedBy: "deadline" };
    expect(bench.telemetry.of("lease.fenced")).toMatchObject([
      { ...late, write: "allocate" },
      { ...late, write: "transition" },
    ]);
  });

  it("schedules no reload if all lanes are lost at once", async () => {
    await lanes.claimAll();
    expect(bench.telemetry.of("lanes.taken")).toEqual([{ type: "lanes.taken", acquired: LANES.length, takenOver: 0 }]);
    lanes.reload(lanes.all()[0] as OwnedLane, "away");
    lanes.dropAll("the instance is over", "lost");
    await lanes.retryWanted();
    expect(lanes.size).toBe(0);
    expect(resumed.every(({ term }) => term.hasEnded)).toBe(true);
    for (const { term } of resumed) await expect(term.write({ kind: "expire" })).rejects.toThrow(TermOver);
    expect(bench.telemetry.of("lease.fenced"), "one was put off before").toHaveLength(LANES.length - 1);
  });
});

it("a database failure while a lane is acquired is returned as 503 with its cause", async () => {
  store.cut();
  const failure = await lanes.own(LANE).catch((error: FencepostError) => error);
  expect(failure).toMatchObject({ code: "UNAVAILABLE", cause: { name: "StoreUnavailable" } });
});
