import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Entry, entryOf } from "../../../src/application/writer/batch.ts";
import { Turns } from "../../../src/application/writer/turn.ts";
import type { LaneWrite } from "../../../src/ports/lane-store.ts";
import { allocation, completion, fence, idsOf, moves } from "./scripted-store.ts";

const FREE = {
  creating: false,
  onlyCreates: false,
  busyShards: new Set<number>(),
  completing: false,
  callersWait: false,
  isHurried: () => false,
  nowMs: 0,
};

/** Wraps a write as a queue entry. A lane's number is its shard. */
function entry(write: LaneWrite): Entry {
  const shard = Number(write.fence.lane.signer);
  const callbacks = { resolve: () => undefined, reject: () => undefined };
  return { ...entryOf(write, { shards: 256, nowMs: 0, ...callbacks }), shard };
}

function ids(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}${at}`);
}

function suspension(lane: number): LaneWrite {
  return { kind: "suspend", fence: fence(lane), suspended: true };
}

function read(entries: readonly Entry[]): readonly string[] {
  return entries.map(({ write }) => `${write.kind} ${idsOf(write).length}`);
}

describe("a database transaction of the writer", () => {
  it("has space for three times as many creates as state transitions", () => {
    const queue = [...ids("a", 5).map((id) => allocation(1, id)), moves(2, "m"), moves(2, "n")].map(entry);
    const { taken, left } = new Turns(3).next(queue, FREE);
    expect(taken.flatMap(({ write }) => idsOf(write))).toEqual(["a0", "a1", "a2", "a3", "a4", "m"]);
    expect(left.flatMap(({ write }) => idsOf(write))).toEqual(["n"]);
  });

  it("excludes lanes that another open transaction writes", () => {
    const queue = [moves(1, "a"), allocation(1, "b"), completion(2, "c"), moves(2, "d"), allocation(2, "e")].map(entry);
    const { taken } = new Turns(100).next(queue, { ...FREE, busyShards: new Set([1]), completing: true });
    expect(taken.flatMap(({ write }) => idsOf(write))).toEqual(["e"]);
  });
});

describe("creates in the writer's queue", () => {
  const many = ids("c", 8).map((id, at) => allocation(at + 1, id));

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("get a database transaction of their own if they belong to many lanes", () => {
    const turns = new Turns(100);
    const queue = [moves(1, "m"), ...many, moves(9, "n")].map(entry);
    const first = turns.next(queue, FREE);
    expect(first.cargo).toBe("creates");
    expect(first.taken.flatMap(({ write }) => idsOf(write))).toEqual(ids("c", 8));
    const busyShards = new Set(first.taken.map(({ shard }) => shard));
    const second = turns.next([...first.left, entry(allocation(10, "later"))], { ...FREE, busyShards, creating: true });
    expect(
      second.taken.flatMap(({ write }) => idsOf(write)),
      "lane 1 is in flight",
    ).toEqual(["n"]);
    expect(second.left.flatMap(({ write }) => idsOf(write))).toEqual(["m", "later"]);
  });

  it("share the database transaction of all other writes if they are of few lanes", () => {
    const queue = [moves(1, "m"), ...many.slice(0, 7)].map(entry);
    const { cargo, taken } = new Turns(100).next(queue, FREE);
    expect(cargo).toBe("all");
    expect(taken.length).toBe(8);
  });

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("overtake the state transitions of their own lanes at most three times", () => {
    const turns = new Turns(100);
    const waiting = entry(moves(1, "m"));
    let queue: readonly Entry[] = [waiting];
    let passedBy = 0;
    for (let isTaken = false; !isTaken && passedBy < 10; ) {
      queue = [...queue, ...many.map(entry)];
      const first = turns.next(queue, FREE);
      const busyShards = new Set(first.taken.map(({ shard }) => shard));
      const second = turns.next(first.left, { ...FREE, busyShards, creating: first.cargo === "creates" });
      queue = second.left;
      isTaken = [...first.taken, ...second.taken].includes(waiting);
      if (!isTaken) passedBy++;
    }
    expect(passedBy).toBe(3);
  });

  const late = (write: LaneWrite): Entry => ({ ...entry(write), passedBy: 3 });

  // protects [Short of time] src/application/writer/turn.ts
  it("do not wait for an overtaken state transition that itself waits for a suspension", () => {
    const queue = [...many.map(entry), entry(suspension(1)), late(moves(1, "m"))];
    const { taken } = new Turns(100).next(queue, FREE);
    expect(taken.flatMap(({ write }) => idsOf(write))).toEqual(ids("c", 8));
  });

  // protects [Short of time] src/application/writer/turn.ts
  it("do not wait for an overtaken completion that must wait for another transaction", () => {
    const queue = [late(completion(1, "m")), ...[...many, allocation(9, "c8")].map(entry)];
    const { taken } = new Turns(100).next(queue, { ...FREE, completing: true });
    expect(taken.flatMap(({ write }) => idsOf(write))).toEqual(ids("c", 9));
  });

  // protects [Short of time] src/application/writer/turn.ts
  it("wait for a state transition that they overtook three times", () => {
    const turns = new Turns(20);
    const creates = ids("p", 40).map((id) => entry(allocation(1, id)));
    const first = late(moves(1, "m0"));
    expect(turns.next([first, ...creates], { ...FREE, creating: true }).taken).toEqual([first]);
    const second = late(moves(1, "m1"));
    expect(turns.next([second, ...creates], { ...FREE, creating: true }).taken).toEqual([second]);
  });

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("do not wait for state transitions that were not overtaken", () => {
    const turns = new Turns(20);
    const line = ids("m", 100).map((id, at) => moves(at + 1, id));
    const first = turns.next([...line, ...many].map(entry), { ...FREE, nowMs: 10_000 });
    expect(first.taken.flatMap(({ write }) => idsOf(write))).toEqual(ids("c", 8));
  });

  it("are committed without other writes if only creates may start", () => {
    const queue = [moves(1, "m"), allocation(2, "a")].map(entry);
    const { taken, left } = new Turns(100).next(queue, { ...FREE, onlyCreates: true });
    expect(taken.flatMap(({ write }) => idsOf(write))).toEqual(["a"]);
    expect(left.flatMap(({ write }) => idsOf(write))).toEqual(["m"]);
  });

  it("overtake state transitions, but no suspension", () => {
    const queue = [moves(1, "m"), suspension(2), ...many, allocation(9, "c8"), suspension(3)].map(entry);
    const first = new Turns(100).next(queue, FREE);
    expect(
      first.taken.flatMap(({ write }) => idsOf(write)),
      "lane 2 is to be suspended first",
    ).toEqual(ids("c", 9).filter((id) => id !== "c1"));
    const beside = new Turns(100).next([...many, suspension(3), moves(3, "n")].map(entry), { ...FREE, creating: true });
    expect(beside.taken.flatMap(({ write }) => idsOf(write))).toEqual([]);
    expect(beside.left.length).toBe(10);
  });
});

describe("the writer, with a queue full of creates,", () => {
  it("commits the creates before the state transitions", () => {
    const turns = new Turns(60);
    let queue: readonly Entry[] = ids("m", 100).map((id) => entry(moves(1, id)));
    let moved = 0;
    let created = 0;
    for (let turn = 0; turn < 20; turn++) {
      queue = [...queue, ...ids(`${turn}.`, 100).map((id) => entry(allocation(1, id)))];
      const { taken, left } = turns.next(queue, FREE);
      moved += taken.filter(({ write }) => write.kind === "transition").length;
      created += taken.filter(({ write }) => write.kind === "allocate").length;
      queue = left;
    }
    expect(moved).toBe(100);
    expect(created).toBeGreaterThan(1_200);
    const soon = new Turns(60);
    const flood = [...ids("m", 100).map((id) => moves(1, id)), ...ids("a", 120).map((id) => allocation(1, id))];
    const first = soon.next(flood.map(entry), FREE);
    expect(read(first.taken).filter((kind) => kind.startsWith("transition"))).toEqual([]);
    const second = soon.next([...first.left, ...ids("b", 60).map((id) => entry(allocation(1, id)))], FREE);
    expect(read(second.taken).filter((kind) => kind.startsWith("transition")).length).toBe(15);
  });

  it("makes a large state transition wait", () => {
    const turns = new Turns(12);
    const press = (left: readonly Entry[]) => turns.next([...left, entry(allocation(1, ...ids("a", 16)))], FREE);
    const taken: number[] = [];
    let queue: readonly Entry[] = [entry(moves(1, ...ids("m", 6))), entry(moves(1, ...ids("n", 6)))];
    for (let turn = 0; turn < 8; turn++) {
      const next = press(queue);
      taken.push(next.taken.filter(({ write }) => write.kind === "transition").length);
      queue = next.left;
    }
    // Each commit has a share of two state changes. The first write contains six: it waits for the second commit, and
    // the four above the share are deducted from later commits.
    expect(taken).toEqual([0, 1, 0, 0, 1, 0, 0, 0]);
  });

  it("keeps the share reserved for state transitions while a commit is in flight", () => {
    const turns = new Turns(10);
    const first = turns.next([entry(moves(1, "m")), entry(allocation(1, ...ids("a", 12)))], FREE);
    expect(read(first.left)).toEqual(["transition 1"]);
    const busy = { ...FREE, busyShards: new Set([1]) };
    expect(turns.next(first.left, busy).taken).toEqual([]);
    expect(turns.next([...first.left, entry(allocation(1, "b"))], busy).taken).toEqual([]);
    const queue = [...first.left, entry(allocation(1, ...ids("c", 12)))];
    expect(read(turns.next(queue, FREE).taken)).toEqual(["transition 1", "allocate 12"]);
  });

  it("does not slow down other lanes", () => {
    const queue = [...ids("m", 5).map((id) => moves(2, id)), allocation(1, ...ids("a", 12))].map(entry);
    expect(new Turns(10).next(queue, FREE).left).toEqual([]);
  });

  it("does not delay a suspension", () => {
    const queue = [moves(1, "m"), suspension(1), allocation(1, ...ids("a", 12))].map(entry);
    expect(read(new Turns(10).next(queue, FREE).taken)).toEqual(["transition 1", "suspend 1", "allocate 12"]);
    const held = new Turns(2).next([moves(1, "m", "n", "o"), suspension(1), allocation(1, "a")].map(entry), FREE);
    expect(read(held.taken)).toEqual(["transition 3"]);
    expect(read(held.left)).toEqual(["suspend 1", "allocate 1"]);
  });
});

describe("the writer, while requests wait to be read", () => {
  const CROWDED = { ...FREE, callersWait: true };

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("prefers creates, however few are queued", () => {
    const turns = new Turns(200);
    const first = turns.next([moves(1, ...ids("m", 64)), allocation(1, ...ids("a", 64))].map(entry), CROWDED);
    expect(read(first.taken)).toEqual(["allocate 64"]);
    // The callers got their responses and have not sent their next requests yet, so the lane is kept free for those
    // requests.
    const between = new Turns(200).next(first.left, CROWDED);
    expect(read(between.taken)).toEqual([]);
    expect(read(turns.next([...first.left, entry(allocation(1, "b"))], CROWDED).taken)).toEqual([
      "transition 64",
      "allocate 1",
    ]);
  });

  // protects [Short of time] src/application/writer/turn.ts, src/application/writer/committer.ts
  it("delays a state transition for a second at most", () => {
    const queue = [entry(moves(2, "m")), entry(moves(2, "n"))];
    const turns = new Turns(200);
    expect(read(turns.next(queue, { ...CROWDED, nowMs: 999 }).taken)).toEqual([]);
    expect(read(turns.next(queue, { ...CROWDED, nowMs: 1_000 }).taken)).toEqual(["transition 1", "transition 1"]);
  });

  it("does not delay a state transition if a handover waits for an idle lane", () => {
    const queue = [entry(moves(1, "m")), entry(moves(2, "n"))];
    const isHurried = (shard: number) => shard === queue[0]?.shard;
    expect(read(new Turns(200).next(queue, { ...CROWDED, isHurried }).taken)).toEqual(["transition 1"]);
  });

  it("does not delay a suspension", () => {
    const queue = [moves(1, "m"), suspension(1)].map(entry);
    expect(read(new Turns(200).next(queue, CROWDED).taken)).toEqual(["transition 1", "suspend 1"]);
  });

  it("commits transitions at once when no request waits any more", () => {
    const turns = new Turns(200);
    const { left } = turns.next([entry(moves(1, "m"))], CROWDED);
    expect(read(turns.next(left, FREE).taken)).toEqual(["transition 1"]);
  });
});

describe("the writer's queue", () => {
  const kinds = { allocate: allocation, transition: moves, suspend: (lane: number) => suspension(lane) };
  const script = fc.array(
    fc.record({
      lane: fc.integer({ min: 1, max: 3 }),
      kind: fc.constantFrom("allocate" as const, "transition" as const, "suspend" as const),
      weight: fc.integer({ min: 1, max: 9 }),
    }),
    { minLength: 1, maxLength: 60 },
  );

  it("is drained completely", () => {
    fc.assert(
      fc.property(script, fc.integer({ min: 1, max: 8 }), (steps, batchSize) => {
        const turns = new Turns(batchSize);
        const all = steps.map(({ lane, kind, weight }, at) => entry(kinds[kind](lane, ...ids(`${at}.`, weight))));
        const order: Entry[] = [];
        for (let queue: readonly Entry[] = all; queue.length > 0; ) {
          const { taken, left } = turns.next(queue, FREE);
          expect(taken.length).toBeGreaterThan(0);
          order.push(...taken);
          queue = left;
        }
        const place = new Map(order.map((each, at) => [each, at]));
        all.forEach((before, at) => {
          for (const after of all.slice(at + 1)) {
            const mayOvertake = before.write.kind === "transition" && after.write.kind === "allocate";
            if (before.shard !== after.shard || mayOvertake) continue;
            expect(place.get(before)).toBeLessThan(place.get(after) as number);
          }
        });
      }),
      { numRuns: 300 },
    );
  });
});
