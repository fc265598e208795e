import { describe, expect, it } from "vitest";
import { Delivery, type Entry, entryOf, mergeAllocations, splitEntry } from "../../../src/application/writer/batch.ts";
import type { AllocateResult, LaneWrite, WriteOutcome } from "../../../src/ports/lane-store.ts";
import { allocation, completion, fence, idsOf, item, lane, moves } from "./scripted-store.ts";

interface Answer {
  outcome: WriteOutcome | null;
  error: unknown;
}

function entry(write: LaneWrite): Entry & { readonly answer: Answer } {
  const answer: Answer = { outcome: null, error: null };
  const callbacks = {
    resolve: (outcome: WriteOutcome) => {
      answer.outcome = outcome;
    },
    reject: (error: unknown) => {
      answer.error = error;
    },
  };
  return { ...entryOf(write, { shards: 1, nowMs: 0, ...callbacks }), answer };
}

function floored(n: number, floor: number | null, ...txIds: readonly string[]): LaneWrite {
  return { kind: "allocate", fence: fence(n), floor, items: txIds.map(item) };
}

function created(nonce: number): AllocateResult {
  return { result: "created", nonce, createdAt: new Date(0) };
}

function allocated(...nonces: readonly number[]): WriteOutcome {
  return { status: "allocated", items: nonces.map(created), cursor: Math.max(...nonces) + 1 };
}

function noncesOf(outcome: WriteOutcome | null): readonly number[] {
  if (outcome?.status !== "allocated") return [];
  return outcome.items.map((result) => (result.result === "created" ? result.nonce : -1));
}

describe("queued allocations of one lane", () => {
  it("are merged into one allocation in order", () => {
    const entries = [
      allocation(1, "a", "b"),
      moves(1, "m"),
      allocation(2, "c"),
      allocation(1, "d"),
      allocation(2, "e", "f"),
    ].map(entry);
    const merged = mergeAllocations(entries);
    expect(merged.map(({ write }) => idsOf(write))).toEqual([["a", "b", "d"], ["m"], ["c", "e", "f"]]);
    expect(merged.map(({ weight }) => weight)).toEqual([3, 1, 3]);
  });

  it("are passed on without a copy if there is only one", () => {
    const only = entry(allocation(1, "a"));
    expect(mergeAllocations([only])[0]).toBe(only);
  });

  it("use the highest of their minimum nonces", () => {
    const floorOf = (...floors: readonly (number | null)[]) => {
      const [merged] = mergeAllocations(floors.map((floor) => entry(floored(1, floor, "x"))));
      return merged?.write.kind === "allocate" ? merged.write.floor : undefined;
    };
    expect(floorOf(null, 7, 3)).toBe(7);
    expect(floorOf(0, null)).toBe(0);
    expect(floorOf(null, null)).toBeNull();
  });

  it("each get their own slice of the merged result", () => {
    const parts = [entry(allocation(1, "a", "b")), entry(allocation(1, "c")), entry(allocation(1, "d", "e"))];
    mergeAllocations(parts)[0]?.resolve(allocated(5, 6, 7, 8, 9));
    const nonces = parts.map(({ answer }) => noncesOf(answer.outcome));
    expect(nonces).toEqual([[5, 6], [7], [8, 9]]);
  });

  it("are all fenced or all fail together", () => {
    const parts = [entry(allocation(1, "a")), entry(allocation(1, "b"))];
    const [merged] = mergeAllocations(parts);
    merged?.resolve({ status: "fenced" });
    expect(parts.map(({ answer }) => answer.outcome)).toEqual([{ status: "fenced" }, { status: "fenced" }]);
    merged?.reject("broken");
    expect(parts.map(({ answer }) => answer.error)).toEqual(["broken", "broken"]);
  });
});

describe("a write to be split after a failure", () => {
  it("becomes one write per item, for the same lane", () => {
    const whole = entry(moves(3, "a", "b"));
    const pieces = splitEntry(whole);
    expect(pieces.map(({ write }) => idsOf(write))).toEqual([["a"], ["b"]]);
    expect(pieces.every(({ write, weight }) => write.fence === whole.write.fence && weight === 1)).toBe(true);
  });

  it("stays whole if it has only one item", () => {
    for (const write of [moves(1, "a"), { kind: "align", fence: fence(1), floor: 4 } as const]) {
      const whole = entry(write);
      expect(splitEntry(whole)).toEqual([whole]);
    }
  });

  it("resolves after its last part", () => {
    const whole = entry(moves(1, "a", "b", "c"));
    const pieces = splitEntry(whole);
    pieces[2]?.resolve({ status: "applied", items: ["conflict"] });
    pieces[0]?.resolve({ status: "applied", items: ["applied"] });
    expect(whole.answer.outcome).toBeNull();
    pieces[1]?.resolve({ status: "applied", items: ["applied"] });
    expect(whole.answer.outcome).toEqual({ status: "applied", items: ["applied", "applied", "conflict"] });
  });

  it("can return refused and created items if it is an allocation", () => {
    const whole = entry(allocation(1, "a", "b", "c"));
    const [a, b, c] = splitEntry(whole);
    a?.resolve(allocated(5));
    b?.reject(new Error("poison"));
    c?.resolve(allocated(6));
    expect(whole.answer.outcome).toMatchObject({
      status: "allocated",
      cursor: 7,
      items: [{ nonce: 5 }, { result: "refused", detail: "Error: poison" }, { nonce: 6 }],
    });
  });

  it("fails as a whole if one part with state changes fails", () => {
    const whole = entry(moves(1, "a", "b"));
    const [a, b] = splitEntry(whole);
    a?.resolve({ status: "applied", items: ["applied"] });
    b?.reject("poison");
    expect(whole.answer).toEqual({ outcome: null, error: "poison" });
  });

  it("is reported as fenced if the lane was lost before any nonce was allocated", () => {
    const whole = entry(allocation(1, "a", "b"));
    const [a, b] = splitEntry(whole);
    a?.reject(new Error("poison"));
    b?.resolve({ status: "fenced" });
    expect(whole.answer.outcome).toEqual({ status: "fenced" });
  });

  it("has an unknown outcome if the lane was lost after a nonce was allocated", () => {
    const whole = entry(allocation(1, "a", "b"));
    const [a, b] = splitEntry(whole);
    a?.resolve(allocated(5));
    b?.resolve({ status: "fenced" });
    expect(whole.answer).toMatchObject({ outcome: null, error: { name: "OutcomeUnknown" } });
  });

  it("with state changes is reported as fenced if the lane was lost midway", () => {
    const whole = entry(moves(1, "a", "b"));
    const [a, b] = splitEntry(whole);
    a?.resolve({ status: "applied", items: ["applied"] });
    b?.resolve({ status: "fenced" });
    expect(whole.answer.outcome).toEqual({ status: "fenced" });
  });
});

describe("the queue entry of a write", () => {
  it.each<[string, LaneWrite, number, boolean]>([
    ["an allocation", allocation(1, "a", "b"), 2, false],
    ["moves", moves(1, "a", "b", "c"), 3, false],
    ["an outcome", completion(1, "a"), 1, true],
    ["an alignment", { kind: "align", fence: fence(1), floor: 0 }, 1, false],
    ["the end of a watch", { kind: "unwatch", fence: fence(1), throughBlock: 0 }, 8, false],
    ["confirmations", { kind: "confirmations", fence: fence(1), blocks: [], pruneBelow: 0 }, 1, false],
    ["a suspension", { kind: "suspend", fence: fence(1), suspended: true }, 1, false],
    [
      "an alias",
      { kind: "settleIntake", fence: fence(1), results: [{ intakeId: 1, result: "alias", of: "x" }] },
      1,
      false,
    ],
  ])("has the write's estimated number of rows: %s", (_, write, weight, completes) => {
    expect(entry(write)).toMatchObject({ weight, completes });
  });
});

describe("a committed write", () => {
  it.each([
    ["a create", allocation(1, "a"), allocated(0)],
    ["a state change", moves(1, "a"), { status: "applied", items: ["applied"] } satisfies WriteOutcome],
  ])("changes its lane in memory before its caller is answered: %s", async (_, write, outcome) => {
    const seen: string[] = [];
    const events = { onCommitted: () => void seen.push("changed"), onFenced: () => undefined };
    const answered = { ...entry(write), resolve: () => void seen.push("answered") };
    const changes = [{ lane: lane(1), token: 1, changes: [] }];
    await new Delivery({ soon: (work) => work() }, events).deliver([
      { entries: [answered], outcomes: [outcome], changes },
    ]);
    expect(seen).toEqual(["changed", "answered"]);
  });
});
