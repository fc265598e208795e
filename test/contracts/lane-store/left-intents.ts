import { expect, it } from "vitest";
import type { Problem } from "../../../src/domain/text/refusal.ts";
import { aLane, allocate, anIntent, commitOne, holdLane } from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

type ALane = Parameters<typeof anIntent>[0];

/** A refusal whose revert reason contains characters that jsonb cannot store. */
const REVERTS: Problem = {
  code: "SUBMISSION_REJECTED",
  detail: "it reverts: \0",
  reason: "REVERT",
  revert: { name: "Error", message: "\0\ud800", data: "0x" },
};

/** The contract of every store for intents that a node of the previous release enqueued for the owner of their lane. */
export function leftIntentsContract(context: LaneStoreContext): void {
  const rowOf = async (lane: ALane, txId: string) => {
    const row = (await context.store.loadIntake([lane], 100)).find(({ intent }) => intent.txId === txId);
    if (row === undefined) throw new Error("not waiting");
    return row;
  };
  const asIntent = ({ gas: _, gasCost: __, ...intent }: ReturnType<typeof anIntent>) => intent;
  const refused = (intakeId: number) =>
    ({ intakeId, result: "refused", event: "refuse", reason: "it reverts", problem: REVERTS }) as const;

  it("intents that were enqueued for an owner are in the intake table in call order, marked as unanswered", async () => {
    const lane = aLane();
    const intents = [
      anIntent(lane, { requestId: "left", owner: "checkout", metadata: { a: [1] }, payload: { data: "0x1234" } }),
      anIntent(lane, { payload: { to: null, accessList: [{ address: `0x${"ab".repeat(20)}`, storageKeys: [] }] } }),
      anIntent(lane),
    ];
    await context.subject.older.leave(...intents.map(asIntent));
    const rows = await context.store.loadIntake([lane], 100);
    expect(rows.map(({ unanswered }) => unanswered)).toEqual([true, true, true]);
    expect(rows.map(({ intent }) => intent)).toEqual(intents.map(asIntent));
  });

  // protects [Replicas that embed the library] src/adapters/postgres/statements/intake.ts
  it("an intent that was enqueued for an owner owns no request id before it is accepted", async () => {
    const lane = aLane();
    const intent = anIntent(lane, { requestId: "mine" });
    await context.subject.older.leave(intent);
    const found = () => context.store.findByRequestIds([{ lane, requestIds: ["mine"] }]);
    expect(await found()).toEqual([]);
    expect(await context.subject.older.accept(intent.txId)).toEqual([intent.txId]);
    expect(await found()).toMatchObject([{ txId: intent.txId, state: "CREATED" }]);
    expect((await rowOf(lane, intent.txId)).unanswered).toBeUndefined();
    expect(await context.subject.older.accept(intent.txId), "once").toEqual([]);
  });

  it("intents that were enqueued for an owner become transactions, or aliases of one", async () => {
    const fence = await holdLane(context.store);
    const [first, second] = [anIntent(fence.lane, { requestId: "same" }), anIntent(fence.lane, { requestId: "same" })];
    await context.subject.older.leave(first, second);
    const rows = [await rowOf(fence.lane, first.txId), await rowOf(fence.lane, second.txId)] as const;
    const items = [
      { intent: first, intakeId: rows[0].intakeId },
      { intent: second, intakeId: rows[1].intakeId },
    ];
    const outcome = await commitOne(context.store, { kind: "allocate", fence, floor: 0, items });
    expect(outcome).toMatchObject({ items: [{ result: "created" }, { result: "duplicate" }] });
    const results = [{ intakeId: rows[1].intakeId, result: "alias", of: first.txId }] as const;
    await commitOne(context.store, { kind: "settleIntake", fence, results });
    const taken = { txId: first.txId, nonce: 0, state: "ALLOCATED" };
    expect(await context.store.transaction(first.txId)).toMatchObject(taken);
    expect(await context.store.transaction(second.txId)).toMatchObject(taken);
    expect(await context.subject.older.accept(first.txId, second.txId)).toEqual([]);
  });

  // protects [Replicas that embed the library] src/domain/ledger/settle-intake.ts, src/adapters/postgres/statements/left-intent.ts
  it("a declined intent does not occupy its request id", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane, { requestId: "free" });
    const { lastSeq } = await context.store.feed(0, 1);
    await context.subject.older.leave(intent);
    const { intakeId } = await rowOf(fence.lane, intent.txId);
    await commitOne(context.store, { kind: "settleIntake", fence, results: [refused(intakeId)] });
    expect(await context.subject.older.declined(intent.txId)).toEqual(REVERTS);
    expect(await context.subject.older.accept(intent.txId)).toEqual([]);
    expect(await context.store.transaction(intent.txId)).toBeNull();
    expect((await context.store.feed(0, 1)).lastSeq).toBe(lastSeq);
    const again = anIntent(fence.lane, { requestId: "free" });
    expect(await allocate(context.store, fence, [again])).toMatchObject([{ result: "created" }]);
  });

  // protects [Replicas that embed the library] src/domain/ledger/settle-intake.ts
  it("an intent that is refused after its acceptance becomes FAILED_FINAL", async () => {
    const fence = await holdLane(context.store);
    const [fails, waits] = [anIntent(fence.lane), anIntent(fence.lane)];
    await context.subject.older.leave(fails, waits);
    const ids = [
      (await rowOf(fence.lane, fails.txId)).intakeId,
      (await rowOf(fence.lane, waits.txId)).intakeId,
    ] as const;
    expect(await context.subject.older.accept(fails.txId, waits.txId)).toHaveLength(2);
    const results = [refused(ids[0]), { ...refused(ids[1]), ifUnanswered: true }] as const;
    await commitOne(context.store, { kind: "settleIntake", fence, results });
    expect(await context.store.transaction(fails.txId)).toMatchObject({ nonce: null, state: "FAILED_FINAL" });
    expect(await rowOf(fence.lane, waits.txId)).toMatchObject({ intent: { txId: waits.txId } });
  });
}
