import { expect, it } from "vitest";
import { type Fence, laneKey } from "../../../src/domain/lane.ts";
import type { PreparedIntent } from "../../../src/domain/transaction/transaction.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  apply,
  commitOne,
  holdLane,
  type Mined,
  mine,
  nonces,
  outcomesOf,
  step,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

export function batchContract(context: LaneStoreContext): void {
  it("an empty commit returns no outcomes", async () => {
    expect(await outcomesOf(context.store, [])).toEqual([]);
  });

  it("a commit of several lanes fails only the fenced lane, and returns outcomes in the given order", async () => {
    const fences: Fence[] = [];
    for (let index = 0; index < 5; index++) fences.push(await holdLane(context.store, aLane(1 + (index % 2))));
    const gone = fences[2];
    if (gone === undefined) throw new Error("no lane");
    await context.store.releaseLane(gone);
    const intents = fences.map((fence) => anIntent(fence.lane));
    const outcomes = await outcomesOf(
      context.store,
      [4, 2, 0, 3, 1].map((index) => {
        const [fence, intent] = [fences[index], intents[index]];
        if (fence === undefined || intent === undefined) throw new Error("no lane");
        return { kind: "allocate", fence, floor: index, items: [{ intent }] } as const;
      }),
    );
    expect(outcomes.map(({ status }) => status)).toEqual([
      "allocated",
      "fenced",
      "allocated",
      "allocated",
      "allocated",
    ]);
    const given = outcomes.map((outcome) => (outcome.status === "allocated" ? nonces(outcome.items) : null));
    expect(given).toEqual([[4], null, [0], [3], [1]]);
    expect(await context.store.transaction(intents[2]?.txId ?? "")).toBeNull();
  });

  it("a commit is rolled back completely if one item cannot be stored", async () => {
    const [good, bad] = [await holdLane(context.store), await holdLane(context.store)];
    const mined = await mine(context.store, good);
    const { lastSeq } = await context.store.feed(0, 1);
    const poison = [
      anIntent(bad.lane, { requestId: "nul\0" }),
      anIntent(bad.lane, { metadata: { text: "nul\0" } }),
      anIntent(bad.lane, { requestId: "x".repeat(256) }),
    ];
    for (const intent of poison) {
      const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: mined.attempt.txHash } as const;
      const batch = outcomesOf(context.store, [
        { kind: "allocate", fence: good, floor: 0, items: [{ intent: anIntent(good.lane) }] },
        { kind: "transition", fence: good, items: [step(mined.intent.txId, AT.mined, "confirm", { completion })] },
        { kind: "allocate", fence: bad, floor: 0, items: [{ intent: anIntent(bad.lane) }, { intent }] },
      ]);
      await expect(batch).rejects.toBeInstanceOf(BatchRefused);
    }
    expect((await context.store.loadLane(good))?.cursor).toBe(1);
    expect((await context.store.loadLane(bad))?.cursor).toBeNull();
    expect(await context.store.transaction(mined.intent.txId)).toMatchObject({ state: "TRACKING", subState: "MINED" });
    expect((await context.store.feed(0, 1)).lastSeq).toBe(lastSeq);
    expect((await context.store.lanes(good.lane.signer))[0]).toMatchObject({ confirmed: 0 });
  });

  it("a commit is rolled back completely if one transition cannot be stored, whatever precedes it", async () => {
    const fence = await holdLane(context.store);
    const intents = [anIntent(fence.lane), anIntent(fence.lane)] as const;
    await allocate(context.store, fence, intents);
    const items = [
      step(intents[0].txId, AT.allocated, "sign", { attempt: anAttempt() }),
      step(intents[1].txId, AT.allocated, "sign", { attempt: anAttempt(), reason: "nul\0" }),
    ];
    await expect(apply(context.store, fence, items)).rejects.toBeInstanceOf(BatchRefused);
    expect(await context.store.transaction(intents[0].txId)).toMatchObject({ state: "ALLOCATED", attempts: [] });
  });

  it("completions of a commit are numbered in the given order, without gaps, across writes", async () => {
    const fences = [await holdLane(context.store), await holdLane(context.store)];
    const mined: Mined[] = [];
    for (const fence of fences) mined.push(await mine(context.store, fence), await mine(context.store, fence));
    const { lastSeq } = await context.store.feed(0, 1);
    const confirmation = ({ intent, attempt }: Mined) => {
      const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
      return step(intent.txId, AT.mined, "confirm", { completion });
    };
    const items = mined.map(confirmation);
    await context.store.commit([
      { kind: "transition", fence: fences[1] as Fence, items: items.slice(2) },
      { kind: "transition", fence: fences[0] as Fence, items: items.slice(0, 2) },
    ]);
    const feed = (await context.store.feed(lastSeq, 100)).items;
    expect(feed.map(({ seq }) => seq)).toEqual([1, 2, 3, 4].map((n) => lastSeq + n));
    expect(feed.map(({ txId }) => txId)).toEqual([mined[2], mined[3], mined[0], mined[1]].map((m) => m?.intent.txId));
    expect((await context.store.feed(0, 1)).lastSeq).toBe(lastSeq + 4);
    expect((await context.store.feed(lastSeq + 1, 2)).items).toEqual(feed.slice(1, 3));
  });

  it("one commit can contain every kind of write", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane, { requestId: "waits" });
    await context.subject.intake(intent);
    const [row] = await context.store.loadIntake([fence.lane], 1);
    const settle = { intakeId: row?.intakeId ?? 0, result: "refused", event: "refuse", reason: "no" } as const;
    const outcomes = await outcomesOf(context.store, [
      { kind: "align", fence, floor: 1 },
      { kind: "suspend", fence, suspended: true },
      { kind: "allocate", fence, floor: null, items: [{ intent: anIntent(fence.lane) }] },
      { kind: "transition", fence, items: [] },
      { kind: "unwatch", fence, throughBlock: 1 },
      { kind: "confirmations", fence, blocks: [], pruneBelow: 0 },
      { kind: "settleIntake", fence, results: [settle] },
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      "aligned",
      "done",
      "allocated",
      "applied",
      "done",
      "confirmations",
      "done",
    ]);
    expect(await context.store.loadLane(fence)).toMatchObject({ cursor: 2, suspendedBy: "OPERATOR", allocated: 1 });
    expect(await commitOne(context.store, { kind: "align", fence, floor: 0 })).toEqual({
      status: "aligned",
      cursor: 2,
    });
  });

  it("a commit returns, for each lane still owned, the lane's changes in order with the stored times", async () => {
    const [fence, lost] = [await holdLane(context.store), await holdLane(context.store)];
    await context.store.releaseLane(lost);
    const [plain, first, second] = [anIntent(fence.lane), anIntent(fence.lane), anIntent(fence.lane)];
    await commitOne(context.store, { kind: "align", fence, floor: 4 });
    const alone = await context.store.commit([{ kind: "allocate", fence, floor: null, items: [{ intent: plain }] }]);
    const { changes } = await context.store.commit([
      { kind: "align", fence: lost, floor: 9 },
      { kind: "allocate", fence, floor: null, items: [{ intent: first }] },
      { kind: "suspend", fence, suspended: true },
      { kind: "align", fence, floor: 7 },
      { kind: "align", fence, floor: 7 },
      { kind: "allocate", fence, floor: null, items: [{ intent: second }] },
    ]);
    const stored = (intent: PreparedIntent) => context.store.transaction(intent.txId).then((row) => row?.createdAt);
    const given = async (intent: PreparedIntent, nonce: number) => ({
      kind: "allocated",
      nonce,
      at: await stored(intent),
    });
    expect(alone.changes.flatMap((each) => each.changes)).toMatchObject([await given(plain, 4)]);
    expect(changes.every(({ lane, token }) => token === fence.token && laneKey(lane) === laneKey(fence.lane))).toBe(
      true,
    );
    expect(changes.flatMap((each) => each.changes)).toMatchObject([
      await given(first, 5),
      { kind: "suspension", suspendedBy: "OPERATOR" },
      { kind: "cursor", cursor: 7 },
      { kind: "usedElsewhere", nonce: 6, through: 6 },
      await given(second, 7),
    ]);
    expect((await context.store.commit([{ kind: "align", fence, floor: 0 }])).changes).toEqual([]);
  });

  it("concurrent commits each get a nonce of their own", async () => {
    const fence = await holdLane(context.store);
    const stores = await Promise.all([context.subject.connect(), context.subject.connect()]);
    const all = [context.store, ...stores];
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        allocate(all[index % 3] as (typeof all)[number], fence, [
          anIntent(fence.lane, { requestId: `r${index % 10}` }),
        ]),
      ),
    );
    const given = results.flatMap(nonces).filter((nonce) => nonce !== null);
    expect(given.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await Promise.all(stores.map((store) => store.close()));
  });
}
