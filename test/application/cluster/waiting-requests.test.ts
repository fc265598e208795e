import { afterEach, describe, expect, it } from "vitest";
import type { TransactionAction } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { type EmbeddedPair, startPair } from "../../support/embedded-pair.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { SIGNERS, transfer, World, type WorldOptions } from "../../support/world.ts";

/**
 * Work for a lane's owner, requested at a node that cannot reach the owner: the request waits in the database and is
 * answered there.
 */

let world: World;
afterEach(() => world.close());

function pair(options: WorldOptions = {}): Promise<EmbeddedPair> {
  world = new World(options);
  return startPair(world);
}

const actor = "operator:me";
const left = () => [...world.database.state.leftRequests.values()];
const actionRequest = (action: TransactionAction, txId: string, request: object = {}) =>
  ({ action, txId, request: { reason: "asked elsewhere", ...request }, actor }) as const;
const laneActionRequest = (action: "suspend" | "resume", signer: string, idempotencyKey?: string) => ({
  ...{ action, signer, request: { reason: "asked elsewhere" }, actor },
  ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
});
const decisionsOf = (txId: string) =>
  (world.rows().find((row) => row.txId === txId)?.history ?? []).filter(({ decision }) => decision !== undefined);

describe("an action at a replica that does not own the lane", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/owner-actions.ts
  it("is performed by the owner, with the same result as at the owner", async () => {
    const { other, owner, signer } = await pair({ hints: true });
    world.holdBlocks();
    const { txId } = await world.settle(other.node.api.create(transfer({ signer })));
    await world.until(() => world.rows()[0]?.state === "TRACKING");
    const startedMs = world.clock.monotonicMs();
    const cancelled = await world.settle(other.node.api.act(actionRequest("cancel", txId)));
    expect(world.clock.monotonicMs() - startedMs, "hints are followed at once").toBeLessThan(500);
    expect(cancelled).toEqual(await owner.node.api.transaction(txId));
    expect(decisionsOf(txId)).toHaveLength(1);
    world.releaseBlocks();
    await world.allSettled(1);
    expect(world.rows()).toMatchObject([{ txId, subState: "CANCELLED" }]);
    checkInvariants(world);
  });

  it("can suspend a lane or put a transaction on hold", async () => {
    const { other, signer } = await pair();
    const { api } = other.node;
    const [suspended] = await world.settle(api.actOnLane(laneActionRequest("suspend", signer)));
    expect(suspended).toMatchObject({ suspendedBy: "OPERATOR" });
    const { txId } = await world.settle(api.create(transfer({ signer })));
    await world.settle(api.act(actionRequest("suspend", txId)));
    const [resumed] = await world.settle(api.actOnLane(laneActionRequest("resume", signer)));
    expect(resumed).toMatchObject({ suspendedBy: null });
    expect(world.rows()[0]?.heldSince).toBeInstanceOf(Date);
    await world.settle(api.act(actionRequest("resume", txId)));
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/owner-actions.ts
  it("is refused with the owner's error", async () => {
    const { other, owner, signer } = await pair();
    const { txId } = await world.settle(owner.node.api.create(transfer({ signer })));
    await world.allSettled(1);
    const direct = await world.refusal(owner.node.api.act(actionRequest("cancel", txId)));
    const through = await world.refusal(other.node.api.act(actionRequest("cancel", txId)));
    expect(through).toBeInstanceOf(FencepostError);
    expect([through.code, through.message, through.extras]).toEqual([direct.code, direct.message, direct.extras]);
  });

  it("is performed once per idempotency key", async () => {
    const { other, owner, signer } = await pair();
    world.holdBlocks();
    const { txId } = await world.settle(owner.node.api.create(transfer({ signer })));
    await world.until(() => world.rows()[0]?.state === "TRACKING");
    const keyed = { ...actionRequest("reprice", txId), idempotencyKey: "once" };
    await world.settle(Promise.all([other, owner, other].map(({ node }) => node.api.act(keyed))));
    expect(decisionsOf(txId)).toHaveLength(1);
    world.releaseBlocks();
    await world.allSettled(1);
    checkInvariants(world);
  });
});

describe("a nonce reservation at a replica that does not own the lane", () => {
  it("can be released and made again for the same nonce", async () => {
    const { other, signer } = await pair();
    const { api } = other.node;
    const first = await world.settle(api.reserveNonce({ signer, requestId: "mine" }));
    expect(first).toMatchObject({ outcome: "created", reservation: { nonce: 0, state: "RESERVED" } });
    const again = await world.settle(api.reserveNonce({ signer, requestId: "mine" }));
    expect(again).toMatchObject({ outcome: "existing", reservation: first.reservation });
    const { reservationId } = first.reservation;
    expect(await world.settle(api.releaseNonce(reservationId))).toMatchObject({ state: "RELEASED" });
    expect(await world.settle(api.reserveNonce({ signer }))).toMatchObject({ reservation: { nonce: 0 } });
    checkInvariants(world);
  });
});

describe("an action whose owner does not begin it in time", () => {
  // protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/adapters/postgres/statements/left-request.ts
  it("is withdrawn with UNAVAILABLE", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    const startedMs = world.clock.monotonicMs();
    const refused = await world.refusal(other.node.api.actOnLane(laneActionRequest("suspend", signer)));
    expect(refused).toMatchObject({ code: "UNAVAILABLE", extras: { retryAfterSeconds: 1 } });
    expect(refused.message).toMatch(/nothing was done, repeat it$/);
    expect(refused.extras.outcome).toBeUndefined();
    expect(world.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(4_500);
    owner.store.resume();
    await world.clock.advance(5_000);
    expect(left()).toEqual([]);
    expect([...world.database.state.lanes.values()].find(({ lane }) => lane.signer === signer)?.suspendedBy).toBeNull();
  });

  // protects [Replicas that embed the library] src/adapters/postgres/statements/left-request.ts
  it("is not performed later, even if the sender died", async () => {
    const { other, owner, signer } = await pair();
    owner.store.pause();
    void other.node.api.actOnLane(laneActionRequest("suspend", signer)).catch(() => undefined);
    await world.until(() => left().length === 1);
    world.crash(other);
    await world.clock.advance(4_100);
    owner.store.resume();
    await world.clock.advance(2_000);
    expect(left()).toMatchObject([{ begunBy: null, answer: null }]);
  });
});

describe("a request whose owner crashes before its response", () => {
  async function begunAndCrashed(options: { readonly key?: string; readonly action: "suspend" | "reserve" }) {
    const nodes = await pair({ sessionLocks: true });
    const { other, owner, signer } = nodes;
    owner.store.answerRequest = () => new Promise(() => undefined);
    const { api } = other.node;
    const asked =
      options.action === "suspend"
        ? api.actOnLane(laneActionRequest("suspend", signer, options.key))
        : api.reserveNonce({ signer, ...(options.key === undefined ? {} : { requestId: options.key }) });
    const answer = asked.then(
      (done) => done,
      (error: FencepostError) => error,
    );
    const isDone = () =>
      world.database.state.reservations().length > 0 ||
      [...world.database.state.lanes.values()].some(({ suspendedBy }) => suspendedBy !== null);
    await world.until(isDone);
    world.crash(owner);
    return { ...nodes, answer };
  }

  // protects [Replicas that embed the library] src/application/cluster/owner-actions.ts
  it("is completed once by the next owner if it has a request id", async () => {
    const { answer } = await begunAndCrashed({ action: "reserve", key: "mine" });
    expect(await world.settle(answer)).toMatchObject({ reservation: { nonce: 0, requestId: "mine" } });
    expect(world.database.state.reservations()).toHaveLength(1);
    checkInvariants(world);
  });

  it("is completed by the next owner if it has an idempotency key", async () => {
    const { answer } = await begunAndCrashed({ action: "suspend", key: "once" });
    expect(await world.settle(answer)).toMatchObject([{ suspendedBy: "OPERATOR" }]);
    expect(left()).toMatchObject([{ begunBy: expect.any(String), answer: expect.any(String) }]);
  });

  it("is completed by the next owner if it is an action on a transaction", async () => {
    const { other, owner, signer } = await pair({ sessionLocks: true });
    world.holdBlocks();
    const { txId } = await world.settle(other.node.api.create(transfer({ signer })));
    await world.until(() => world.rows()[0]?.state === "TRACKING");
    owner.store.answerRequest = () => new Promise(() => undefined);
    const repriced = other.node.api.act(actionRequest("reprice", txId));
    await world.until(() => decisionsOf(txId).length === 1);
    world.crash(owner);
    expect(await world.settle(repriced)).toMatchObject({ txId });
    expect(decisionsOf(txId)).toHaveLength(1);
    expect(world.rows()[0]?.attempts).toHaveLength(2);
    world.releaseBlocks();
    await world.allSettled(1);
    checkInvariants(world);
  });

  // protects [Replicas that embed the library] src/application/cluster/owner-actions.ts
  it("is not performed twice if it cannot be repeated safely", async () => {
    const { answer } = await begunAndCrashed({ action: "reserve" });
    const unknown = await world.settle(answer);
    expect(unknown).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
    expect((unknown as FencepostError).message).toMatch(/look whether it was/);
    await world.clock.advance(10_000);
    expect(world.database.state.reservations()).toHaveLength(1);
  });
});

describe("a request whose enqueueing fails", () => {
  it("is refused if the database is unavailable", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unavailable");
    const refused = await world.refusal(other.node.api.reserveNonce({ signer }));
    expect(refused).toMatchObject({ code: "UNAVAILABLE" });
    expect(refused.extras.outcome).toBeUndefined();
    expect(left()).toEqual([]);
  });

  it("has an unknown outcome if the request may have been committed", async () => {
    const { other, signer } = await pair();
    other.store.failNextLeave("unknown-committed");
    const unknown = await world.refusal(other.node.api.reserveNonce({ signer }));
    expect(unknown).toMatchObject({ code: "UNAVAILABLE", extras: { outcome: "unknown" } });
  });
});

it("a replica withdraws its pending requests when it closes", async () => {
  const { other, owner, signer } = await pair();
  owner.store.pause();
  const startedMs = world.clock.monotonicMs();
  const asked = other.node.api.reserveNonce({ signer }).catch((error: FencepostError) => error);
  await world.until(() => left().length === 1);
  const closing = other.node.close();
  expect(await world.settle(asked)).toMatchObject({ code: "UNAVAILABLE" });
  expect(world.clock.monotonicMs() - startedMs, "nobody is kept waiting for it").toBeLessThan(1_000);
  expect(left()).toEqual([]);
  owner.store.resume();
  await world.settle(closing);
});

// protects [Replicas that embed the library] src/application/cluster/pending-requests.ts, src/application/cluster/owner-actions.ts
it("an action sent to a node with a URL reaches an embedded owner through the database", async () => {
  world = new World({ hints: true });
  const embedded = await world.startNode({ embedded: true, signers: SIGNERS.slice(0, 1) });
  const reachable = await world.startNode({ signers: SIGNERS.slice(1) });
  await world.until(() => embedded.node.gauges().lanesHeld === 1, 30_000);
  await world.clock.advance(1_000);
  const { txId } = await world.settle(reachable.node.api.create(transfer()));
  await world.settle(reachable.node.api.act(actionRequest("suspend", txId)));
  await world.settle(reachable.node.api.act(actionRequest("resume", txId)));
  await world.allSettled(1);
  expect(world.network.forwards).toEqual([]);
  checkInvariants(world);
});
