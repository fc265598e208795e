import { expect, it } from "vitest";
import { BatchRefused, type TransitionItem } from "../../../src/ports/lane-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anIntent,
  apply,
  aReceipt,
  confirm,
  holdLane,
  mine,
  step,
  uniqueHash,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

export function transitionContract(context: LaneStoreContext): void {
  const allocated = async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane, { requestId: "r" });
    await allocate(context.store, fence, [intent], 0);
    return { fence, txId: intent.txId };
  };
  const signed = async () => {
    const { fence, txId } = await allocated();
    const attempt = anAttempt();
    await apply(context.store, fence, [step(txId, AT.allocated, "sign", { attempt })]);
    return { fence, txId, attempt };
  };
  const record = async (txId: string) => {
    const found = await context.store.transaction(txId);
    if (found === null) throw new Error("the transaction is gone");
    return found;
  };
  const refused = async (fence: Parameters<typeof apply>[1], item: TransitionItem) => {
    const before = await record(item.txId);
    const history = await context.store.history(item.txId);
    await expect(apply(context.store, fence, [item])).rejects.toBeInstanceOf(BatchRefused);
    expect(await record(item.txId)).toEqual(before);
    expect(await context.store.history(item.txId)).toEqual(history);
  };

  it("signing stores the attempt and the right to send the attempt in the same commit", async () => {
    const { fence, txId } = await allocated();
    const attempt = anAttempt();
    expect(
      await apply(context.store, fence, [step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]),
    ).toEqual(["applied"]);
    const { rawTransaction, ...visible } = attempt;
    const found = await record(txId);
    expect(found).toMatchObject({ state: "TRACKING", subState: "PENDING", submitAttempts: 1 });
    expect(found.attempts).toEqual([{ ...visible, createdAt: found.updatedAt, firstSentAt: found.updatedAt }]);
    expect(found.lastSubmittedAt).toEqual(found.updatedAt);
    expect(await context.store.loadRawTransactions([{ txId, ordinal: 1 }])).toEqual([rawTransaction]);
  });

  it("an attempt counts as unsent until the right to send is first claimed", async () => {
    const { fence, txId } = await signed();
    expect(await record(txId)).toMatchObject({ submitAttempts: 0, lastSubmittedAt: null });
    expect((await record(txId)).attempts[0]?.firstSentAt).toBeNull();
    await context.subject.tick();
    await apply(context.store, fence, [step(txId, AT.pending, "resubmit", { claim: { ordinal: 1 } })]);
    const first = await record(txId);
    expect(first.attempts[0]?.firstSentAt).toEqual(first.lastSubmittedAt);
    await context.subject.tick();
    await apply(context.store, fence, [step(txId, AT.pending, "resubmit", { claim: { ordinal: 1 } })]);
    const second = await record(txId);
    expect(second.submitAttempts).toBe(2);
    expect(second.attempts[0]?.firstSentAt).toEqual(first.lastSubmittedAt);
    expect(second.lastSubmittedAt?.getTime()).toBeGreaterThanOrEqual(first.lastSubmittedAt?.getTime() ?? 0);
  });

  // protects [Operators] src/application/detours/another-attempt.ts
  it("two state changes of one transaction in one write are applied in order", async () => {
    const { fence, txId } = await signed();
    const attempt = anAttempt(2);
    const decision = { actor: "operator:ops", audit: { action: "REPLACE" } };
    const reprice = step(txId, AT.pending, "reprice", { attempt, claim: { ordinal: 2 }, decision });
    const completion = { state: "STUCK", subState: null, settled: false, txHash: attempt.txHash } as const;
    const stick = step(txId, AT.pending, "stick", { decision, lastError: "too old", completion });
    expect(await apply(context.store, fence, [reprice, stick])).toEqual(["applied", "applied"]);
    const found = await record(txId);
    expect(found).toMatchObject({ state: "STUCK", submitAttempts: 1, lastError: "too old" });
    expect(found.attempts.map(({ ordinal, kind }) => [ordinal, kind])).toEqual([
      [1, "initial"],
      [2, "reprice"],
    ]);
    const decided = (await context.store.history(txId)).filter((each) => each.decision !== undefined);
    expect(decided.map(({ event }) => event)).toEqual(["reprice", "stick"]);
  });

  it("attempts are stored in order, with every type of fees", async () => {
    const { fence, txId } = await allocated();
    const attempts = [
      anAttempt(1, { fees: { type: "legacy", gasPrice: 10n ** 20n } }),
      anAttempt(2, { fees: { type: "eip2930", gasPrice: 3n }, kind: "cancel" }),
      anAttempt(3, { kind: "external", gas: 30_000_000n }),
    ] as const;
    await apply(context.store, fence, [step(txId, AT.allocated, "sign", { attempt: attempts[0] })]);
    await apply(context.store, fence, [step(txId, AT.pending, "resubmit", { attempt: attempts[1] })]);
    await apply(context.store, fence, [
      step(txId, AT.pending, "resubmit", { attempt: attempts[2], claim: { ordinal: 3 } }),
    ]);
    const stored = (await record(txId)).attempts;
    expect(stored.map(({ createdAt, firstSentAt, ...attempt }) => attempt)).toEqual(
      attempts.map(({ rawTransaction, ...attempt }) => attempt),
    );
    expect(stored.map(({ firstSentAt }) => firstSentAt === null)).toEqual([true, true, false]);
    const keys = [3, 1, 2].map((ordinal) => ({ txId, ordinal }));
    expect(await context.store.loadRawTransactions(keys)).toEqual(
      [attempts[2], attempts[0], attempts[1]].map(({ rawTransaction }) => rawTransaction),
    );
  });

  it("a transition from a state that the row has left is a conflict, and changes nothing", async () => {
    const { fence, txId } = await signed();
    const late = step(txId, AT.allocated, "sign", { attempt: anAttempt(), lastError: "late" });
    expect(await apply(context.store, fence, [late])).toEqual(["conflict"]);
    const found = await record(txId);
    expect(found.attempts).toHaveLength(1);
    expect(found.lastError).toBeNull();
    expect(await context.store.history(txId)).toHaveLength(2);
  });

  it("a transition from the wrong sub-state is a conflict", async () => {
    const { fence, txId, attempt } = await signed();
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
    const early = step(txId, AT.mined, "confirm", { completion });
    expect(await apply(context.store, fence, [early])).toEqual(["conflict"]);
    await apply(context.store, fence, [step(txId, AT.pending, "mine", { receipt: aReceipt(attempt.txHash) })]);
    const stale = step(txId, AT.pending, "resubmit", { claim: { ordinal: 1 } });
    expect(await apply(context.store, fence, [stale, step(txId, AT.pending, "broadcast")])).toEqual([
      "conflict",
      "conflict",
    ]);
    expect(await record(txId)).toMatchObject({ state: "TRACKING", subState: "MINED", submitAttempts: 0 });
    const { lastSeq } = await context.store.feed(0, 1);
    expect((await context.store.feed(0, 1_000)).items.filter((row) => row.txId === txId)).toEqual([]);
    expect(lastSeq).toBe((await context.store.feed(0, 100_000)).items.length);
  });

  it("a transition of another lane's transaction, or of an unknown one, is a conflict", async () => {
    const [mine, theirs] = [await signed(), await signed()];
    const items = [
      step(theirs.txId, AT.pending, "broadcast"),
      step(anIntent(mine.fence.lane).txId, AT.pending, "broadcast"),
      step(mine.txId, AT.pending, "broadcast"),
    ];
    expect(await apply(context.store, mine.fence, items)).toEqual(["conflict", "conflict", "applied"]);
    expect(await record(theirs.txId)).toMatchObject({ subState: "PENDING" });
  });

  it("several transitions of one transaction in one batch are applied in order", async () => {
    const { fence, txId } = await allocated();
    const attempt = anAttempt();
    const receipt = aReceipt(attempt.txHash, { blockNumber: 7 });
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
    const items = [
      step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } }),
      step(txId, AT.pending, "broadcast", { accepted: { ordinal: 1 } }),
      step(txId, AT.pending, "broadcast"),
      step(txId, AT.broadcast, "mine", { receipt, reason: "found" }),
      step(txId, AT.allocated, "sign", { attempt: anAttempt() }),
      step(txId, AT.mined, "confirm", { completion }),
    ];
    expect(await apply(context.store, fence, items)).toEqual([
      "applied",
      "applied",
      "applied",
      "applied",
      "conflict",
      "applied",
    ]);
    expect(await record(txId)).toMatchObject({ state: "CONFIRMED", subState: null, receipt, submitAttempts: 1 });
    const history = await context.store.history(txId);
    expect(history.map(({ ordinal, event, count }) => ({ ordinal, event, count }))).toEqual([
      { ordinal: 1, event: "allocate", count: 1 },
      { ordinal: 2, event: "sign", count: 1 },
      { ordinal: 3, event: "broadcast", count: 2 },
      { ordinal: 4, event: "mine", count: 1 },
      { ordinal: 5, event: "confirm", count: 1 },
    ]);
  });

  it("repeated events are merged into one history row", async () => {
    const { fence, txId } = await signed();
    for (const reason of ["a", "b", "c"]) {
      await context.subject.tick();
      await apply(context.store, fence, [step(txId, AT.pending, "submitFailed", { reason, lastError: reason })]);
    }
    const repeated = (await context.store.history(txId))[2];
    expect(repeated).toMatchObject({ ordinal: 3, event: "submitFailed", count: 3, reason: "c", state: "TRACKING" });
    expect(repeated?.lastAt.getTime()).toBeGreaterThanOrEqual(repeated?.firstAt.getTime() ?? 0);
    expect(await record(txId)).toMatchObject({ lastError: "c" });
    await apply(context.store, fence, [
      step(txId, AT.pending, "resubmit", { claim: { ordinal: 1 } }),
      step(txId, AT.pending, "submitFailed"),
    ]);
    expect((await context.store.history(txId)).map(({ event }) => event)).toEqual([
      "allocate",
      "sign",
      "submitFailed",
      "resubmit",
      "submitFailed",
    ]);
  });

  it("a history row with an operator's decision is never merged with later events", async () => {
    const { fence, txId } = await signed();
    const decision = { actor: "operator:ann", audit: { ticket: 7 } };
    const cancel = (ordinal: number, more: object) =>
      step(txId, AT.pending, "cancel", { attempt: anAttempt(ordinal, { kind: "cancel" }), ...more });
    await apply(context.store, fence, [cancel(2, { reason: "not needed", decision })]);
    await apply(context.store, fence, [cancel(3, { reason: "the last blocks took more" })]);
    const history = await context.store.history(txId);
    expect(history.slice(2)).toMatchObject([
      { event: "cancel", count: 1, reason: "not needed", decision },
      { event: "cancel", count: 1, reason: "the last blocks took more" },
    ]);
  });

  it("a transition keeps, replaces or clears the last error", async () => {
    const { fence, txId } = await signed();
    const fail = (lastError?: string | null) =>
      apply(context.store, fence, [
        step(txId, AT.pending, "submitFailed", lastError === undefined ? {} : { lastError }),
      ]);
    await fail("nonce too high");
    await fail();
    expect(await record(txId)).toMatchObject({ lastError: "nonce too high" });
    await fail(null);
    expect(await record(txId)).toMatchObject({ lastError: null });
  });

  it("a receipt can be withdrawn, and another receipt stored in its place", async () => {
    const fence = await holdLane(context.store);
    const { intent, attempt } = await mine(context.store, fence);
    await apply(context.store, fence, [step(intent.txId, AT.mined, "withdraw", { receipt: null, reason: "reorg" })]);
    expect(await record(intent.txId)).toMatchObject({ state: "TRACKING", subState: "PENDING", receipt: null });
    const receipt = aReceipt(attempt.txHash, {
      blockNumber: 101,
      blockHash: uniqueHash(),
      status: "reverted",
      effectiveGasPrice: null,
      contractAddress: `0x${"f".repeat(40)}`,
    });
    await apply(context.store, fence, [step(intent.txId, AT.pending, "mine", { receipt })]);
    expect((await record(intent.txId)).receipt).toEqual(receipt);
    const again = aReceipt(attempt.txHash, { blockNumber: 102, blockHash: uniqueHash() });
    await apply(context.store, fence, [step(intent.txId, AT.mined, "mine", { receipt: again })]);
    expect((await record(intent.txId)).receipt).toEqual(again);
  });

  it("a settled transaction can be reopened by a reorg", async () => {
    const fence = await holdLane(context.store);
    const { intent, attempt } = await confirm(context.store, fence);
    const { txId } = intent;
    const settled = await record(txId);
    expect(settled).toMatchObject({ state: "CONFIRMED", subState: null });
    expect(settled.confirmedAt).toEqual(settled.updatedAt);
    const lane = async () => (await context.store.lanes(fence.lane.signer))[0];
    expect(await lane()).toMatchObject({ confirmed: 1, failed: 0, pending: 0 });
    const reorged = { state: "REORGED", subState: null, settled: false, txHash: attempt.txHash } as const;
    await apply(context.store, fence, [step(txId, AT.confirmed, "reorg", { receipt: null, completion: reorged })]);
    expect(await record(txId)).toMatchObject({
      state: "TRACKING",
      subState: "PENDING",
      confirmedAt: null,
      receipt: null,
    });
    expect(await lane()).toMatchObject({ confirmed: 0, failed: 0, pending: 1 });
    const reverted = { state: "FAILED_FINAL", subState: "REVERTED", settled: true, txHash: attempt.txHash } as const;
    await apply(context.store, fence, [
      step(txId, AT.pending, "mine", { receipt: aReceipt(attempt.txHash, { status: "reverted" }) }),
      step(txId, AT.mined, "revert", { completion: reverted }),
    ]);
    expect(await lane()).toMatchObject({ confirmed: 0, failed: 1, pending: 0 });
    const feed = (await context.store.feed(0, 100_000)).items.filter((row) => row.txId === txId);
    expect(
      feed.map(({ state, subState, settled, txHash, requestId, nonce, lane }) => ({
        state,
        subState,
        settled,
        txHash,
        requestId,
        nonce,
        lane,
      })),
    ).toEqual(
      [
        { state: "CONFIRMED", subState: null, settled: true },
        { state: "REORGED", subState: null, settled: false },
        { state: "FAILED_FINAL", subState: "REVERTED", settled: true },
      ].map((row) => ({ ...row, txHash: attempt.txHash, requestId: null, nonce: 0, lane: fence.lane })),
    );
  });

  // protects [Attacks] src/adapters/evm/rpc/endpoints.ts, src/domain/transaction/attempts.ts, src/adapters/postgres/statements/attempt.ts
  it("a private attempt stays private until the attempt is disclosed", async () => {
    const { fence, txId } = await allocated();
    const attempt = { ...anAttempt(), private: true as const };
    await apply(context.store, fence, [step(txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
    const privacy = async () => {
      const [tracked] = (await context.store.loadLane(fence))?.tracking ?? [];
      expect((await record(txId)).attempts.map((each) => each.private)).toEqual(
        tracked?.attempts.map((each) => each.private),
      );
      return tracked?.attempts.map((each) => each.private ?? false);
    };
    expect(await privacy()).toEqual([true]);
    const second = { ...anAttempt(2), private: true as const };
    await apply(context.store, fence, [
      step(txId, AT.pending, "reprice", { attempt: second, claim: { ordinal: 2 } }),
      step(txId, AT.pending, "resubmit", { claim: { ordinal: 1 } }),
    ]);
    expect(await privacy()).toEqual([true, true]);
    await apply(context.store, fence, [step(txId, AT.pending, "resubmit", { claim: { ordinal: 2 }, disclosed: true })]);
    expect(await privacy()).toEqual([false, false]);
  });

  it("a claim to send an attempt that is not stored is refused", async () => {
    const { fence, txId } = await signed();
    await refused(fence, step(txId, AT.pending, "resubmit", { claim: { ordinal: 2 } }));
    await refused(fence, step(txId, AT.pending, "resubmit", { claim: { ordinal: 0 } }));
    await refused(fence, step(txId, AT.pending, "broadcast", { accepted: { ordinal: 2 } }));
    const other = await allocated();
    await refused(other.fence, step(other.txId, AT.allocated, "sign", { claim: { ordinal: 1 } }));
  });

  it("a transition to TRACKING without a signed attempt is refused", async () => {
    const { fence, txId } = await allocated();
    await refused(fence, step(txId, AT.allocated, "sign"));
  });

  it("an attempt with a wrong ordinal, or with the hash of another one, is refused", async () => {
    const { fence, txId, attempt } = await signed();
    await refused(fence, step(txId, AT.pending, "resubmit", { attempt: anAttempt(1) }));
    await refused(fence, step(txId, AT.pending, "resubmit", { attempt: anAttempt(3) }));
    await refused(fence, step(txId, AT.pending, "resubmit", { attempt: anAttempt(2, { txHash: attempt.txHash }) }));
  });

  it("a transition that is not in the transition table is refused", async () => {
    const { fence, txId } = await signed();
    const base = { txId, from: "TRACKING" } as const;
    await refused(fence, { ...base, event: "resubmit", to: "STUCK", subState: "PENDING" });
    await refused(fence, { ...base, event: "mine", to: "CONFIRMED", subState: null });
    await refused(fence, { ...base, event: "mine", to: "TRACKING", subState: "BROADCAST" });
    await refused(fence, { ...base, event: "refuse", to: "FAILED_FINAL", subState: "REJECTED" });
    await refused(fence, { ...base, event: "allocate", to: "ALLOCATED", subState: null });
  });
}
