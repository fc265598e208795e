import { describe, expect, it } from "vitest";
import type { LedgerTransaction } from "../../src/domain/ledger/index.ts";
import { HistoryChanged, StoreUnavailable } from "../../src/ports/lane-store.ts";
import { epochsContract } from "../contracts/epochs.contract.ts";
import { figureStoreContract } from "../contracts/figure-store.contract.ts";
import { keyStoreContract } from "../contracts/key-store.contract.ts";
import { laneStoreContract } from "../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../contracts/lease-store.contract.ts";
import { queryStoreContract } from "../contracts/query-store.contract.ts";
import { sightStoreContract } from "../contracts/sight-store.contract.ts";
import type { StoreSubject } from "../contracts/store-subject.ts";
import { subscriberStoreContract } from "../contracts/subscriber-store.contract.ts";
import { allocate, anInstance, anIntent, holdLane, nonces } from "../support/lane-samples.ts";
import { enforced } from "../support/policies.ts";
import { createManualClock } from "./manual-clock.ts";
import { MemorySessionLock } from "./memory-session-lock.ts";
import { acceptIntents } from "./memory-store/queries.ts";
import { MemoryDatabase } from "./memory-store.ts";

async function createSubject(): Promise<StoreSubject> {
  const clock = createManualClock();
  const database = new MemoryDatabase(clock);
  return {
    connect: (policies) => enforced(database.connect(), policies),
    lock: async () => new MemorySessionLock(database),
    expire: async (instanceId) => {
      const row = database.state.instances.get(instanceId);
      if (row !== undefined) row.expiresAt = new Date(clock.now().getTime() - 1);
    },
    letApprovalExpire: async (txId) => {
      for (const [id, entry] of database.state.intake) {
        if (entry.intent.txId !== txId || entry.approval === null) continue;
        const approval = { ...entry.approval, expiresAt: new Date(clock.now().getTime() - 1) };
        database.state.intake.set(id, { ...entry, approval });
      }
    },
    letTimeEnd: async (txId) => {
      const validUntil = new Date(clock.now().getTime() - 1);
      const row = database.state.transactions.get(txId);
      const lane = row && database.state.lane(row.lane);
      if (row === undefined || lane === undefined) return;
      database.state.transactions.set(txId, { ...row, validUntil });
      const tx = { ...(lane.ledger.transactions.get(txId) as LedgerTransaction), validUntil };
      lane.ledger = { ...lane.ledger, transactions: lane.ledger.transactions.set(txId, tx) };
    },
    now: async () => clock.now(),
    tick: () => clock.advance(1),
    intake: async (...intents) => {
      for (const intent of intents) database.insertIntake(intent);
    },
    older: {
      leave: async (...intents) => {
        for (const intent of intents) database.insertIntake(intent, true);
      },
      accept: async (...txIds) => acceptIntents(database.state, txIds),
      declined: async (txId) => database.state.declined.get(txId) ?? null,
    },
    changeHistory: async () => database.changeHistory(true),
    close: async () => undefined,
  };
}

describe("injected faults of the in-memory store", () => {
  const world = async () => {
    const clock = createManualClock();
    const database = new MemoryDatabase(clock);
    const [store, other] = [database.connect(), database.connect()];
    return { clock, database, store, other, fence: await holdLane(store) };
  };

  it("make a single commit fail as the fault specifies", async () => {
    const { store, fence } = await world();
    for (const [fault, error, kept] of [
      ["unavailable", { name: "StoreUnavailable", busy: false }, false],
      ["busy", { name: "StoreUnavailable", busy: true }, false],
      ["unknown-lost", { name: "OutcomeUnknown" }, false],
      ["unknown-committed", { name: "OutcomeUnknown" }, true],
    ] as const) {
      const intent = anIntent(fence.lane);
      store.failNextCommit(fault);
      await expect(allocate(store, fence, [intent])).rejects.toMatchObject(error);
      expect((await store.transaction(intent.txId)) !== null).toBe(kept);
    }
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([1]);
  });

  it("delay the calls of a paused node, and of no other node", async () => {
    const { store, other, fence } = await world();
    store.pause();
    const settled: string[] = [];
    const held = store.ping().then(() => settled.push("paused"));
    await other.ping();
    expect(nonces(await allocate(other, fence, [anIntent(fence.lane)]))).toEqual([0]);
    expect(settled).toEqual([]);
    store.resume();
    await held;
    expect(settled).toEqual(["paused"]);
  });

  it("disconnect a node until it is healed", async () => {
    const { store, other } = await world();
    store.cut();
    await expect(store.feed(0, 1)).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(other.feed(0, 1)).resolves.toMatchObject({ epoch: 1 });
    store.heal();
    await expect(store.feed(0, 1)).resolves.toMatchObject({ epoch: 1 });
  });

  it("refuse a node that registered before the database was restored", async () => {
    const { database, store, other, fence } = await world();
    database.changeHistory();
    await expect(allocate(store, fence, [anIntent(fence.lane)])).rejects.toBeInstanceOf(HistoryChanged);
    await expect(store.renewInstance(fence.instanceId, 1_000)).rejects.toBeInstanceOf(HistoryChanged);
    await store.registerInstance(anInstance());
    await other.registerInstance(anInstance());
    expect(await store.feed(0, 1)).toMatchObject({ epoch: 2 });
  });
});

leaseStoreContract("in memory", createSubject);
laneStoreContract("in memory", createSubject);
queryStoreContract("in memory", createSubject);
figureStoreContract("in memory", createSubject);
sightStoreContract("in memory", createSubject);
epochsContract("in memory", createSubject);
keyStoreContract("in memory", createSubject);
subscriberStoreContract("in memory", createSubject);
