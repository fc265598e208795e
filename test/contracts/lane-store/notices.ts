import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { type Acknowledgement, MOST_ACKNOWLEDGED, MOST_EVIDENCE } from "../../../src/domain/cluster/notices.ts";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
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
  step,
} from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const FOREIGN = { kind: "external", foreign: true, rawTransaction: null } as const;

/** Notices for an operator: each is written with its cause, counted, and acknowledged once. */
export function noticesContract(context: LaneStoreContext): void {
  const of = ({ signer, chainId }: Lane, open = false) => context.store.notices({ signer, chainId, open, limit: 200 });
  const ofNode = async (nodeId: string) =>
    (await context.store.notices({ limit: 500 })).filter((notice) => notice.nodeId === nodeId);
  const align = (fence: Fence, floor: number) => commitOne(context.store, { kind: "align", fence, floor });
  const used = async () => {
    const fence = await holdLane(context.store);
    await align(fence, 5);
    await align(fence, 6);
    const [notice] = await of(fence.lane);
    if (notice === undefined) throw new Error("a foreign use left no notice");
    return { fence, notice };
  };
  const ack = (noticeId: string, more: Partial<Acknowledgement> = {}) =>
    context.store.markAcknowledged({
      ...{ noticeId, by: "operator:ada", why: "our own wallet", times: null, actionKey: null },
      ...more,
    });

  it("an operator notice is written when another program uses the nonce of a stored transaction", async () => {
    const fence = await holdLane(context.store);
    const intent = anIntent(fence.lane);
    const foreign = anAttempt(2, FOREIGN);
    await allocate(context.store, fence, [intent]);
    await apply(context.store, fence, [
      step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(1), claim: { ordinal: 1 } }),
    ]);
    expect(await of(fence.lane)).toEqual([]);
    const receipt = aReceipt(foreign.txHash);
    await apply(context.store, fence, [step(intent.txId, AT.pending, "mine", { attempt: foreign, receipt })]);
    const { txHash } = foreign;
    const [notice, ...others] = await of(fence.lane);
    expect(others).toEqual([]);
    expect(notice).toEqual({
      ...{ noticeId: expect.any(String), kind: "EXTERNAL_KEY_USE", lane: fence.lane, nodeId: null, times: 1 },
      ...{ firstSeenAt: expect.any(Date), lastSeenAt: expect.any(Date), overAt: null, acknowledged: null },
      evidence: [{ at: expect.any(Date), nonce: 0, through: 0, txHash, txId: intent.txId }],
    });
    expect((await context.store.troubles(500)).notices).toContainEqual(notice);
  });

  // protects [Everything at once] src/domain/ledger/apply.ts, src/domain/cluster/notices.ts, src/domain/troubles/find.ts
  it("an operator notice is written for unallocated nonces that were used on the chain", async () => {
    const { fence, notice } = await used();
    expect(notice).toMatchObject({ times: 1, evidence: [{ nonce: 5, through: 5, txHash: null, txId: null }] });
    const created = { kind: "allocate", fence, floor: 9, items: [{ intent: anIntent(fence.lane) }] } as const;
    await commitOne(context.store, created);
    const reservationId = randomUUID();
    await commitOne(context.store, {
      ...{ kind: "reserve", fence, floor: 11, reservationId, requestId: null, ttlMs: 60_000, ...BY_ANYBODY },
    });
    const [merged, ...others] = await of(fence.lane);
    expect(others, "repeats are one notice").toEqual([]);
    expect(merged).toMatchObject({ noticeId: notice.noticeId, times: 5, firstSeenAt: notice.firstSeenAt });
    expect(merged?.evidence.map(({ nonce, through }) => [nonce, through])).toEqual([
      [10, 10],
      [6, 8],
      [5, 5],
    ]);
  });

  it("no operator notice is written for the first transaction count of a lane", async () => {
    const fence = await holdLane(context.store);
    await align(fence, 5);
    await align(fence, 5);
    await align(fence, 3);
    await commitOne(context.store, { kind: "reconcile", fence, floor: 9 });
    expect(await of(fence.lane)).toEqual([]);
  });

  it("no notice is written by a node that lost the lane", async () => {
    const { fence } = await used();
    const before = await of(fence.lane);
    const outcome = await commitOne(context.store, {
      kind: "align",
      fence: { ...fence, token: fence.token + 1 },
      floor: 99,
    });
    expect(outcome.status).toBe("fenced");
    expect(await of(fence.lane)).toEqual(before);
  });

  it("an operator notice of many nonces used by another program counts all of these nonces", async () => {
    const { fence } = await used();
    for (let floor = 7; floor < 7 + MOST_EVIDENCE + 5; floor++) await align(fence, floor);
    const [notice] = await of(fence.lane);
    expect(notice?.times).toBe(MOST_EVIDENCE + 6);
    expect(notice?.evidence).toHaveLength(MOST_EVIDENCE);
    expect(notice?.evidence[0]?.nonce).toBe(7 + MOST_EVIDENCE + 3);
  });

  it("an operator notice is acknowledged only once", async () => {
    const { fence, notice } = await used();
    const done = await ack(notice.noticeId);
    const acknowledged = { by: "operator:ada", at: expect.any(Date), why: "our own wallet" };
    expect(done).toEqual({ verdict: "acknowledge", notice: { ...notice, acknowledged } });
    expect(await context.store.notice(notice.noticeId)).toEqual({ ...notice, acknowledged });
    expect(await of(fence.lane, true)).toEqual([]);
    expect(await ack(notice.noticeId), "the same again stands").toMatchObject({ verdict: "stands" });
    expect(await ack(notice.noticeId, { by: "operator:bob" })).toMatchObject({
      verdict: "taken",
      notice: { acknowledged },
    });
    await context.subject.tick();
    await align(fence, 7);
    const [next, before] = await of(fence.lane);
    expect(next).toMatchObject({ times: 1, acknowledged: null });
    expect(before).toMatchObject({ noticeId: notice.noticeId, times: 1, acknowledged });
  });

  it("a notice is not acknowledged if the caller names an outdated number of uses", async () => {
    const { fence, notice } = await used();
    await align(fence, 7);
    expect(await ack(notice.noticeId, { times: 1 })).toMatchObject({ verdict: "grown", notice: { times: 2 } });
    expect(await of(fence.lane, true)).toHaveLength(1);
    expect(await ack(notice.noticeId, { times: 2 })).toMatchObject({ verdict: "acknowledge" });
  });

  it("a repeated acknowledgement with the same idempotency key has no effect", async () => {
    const { notice } = await used();
    const actionKey = { key: "k", fingerprint: `0x${"ab".repeat(32)}` } as const;
    expect(await ack(notice.noticeId, { actionKey })).toMatchObject({ verdict: "acknowledge" });
    expect(await ack(notice.noticeId, { actionKey })).toMatchObject({ verdict: "stands" });
    const other = { ...actionKey, fingerprint: `0x${"cd".repeat(32)}` } as const;
    expect(await ack(notice.noticeId, { actionKey: other })).toMatchObject({ verdict: "reused" });
    expect(await ack(notice.noticeId, { actionKey: { ...actionKey, key: "l" } })).toMatchObject({ verdict: "taken" });
  });

  it("reading or acknowledging an unknown notice returns null", async () => {
    expect(await context.store.notice(randomUUID())).toBeNull();
    expect(await ack(randomUUID())).toBeNull();
  });

  it("a lane keeps all unacknowledged notices, and a limited number of the newest acknowledged ones", async () => {
    const { fence } = await used();
    for (let floor = 7; floor < 7 + MOST_ACKNOWLEDGED + 2; floor++) {
      const [open] = await of(fence.lane, true);
      await ack(open?.noticeId ?? "");
      await align(fence, floor);
    }
    await context.subject.tick();
    await align(fence, 7 + MOST_ACKNOWLEDGED + 2);
    const all = await of(fence.lane);
    expect(all.filter(({ acknowledged }) => acknowledged !== null)).toHaveLength(MOST_ACKNOWLEDGED);
    expect(all[0]).toMatchObject({ acknowledged: null, times: 2 });
  });

  it("a notice is deleted by retention only after it is acknowledged", async () => {
    const { fence, notice } = await used();
    await ack(notice.noticeId);
    await align(fence, 7);
    await context.subject.tick();
    while ((await context.store.forgetNotices(0, 50)) > 0);
    expect(await of(fence.lane)).toMatchObject([{ acknowledged: null, evidence: [{ nonce: 6 }] }]);
  });

  it("an operator notice of a vanished node is written once, however many nodes declare that node dead", async () => {
    const instance = anInstance();
    await context.store.registerInstance(instance);
    const declared = await Promise.all(
      [1, 2, 3].map(() => context.store.declareDead(instance.instanceId, 1, "stood-still")),
    );
    expect(declared.filter(Boolean)).toHaveLength(1);
    const { instanceId, nodeId } = instance;
    expect(await ofNode(nodeId)).toMatchObject([
      {
        ...{ kind: "NODE_VANISHED", lane: null, nodeId, times: 1, overAt: null, acknowledged: null },
        evidence: [{ instanceId, why: "stood-still", lanes: 0 }],
      },
    ]);
    await context.store.registerInstance(anInstance({ nodeId }));
    expect(await ofNode(nodeId)).toMatchObject([{ overAt: expect.any(Date), acknowledged: null }]);
  });

  it("no notice is written for a drained node, or for a draining one without lanes", async () => {
    const [drained, draining, holding] = [anInstance(), anInstance(), anInstance()];
    for (const each of [drained, draining, holding]) await context.store.registerInstance(each);
    await context.store.retireInstance(drained.instanceId);
    for (const { instanceId } of [draining, holding]) {
      await context.store.announce(instanceId, { chains: [], draining: true, standsBack: false, keysAway: [] });
    }
    const fence = await holdLane(context.store);
    await context.store.releaseLane(fence);
    await context.store.acquireLane(fence.lane, holding.instanceId);
    for (const { instanceId } of [draining, holding]) {
      expect(await context.store.declareDead(instanceId, 1, "stood-still")).toBe(true);
    }
    expect(await ofNode(drained.nodeId)).toEqual([]);
    expect(await ofNode(draining.nodeId)).toEqual([]);
    expect(await ofNode(holding.nodeId)).toMatchObject([{ evidence: [{ lanes: 1 }] }]);
  });
}
