import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WriterSettings } from "../../../src/application/settings.ts";
import { WORTH_A_COMMIT } from "../../../src/application/writer/batch.ts";
import { Committer } from "../../../src/application/writer/committer.ts";
import { HistoryChanged, OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { type RecordedTelemetry, recordTelemetry } from "../../support/recorded-telemetry.ts";
import { allocation, completion, fence, idsOf, lane, moves, outcomeOf, ScriptedStore } from "./scripted-store.ts";

interface Bench {
  readonly committer: Committer;
  readonly store: ScriptedStore;
  readonly clock: ManualClock;
  readonly telemetry: RecordedTelemetry;
  readonly fenced: string[];
  readonly histories: HistoryChanged[];
  readonly givenUp: string[];
}

function bench(settings: Partial<WriterSettings> = {}, callersWait = () => false): Bench {
  const clock = createManualClock();
  const store = new ScriptedStore();
  const telemetry = recordTelemetry();
  const fenced: string[] = [];
  const histories: HistoryChanged[] = [];
  const givenUp: string[] = [];
  const committer = new Committer(
    { store, clock, telemetry, entropy: createSeededEntropy(1), callersWait },
    { batchSize: 10, batchTimeoutMs: 5, shards: 64, ...settings },
    {
      onCommitted: () => undefined,
      onFenced: (lost, write) => fenced.push(`${lost.lane.signer.slice(-1)} ${write}`),
      onHistoryChanged: (error) => histories.push(error),
      onGivenUp: (fence, write) => givenUp.push(`${fence.lane.signer.slice(-1)} ${write}`),
    },
  );
  return { committer, store, clock, telemetry, fenced, histories, givenUp };
}

function names(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `t${index}`);
}

/** Tracks the state of a promise: open, done or failed. */
function watch<T>(promise: Promise<T>): { state: "open" | "done" | "failed"; error: unknown; value: T | undefined } {
  const seen: ReturnType<typeof watch<T>> = { state: "open", error: null, value: undefined };
  promise.then(
    (value) => Object.assign(seen, { state: "done", value }),
    (error) => Object.assign(seen, { state: "failed", error }),
  );
  return seen;
}

describe("creates in the committer", () => {
  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("do not wait while two database transactions with state transitions are in flight", async () => {
    const { committer, store, clock } = bench({ shards: 4_096 });
    for (const n of [1, 2]) {
      void committer.write(moves(n, `m${n}`));
      await clock.advance(20);
    }
    void committer.write(moves(3, "m3"));
    void committer.write(allocation(4, "a"));
    await clock.advance(40);
    expect(store.calls.map(({ writes }) => writes.map(idsOf))).toEqual([[["m1"]], [["m2"]], [["a"]]]);
    void committer.write(allocation(5, "b"));
    await clock.advance(40);
    expect(store.inFlight, "creates share a transaction, and wait for the one under way").toBe(3);
  });

  // protects [Short of time] src/application/writer/batch.ts
  it("get their results before state transitions, whose results are returned in portions", async () => {
    const { committer, store, clock } = bench({ batchSize: 100, shards: 4_096 });
    const turn: string[] = [];
    const note = (name: string) => () => void turn.push(name);
    for (const [at, name] of names(40).entries()) void committer.write(moves(at + 1, name)).then(note("move"));
    void committer.write(allocation(50, "a")).then(note("create"));
    await clock.advance(0);
    const idle = watch(committer.idle());
    const movesSeen: number[] = [];
    clock.soon(function look() {
      movesSeen.push(turn.filter((name) => name === "move").length);
      if (movesSeen.length < 9) clock.soon(look);
    });
    store.call(0).answer();
    await clock.advance(1);
    expect(turn[0]).toBe("create");
    expect([...new Set(movesSeen.filter((count) => count > 0))]).toEqual([16, 32, 40]);
    expect(idle.state).toBe("done");
  });
});

describe("the committer, while requests wait to be read", () => {
  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("delays state transitions until no request waits", async () => {
    let waiting = 100;
    const { committer, store, clock } = bench({}, () => waiting > 0);
    void committer.write(moves(1, "a"));
    await clock.advance(500);
    expect(store.calls).toEqual([]);
    waiting = 0;
    await clock.advance(20);
    expect(store.call(0).writes.map(idsOf)).toEqual([["a"]]);
  });

  it("does not delay state transitions if a handover waits for an idle lane", async () => {
    const { committer, store, clock } = bench({}, () => true);
    store.reply = (writes) => writes.map(outcomeOf);
    void committer.write(moves(1, "a"));
    await clock.advance(100);
    expect(store.calls).toEqual([]);
    const idle = committer.idle(lane(1));
    await clock.advance(50);
    await idle;
    expect(store.calls.length).toBe(1);
  });

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("delays state transitions for a second at most", async () => {
    const { committer, store, clock } = bench({}, () => true);
    void committer.write(moves(1, "a"));
    await clock.advance(1_020);
    expect(store.call(0).writes.map(idsOf)).toEqual([["a"]]);
  });

  it("does not delay creates", async () => {
    const { committer, store, clock } = bench({}, () => true);
    void committer.write(moves(1, "a"));
    await clock.advance(100);
    void committer.write(allocation(1, "b"));
    await clock.advance(1);
    expect(store.call(0).writes.map(idsOf)).toEqual([["b"]]);
  });
});

/**
 * Number of small commits that may start without waiting after a pause. At a low rate, a commit uses up a tenth of the
 * usual interval between commits, and three intervals may be used in advance.
 */
const AT_ONCE = 30;

describe("a commit of queued writes", () => {
  it("contains all writes of the event-loop turn if no other commit is in flight", async () => {
    const { committer, store, clock } = bench();
    void committer.write(moves(1, "a"));
    void committer.write(moves(2, "b"));
    expect(store.calls).toEqual([]);
    await clock.advance(0);
    expect(store.call(0).writes.map(idsOf)).toEqual([["a"], ["b"]]);
    expect(committer.depth).toBe(0);
  });

  it("starts beside another commit once the oldest queued write is old enough", async () => {
    const { committer, store, clock } = bench();
    void committer.write(moves(1, "a"));
    await clock.advance(0);
    void committer.write(moves(2, "b"));
    await clock.advance(4);
    void committer.write(moves(3, "c"));
    expect(store.calls.length).toBe(1);
    await clock.advance(1);
    expect(store.call(1).writes.map(idsOf)).toEqual([["b"], ["c"]]);
    expect(committer.depth).toBe(0);
  });

  // protects [Many lanes] src/application/writer/committer.ts
  it("is delayed to collect several writes while small writes keep arriving", async () => {
    const { committer, store, clock } = bench({ batchSize: 1_000, shards: 1_024 });
    const during = async (milliseconds: number): Promise<void> => {
      for (let ms = 0; ms < milliseconds; ms++) {
        for (let n = 0; n < 4; n++) void committer.write(moves(4 * ms + n, `t${ms}.${n}`));
        await clock.advance(1);
        for (const call of store.calls) call.answer();
      }
    };
    await during(600);
    const before = store.calls.length;
    await during(600);
    await clock.advance(20);
    expect(store.calls.flatMap(({ writes }) => writes.map(idsOf)).length).toBe(4_800);
    expect(store.calls.length - before).toBeLessThanOrEqual(600 / 12 + 5);
  });

  it("is made more often if fewer writes arrive", async () => {
    const { committer, store, clock } = bench({ batchSize: 1_000, shards: 1_024 });
    for (let n = 0; n < 600; n++) {
      void committer.write(moves(n, `t${n}`));
      await clock.advance(1);
      for (const call of store.calls) call.answer();
    }
    expect(store.calls.length).toBeGreaterThan(300);
  });

  // protects [Many lanes] src/application/writer/committer.ts
  it("is not delayed after a pause, or if the writes fill a transaction", async () => {
    const { committer, store, clock } = bench({ batchSize: 30 });
    for (let n = 0; n < AT_ONCE; n++) {
      void committer.write(moves(n, `t${n}`));
      await clock.advance(0);
      store.call(n).answer();
      await clock.advance(0);
    }
    expect(store.calls.length).toBe(AT_ONCE);
    void committer.write(moves(5, "waits"));
    await clock.advance(0);
    expect(store.calls.length).toBe(AT_ONCE);
    void committer.write(moves(6, ...names(29)));
    await clock.advance(0);
    expect(store.calls.length).toBe(AT_ONCE + 1);
  });

  it("starts within the event-loop turn if enough creates are queued", async () => {
    const { committer, store, clock } = bench({ batchSize: 1_000 });
    void committer.write(allocation(1, ...names(WORTH_A_COMMIT)));
    expect(store.calls.length).toBe(1);
    void committer.write(allocation(2, ...names(WORTH_A_COMMIT)));
    void committer.write(allocation(3, "z"));
    expect(store.calls.length).toBe(1);
    store.call(0).answer();
    await clock.advance(0);
    expect(store.call(1).writes.length).toBe(2);
  });

  it("waits for the end of the event-loop turn if only a few creates are queued", async () => {
    const { committer, store, clock } = bench({ batchSize: 1_000 });
    void committer.write(allocation(1, ...names(WORTH_A_COMMIT - 1)));
    void committer.write(moves(2, ...names(WORTH_A_COMMIT)));
    expect(store.calls.length).toBe(0);
    await clock.advance(0);
    expect(store.call(0).writes.length).toBe(2);
  });

  it("starts at once when a batch is full", async () => {
    const { committer, store, clock } = bench({ batchSize: 3 });
    void committer.write(moves(1, "a", "b"));
    expect(committer.depth).toBe(2);
    void committer.write(moves(2, "c"));
    await clock.advance(0);
    expect(store.calls.length).toBe(1);
  });

  it("starts as soon as the previous commit has finished", async () => {
    const { committer, store, clock } = bench();
    void committer.write(moves(1, "a"));
    await clock.advance(5);
    void committer.write(moves(1, "b"));
    store.call(0).answer();
    await clock.advance(0);
    expect(store.call(1).writes.map(idsOf)).toEqual([["b"]]);
  });

  it("waits for the end of the event-loop turn if the previous commit left a few creates", async () => {
    const { committer, store, clock } = bench({ batchSize: 1_000 });
    void committer.write(moves(1, "a"));
    await clock.advance(0);
    void committer.write(allocation(1, "b"));
    store.call(0).answer();
    for (let tick = 0; tick < 20; tick++) await null;
    expect(store.calls.length).toBe(1);
    void committer.write(allocation(1, "c"));
    await clock.advance(0);
    expect(store.call(1).writes.map(idsOf)).toEqual([["b", "c"]]);
  });

  it("starts before the callers of the previous commit get their results", async () => {
    const { committer, store, clock } = bench();
    const callsWhenDone: number[] = [];
    void committer.write(moves(1, "a")).then(() => callsWhenDone.push(store.calls.length));
    await clock.advance(5);
    void committer.write(moves(1, "b"));
    store.call(0).answer();
    await clock.advance(0);
    expect(callsWhenDone).toEqual([2]);
  });

  it("contains no more writes than fit into one transaction", async () => {
    const { committer, store, clock } = bench({ batchSize: 3 });
    void committer.write(moves(1, "a"));
    void committer.write(moves(2, "b", "c", "d", "e"));
    void committer.write(moves(3, "f"));
    await clock.advance(5);
    expect(store.calls.map(({ writes }) => writes.map(idsOf))).toEqual([[["a"]], [["b", "c", "d", "e"]]]);
    store.call(0).answer();
    await clock.advance(5);
    expect(store.call(2).writes.map(idsOf)).toEqual([["f"]]);
  });

  it("counts writes such as intake results by their number of rows", async () => {
    const { committer, store, clock } = bench({ batchSize: 3 });
    const results = ["x", "y", "z"].map((of, intakeId) => ({ intakeId, result: "alias" as const, of }));
    void committer.write({ kind: "settleIntake", fence: fence(1), results });
    await clock.advance(0);
    expect(store.calls.length).toBe(1);
    void committer.write({ kind: "suspend", fence: fence(2), suspended: true });
    expect(committer.depth).toBe(1);
  });
});

describe("database transactions in flight", () => {
  it("are at most two", async () => {
    const { committer, store, clock } = bench({ batchSize: 1 });
    for (const id of ["a", "b"]) void committer.write(moves(1, id));
    for (const id of ["c", "d"]) void committer.write(moves(2, id));
    void committer.write(moves(3, "e"));
    await clock.advance(50);
    expect(store.calls.flatMap(({ writes }) => writes.map(idsOf))).toEqual([["a"], ["c"]]);
    store.call(0).answer();
    await clock.advance(50);
    expect(store.call(2).writes.map(idsOf)).toEqual([["b"]]);
    expect(store.mostInFlight).toBe(2);
  });

  it("include at most one transaction with completions", async () => {
    const { committer, store, clock } = bench({ batchSize: 1 });
    void committer.write(completion(1, "a"));
    void committer.write(completion(2, "b"));
    void committer.write(moves(3, "c"));
    await clock.advance(50);
    expect(store.calls.flatMap(({ writes }) => writes.map(idsOf))).toEqual([["a"], ["c"]]);
    store.call(1).answer();
    await clock.advance(50);
    expect(store.calls.length).toBe(2);
    store.call(0).answer();
    await clock.advance(50);
    expect(store.call(2).writes.map(idsOf)).toEqual([["b"]]);
  });

  it("with a refused intake row count as transactions with completions", async () => {
    const { committer, store, clock } = bench({ batchSize: 1 });
    const refused = { intakeId: 1, result: "refused", event: "refuse", reason: "no" } as const;
    void committer.write(completion(1, "a"));
    void committer.write({ kind: "settleIntake", fence: fence(2), results: [refused] });
    void committer.write({
      kind: "settleIntake",
      fence: fence(3),
      results: [{ intakeId: 2, result: "alias", of: "a" }],
    });
    await clock.advance(50);
    expect(store.calls.map(({ writes }) => writes[0]?.fence.lane)).toEqual([lane(1), lane(3)]);
  });

  it("keep the order of each lane for any sizes, shards and durations", async () => {
    const script = fc.array(
      fc.record({ lane: fc.integer({ min: 1, max: 5 }), weight: fc.integer({ min: 1, max: 4 }) }),
      {
        minLength: 1,
        maxLength: 60,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        script,
        fc.constantFrom(1, 2, 64),
        fc.infiniteStream(fc.nat(20)),
        async (steps, shards, times) => {
          const { committer, store, clock } = bench({ batchSize: 5, shards });
          const durations = times[Symbol.iterator]();
          const committed: string[] = [];
          const commit = store.commit.bind(store);
          store.commit = async (writes) => {
            clock.after(Number(durations.next().value), () => {
              committed.push(...writes.flatMap(idsOf));
              const open = store.calls.find((call) => call.writes === writes);
              open?.answer();
            });
            return commit(writes);
          };
          const ids = steps.map((step, at) =>
            Array.from({ length: step.weight }, (_, part) => `${step.lane}:${at}:${part}`),
          );
          const all = Promise.all(steps.map((step, at) => committer.write(moves(step.lane, ...(ids[at] ?? [])))));
          await clock.advance(5_000);
          await all;
          for (let each = 1; each <= 5; each++) {
            const own = (list: readonly string[]) => list.filter((id) => id.startsWith(`${each}:`));
            expect(own(committed)).toEqual(own(ids.flat()));
          }
          expect(store.mostInFlight).toBeLessThanOrEqual(2);
          expect(committer.depth).toBe(0);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("a fenced write in a batch", () => {
  it("is reported to its caller and to the node, and fails no other write", async () => {
    const { committer, store, clock, fenced } = bench();
    const lost = watch(committer.write(moves(1, "a")));
    const fine = watch(committer.write(moves(2, "b")));
    await clock.advance(5);
    store.call(0).answer([{ status: "fenced" }, { status: "applied", items: ["applied"] }]);
    await clock.advance(0);
    expect(lost.value).toEqual({ status: "fenced" });
    expect(fine.value).toEqual({ status: "applied", items: ["applied"] });
    expect(fenced).toEqual(["1 transition"]);
  });
});

describe("a commit that finds the database busy", () => {
  it("is retried with back-off before callers get a result", async () => {
    const { committer, store, clock, telemetry } = bench();
    const write = watch(committer.write(moves(1, "a")));
    await clock.advance(5);
    store.call(0).fail(new StoreUnavailable("locked", { busy: true }));
    await clock.advance(4);
    expect(store.calls.length).toBe(1);
    await clock.advance(6);
    expect(store.calls.length).toBe(2);
    expect(telemetry.of("writer.busy")).toMatchObject([{ writes: 1, tries: 1, reason: "locked" }]);
    store.call(1).answer();
    await clock.advance(0);
    expect(write.state).toBe("done");
  });

  // protects [Short of time] src/application/writer/committer.ts
  it("lets creates of the same lane overtake its state transitions, in order", async () => {
    const { committer, store, clock } = bench();
    const moved = watch(committer.write(moves(1, "m")));
    const own = watch(committer.write(allocation(1, "a")));
    await clock.advance(5);
    expect(store.call(0).writes.flatMap(idsOf)).toEqual(["m", "a"]);
    const behind = watch(committer.write(allocation(1, "b")));
    const strict = watch(committer.write({ kind: "suspend", fence: fence(1), suspended: true }));
    const later = watch(committer.write(allocation(1, "c")));
    store.call(0).fail(new StoreUnavailable("idle for too long", { busy: true }));
    await clock.advance(0);
    expect(store.call(1).writes.flatMap(idsOf)).toEqual(["a", "b"]);
    store.call(1).answer();
    await clock.advance(0);
    expect([own.state, behind.state, moved.state]).toEqual(["done", "done", "open"]);
    await clock.advance(10);
    expect(store.call(2).writes.flatMap(idsOf)).toEqual(["m"]);
    store.call(2).fail(new StoreUnavailable("away"));
    await clock.advance(0);
    expect(moved).toMatchObject({ state: "failed", error: { message: "away" } });
    expect([strict.state, later.state]).toEqual(["failed", "failed"]);
    expect(committer.depth).toBe(0);
  });

  // protects [Short of time] src/application/writer/committer.ts
  it("lets no create overtake another create", async () => {
    const { committer, store, clock } = bench();
    void committer.write({ kind: "suspend", fence: fence(1), suspended: true });
    void committer.write(moves(1, "m"));
    void committer.write(allocation(1, "a"));
    void committer.write(allocation(2, "b"));
    await clock.advance(5);
    store.call(0).fail(new StoreUnavailable("locked", { busy: true }));
    await clock.advance(0);
    expect(store.calls.length).toBe(1);
    await clock.advance(10);
    expect(store.call(1).writes).toEqual(store.call(0).writes);
  });

  it("fails after too many retries", async () => {
    const { committer, store, clock } = bench();
    store.reply = () => {
      throw new StoreUnavailable("locked", { busy: true });
    };
    const write = watch(committer.write(moves(1, "a")));
    await clock.advance(10_000);
    expect(write).toMatchObject({ state: "failed", error: { message: "locked" } });
    expect(store.calls.length).toBe(9);
  });

  it("does not delay the batch of another lane", async () => {
    const { committer, store, clock } = bench({ batchSize: 1 });
    void committer.write(moves(1, "a"));
    const other = watch(committer.write(moves(2, "b")));
    await clock.advance(0);
    store.call(0).fail(new StoreUnavailable("locked", { busy: true }));
    store.call(1).answer();
    await clock.advance(0);
    expect(other.state).toBe("done");
  });
});

describe("a batch whose commit fails", () => {
  it.each([
    ["unavailable", new StoreUnavailable("away")],
    ["unknown", new OutcomeUnknown("who knows")],
  ])("(%s) fails its writes with the error of the commit", async (_, error) => {
    const { committer, store, clock, telemetry } = bench();
    const first = watch(committer.write(moves(1, "a")));
    await clock.advance(5);
    const behind = watch(committer.write(moves(1, "b", "c")));
    const elsewhere = watch(committer.write(moves(2, "d")));
    store.call(0).fail(error);
    await clock.advance(0);
    expect(first.error).toBe(error);
    expect(behind.error).toMatchObject({ name: "StoreUnavailable", cause: error });
    expect(elsewhere.state).toBe("open");
    expect(telemetry.of("writer.failed")).toMatchObject([{ items: 2 }]);
    store.call(1).answer();
    await clock.advance(5);
    expect(elsewhere.state).toBe("done");
    expect(store.calls.flatMap(({ writes }) => writes.flatMap(idsOf))).not.toContain("b");
    expect(committer.depth).toBe(0);
  });

  it("reports each write as given up if nothing was committed", async () => {
    const { committer, store, clock, givenUp } = bench();
    for (const write of [moves(1, "a"), moves(2, "b")]) void committer.write(write).catch(() => undefined);
    await clock.advance(5);
    void committer.write(moves(1, "c")).catch(() => undefined);
    store.call(0).fail(new StoreUnavailable("away"));
    await clock.advance(0);
    expect(givenUp).toEqual(["1 transition", "2 transition", "1 transition"]);
    void committer.write(moves(3, "d")).catch(() => undefined);
    await clock.advance(5);
    store.call(1).fail(new OutcomeUnknown("who knows"));
    await clock.advance(0);
    expect(givenUp.length).toBe(3);
  });

  it("reports HistoryChanged if the database history changed", async () => {
    const { committer, store, clock, histories } = bench();
    const write = watch(committer.write(moves(1, "a")));
    await clock.advance(5);
    const error = new HistoryChanged("another timeline");
    store.call(0).fail(error);
    await clock.advance(0);
    expect(histories).toEqual([error]);
    expect(write.error).toBe(error);
  });

  it("does not block its lane, whose next write is committed", async () => {
    const { committer, store, clock } = bench();
    void committer.write(moves(1, "a")).catch(() => undefined);
    await clock.advance(5);
    store.call(0).fail(new StoreUnavailable("away"));
    await clock.advance(0);
    const next = watch(committer.write(moves(1, "b")));
    await clock.advance(5);
    store.call(1).answer();
    await clock.advance(0);
    expect(next.state).toBe("done");
  });
});

describe("waiting for an idle committer", () => {
  it("returns at once if nothing is being written", async () => {
    const { committer } = bench();
    await committer.idle();
    await committer.idle(lane(1));
  });

  it("waits for queued and in-flight writes, of one lane or of all", async () => {
    const { committer, store, clock } = bench({ batchSize: 1 });
    void committer.write(moves(1, "a"));
    void committer.write(moves(1, "b"));
    void committer.write(moves(2, "c"));
    const one = watch(committer.idle(lane(1)));
    const two = watch(committer.idle(lane(2)));
    const all = watch(committer.idle());
    await clock.advance(5);
    store.call(1).answer();
    await clock.advance(5);
    expect([one.state, two.state, all.state]).toEqual(["open", "done", "open"]);
    store.call(0).answer();
    await clock.advance(5);
    expect([one.state, all.state]).toEqual(["open", "open"]);
    store.call(2).answer();
    await clock.advance(5);
    expect([one.state, all.state]).toEqual(["done", "done"]);
  });

  it("scans the queue once for ten thousand lanes, so that a draining node is not blocked", async () => {
    const LANES = 10_000;
    const { committer, clock } = bench({ batchSize: 2 * LANES });
    for (let each = 1; each <= LANES; each++) void committer.write(moves(each, `t${each}`));
    const before = process.cpuUsage();
    const waiting = Array.from({ length: LANES }, (_, at) => watch(committer.idle(lane(at + 1))));
    await clock.advance(0);
    const { user, system } = process.cpuUsage(before);
    expect(waiting.some(({ state }) => state !== "open")).toBe(false);
    expect((user + system) / 1_000).toBeLessThan(2_000);
  });

  it("treats failed writes as finished", async () => {
    const { committer, store, clock } = bench();
    void committer.write(allocation(1, "a")).catch(() => undefined);
    const idle = watch(committer.idle(lane(1)));
    await clock.advance(5);
    store.call(0).fail(new StoreUnavailable("away"));
    await clock.advance(0);
    expect(idle.state).toBe("done");
  });
});
