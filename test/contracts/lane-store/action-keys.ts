import { expect, it } from "vitest";
import type { Fence, Hex } from "../../../src/domain/lane.ts";
import type { ActionKey } from "../../../src/ports/lane-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anIntent,
  apply,
  commitOne,
  holdLane,
  outcomesOf,
  step,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const WORDS: Hex = `0x${"1".repeat(64)}`;
const OTHERS: Hex = `0x${"2".repeat(64)}`;

function actionKey(subject: string, overrides: Partial<ActionKey> = {}): ActionKey {
  return { subject, key: "key-1", fingerprint: WORDS, ...overrides };
}

/**
 * An operator's action with an idempotency key is carried out once; key and action are committed together or not at
 * all.
 */
export function actionKeysContract(context: LaneStoreContext): void {
  const tracked = async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane);
    await allocate(context.store, fence, [intent], 0);
    const { txId } = intent;
    await apply(context.store, fence, [step(txId, AT.allocated, "sign", { attempt: anAttempt() })]);
    return { fence, txId };
  };
  const decide = (txId: string, named: ActionKey) =>
    step(txId, AT.pending, "decide", { decision: { actor: "operator:ops", audit: { a: 1 }, actionKey: named } });
  const decisions = async (txId: string) =>
    (await context.store.history(txId)).flatMap(({ decision }) => decision ?? []);

  // protects [Operators] src/domain/ledger/draft.ts, src/domain/ledger/move.ts, src/domain/ledger/bind.ts, src/domain/ledger/standing.ts, src/domain/ledger/settle-intake.ts
  it("the idempotency key of an action prevents a second state change with that key", async () => {
    const { fence, txId } = await tracked();
    const { lane } = fence;
    expect(await context.store.carriedOut(lane, actionKey(txId))).toBeNull();
    expect(await apply(context.store, fence, [decide(txId, actionKey(txId))])).toEqual(["applied"]);
    expect(await context.store.carriedOut(lane, actionKey(txId))).toBe(WORDS);
    for (const fingerprint of [WORDS, OTHERS]) {
      expect(await apply(context.store, fence, [decide(txId, actionKey(txId, { fingerprint }))])).toEqual(["conflict"]);
    }
    expect(await context.store.carriedOut(lane, actionKey(txId))).toBe(WORDS);
    expect(await decisions(txId)).toEqual([{ actor: "operator:ops", audit: { a: 1 } }]);
  });

  // protects [Operators] src/domain/ledger/draft.ts, src/domain/ledger/move.ts, src/domain/ledger/bind.ts, src/domain/ledger/standing.ts, src/domain/ledger/settle-intake.ts
  it("only one of two state changes with the same idempotency key is applied, even within one commit", async () => {
    const { fence, txId } = await tracked();
    const write = { kind: "transition", fence, items: [decide(txId, actionKey(txId))] } as const;
    expect(await outcomesOf(context.store, [write, write])).toEqual([
      { status: "applied", items: ["applied"] },
      { status: "applied", items: ["conflict"] },
    ]);
    expect(await decisions(txId)).toHaveLength(1);
  });

  it("idempotency keys are separate per transaction and per lane, and are case-sensitive", async () => {
    const { fence, txId } = await tracked();
    const other = await tracked();
    await apply(context.store, fence, [decide(txId, actionKey(txId))]);
    expect(await context.store.carriedOut(fence.lane, actionKey(""))).toBeNull();
    expect(await context.store.carriedOut(fence.lane, actionKey(txId, { key: "KEY-1" }))).toBeNull();
    expect(await context.store.carriedOut(other.fence.lane, actionKey(txId))).toBeNull();
    expect(await apply(context.store, other.fence, [decide(other.txId, actionKey(other.txId))])).toEqual(["applied"]);
  });

  it("no idempotency key is stored for a state change that was not applied", async () => {
    const { fence, txId } = await tracked();
    const elsewhere = step(txId, AT.broadcast, "decide", {
      decision: { actor: "operator:ops", audit: null, actionKey: actionKey(txId) },
    });
    expect(await apply(context.store, fence, [elsewhere])).toEqual(["conflict"]);
    const late = { ...fence, token: fence.token + 1 };
    const write = { kind: "transition", fence: late, items: [decide(txId, actionKey(txId))] } as const;
    expect(await commitOne(context.store, write)).toEqual({ status: "fenced" });
    expect(await context.store.carriedOut(fence.lane, actionKey(txId))).toBeNull();
  });

  // protects [Operators] src/domain/ledger/draft.ts, src/domain/ledger/move.ts, src/domain/ledger/bind.ts, src/domain/ledger/standing.ts, src/domain/ledger/settle-intake.ts
  it("only one transaction is placed at a nonce hole under one idempotency key", async () => {
    const { fence, txId } = await tracked();
    const intents = [anIntent(fence.lane), anIntent(fence.lane)] as const;
    await allocate(context.store, fence, intents, 0);
    const completion = { state: "FAILED_FINAL", subState: "REJECTED", settled: true, txHash: null } as const;
    const givenUp = intents.map((each) => step(each.txId, AT.allocated, "giveUp", { reason: "refused", completion }));
    expect(await apply(context.store, fence, givenUp)).toEqual(["applied", "applied"]);
    const decision = { actor: "operator:ops", audit: null, actionKey: actionKey(txId) };
    const fill = (nonce: number) => {
      const intent = anIntent(fence.lane);
      return commitOne(context.store, {
        ...{ kind: "bind", fence, nonce, intent, attempt: anAttempt(), reason: "test", decision },
      });
    };
    expect(await fill(1)).toMatchObject({ result: "settled" });
    expect(await fill(2)).toMatchObject({ result: "conflict" });
    expect((await loaded(fence)).holes.map(({ nonce }) => nonce)).toEqual([2]);
    expect(await context.store.carriedOut(fence.lane, actionKey(txId))).toBe(WORDS);
  });

  // protects [Operators] src/domain/ledger/draft.ts, src/domain/ledger/move.ts, src/domain/ledger/bind.ts, src/domain/ledger/standing.ts, src/domain/ledger/settle-intake.ts
  it("a lane is suspended, resumed or realigned with the chain only once per idempotency key", async () => {
    const { fence } = await tracked();
    const { store } = context;
    const decided = (action: string, key: string) => ({
      action,
      actor: "operator:ops",
      reason: "r",
      actionKey: actionKey("", { key }),
    });
    const suspend = (suspended: boolean, key: string) =>
      commitOne(store, { kind: "suspend", fence, suspended, decision: decided(suspended ? "suspend" : "resume", key) });
    await suspend(true, "stop");
    await suspend(false, "go");
    await suspend(true, "stop");
    expect((await loaded(fence)).suspendedBy).toBeNull();
    expect(await store.carriedOut(fence.lane, actionKey("", { key: "stop" }))).toBe(WORDS);
    const realign = (floor: number) =>
      commitOne(store, { kind: "realign", fence, floor, decision: decided("realign", "down") });
    await commitOne(store, { kind: "align", fence, floor: 90 });
    expect(await realign(50)).toEqual({ status: "aligned", cursor: 50 });
    expect(await realign(10)).toEqual({ status: "aligned", cursor: 50 });
    expect((await store.laneDecisions(fence.lane, 10)).map(({ action }) => action)).toEqual([
      "realign",
      "resume",
      "suspend",
    ]);
  });

  const loaded = async (fence: Fence) => {
    const snapshot = await context.store.loadLane(fence);
    if (snapshot === null) throw new Error("the fence does not hold");
    return snapshot;
  };
}
