import { expect, it } from "vitest";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import type { ApprovalResult } from "../../../src/ports/lane-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  apply,
  commitOne,
  holdLane,
  nonces,
  step,
  uniqueAddress,
} from "../../support/lane-samples.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";
import type { Store } from "../store-subject.ts";

type Event = ApprovalResult["event"];

/**
 * Contract: a transaction that waits for approval is stored without a nonce, and it is approved or rejected only once.
 */
export function approvalContract(context: LaneStoreContext): void {
  const guarded = async (policy: object, work: (store: Store, fence: Fence) => Promise<void>) => {
    const lane = aLane();
    const store = await context.subject.connect(forSigner(lane.signer, policy));
    try {
      await work(store, await holdLane(store, lane));
    } finally {
      await store.close();
    }
  };
  const above100 = (work: (store: Store, fence: Fence) => Promise<void>) =>
    guarded({ requireApproval: { aboveValue: "100" } }, work);
  const moving = (lane: Lane, value: bigint, requestId: string | null = null, owner: string | null = null) =>
    anIntent(lane, { payload: { value }, requestId, owner });
  const waitingOf = async (store: Store, txId: string) => {
    const awaiting = (await store.transaction(txId))?.awaiting;
    if (awaiting === undefined) throw new Error(`${txId} does not wait for approval`);
    return awaiting;
  };
  const decide = async (store: Store, fence: Fence, intakeId: number, ...events: readonly Event[]) => {
    const rows = await store.transactions({ signer: fence.lane.signer, order: "oldest", limit: 100 });
    const waiting = rows.find((row) => (row.awaiting ?? row.approved)?.intakeId === intakeId);
    const requestId = waiting?.requestId ?? null;
    const results = events.map((event) => {
      const decision = event === "expire" ? null : { actor: `operator:${event}`, audit: { event } };
      return { intakeId, requestId, result: "decided", event, reason: `because of ${event}`, decision } as const;
    });
    await commitOne(store, { kind: "settleIntake", fence, results });
  };
  const eventsOf = async (store: Store, txId: string) => (await store.history(txId)).map(({ event }) => event);
  /** Carries out the approvals and rejections that are due, as the lane's owner does. */
  const takeUp = async (store: Store, fence: Fence) => {
    const rows = await store.loadIntake([fence.lane], 100);
    const items = rows.map(({ intakeId, intent }) => ({ intakeId, intent: { ...intent, gas: 21_000n, gasCost: 0n } }));
    const outcome = await commitOne(store, { kind: "allocate", fence, floor: 0, items });
    return outcome.status === "allocated" ? outcome.items : [];
  };

  it("a transaction that awaits approval keeps its allowNoCode flag", () =>
    above100(async (store, fence) => {
      const allowed = { ...moving(fence.lane, 101n), allowNoCode: true } as const;
      await allocate(store, fence, [allowed], 4);
      const { intakeId } = await waitingOf(store, allowed.txId);
      await decide(store, fence, intakeId, "approve");
      expect(await store.loadIntake([fence.lane], 10)).toMatchObject([{ intent: { allowNoCode: true } }]);
    }));

  // protects [Attacks] src/domain/ledger/allocate.ts, src/domain/policy/policy.ts
  it("a transaction above the approval limit waits without a nonce", () =>
    above100(async (store, fence) => {
      const [low, high, next] = [100n, 101n, 1n].map((value) => moving(fence.lane, value, `r${value}`, "maker"));
      const intents = [low, high, next].flatMap((each) => each ?? []);
      const results = await allocate(store, fence, intents, 4);
      expect(nonces(results)).toEqual([4, null, 5]);
      expect(results[1]).toMatchObject({ result: "awaiting", rule: "signer.requireApproval" });
      const txId = high?.txId ?? "";
      const record = await store.transaction(txId);
      expect(record).toMatchObject({
        ...{ state: "CREATED", subState: "AWAITING_APPROVAL", nonce: null, owner: "maker", requestId: "r101" },
        ...{ payload: high?.payload, awaiting: { rule: "signer.requireApproval" } },
      });
      const waitsMs = (record?.awaiting?.expiresAt.getTime() ?? 0) - (record?.createdAt.getTime() ?? 0);
      expect(waitsMs).toBe(24 * 3_600_000);
      expect(await store.transactionByRequest(fence.lane, "r101")).toEqual(record);
      const created = { signer: fence.lane.signer, state: "CREATED", order: "oldest", limit: 10 } as const;
      expect(await store.transactions(created)).toEqual([record]);
      expect(await store.history(txId)).toMatchObject([
        { ordinal: 1, event: "accept", state: "CREATED", subState: null },
        { ordinal: 2, event: "await", state: "CREATED", subState: "AWAITING_APPROVAL", token: fence.token },
      ]);
      // The waiting transaction blocks nothing and is not loaded as work of the lane.
      expect(await store.loadIntake([fence.lane], 100)).toEqual([]);
      expect((await store.lanes(fence.lane.signer))[0]).toMatchObject({ pending: 2 });
      expect((await store.policyUse(fence.lane, {})).signer.hour.value).toBe(101n);
    }));

  // protects [Attacks] src/adapters/postgres/statements/intake.ts, src/adapters/postgres/commit/load.ts
  it("a repeated request returns the transaction that awaits approval", () =>
    above100(async (store, fence) => {
      const first = moving(fence.lane, 500n, "again");
      const results = await allocate(store, fence, [first, moving(fence.lane, 500n, "again")]);
      expect(results[1]).toMatchObject({ result: "duplicate", samePayload: true, existing: { txId: first.txId } });
      const [same, other, small] = await allocate(store, fence, [
        moving(fence.lane, 500n, "again"),
        moving(fence.lane, 501n, "again"),
        moving(fence.lane, 1n, "again"),
      ]);
      const existing = { txId: first.txId, state: "CREATED", nonce: null };
      expect(same).toMatchObject({ result: "duplicate", samePayload: true, existing });
      expect(other).toMatchObject({ result: "duplicate", samePayload: false, existing });
      expect(small).toMatchObject({ result: "duplicate", samePayload: false, existing });
      // A node that did not get the response repeats both requests; one of them has no request id.
      const unnamed = moving(fence.lane, 600n);
      await allocate(store, fence, [unnamed]);
      const items = [first, unnamed].map((intent) => ({ intent, mayExist: true }));
      expect(await commitOne(store, { kind: "allocate", fence, floor: 0, items })).toMatchObject({
        items: [first, unnamed].map(({ txId }) => ({ result: "duplicate", existing: { txId } })),
      });
    }));

  // protects [Attacks] src/adapters/postgres/statements/intake.ts, src/adapters/postgres/commit/load.ts
  it("a transaction that awaits approval owns its request id", async () => {
    const lane = aLane();
    const keys = { maker: { requireApproval: { aboveValue: "100" } } };
    const store = await context.subject.connect(policiesOf({ keys }));
    const fence = await holdLane(store, lane);
    const waits = moving(lane, 500n, "mine", "maker");
    const results = await allocate(store, fence, [waits, moving(lane, 500n, "other", "somebody")]);
    expect(results).toMatchObject([{ result: "awaiting", rule: "key.requireApproval" }, { result: "created" }]);
    const [taken] = await allocate(store, fence, [moving(lane, 500n, "mine", "somebody")]);
    expect(taken).toMatchObject({ result: "duplicate", existing: { txId: waits.txId, owner: "maker" } });
    await store.close();
  });

  // protects [Attacks] src/domain/ledger/settle-intake.ts
  it("an approved transaction gets its nonce despite the limit, and only once", () =>
    above100(async (store, fence) => {
      const intent = moving(fence.lane, 500n, "yes", "maker");
      await allocate(store, fence, [intent]);
      const { intakeId } = await waitingOf(store, intent.txId);
      await decide(store, fence, intakeId, "approve", "reject", "approve");
      expect(await store.transaction(intent.txId)).toMatchObject({ state: "CREATED", subState: null });
      expect(await store.whatWaits()).toMatchObject({ intents: true });
      expect(await takeUp(store, fence)).toMatchObject([{ result: "created", nonce: 0 }]);
      await decide(store, fence, intakeId, "reject", "callOff");
      expect(await store.transaction(intent.txId)).toMatchObject({ state: "ALLOCATED", nonce: 0, requestId: "yes" });
      const items = [{ intakeId, intent }];
      expect(await commitOne(store, { kind: "allocate", fence, floor: 0, items })).toMatchObject({
        items: [{ result: "duplicate", existing: { txId: intent.txId, state: "ALLOCATED" } }],
      });
      const signing = step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } });
      expect(await apply(store, fence, [signing])).toEqual(["applied"]);
      expect(await store.history(intent.txId)).toMatchObject([
        { ordinal: 1, event: "accept" },
        { ordinal: 2, event: "await" },
        {
          ...{ ordinal: 3, event: "approve", fromState: "CREATED", state: "CREATED", subState: null },
          ...{ reason: "because of approve", decision: { actor: "operator:approve", audit: { event: "approve" } } },
        },
        { ordinal: 4, event: "allocate", fromState: "CREATED", state: "ALLOCATED", token: fence.token },
        { ordinal: 5, event: "sign", state: "TRACKING" },
      ]);
    }));

  // protects [Attacks] src/application/detours/intake.ts, src/domain/ledger/settle-intake.ts
  it("an approved transaction without a nonce can be withdrawn, but not rejected or expired", () =>
    above100(async (store, fence) => {
      const intent = moving(fence.lane, 500n, "off", "maker");
      await allocate(store, fence, [intent]);
      const { intakeId } = await waitingOf(store, intent.txId);
      expect(await store.transaction(intent.txId)).not.toHaveProperty("approved");
      await decide(store, fence, intakeId, "approve", "reject", "expire");
      expect(await store.loadIntake([fence.lane], 10)).toMatchObject([{ intakeId, approved: true }]);
      const record = await store.transaction(intent.txId);
      expect(record).toMatchObject({ state: "CREATED", subState: null, approved: { intakeId } });
      expect(record).not.toHaveProperty("awaiting");
      await decide(store, fence, intakeId, "callOff", "approve");
      const ended = { state: "FAILED_FINAL", subState: "CANCELLED", nonce: null };
      expect(await store.transaction(intent.txId)).toMatchObject(ended);
      expect(await eventsOf(store, intent.txId)).toEqual(["accept", "await", "approve", "callOff"]);
      expect(await store.loadIntake([fence.lane], 10)).toEqual([]);
      // An owner that read the request before it was cancelled cannot give it a nonce.
      const items = [{ intakeId, intent }];
      expect(await commitOne(store, { kind: "allocate", fence, floor: 0, items })).toMatchObject({
        items: [{ result: "duplicate", existing: { txId: intent.txId, state: "FAILED_FINAL" } }],
      });
    }));

  it.each([
    ["reject", "REJECTED"],
    ["callOff", "CANCELLED"],
  ] as const)("a transaction that awaits approval ends by %s only once", (event, subState) =>
    above100(async (store, fence) => {
      const intent = moving(fence.lane, 500n, "no", "maker");
      await allocate(store, fence, [intent]);
      const { intakeId } = await waitingOf(store, intent.txId);
      const { lastSeq } = await store.feed(0, 1);
      await decide(store, fence, intakeId, event, "approve", event);
      const ended = { state: "FAILED_FINAL", subState, nonce: null };
      expect(await store.transaction(intent.txId)).toMatchObject({ ...ended, lastError: `because of ${event}` });
      expect((await store.feed(lastSeq, 10)).items).toMatchObject([
        { txId: intent.txId, requestId: "no", ...ended, settled: true },
      ]);
      expect((await store.history(intent.txId)).at(-1)).toMatchObject({
        ...{ ordinal: 3, event, fromState: "CREATED", state: "FAILED_FINAL" },
        decision: { actor: `operator:${event}` },
      });
      const [again] = await allocate(store, fence, [moving(fence.lane, 500n, "no")]);
      expect(again).toMatchObject({ result: "duplicate", existing: { txId: intent.txId, state: "FAILED_FINAL" } });
    }),
  );

  // protects [Attacks] src/domain/ledger/settle-intake.ts
  it("an approval request expires by the database's clock", () =>
    above100(async (store, fence) => {
      const intents = [moving(fence.lane, 500n, "late"), moving(fence.lane, 600n)];
      await allocate(store, fence, intents);
      for (const [at, event] of [
        [0, "expire"],
        [1, "approve"],
      ] as const) {
        const txId = intents[at]?.txId ?? "";
        const { intakeId } = await waitingOf(store, txId);
        await decide(store, fence, intakeId, "expire");
        expect(await store.transaction(txId)).toMatchObject({ subState: "AWAITING_APPROVAL" });
        await context.subject.letApprovalExpire(txId);
        expect(await store.loadIntake([fence.lane], 10)).toMatchObject([
          { intakeId, expired: { rule: "signer.requireApproval" } },
        ]);
        await decide(store, fence, intakeId, event);
        expect(await store.transaction(txId)).toMatchObject({
          state: "FAILED_FINAL",
          subState: "EXPIRED",
          nonce: null,
        });
        expect(await eventsOf(store, txId)).toEqual(["accept", "await", "expire"]);
        expect((await store.transaction(txId))?.lastError).toMatch(
          event === "expire" ? "because of" : "nobody approved",
        );
      }
      expect(await store.loadIntake([fence.lane], 10)).toEqual([]);
    }));

  // protects [Attacks] src/domain/ledger/allocate.ts, src/domain/policy/policy.ts
  it("a transaction from the intake table can await approval", () =>
    above100(async (store, fence) => {
      const [first, repeat] = [moving(fence.lane, 500n, "in"), moving(fence.lane, 500n, "in")];
      await context.subject.intake(first, repeat);
      await context.subject.tick();
      const accepted = await store.transaction(first.txId);
      expect(await takeUp(store, fence)).toMatchObject([
        { result: "awaiting" },
        { result: "duplicate", existing: { txId: first.txId } },
      ]);
      expect(await store.transaction(first.txId)).toMatchObject({
        ...{ subState: "AWAITING_APPROVAL", createdAt: accepted?.createdAt },
      });
      expect(await eventsOf(store, first.txId)).toEqual(["accept", "await"]);
      expect((await store.loadIntake([fence.lane], 10)).map(({ intent }) => intent.txId)).toEqual([repeat.txId]);
      // The owner read this intent before the intent was found to need approval. The owner's commit must still give it
      // no nonce, with or without policies.
      const { intakeId } = await waitingOf(store, first.txId);
      const items = [{ intakeId, intent: first }];
      for (const by of [store, context.store]) {
        const outcome = await commitOne(by, { kind: "allocate", fence, floor: 0, items });
        expect(outcome).toMatchObject({ items: [{ result: "awaiting" }] });
      }
    }));

  it("a repeat that is refused for another reason leaves the request id to the waiting transaction", () =>
    above100(async (store, fence) => {
      const [first, repeat] = [moving(fence.lane, 500n, "kept"), moving(fence.lane, 500n, "kept")];
      await allocate(store, fence, [first]);
      await context.subject.intake(repeat);
      const [row] = await store.loadIntake([fence.lane], 10);
      const refused = { result: "refused", event: "refuse", reason: "it would revert" } as const;
      const results = [{ intakeId: row?.intakeId ?? 0, ...refused }];
      await commitOne(store, { kind: "settleIntake", fence, results });
      const { intakeId } = await waitingOf(store, first.txId);
      await decide(store, fence, intakeId, "approve");
      expect(await takeUp(store, fence)).toMatchObject([{ result: "created", nonce: 0 }]);
      expect((await store.transactionByRequest(fence.lane, "kept"))?.txId).toBe(first.txId);
    }));

  // protects [Attacks] src/domain/ledger/guard.ts
  it("an approved transaction is checked again when it gets its nonce, since approval lifts no limit", () =>
    guarded({ requireApproval: { aboveValue: "100" }, maxValue: { perDay: "700" } }, async (store, fence) => {
      const intents = [500n, 500n, 200n].map((value) => moving(fence.lane, value));
      expect((await allocate(store, fence, intents)).map(({ result }) => result)).toEqual(Array(3).fill("awaiting"));
      for (const { txId } of intents) await decide(store, fence, (await waitingOf(store, txId)).intakeId, "approve");
      expect(await takeUp(store, fence)).toMatchObject([
        { result: "created" },
        { result: "forbidden", rule: "signer.maxValue.perDay" },
        { result: "created" },
      ]);
      expect((await store.policyUse(fence.lane, {})).signer.day.value).toBe(700n);
    }));

  it("a transaction that approval cannot permit is forbidden at once", () =>
    guarded({ requireApproval: { aboveCost: "0" }, to: [uniqueAddress()] }, async (store, fence) => {
      expect(await allocate(store, fence, [anIntent(fence.lane)])).toMatchObject([{ result: "forbidden" }]);
    }));
}
