import { describe, expect, it } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import { BatchRefused, type IntakeEvent } from "../../../src/ports/lane-store.ts";
import type { QueryStore } from "../../../src/ports/query-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  aReceipt,
  BY_ANYBODY,
  commitOne,
  holdLane,
  outcomesOf,
  step,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const HOUR_MS = 3_600_000;
const decision = { actor: "operator:ops", audit: { action: "suspend" } };
const claim = { ordinal: 1 };

/** The store's contract for callers' deadlines, and for transactions that an operator put on hold. */
export function timeAndHoldsContract(context: LaneStoreContext): void {
  const ahead = async (ms: number) => new Date((await context.subject.now()).getTime() + ms);
  const lane = () => holdLane(context.store);
  const timed = async (fence: Fence, ms: number) => anIntent(fence.lane, { validUntil: await ahead(ms) });
  const eventsOf = async (store: Pick<QueryStore, "history">, txId: string) =>
    (await store.history(txId)).map(({ event }) => event);

  /** A transaction that was allocated before its deadline. The deadline has passed now. */
  async function overdue(fence: Fence) {
    const intent = await timed(fence, HOUR_MS);
    await allocate(context.store, fence, [intent], 0);
    await context.subject.letTimeEnd(intent.txId);
    return intent;
  }

  const expire = (fence: Fence, txId: string) => {
    const completion = { state: "FAILED_FINAL", subState: "EXPIRED", settled: true, txHash: null } as const;
    return apply(context.store, fence, [step(txId, AT.allocated, "expire", { reason: "over", completion })]);
  };

  describe("the validUntil of a transaction", () => {
    it("is stored, and returned to the lane's owner in every state", async () => {
      const fence = await lane();
      const [timely, plain] = [await timed(fence, HOUR_MS), anIntent(fence.lane)];
      await allocate(context.store, fence, [timely, plain], 0);
      const { validUntil } = timely;
      expect(await context.store.transaction(timely.txId)).toMatchObject({ validUntil });
      expect(await context.store.transaction(plain.txId)).not.toHaveProperty("validUntil");
      const waiting = await context.store.loadAllocated(fence.lane, 0, 10);
      expect(waiting[0]).toMatchObject({ validUntil });
      expect(waiting[1]).not.toHaveProperty("validUntil");
      await apply(context.store, fence, [step(timely.txId, AT.allocated, "sign", { attempt: anAttempt(), claim })]);
      expect((await context.store.loadLane(fence))?.tracking).toMatchObject([{ txId: timely.txId, validUntil }]);
    });

    it("prevents the allocation of a nonce if it has passed by the database's clock", async () => {
      const fence = await lane();
      const late = await timed(fence, -1);
      const results = await allocate(context.store, fence, [late, await timed(fence, HOUR_MS)], 0);
      expect(results).toMatchObject([{ result: "expired" }, { result: "created", nonce: 0 }]);
      expect(await context.store.transaction(late.txId)).toBeNull();
    });

    it("is listed earliest first", async () => {
      const fence = await lane();
      const far = await timed(fence, HOUR_MS);
      const over = await overdue(fence);
      await allocate(context.store, fence, [far, anIntent(fence.lane)], 0);
      const listed = await context.store.loadExpiring(fence.lane, 10);
      expect(listed).toMatchObject([
        { txId: over.txId, nonce: 0, state: "ALLOCATED", mayGiveUp: true, validUntil: expect.any(Date) },
        { txId: far.txId, nonce: 1, state: "ALLOCATED" },
      ]);
      expect(listed[0]?.leftMs).toBeLessThanOrEqual(0);
      expect(listed[1]?.leftMs).toBeGreaterThan(HOUR_MS / 2);
      expect(await context.store.loadExpiring(fence.lane, 1)).toHaveLength(1);
      await apply(context.store, fence, [step(far.txId, AT.allocated, "hold", { decision })]);
      expect(await expire(fence, over.txId)).toEqual(["applied"]);
      expect(await context.store.loadExpiring(fence.lane, 10)).toEqual([]);
    });

    it("ends an unsigned transaction when the time has passed", async () => {
      const fence = await lane();
      const over = await overdue(fence);
      const { lastSeq } = await context.store.feed(0, 1);
      expect(await expire(fence, over.txId)).toEqual(["applied"]);
      const ended = { state: "FAILED_FINAL", subState: "EXPIRED", nonce: null };
      expect(await context.store.transaction(over.txId)).toMatchObject(ended);
      expect((await context.store.feed(lastSeq, 10)).items).toMatchObject([
        { txId: over.txId, ...ended, settled: true },
      ]);
      expect((await context.store.loadLane(fence))?.holes).toMatchObject([{ nonce: 0, why: "givenUp" }]);
      const items = [{ intent: anIntent(fence.lane) }];
      const next = await commitOne(context.store, { kind: "allocate", fence, floor: 0, fill: [0], items });
      expect(next).toMatchObject({ items: [{ result: "created", nonce: 0, recycled: true }] });
    });

    it.each<[string, (fence: Fence) => Promise<unknown>]>([
      [
        "a caller named",
        (fence) =>
          allocate(context.store, fence, [anIntent(fence.lane), { ...anIntent(fence.lane), exactNonce: 2 }], 0),
      ],
      [
        "a caller has reserved",
        (fence) => {
          const named = { reservationId: anInstance().instanceId, requestId: null, ttlMs: HOUR_MS, ...BY_ANYBODY };
          return commitOne(context.store, { kind: "reserve", fence, floor: null, ...named });
        },
      ],
      [
        "something was signed at",
        async (fence) => {
          const above = anIntent(fence.lane);
          await allocate(context.store, fence, [above], 0);
          await apply(context.store, fence, [step(above.txId, AT.allocated, "sign", { attempt: anAttempt(), claim })]);
        },
      ],
      // protects [Holes] src/domain/ledger/may-move.ts
    ])("does not free a nonce below a nonce that %s", async (_, stays) => {
      const fence = await lane();
      const over = await overdue(fence);
      await stays(fence);
      expect(await context.store.loadExpiring(fence.lane, 1)).toMatchObject([{ txId: over.txId, mayGiveUp: false }]);
      expect(await expire(fence, over.txId)).toEqual(["conflict"]);
      expect(await context.store.transaction(over.txId)).toMatchObject({ state: "ALLOCATED", nonce: 0 });
    });

    // protects [Holes] src/domain/ledger/may-move.ts
    it("does not free a nonce below one that a caller names in the same commit", async () => {
      const fence = await lane();
      const over = await overdue(fence);
      const named = { intent: { ...anIntent(fence.lane), exactNonce: 1 } };
      const outcomes = await outcomesOf(context.store, [
        { kind: "allocate", fence, floor: 0, items: [named] },
        { kind: "transition", fence, items: [step(over.txId, AT.allocated, "expire", { reason: "over" })] },
      ]);
      expect(outcomes[1]).toEqual({ status: "applied", items: ["conflict"] });
    });

    // protects [Holes] src/domain/ledger/may-move.ts
    it("never causes a transaction to move down from a nonce that the caller named", async () => {
      const fence = await lane();
      const over = await overdue(fence);
      expect(await expire(fence, over.txId)).toEqual(["applied"]);
      const named = { ...anIntent(fence.lane), exactNonce: 1 };
      await allocate(context.store, fence, [named], 0);
      const down = apply(context.store, fence, [step(named.txId, AT.allocated, "shiftDown", { nonce: 0 })]);
      await expect(down).rejects.toThrow(BatchRefused);
      expect(await context.store.transaction(named.txId)).toMatchObject({ nonce: 1 });
    });

    // protects [Times and holds] src/domain/ledger/move.ts
    it("ends no transaction before the time has passed", async () => {
      const fence = await lane();
      const [early, over] = [await timed(fence, HOUR_MS), await overdue(fence)];
      await allocate(context.store, fence, [early], 0);
      expect(await expire(fence, early.txId)).toEqual(["conflict"]);
      await apply(context.store, fence, [step(over.txId, AT.allocated, "hold", { decision })]);
      expect(await expire(fence, over.txId)).toEqual(["conflict"]);
      await apply(context.store, fence, [step(over.txId, AT.allocated, "unhold", { decision })]);
      await apply(context.store, fence, [step(over.txId, AT.allocated, "sign", { attempt: anAttempt(), claim })]);
      expect(await expire(fence, over.txId)).toEqual(["conflict"]);
      const items = [step(early.txId, AT.allocated, "expire")];
      const old = { kind: "transition", fence: { ...fence, token: fence.token + 1 }, items } as const;
      expect(await commitOne(context.store, old)).toEqual({ status: "fenced" });
    });

    it("is recorded as the cause of a cancellation only once the time has passed", async () => {
      const fence = await lane();
      const [early, over] = [await timed(fence, HOUR_MS), await overdue(fence)];
      await allocate(context.store, fence, [early], 0);
      const signing = (txId: string) => step(txId, AT.allocated, "sign", { attempt: anAttempt(), claim });
      await apply(context.store, fence, [signing(early.txId), signing(over.txId)]);
      const cancel = (txId: string) => {
        const attempt = anAttempt(2, { kind: "cancel" });
        return step(txId, AT.pending, "cancel", { attempt, claim: { ordinal: 2 }, expires: true, decision });
      };
      expect(await apply(context.store, fence, [cancel(early.txId), cancel(over.txId)])).toEqual([
        "conflict",
        "applied",
      ]);
      expect(await context.store.transaction(over.txId)).toMatchObject({ expiredAt: expect.any(Date) });
      expect(await context.store.transaction(early.txId)).not.toHaveProperty("expiredAt");
      const tracking = (await context.store.loadLane(fence))?.tracking ?? [];
      expect(tracking.find(({ txId }) => txId === over.txId)).toMatchObject({ expired: true });
      expect((await context.store.loadExpiring(fence.lane, 10)).map(({ txId }) => txId)).toEqual([early.txId]);
    });

    it("ends an intake row when the time has passed", async () => {
      const fence = await lane();
      const [late, early] = [await timed(fence, -1), await timed(fence, HOUR_MS)];
      await context.subject.intake(late, early);
      const rows = await context.store.loadIntake([fence.lane], 10);
      expect(rows).toMatchObject([{ intent: { txId: late.txId }, lapsed: true }, { intent: { txId: early.txId } }]);
      expect(rows[1]).not.toHaveProperty("lapsed");
      expect(rows[1]?.intent.validUntil).toEqual(early.validUntil);
      const results = rows.map(({ intakeId, intent }) => decided(intakeId, intent.requestId, "expire"));
      await commitOne(context.store, { kind: "settleIntake", fence, results });
      const ended = { state: "FAILED_FINAL", subState: "EXPIRED", nonce: null, validUntil: late.validUntil };
      expect(await context.store.transaction(late.txId)).toMatchObject(ended);
      expect(await context.store.transaction(early.txId)).toMatchObject({ state: "CREATED" });
      expect(await eventsOf(context.store, late.txId)).toEqual(["accept", "expire"]);
    });
  });

  describe("a hold on a transaction", () => {
    // protects [Times and holds] src/domain/ledger/move.ts
    it("prevents every send except by an operator's action", async () => {
      const fence = await lane();
      const intent = anIntent(fence.lane);
      const { txId } = intent;
      await allocate(context.store, fence, [intent], 0);
      const apart = (item: ReturnType<typeof step>) => apply(context.store, fence, [item]);
      expect(await apart(step(txId, AT.allocated, "hold", { reason: "odd", decision }))).toEqual(["applied"]);
      const { heldSince } = (await context.store.transaction(txId)) ?? {};
      expect(heldSince).toBeInstanceOf(Date);
      expect(await context.store.loadAllocated(fence.lane, 0, 1)).toMatchObject([{ held: true }]);
      expect(await apart(step(txId, AT.allocated, "sign", { attempt: anAttempt(), claim }))).toEqual(["conflict"]);
      await apart(step(txId, AT.allocated, "hold", { decision }));
      expect(await context.store.transaction(txId)).toMatchObject({ heldSince });
      await apart(step(txId, AT.allocated, "unhold", { decision }));
      expect(await context.store.transaction(txId)).not.toHaveProperty("heldSince");
      await apart(step(txId, AT.allocated, "sign", { attempt: anAttempt(), claim }));
      await apart(step(txId, AT.pending, "hold", { decision }));
      expect(await apart(step(txId, AT.pending, "resubmit", { claim }))).toEqual(["conflict"]);
      expect(await apart(step(txId, AT.pending, "resubmit", { claim, sendRequested: true }))).toEqual(["applied"]);
      expect((await context.store.loadLane(fence))?.tracking).toMatchObject([{ txId, held: true }]);
      expect((await context.store.history(txId)).find(({ event }) => event === "hold")).toMatchObject({
        reason: "odd",
        decision,
      });
    });

    // protects [Times and holds] src/domain/ledger/fold-transaction.ts, src/adapters/postgres/statements/transaction.ts
    it("ends with the transaction's completion", async () => {
      const fence = await lane();
      const { txId, ...intent } = anIntent(fence.lane);
      await allocate(context.store, fence, [{ txId, ...intent }], 0);
      const attempt = anAttempt();
      const receipt = aReceipt(attempt.txHash);
      const completion = { settled: true, subState: null, txHash: attempt.txHash } as const;
      const reorged = { state: "REORGED", settled: false, subState: null, txHash: attempt.txHash } as const;
      for (const [item, isHeld] of [
        [step(txId, AT.allocated, "sign", { attempt, claim }), false],
        [step(txId, AT.pending, "mine", { receipt }), false],
        [step(txId, AT.mined, "hold", { decision }), true],
        [step(txId, AT.mined, "confirm", { completion: { state: "CONFIRMED", ...completion } }), false],
        [step(txId, AT.confirmed, "reorg", { receipt: null, completion: reorged }), false],
      ] as const) {
        expect(await apply(context.store, fence, [item])).toEqual(["applied"]);
        expect((await context.store.transaction(txId))?.heldSince !== undefined, item.event).toBe(isHeld);
      }
    });

    it("ends with the completion even if a reorg follows in the same commit", async () => {
      const fence = await lane();
      const { txId, ...intent } = anIntent(fence.lane);
      await allocate(context.store, fence, [{ txId, ...intent }], 0);
      const attempt = anAttempt();
      const completion = { subState: null, txHash: attempt.txHash } as const;
      await apply(context.store, fence, [
        step(txId, AT.allocated, "sign", { attempt, claim }),
        step(txId, AT.pending, "mine", { receipt: aReceipt(attempt.txHash) }),
        step(txId, AT.mined, "hold", { decision }),
      ]);
      const confirmed = { state: "CONFIRMED", settled: true, ...completion } as const;
      const reorged = { state: "REORGED", settled: false, ...completion } as const;
      const outcomes = await apply(context.store, fence, [
        step(txId, AT.mined, "confirm", { completion: confirmed }),
        step(txId, AT.confirmed, "reorg", { receipt: null, completion: reorged }),
      ]);
      expect(outcomes).toEqual(["applied", "applied"]);
      expect(await context.store.transaction(txId)).not.toHaveProperty("heldSince");
    });

    // protects [Times and holds] src/domain/ledger/allocate.ts, src/domain/ledger/settle-intake.ts
    it("keeps an intake row from getting a nonce and from expiring, but permits its cancellation", async () => {
      const fence = await lane();
      const [intent, other] = [await timed(fence, -1), anIntent(fence.lane)];
      await context.subject.intake(intent, other);
      const rows = await context.store.loadIntake([fence.lane], 10);
      const ids = rows.map(({ intakeId }) => intakeId);
      const settle = (...events: readonly IntakeEvent[]) =>
        commitOne(context.store, {
          kind: "settleIntake",
          fence,
          results: ids.flatMap((id) => events.map((event) => decided(id, null, event))),
        });
      await settle("hold", "hold", "expire", "unhold", "hold");
      expect(await context.store.loadIntake([fence.lane], 10)).toEqual([]);
      const record = await context.store.transaction(intent.txId);
      expect(record).toMatchObject({ state: "CREATED", intakeId: ids[0], heldSince: expect.any(Date) });
      expect(await eventsOf(context.store, intent.txId)).toEqual(["accept", "hold", "unhold", "hold"]);
      const items = [{ intakeId: ids[1] ?? 0, intent: other }];
      expect(await commitOne(context.store, { kind: "allocate", fence, floor: 0, items })).toMatchObject({
        items: [{ result: "held" }],
      });
      await settle("callOff");
      expect(await context.store.transaction(other.txId)).toMatchObject({ subState: "CANCELLED", nonce: null });
      const history = await context.store.history(other.txId);
      expect(history.map(({ ordinal, event }) => [ordinal, event])).toEqual([
        [1, "accept"],
        [2, "hold"],
        [3, "unhold"],
        [4, "hold"],
        [5, "callOff"],
      ]);
    });

    it("lets an intake row get its nonce after the release", async () => {
      const fence = await lane();
      const intent = await timed(fence, HOUR_MS);
      await context.subject.intake(intent);
      const [row] = await context.store.loadIntake([fence.lane], 10);
      const results = (["hold", "unhold"] as const).map((event) => decided(row?.intakeId ?? 0, null, event));
      for (const result of results) await commitOne(context.store, { kind: "settleIntake", fence, results: [result] });
      const items = [{ intakeId: row?.intakeId ?? 0, intent }];
      const outcome = await commitOne(context.store, { kind: "allocate", fence, floor: 0, items });
      expect(outcome).toMatchObject({ items: [{ result: "created", nonce: 0 }] });
      await apply(context.store, fence, [step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim })]);
      expect(await eventsOf(context.store, intent.txId)).toEqual(["accept", "hold", "unhold", "allocate", "sign"]);
      expect(await context.store.transaction(intent.txId)).toMatchObject({ validUntil: intent.validUntil });
    });
  });
}

function decided(intakeId: number, requestId: string | null, event: IntakeEvent) {
  return { intakeId, requestId, result: "decided", event, reason: event, decision: null } as const;
}
