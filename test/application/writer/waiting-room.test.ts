import { describe, expect, it } from "vitest";
import { Committer } from "../../../src/application/writer/committer.ts";
import { BatchRefused, type LaneWrite, StoreUnavailable, type TransitionItem } from "../../../src/ports/lane-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { allocation, completion, fence, idsOf, lane, moves, outcomeOf, ScriptedStore } from "./scripted-store.ts";

const ANSWERS_WAIT_MS = 200;
const RECEIPTS_WAIT_MS = 200;
const ENDINGS_WAIT_MS = 10_000;

function bench() {
  const clock = createManualClock();
  const store = new ScriptedStore();
  const committer = new Committer(
    { store, clock, telemetry: recordTelemetry(), entropy: createSeededEntropy(1) },
    { batchSize: 100, batchTimeoutMs: 5, shards: 64 },
    {
      onCommitted: () => undefined,
      onFenced: () => undefined,
      onHistoryChanged: () => undefined,
      onGivenUp: () => undefined,
    },
  );
  store.reply = (writes) => writes.map(outcomeOf);
  return { clock, store, committer };
}

function answered(txId: string, more: Partial<TransitionItem> = {}): TransitionItem {
  return { txId, event: "broadcast", from: "TRACKING", to: "TRACKING", subState: "BROADCAST", ...more };
}

function mined(txId: string, more: Partial<TransitionItem> = {}): TransitionItem {
  return { txId, event: "mine", from: "TRACKING", to: "TRACKING", subState: "MINED", ...more };
}

function answer(n: number, ...items: readonly TransitionItem[]): LaneWrite {
  return { kind: "transition", fence: fence(n), items };
}

function ending(n: number, throughBlock: number): LaneWrite {
  return { kind: "unwatch", fence: fence(n), throughBlock };
}

function endings(store: ScriptedStore): readonly number[] {
  return store.calls.flatMap(({ writes }) =>
    writes.flatMap((write) => (write.kind === "unwatch" ? write.throughBlock : [])),
  );
}

describe("the write of an accepted broadcast", () => {
  it("is committed alone after a time limit if no other write arrives", async () => {
    const { clock, store, committer } = bench();
    const written = committer.write(answer(1, answered("a")));
    await clock.advance(ANSWERS_WAIT_MS - 1);
    expect(store.calls).toEqual([]);
    await clock.advance(1);
    await expect(written).resolves.toMatchObject({ status: "applied" });
    expect(store.call(0).writes.map(idsOf)).toEqual([["a"]]);
  });

  // protects [Many lanes] src/application/writer/waiting-room.ts
  it("is committed together with the next write of the lane", async () => {
    const { clock, store, committer } = bench();
    void committer.write(answer(1, answered("a")));
    void committer.write(answer(2, answered("b")));
    await clock.advance(10);
    void committer.write(moves(1, "c"));
    await clock.advance(1);
    expect(store.calls.map(({ writes }) => writes.map(idsOf))).toEqual([[["a"], ["c"]]]);
  });

  it("does not wait longer because another write already waits", async () => {
    const { clock, store, committer } = bench();
    void committer.write(ending(2, 7));
    await clock.advance(1);
    void committer.write(answer(1, answered("a")));
    await clock.advance(ANSWERS_WAIT_MS);
    expect(store.calls.map(({ writes }) => writes.map(idsOf))).toEqual([[["a"]]]);
  });

  it("is overtaken by creates of its lane", async () => {
    const { clock, store, committer } = bench();
    void committer.write(answer(1, answered("a")));
    void committer.write(allocation(1, "b"));
    await clock.advance(1);
    expect(store.calls.map(({ writes }) => writes.map(idsOf))).toEqual([[["b"]]]);
  });

  it("does not wait if the broadcast's hash is stored nowhere else", async () => {
    const { clock, store, committer } = bench();
    const identified = { ordinal: 1, txHash: `0x${"1".repeat(64)}` } as const;
    void committer.write(answer(1, answered("a", { identified: identified as never })));
    void committer.write(answer(2, answered("b"), { ...answered("c"), event: "submitFailed" }));
    await clock.advance(1);
    expect(store.calls.flatMap(({ writes }) => writes.map(idsOf))).toEqual([["a"], ["b", "c"]]);
  });

  it("fails if the earlier write of the lane fails", async () => {
    const { clock, store, committer } = bench();
    store.reply = () => {
      throw new BatchRefused("no");
    };
    const refused = committer.write(moves(1, "a")).catch((error: unknown) => error);
    store.reply = () => {
      throw new StoreUnavailable("away");
    };
    const written = committer.write(answer(1, answered("b"))).catch((error: unknown) => error);
    await clock.advance(1);
    await expect(refused).resolves.toBeInstanceOf(StoreUnavailable);
    await expect(written).resolves.toMatchObject({ message: "the lane's earlier write failed" });
  });
});

describe("the write of a found receipt", () => {
  it("waits for the completion", async () => {
    const { clock, store, committer } = bench();
    void committer.write(answer(1, answered("a")));
    await clock.advance(ANSWERS_WAIT_MS - 1);
    void committer.write(answer(1, mined("a")));
    await clock.advance(RECEIPTS_WAIT_MS - 1);
    expect(store.calls).toEqual([]);
    void committer.write(completion(1, "a"));
    await clock.advance(1);
    const events = store.calls.map(({ writes }) =>
      writes.flatMap((write) => (write.kind === "transition" ? write.items.map(({ event }) => event) : [])),
    );
    expect(events).toEqual([["broadcast", "mine", "confirm"]]);
    await committer.idle();
    expect(clock.armedTimers, "no timer is left behind").toBe(0);
  });

  it("is committed without the completion after a time limit", async () => {
    const { clock, store, committer } = bench();
    const written = committer.write(answer(1, mined("a")));
    await clock.advance(RECEIPTS_WAIT_MS - 1);
    void committer.write(answer(1, answered("b")));
    await clock.advance(1);
    await expect(written).resolves.toMatchObject({ status: "applied" });
    expect(store.calls.map(({ writes }) => writes.map(idsOf))).toEqual([[["a"], ["b"]]]);
  });

  it("does not wait if it ends a STUCK state or adds an attempt of another program", async () => {
    const { clock, store, committer } = bench();
    void committer.write(answer(1, mined("a", { from: "STUCK" })));
    void committer.write(answer(2, mined("b", { attempt: {} as never })));
    await clock.advance(1);
    expect(store.calls.flatMap(({ writes }) => writes.map(idsOf))).toEqual([["a"], ["b"]]);
  });

  it("fails if the earlier write of the lane fails", async () => {
    const { clock, store, committer } = bench();
    store.reply = () => {
      throw new StoreUnavailable("away");
    };
    const refused = committer.write(moves(1, "a")).catch((error: unknown) => error);
    const written = committer.write(answer(1, mined("b"))).catch((error: unknown) => error);
    await clock.advance(1);
    await expect(refused).resolves.toBeInstanceOf(StoreUnavailable);
    await expect(written).resolves.toMatchObject({ message: "the lane's earlier write failed" });
  });
});

describe("the write that ends reorg monitoring", () => {
  // protects [Many lanes] src/application/writer/waiting-room.ts
  it("is made once for all blocks that were requested meanwhile", async () => {
    const { clock, store, committer } = bench();
    const first = committer.write(ending(1, 7));
    await clock.advance(ENDINGS_WAIT_MS - 1);
    const second = committer.write(ending(1, 9));
    expect(store.calls).toEqual([]);
    await clock.advance(1);
    expect(endings(store)).toEqual([9]);
    await expect(Promise.all([first, second])).resolves.toEqual([{ status: "done" }, { status: "done" }]);
  });

  it("never has a lower block than an earlier request", async () => {
    const { clock, store, committer } = bench();
    void committer.write(ending(1, 9));
    void committer.write(ending(1, 7));
    await clock.advance(ENDINGS_WAIT_MS);
    expect(endings(store)).toEqual([9]);
  });

  it("is not made earlier because of other writes of the lane", async () => {
    const { clock, store, committer } = bench();
    void committer.write(ending(1, 7));
    void committer.write(moves(1, "a"));
    await clock.advance(10);
    expect(store.calls.flatMap(({ writes }) => writes.map(({ kind }) => kind))).toEqual(["transition"]);
  });

  // protects [Reads] src/adapters/postgres/commit/commit.ts, src/application/writer/waiting-room.ts, src/application/stages/6-finality/finality.ts
  it("is made in parts with other writes in between", async () => {
    const { clock, store, committer } = bench();
    store.reply = null;
    const statuses: unknown[] = [];
    for (const block of [7, 9]) void committer.write(ending(1, block)).then(({ status }) => statuses.push(status));
    await clock.advance(ENDINGS_WAIT_MS);
    const created = committer.write(allocation(1, "a"));
    await clock.advance(1);
    store.call(0).answer([{ status: "unfinished" }]);
    await clock.advance(50);
    expect(store.call(1).writes.map(idsOf)).toEqual([["a"], ["unwatch"]]);
    store.call(1).answer([outcomeOf(allocation(1, "a")), { status: "unfinished" }]);
    await expect(created).resolves.toMatchObject({ status: "allocated" });
    await clock.advance(50);
    expect(statuses).toEqual([]);
    store.call(2).answer();
    await clock.advance(1);
    expect(endings(store)).toEqual([9, 9, 9]);
    expect(statuses).toEqual(["done", "done"]);
  });

  // protects [Reads] src/adapters/postgres/commit/commit.ts, src/application/writer/waiting-room.ts, src/application/stages/6-finality/finality.ts
  it("is made lane by lane", async () => {
    const { clock, store, committer } = bench();
    for (const n of [1, 2, 3]) void committer.write(ending(n, n));
    await clock.advance(ENDINGS_WAIT_MS);
    expect(endings(store)).toEqual([1]);
    void committer.write(ending(3, 4));
    await clock.advance(10);
    expect(endings(store)).toEqual([1, 2]);
    await clock.advance(10);
    expect(endings(store)).toEqual([1, 2, 4]);
  });

  it("rejects for every caller if it fails", async () => {
    const { clock, store, committer } = bench();
    store.reply = () => {
      throw new StoreUnavailable("away");
    };
    const results = [7, 9].map((block) => committer.write(ending(1, block)).catch(String));
    await clock.advance(ENDINGS_WAIT_MS);
    expect(await Promise.all(results)).toEqual(["StoreUnavailable: away", "StoreUnavailable: away"]);
  });
});

describe("waiting for a lane or for all lanes to be idle", () => {
  it.each([
    ["a lane", lane(1)],
    ["all", undefined],
    // protects [Many lanes] src/application/writer/waiting-room.ts
  ])("commits delayed writes at once: %s", async (_, which) => {
    const { clock, store, committer } = bench();
    void committer.write(answer(1, answered("a")));
    void committer.write(ending(1, 7));
    const idle = committer.idle(which);
    await clock.advance(1);
    await idle;
    expect(store.calls.flatMap(({ writes }) => writes.map(({ kind }) => kind))).toEqual(["transition", "unwatch"]);
    expect(clock.armedTimers, "no timer is left behind").toBe(0);
  });
});
