import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Committer } from "../../../src/application/writer/committer.ts";
import { NotLoaded } from "../../../src/domain/ledger/index.ts";
import {
  BatchRefused,
  type LaneWrite,
  type OutcomeUnknown,
  StoreUnavailable,
  type WriteOutcome,
} from "../../../src/ports/lane-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { allocation, idsOf, lane, moves, outcomeOf, ScriptedStore } from "./scripted-store.ts";

type Result = { readonly outcome: WriteOutcome } | { readonly error: unknown };

/** Commits all writes as one batch, to a database that refuses any batch containing a poisoned id. */
async function writeAll(
  writes: readonly LaneWrite[],
  poison: ReadonlySet<string>,
  interfere: (ids: readonly string[], committed: readonly string[]) => void = () => undefined,
  answer: (write: LaneWrite) => WriteOutcome = outcomeOf,
): Promise<{
  readonly results: readonly Result[];
  readonly committed: readonly string[];
  readonly calls: number;
  /** Records, in order, which results were reported to lanes and to callers. */
  readonly notified: readonly string[];
  /** Log lines about writes that could not be stored. */
  readonly logged: readonly string[];
}> {
  const clock = createManualClock();
  const store = new ScriptedStore();
  const committed: string[] = [];
  store.reply = (batch) => {
    const ids = batch.flatMap(idsOf);
    interfere(ids, committed);
    if (ids.some((id) => poison.has(id))) throw new BatchRefused("poison");
    committed.push(...ids);
    return batch.map(answer);
  };
  store.changes = (batch) => {
    const changes = batch.flatMap(idsOf).map((of) => ({ kind: "aliased", intakeId: 0, of }) as const);
    return [{ lane: lane(1), token: 1, changes }];
  };
  const notified: string[] = [];
  const telemetry = recordTelemetry();
  const committer = new Committer(
    { store, clock, entropy: createSeededEntropy(1), telemetry },
    { batchSize: 10_000, batchTimeoutMs: 1, shards: 16 },
    {
      onCommitted: ({ changes }) =>
        void notified.push(...changes.map((change) => `lane: ${change.kind === "aliased" ? change.of : change.kind}`)),
      onFenced: () => undefined,
      onHistoryChanged: () => undefined,
      onGivenUp: () => undefined,
    },
  );
  const all = Promise.all(
    writes.map((write) =>
      committer.write(write).then(
        (outcome) => {
          notified.push(`writer: ${idsOf(write)}`);
          return { outcome };
        },
        (error: unknown) => ({ error }),
      ),
    ),
  );
  await clock.advance(10_000);
  const results = await all;
  const logged = telemetry.of("writer.failed").map(({ reason }) => reason);
  return { results, committed, calls: store.calls.length, notified, logged };
}

function createdIds(write: LaneWrite, result: Result | undefined): readonly string[] {
  if (result === undefined || !("outcome" in result) || result.outcome.status !== "allocated") return [];
  const { items } = result.outcome;
  return idsOf(write).filter((_, index) => items[index]?.result === "created");
}

describe("a write that the database refuses", () => {
  // protects [Reads] src/domain/ledger/kept.ts, src/application/writer/committer.ts
  it("does not stop the other writes of the batch", async () => {
    const { notified } = await writeAll([moves(1, "a", "bad", "c"), moves(2, "d"), moves(1, "e")], new Set(["bad"]));
    expect(notified).toEqual(["lane: a", "lane: c", "lane: d", "lane: e", "writer: d", "writer: e"]);
  });

  // protects [Attacks] src/application/stages/1-create/create.ts, src/application/writer/committer.ts
  it("fails only the refused item of an allocation", async () => {
    const write = allocation(1, "a", "bad", "c");
    const { results, committed, logged } = await writeAll([write, moves(2, "d")], new Set(["bad"]));
    expect(committed.toSorted()).toEqual(["a", "c", "d"]);
    expect(logged).toEqual(["BatchRefused: poison"]);
    expect(results[0]).toMatchObject({
      outcome: {
        status: "allocated",
        items: [{ result: "created" }, { result: "refused", detail: "BatchRefused: poison" }, { result: "created" }],
      },
    });
    expect(results[1]).toMatchObject({ outcome: { status: "applied", items: ["applied"] } });
  });

  // protects [Many lanes] src/application/writer/batch.ts
  it("has an unknown outcome if an allocation was partly committed and then fenced", async () => {
    const waits = { result: "awaiting", rule: "signer.requireApproval", createdAt: new Date(0) } as const;
    const answer = (write: LaneWrite): WriteOutcome =>
      idsOf(write).includes("a") ? { status: "allocated", items: [waits], cursor: 0 } : { status: "fenced" };
    const { results } = await writeAll([allocation(1, "a", "bad", "c")], new Set(["bad"]), () => undefined, answer);
    expect(results[0]).toMatchObject({ error: { name: "OutcomeUnknown" } });
  });

  it("does not fail other writes if it contains state changes", async () => {
    const { results, committed } = await writeAll([moves(1, "a", "bad"), moves(2, "b")], new Set(["bad"]));
    expect(results[0]).toMatchObject({ error: { name: "BatchRefused" } });
    expect(results[1]).toMatchObject({ outcome: { status: "applied" } });
    expect(committed.toSorted()).toEqual(["a", "b"]);
  });

  it("fails as a whole if it cannot be split", async () => {
    const unwatch: LaneWrite = { kind: "unwatch", fence: allocation(1).fence, throughBlock: 5 };
    const { results } = await writeAll([unwatch, moves(2, "b")], new Set(["unwatch"]));
    expect(results[0]).toMatchObject({ error: { name: "BatchRefused" } });
    expect(results[1]).toMatchObject({ outcome: { status: "applied" } });
  });

  it.each([
    ["an allocation", allocation(1, "a", "unread", "c"), ["b"]],
    ["moves", moves(1, "unread"), ["b"]],
  ] as const)(
    // protects [Many lanes] src/application/writer/committer.ts, src/adapters/postgres/session/errors.ts
    "fails alone with NotLoaded if the ledger was not loaded for %s",
    async (_, write, expected) => {
      const lacks = (ids: readonly string[]) => {
        if (ids.includes("unread")) throw new NotLoaded("transaction unread");
      };
      const { results, committed } = await writeAll([write, moves(2, "b")], new Set(), lacks);
      expect(results[0]).toMatchObject({ error: { name: "NotLoaded" } });
      expect(results[1]).toMatchObject({ outcome: { status: "applied" } });
      expect(committed).toEqual(expected);
    },
  );

  it("leaves all other writes of the batch committed once and in order", async () => {
    const batches = fc.array(
      fc.record({
        lane: fc.integer({ min: 1, max: 4 }),
        kind: fc.constantFrom("allocate" as const, "transition" as const),
        size: fc.integer({ min: 1, max: 5 }),
      }),
      { minLength: 1, maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(batches, fc.infiniteStream(fc.integer({ min: 0, max: 9 })), async (shapes, luck) => {
        const dice = luck[Symbol.iterator]();
        const poison = new Set<string>();
        const writes = shapes.map(({ lane, kind, size }, at) => {
          const ids = Array.from({ length: size }, (_, part) => `${lane}:${kind}:${at}:${part}`);
          for (const id of ids) if (dice.next().value === 0) poison.add(id);
          return kind === "allocate" ? allocation(lane, ...ids) : moves(lane, ...ids);
        });
        const { results, committed } = await writeAll(writes, poison);
        const healthy = writes.flatMap(idsOf).filter((id) => !poison.has(id));
        expect(committed.toSorted()).toEqual(healthy.toSorted());
        for (const kind of ["allocate", "transition"]) {
          for (let lane = 1; lane <= 4; lane++) {
            const own = (list: readonly string[]) => list.filter((id) => id.startsWith(`${lane}:${kind}:`));
            expect(own(committed)).toEqual(own(healthy));
          }
        }
        writes.forEach((write, at) => {
          const ids = idsOf(write);
          if (write.kind === "allocate") {
            expect(createdIds(write, results[at])).toEqual(ids.filter((id) => !poison.has(id)));
          } else {
            expect("error" in (results[at] as Result)).toBe(ids.some((id) => poison.has(id)));
          }
        });
      }),
      { numRuns: 100 },
    );
  });
});

describe("a database outage while a refused batch is split", () => {
  const leaveAfterFirst = (ids: readonly string[], committed: readonly string[]): void => {
    if (committed.length > 0 && !ids.includes("a")) throw new StoreUnavailable("away");
  };

  it("leads to OutcomeUnknown for a write that was partly committed", async () => {
    const { results, committed } = await writeAll(
      [allocation(1, "a", "b", "bad", "d")],
      new Set(["bad"]),
      leaveAfterFirst,
    );
    expect(committed.length).toBeGreaterThan(0);
    expect(results[0]).toMatchObject({ error: { name: "OutcomeUnknown" } });
    expect((results[0] as { error: OutcomeUnknown }).error.cause).toBeInstanceOf(StoreUnavailable);
  });

  it("does not change results that were already returned", async () => {
    const writes = [allocation(1, "a"), allocation(2, "b"), moves(3, "bad"), moves(4, "d")];
    const { results } = await writeAll(writes, new Set(["bad"]), (ids, committed) => {
      if (committed.includes("b") && ids.includes("d")) throw new StoreUnavailable("away");
    });
    expect(results.slice(0, 2)).toMatchObject([
      { outcome: { status: "allocated" } },
      { outcome: { status: "allocated" } },
    ]);
    expect(results[3]).toMatchObject({ error: { name: "OutcomeUnknown" } });
  });

  it("leads to StoreUnavailable if nothing was committed", async () => {
    const { results } = await writeAll([allocation(1, "bad", "b")], new Set(["bad"]), (ids) => {
      if (ids.length === 1) throw new StoreUnavailable("away");
    });
    expect(results[0]).toMatchObject({ error: { name: "StoreUnavailable" } });
  });
});
