import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { Lane } from "../../../src/domain/lane.ts";
import type { LeftRequest } from "../../../src/ports/left-request-store.ts";
import { aLane, anIntent } from "../../support/lane-samples.ts";
import type { LaneStoreContext } from "../lane-store.contract.ts";

const LONG_MS = 60_000;

function aRequest(lane: Lane, more: Partial<LeftRequest> = {}): LeftRequest {
  const words = { action: "act", body: '{"reason":"\\u0000"}', owner: "checkout", repeatable: true };
  return { leftId: randomUUID(), lane, ...words, ...more };
}

/** The contract of every store for requests that a node enqueues for the owner of their lane. */
export function leftRequestsContract(context: LaneStoreContext): void {
  const [first, second] = [randomUUID(), randomUUID()];
  const begin = (lane: Lane, by = first, except: readonly string[] = []) =>
    context.store.beginRequests([lane], by, except);
  const standing = async ({ leftId }: LeftRequest) => (await context.store.leftStanding([leftId]))[0];

  it("requests that were enqueued for an owner are begun in order, only by an owner of their lane", async () => {
    const [lane, other] = [aLane(), aLane()];
    const requests = [aRequest(lane), aRequest(lane, { owner: null, repeatable: false }), aRequest(other)];
    await context.store.leaveRequests(requests.slice(0, 1), LONG_MS);
    await context.subject.tick();
    await context.store.leaveRequests(requests.slice(1), LONG_MS);
    expect(await context.store.whatWaits()).toMatchObject({ requests: true });
    const begun = requests.slice(0, 2).map((request) => ({ ...request, begunBefore: false }));
    expect(await begin(lane)).toEqual(begun);
    expect(await Promise.all(requests.map(standing))).toMatchObject([
      { begun: true },
      { begun: true },
      { begun: false },
    ]);
  });

  // protects [Replicas that embed the library] src/adapters/postgres/statements/left-request.ts
  it("a request that was enqueued for an owner is answered once, by the instance that began it last", async () => {
    const lane = aLane();
    const request = aRequest(lane);
    await context.store.leaveRequests([request], LONG_MS);
    await begin(lane);
    expect(await begin(lane, second)).toMatchObject([{ leftId: request.leftId, begunBefore: true }]);
    await context.store.answerRequest(request.leftId, first, "late");
    expect(await standing(request)).toMatchObject({ answer: null });
    await context.store.answerRequest(request.leftId, second, '{"answer":"\\u0000"}');
    await context.store.answerRequest(request.leftId, second, "twice");
    expect(await standing(request)).toEqual({ leftId: request.leftId, begun: true, answer: '{"answer":"\\u0000"}' });
    expect(await begin(lane)).toEqual([]);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("a request that was enqueued for an owner can be withdrawn by its sender until it is begun", async () => {
    const lane = aLane();
    const requests = [aRequest(lane), aRequest(lane)] as const;
    await context.store.leaveRequests([requests[0]], LONG_MS);
    expect(await context.store.withdrawRequest(requests[0].leftId, [])).toBe(true);
    expect(await standing(requests[0])).toBeUndefined();
    await context.store.leaveRequests([requests[1]], LONG_MS);
    expect(await begin(lane)).toHaveLength(1);
    expect(await context.store.withdrawRequest(requests[1].leftId, [])).toBe(false);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("the creates of a request that its sender withdraws stay accepted in the intake table", async () => {
    const [lane, other] = [aLane(), aLane()];
    const asIntent = ({ gas: _, gasCost: __, ...intent }: ReturnType<typeof anIntent>) => intent;
    const intents = [
      anIntent(lane, { requestId: "left", owner: "checkout", metadata: { a: [1] }, payload: { data: "0x1234" } }),
      anIntent(lane, { payload: { to: null, accessList: [{ address: `0x${"ab".repeat(20)}`, storageKeys: [] }] } }),
      { ...anIntent(lane, { validUntil: new Date(Date.UTC(2096, 0, 1)) }), allowNoCode: true as const },
    ].map(asIntent);
    const [late, begun] = [aRequest(lane), aRequest(other)];
    for (const request of [late, begun]) await context.store.leaveRequests([request], LONG_MS);
    await begin(other);
    expect(await context.store.withdrawRequest(begun.leftId, [asIntent(anIntent(other))])).toBe(false);
    expect(await context.store.loadIntake([other], 100)).toEqual([]);
    expect(await context.store.withdrawRequest(late.leftId, intents)).toBe(true);
    const rows = await context.store.loadIntake([lane], 100);
    expect(rows.map(({ intent }) => intent)).toEqual(intents);
    expect(rows.map(({ unanswered }) => unanswered)).toEqual([undefined, undefined, undefined]);
    expect(await context.store.findByRequestIds([{ lane, requestIds: ["left"] }])).toMatchObject([
      { txId: intents[0]?.txId, state: "CREATED" },
    ]);
    expect(await context.store.withdrawRequest(late.leftId, intents), "once").toBe(false);
    expect(await context.store.loadIntake([lane], 100)).toHaveLength(3);
  });

  it("a request that was put back into the queue is begun again as if for the first time", async () => {
    const lane = aLane();
    const request = aRequest(lane);
    await context.store.leaveRequests([request], LONG_MS);
    await begin(lane);
    await context.store.putBackRequest(request.leftId, second);
    expect(await begin(lane), "another puts nothing back").toMatchObject([{ begunBefore: true }]);
    await context.store.putBackRequest(request.leftId, first);
    expect(await begin(lane, second)).toMatchObject([{ begunBefore: false }]);
  });

  // protects [Replicas that embed the library] src/adapters/postgres/statements/left-request.ts
  it("a request is not begun after its time limit, nor if it is already under way", async () => {
    const lane = aLane();
    const [late, busy] = [aRequest(lane), aRequest(lane)];
    await context.store.leaveRequests([late], 0);
    await context.store.leaveRequests([busy], LONG_MS);
    await context.subject.tick();
    expect(await begin(lane, first, [busy.leftId])).toEqual([]);
    expect(await begin(lane)).toMatchObject([{ leftId: busy.leftId }]);
  });
}
