import { expect, it } from "vitest";
import type { QueuedChange } from "../../../src/ports/lane-store.ts";
import {
  AT,
  allocate,
  anAttempt,
  anIntent,
  aPayload,
  apply,
  commitOne,
  holdLane,
  step,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const decision = { actor: "operator:ops", audit: { action: "replace", ticket: 7 } };

function aChange(overrides: Partial<QueuedChange> = {}): QueuedChange {
  return { kind: "replace", payload: aPayload({ value: 9n, data: "0xbeef" }), gas: 60_000n, ...overrides };
}

/**
 * Replacing the payload of a transaction that is not signed yet changes what the signer reads, but not what the caller
 * sees.
 */
export function queuedChangesContract(context: LaneStoreContext): void {
  const queued = async () => {
    const fence = await holdLane(context.store);
    const intents = [anIntent(fence.lane), anIntent(fence.lane)] as const;
    await allocate(context.store, fence, intents, 0);
    return { fence, intents };
  };

  it("a replaced payload is returned for signing, and the caller's payload stays visible", async () => {
    const { fence, intents } = await queued();
    const [changed, untouched] = intents;
    const change = aChange({
      payload: aPayload({
        data: "0xbeef",
        type: "eip1559",
        maxFeePerGas: 10n ** 20n,
        maxPriorityFeePerGas: 3n,
        accessList: [{ address: `0x${"a".repeat(40)}`, storageKeys: [`0x${"1".repeat(64)}`] }],
      }),
    });
    const reason = "wrong amount";
    expect(
      await apply(context.store, fence, [step(changed.txId, AT.allocated, "amend", { change, decision, reason })]),
    ).toEqual(["applied"]);
    const [first, second] = await context.store.loadAllocated(fence.lane, 0, 10);
    expect(first).toMatchObject({ txId: changed.txId, nonce: 0, changedTo: "replace", gas: 60_000n });
    expect(first?.payload).toEqual(change.payload);
    expect(second).toMatchObject({ txId: untouched.txId, payload: untouched.payload, gas: 21_000n });
    expect(second).not.toHaveProperty("changedTo");
    const record = await context.store.transaction(changed.txId);
    expect(record).toMatchObject({ state: "ALLOCATED", nonce: 0, payload: changed.payload, gas: 21_000n });
    expect((await context.store.history(changed.txId)).at(-1)).toMatchObject({ event: "amend", reason, decision });
  });

  it("the last of several changes of a queued transaction applies, and each is in the history", async () => {
    const { fence, intents } = await queued();
    const { txId } = intents[0];
    const cancel = aChange({ kind: "cancel", payload: aPayload({ value: 0n }), gas: 21_000n });
    await apply(context.store, fence, [step(txId, AT.allocated, "amend", { change: aChange(), decision })]);
    await apply(context.store, fence, [step(txId, AT.allocated, "amend", { change: cancel, decision })]);
    const [first] = await context.store.loadAllocated(fence.lane, 0, 1);
    expect(first).toMatchObject({ changedTo: "cancel", payload: cancel.payload, gas: 21_000n });
    const amends = (await context.store.history(txId)).filter(({ event }) => event === "amend");
    expect(amends.map(({ count }) => count)).toEqual([1, 1]);
  });

  it("a queued change is refused once the transaction is signed, or if the lane's ownership has ended", async () => {
    const { fence, intents } = await queued();
    const { txId } = intents[0];
    const late = step(txId, AT.allocated, "amend", { change: aChange(), decision });
    const write = { kind: "transition", fence: { ...fence, token: fence.token + 1 }, items: [late] } as const;
    expect(await commitOne(context.store, write)).toEqual({ status: "fenced" });
    expect((await context.store.loadAllocated(fence.lane, 0, 1))[0]).not.toHaveProperty("changedTo");
    await apply(context.store, fence, [step(txId, AT.allocated, "sign", { attempt: anAttempt() })]);
    expect(await apply(context.store, fence, [late])).toEqual(["conflict"]);
  });
}
